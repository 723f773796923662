package approvals_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/core/approval"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/surface/method/methodtest"
	"github.com/chela-ai/chela/wire"
)

func TestAnyKind(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript(llmtest.Call("c1", "act", `{}`), llmtest.Say("Done.")), careful{})
	if _, err := h.Send(t.Context(), "main", "act"); err != nil {
		t.Fatal(err)
	}
	var asked wire.Approval
	for e := range h.Events() {
		if e.Name == wire.EventApprovalRequested {
			if err := e.Decode(&asked); err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	found := func() wire.ApprovalSnapshot {
		t.Helper()
		return methodtest.Do[wire.ApprovalFound](t, h, wire.MethodAnyApprovalGet, wire.ApprovalID{ID: asked.ID}).Approval
	}
	if a := found(); a.Status != wire.ApprovalPending || a.Shown.Command != "act now" ||
		a.Session == "" || a.Resolver != nil {
		t.Errorf("pending: %+v", a)
	}
	for _, method := range []string{wire.MethodPluginApprovals, wire.MethodSystemApprovals} {
		if got := methodtest.Do[[]wire.Approval](t, h, method, nil); got == nil || len(got) != 0 {
			t.Errorf("%s: %+v, want an empty list", method, got)
		}
	}
	for _, tt := range []struct {
		name string
		in   wire.AnyApprovalResolve
		code string
	}{
		{"another kind", wire.AnyApprovalResolve{ID: asked.ID, Kind: "plugin", Decision: wire.Deny}, wire.ApprovalNotFound},
		{"another request", wire.AnyApprovalResolve{ID: "none", Kind: wire.ApprovalExec, Decision: wire.Deny},
			wire.ApprovalNotFound},
		{"an invalid decision", wire.AnyApprovalResolve{ID: asked.ID, Kind: wire.ApprovalExec, Decision: "perhaps"},
			wire.InvalidRequest},
	} {
		err := h.Call(t.Context(), wire.MethodAnyApprovalResolve, tt.in, nil)
		if we, ok := errors.AsType[*wire.Error](err); !ok || we.Code != tt.code {
			t.Errorf("%s: %v, want %s", tt.name, err, tt.code)
		}
	}
	in := wire.AnyApprovalResolve{ID: asked.ID, Kind: wire.ApprovalExec, Decision: wire.Deny}
	for _, first := range []bool{true, false} {
		got := methodtest.Do[wire.ApprovalResolution](t, h, wire.MethodAnyApprovalResolve, in)
		if got.Applied != first || got.Approval.Status != wire.ApprovalDenied || got.Approval.Decision != wire.Deny ||
			got.Approval.Resolver == nil {
			t.Errorf("decided, applied %v: %+v", first, got)
		}
		in.Decision = wire.AllowOnce // already decided
	}
	if a := found(); a.Status != wire.ApprovalDenied || a.Resolved == 0 || a.Source.Session != "agent:main:main" {
		t.Errorf("afterwards: %+v", a)
	}
}

func TestHistory(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript())
	history := func(in wire.ApprovalHistoryGet) wire.ApprovalHistory {
		t.Helper()
		return methodtest.Do[wire.ApprovalHistory](t, h, wire.MethodApprovalHistory, in)
	}
	if got := history(wire.ApprovalHistoryGet{}); got.Items == nil || len(got.Items) != 0 {
		t.Errorf("no approvals: %+v, want an empty list", got)
	}
	h.Put(func(tx store.Tx) error {
		for _, id := range []string{"a", "b", "open", "c"} {
			r := approval.Request{
				ID:      id,
				Session: "agent:main:main",
				Tool:    "exec",
				Text:    "ls",
				Created: time.Now(),
				Expires: time.Now().Add(time.Hour),
			}
			if id != "open" {
				r.Decision, r.By, r.Via, r.Decided = approval.Deny, "owner", "device:abc", time.Now()
			}
			if err := tx.Approvals().Put(r); err != nil {
				return err
			}
		}
		return nil
	})
	var got []string
	page := wire.ApprovalHistoryGet{Limit: 2, Kind: wire.ApprovalExec}
	for {
		p := history(page)
		for _, s := range p.Items {
			got = append(got, s.ID)
			if s.Status != wire.ApprovalDenied || s.Resolver == nil || s.Resolver.ID != "abc" || s.Resolved == 0 {
				t.Errorf("%+v", s)
			}
		}
		if page.Cursor = p.Next; p.Next == "" {
			break
		}
	}
	if want := []string{"c", "b", "a"}; !slices.Equal(got, want) {
		t.Errorf("decided: %v, want %v", got, want)
	}
	if got := history(wire.ApprovalHistoryGet{Kind: "plugin"}); got.Items == nil || len(got.Items) != 0 {
		t.Errorf("of another kind: %+v", got)
	}
	for _, limit := range []int{-1, 101} {
		if err := h.Call(t.Context(), wire.MethodApprovalHistory, wire.ApprovalHistoryGet{Limit: limit}, nil); err == nil {
			t.Errorf("a limit of %d is accepted", limit)
		}
	}
}

// TestPluginForm asks a client that shows approvals of plug-ins only, as OpenClaw's
// terminal interface does, and takes its answer.
func TestPluginForm(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript(llmtest.Call("c1", "act", `{}`), llmtest.Say("Done.")), careful{})
	c := h.Dial(client.Options{Caps: []string{wire.CapPluginApprovals}})
	defer c.Close()
	next := func(name string, v any) {
		t.Helper()
		for e := range c.Events() {
			if e.Name == name {
				if err := e.Decode(v); err != nil {
					t.Fatal(err)
				}
				return
			}
		}
		t.Fatalf("no %s", name)
	}
	run, err := h.Send(t.Context(), "main", "act")
	if err != nil {
		t.Fatal(err)
	}
	var asked wire.PluginApproval
	next(wire.EventPluginApprovalRequested, &asked)
	q := asked.Request
	if asked.ID == "" || asked.Created == 0 || asked.Expires == 0 || q.Title == "" || q.Description != "act now" ||
		q.Tool != "act" || q.SessionKey != "agent:main:main" || q.AgentID != "main" {
		t.Errorf("asked: %+v", asked)
	}
	var pending []wire.PluginApproval
	if err := c.Call(t.Context(), wire.MethodPluginApprovals, nil, &pending); err != nil || len(pending) != 1 ||
		pending[0].ID != asked.ID {
		t.Errorf("pending: %+v, %v", pending, err)
	}
	if other := methodtest.Do[[]wire.PluginApproval](t, h, wire.MethodPluginApprovals, nil); len(other) != 0 {
		t.Errorf("a client that shows all approvals gets it twice: %+v", other)
	}
	answer := map[string]any{"id": asked.ID, "decision": wire.AllowOnce}
	if err := c.Call(t.Context(), wire.MethodPluginApprovalResolve, answer, nil); err != nil {
		t.Fatal(err)
	}
	var resolved wire.ApprovalResolved
	if next(wire.EventPluginApprovalResolved, &resolved); resolved.ID != asked.ID || resolved.Decision != wire.AllowOnce {
		t.Errorf("resolved: %+v", resolved)
	}
	if end := h.End(run); end.State != wire.StateFinal {
		t.Errorf("the run ended as %+v", end)
	}
}
