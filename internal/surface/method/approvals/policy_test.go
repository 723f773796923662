package approvals_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/surface/method/methodtest"
	"github.com/chela-ai/chela/wire"
)

// commanding is a stand-in for the tool exec that requires approval of its
// arguments.
type commanding struct{ once bool }

func (commanding) Spec() tool.Spec {
	return tool.Spec{Name: "exec", Effect: tool.Acts, Schema: json.RawMessage(`{"type":"object"}`)}
}

func (c commanding) Plan(_ context.Context, k tool.Call) (tool.Plan, error) {
	return tool.Plan{
		Effect: tool.Acts,
		Ask:    true,
		Reason: "it acts",
		Text:   "run " + string(k.Args),
		Hash:   string(k.Args),
		Once:   c.once,
	}, nil
}

func (commanding) Run(context.Context, tool.Call) (tool.Result, error) { return tool.Text("ran"), nil }

// ask sends a message and returns the approval it causes; nil: the run ended
// without one.
func ask(t *testing.T, h *methodtest.Fixture, session string) *wire.Approval {
	t.Helper()
	run, err := h.Send(t.Context(), session, "go on")
	if err != nil {
		t.Fatal(err)
	}
	for e := range h.Events() {
		switch e.Name {
		case wire.EventApprovalRequested:
			var a wire.Approval
			if err := e.Decode(&a); err != nil {
				t.Fatal(err)
			}
			return &a
		case wire.EventChat:
			var c wire.Chat
			if err := e.Decode(&c); err == nil && c.RunID == run && c.State == wire.StateFinal {
				return nil
			}
		}
	}
	t.Fatal("the events ended")
	return nil
}

func rulesOf(t *testing.T, h *methodtest.Fixture) wire.ExecPolicySnapshot {
	t.Helper()
	return methodtest.Do[wire.ExecPolicySnapshot](t, h, wire.MethodExecPolicy, nil)
}

func TestAllowedAlways(t *testing.T) {
	t.Parallel()
	call := func(id, args string) llmtest.Step { return llmtest.Call(id, "exec", args) }
	done := llmtest.Say("Done.")
	h := methodtest.New(t, llmtest.NewScript(
		call("c1", `{"a":1}`), done, call("c2", `{"a":1}`), done, call("c3", `{"a":2}`), done, call("c4", `{"a":1}`), done,
	), commanding{})
	a := ask(t, h, "main")
	if a == nil {
		t.Fatal("no approval was requested")
	}
	methodtest.Do[wire.OK](t, h, wire.MethodApprovalResolve, wire.ApprovalResolve{ID: a.ID, Decision: wire.AllowAlways})
	h.End(a.Request.RunID)
	if again := ask(t, h, "other"); again != nil {
		t.Fatalf("AP-09 the same command requires approval in another session of the agent: %+v", again)
	}
	other := ask(t, h, "main")
	if other == nil {
		t.Fatal("AP-09 other arguments require no approval")
	}
	methodtest.Do[wire.OK](t, h, wire.MethodApprovalResolve, wire.ApprovalResolve{ID: other.ID, Decision: wire.Deny})
	h.End(other.Request.RunID)

	s := rulesOf(t, h)
	list := s.File.Agents["main"].Allowlist
	if len(list) != 1 || list[0].ID != a.ID || list[0].Source != wire.AllowAlways ||
		!strings.HasPrefix(list[0].Pattern, "=command:") || len(list[0].Pattern) < 16 ||
		!strings.Contains(list[0].Text, `{"a":1}`) {
		t.Fatalf("the rules contain %+v", list)
	}
	if _, err := os.Stat(s.Path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a decision created a document: %v", err)
	}
	// Rules without it revoke it.
	delete(s.File.Agents, "main")
	next := methodtest.Do[wire.ExecPolicySnapshot](t, h, wire.MethodExecPolicySet,
		wire.ExecPolicySet{File: s.File, BaseHash: s.Hash})
	if len(next.File.Agents) != 0 || next.Hash == s.Hash || !next.Exists {
		t.Errorf("afterwards: %+v", next)
	}
	if ask(t, h, "main") == nil {
		t.Error("a revoked command requires no approval")
	}
}

func TestNeverRemembered(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript(
		llmtest.Call("c1", "exec", `{}`), llmtest.Say("Done."), llmtest.Call("c2", "exec", `{}`), llmtest.Say("Done."),
	), commanding{once: true})
	a := ask(t, h, "main")
	if a == nil {
		t.Fatal("no approval was requested")
	}
	shown := methodtest.Do[wire.ApprovalShown](t, h, wire.MethodApprovalGet, wire.ApprovalID{ID: a.ID})
	if strings.Join(shown.Allowed, " ") != "allow-once deny" {
		t.Errorf("AP-15 choices: %v", shown.Allowed)
	}
	methodtest.Do[wire.OK](t, h, wire.MethodApprovalResolve, wire.ApprovalResolve{ID: a.ID, Decision: wire.AllowAlways})
	if end := h.End(a.Request.RunID); end.Message.Text() != "Done." {
		t.Errorf("ended with %+v", end)
	}
	if got := rulesOf(t, h).File.Agents; len(got) != 0 {
		t.Errorf("AP-15 the decision was stored: %+v", got)
	}
	if ask(t, h, "main") == nil {
		t.Error("AP-15 no approval was requested the second time")
	}
}

func TestSetPolicy(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript())
	set := func(p wire.ExecPolicySet) (wire.ExecPolicySnapshot, error) {
		var s wire.ExecPolicySnapshot
		err := h.Call(t.Context(), wire.MethodExecPolicySet, p, &s)
		return s, err
	}
	file := wire.ExecPolicy{
		Version: 1, Socket: &wire.ExecSocket{Path: "/s", Token: "secret"}, Defaults: wire.ExecSettings{Ask: "always"},
		Agents: map[string]wire.ExecAgent{"main": {Allowlist: []wire.ExecEntry{{Pattern: "make"}}}},
	}
	first, err := set(wire.ExecPolicySet{File: file})
	if err != nil || first.Resolved.Ask != "always" || first.File.Agents["main"].Allowlist[0].ID == "" ||
		first.File.Socket.Path != "/s" || first.File.Socket.Token != "" {
		t.Fatalf("%+v, %v", first, err)
	}
	refused := func(name string, p wire.ExecPolicySet, says string) {
		t.Helper()
		before, _ := os.ReadFile(first.Path)
		_, err := set(p)
		we, ok := errors.AsType[*wire.Error](err)
		if !ok || we.Code != wire.InvalidRequest || !strings.Contains(we.Message, says) {
			t.Errorf("%s: %v, want one about %q", name, err, says)
		}
		if after, _ := os.ReadFile(first.Path); string(after) != string(before) {
			t.Errorf("%s: the document has become %s", name, after)
		}
	}
	refused("without a base hash", wire.ExecPolicySet{File: file}, "baseHash")
	refused("with an outdated base hash", wire.ExecPolicySet{File: file, BaseHash: "0"}, "changed since")
	bad := file
	bad.Defaults.Security = "fulll"
	refused("an unknown property", wire.ExecPolicySet{File: bad, BaseHash: first.Hash}, "/file")
	bad = file
	bad.Version = 2
	refused("an unsupported version", wire.ExecPolicySet{File: bad, BaseHash: first.Hash}, "version")

	// Other entries of the document must be preserved.
	b, err := os.ReadFile(first.Path)
	if err != nil || !strings.Contains(string(b), `"token": "secret"`) {
		t.Fatalf("%s, %v", b, err)
	}
	mine := strings.Replace(string(b), `"version": 1`, `"version": 1, "note": "mine"`, 1)
	if err := os.WriteFile(first.Path, []byte(mine), 0o600); err != nil {
		t.Fatal(err)
	}
	now := rulesOf(t, h)
	now.File.Defaults.Ask = ""
	list := now.File.Agents["main"]
	list.Allowlist = append(list.Allowlist, wire.ExecEntry{Pattern: "rg", Source: wire.AllowAlways, Text: "rg x"},
		wire.ExecEntry{Pattern: "jq"})
	now.File.Agents["main"] = list
	written, err := set(wire.ExecPolicySet{File: now.File, BaseHash: now.Hash})
	if err != nil {
		t.Fatal(err)
	}
	var patterns []string // without commands allowed always, which are not part of the document
	for _, e := range written.File.Agents["main"].Allowlist {
		patterns = append(patterns, e.Pattern)
	}
	if !slices.Equal(patterns, []string{"make", "jq"}) {
		t.Errorf("on the allowlist: %q", patterns)
	}
	if b, _ := os.ReadFile(first.Path); !strings.Contains(string(b), `"note": "mine"`) ||
		!strings.Contains(string(b), `"token": "secret"`) {
		t.Errorf("the document is %s", b)
	}

	// AP-16: an invalid document is reported and not replaced.
	if err := os.WriteFile(first.Path, []byte(`{"version": 1,`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := h.Call(t.Context(), wire.MethodExecPolicy, nil, nil); err == nil ||
		!strings.Contains(err.Error(), "exec-approvals.json") {
		t.Errorf("get: %v", err)
	}
	if _, err := set(wire.ExecPolicySet{File: file}); err == nil {
		t.Error("it was replaced")
	}
	if b, _ := os.ReadFile(first.Path); string(b) != `{"version": 1,` {
		t.Errorf("the document is %s", b)
	}
}
