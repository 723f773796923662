package nodehost_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/surface/identity"
	"github.com/chela-ai/chela/internal/surface/nodehost"
	"github.com/chela-ai/chela/wire"
)

// rules is a tool that runs commands, as the rules of a test say.
type rules struct{ ran []string }

func (*rules) Spec() tool.Spec { return tool.Spec{Name: "exec"} }

func (r *rules) Plan(_ context.Context, c tool.Call) (tool.Plan, error) {
	var a struct{ Command string }
	if err := json.Unmarshal(c.Args, &a); err != nil {
		return tool.Plan{}, err
	}
	switch {
	case strings.HasPrefix(a.Command, "bad"):
		return tool.Plan{}, errors.New("no such folder")
	case strings.HasPrefix(a.Command, "never"):
		return tool.Plan{Deny: "It is never run."}, nil
	case strings.HasPrefix(a.Command, "ask"):
		return tool.Plan{Ask: true, Reason: "it is dear"}, nil
	}
	return tool.Plan{}, nil
}

func (r *rules) Run(_ context.Context, c tool.Call) (tool.Result, error) {
	r.ran = append(r.ran, string(c.Args))
	return tool.Detailed("out\n", map[string]any{"exitCode": 3}), nil
}

func TestTools(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, command, params string
		asks                  bool
		want                  string // part of the answer or of the error
		ran                   string // part of the arguments
	}{
		{"a line for a shell", "system.run", `{"command":["/bin/sh","-lc","echo a | wc"],"rawCommand":"echo a | wc","cwd":"/w","env":{"A":"b"},"timeoutMs":1500}`, false, `"exitCode":3,"timedOut":false,"success":false,"stdout":"out\n"`, `{"command":"echo a | wc","env":{"A":"b"},"timeoutSeconds":1.5,"workdir":"/w"}`},
		{"a program", "system.run", `{"command":["echo","a b","$x"]}`, false, `"exitCode":3`, `echo 'a b' '$x'`},
		{"the text of OpenClaw for a program", "system.run", `{"command":["echo","a"],"rawCommand":"echo a"}`, false,
			`"exitCode":3`, `echo a`},
		{"another text than what runs", "system.run", `{"command":["rm","x"],"rawCommand":"echo a"}`, false,
			"rawCommand is not the command", ""},
		{"no command", "system.run", `{"command":[]}`, false, "command required", ""},
		{"parameters that are none", "system.run", `[]`, false, "system.run: ", ""},
		{"denied", "system.run", `{"command":["never"]}`, false, "SYSTEM_RUN_DENIED: It is never run. Type this.", ""},
		{"denied, although approved", "system.run", `{"command":["never"],"approved":true}`, true, "SYSTEM_RUN_DENIED", ""},
		{"needs an approval", "system.run", `{"command":["ask"]}`, true,
			"SYSTEM_RUN_DENIED: This command needs an approval that this machine accepts: it is dear.", ""},
		{"approvals of the gateway do not count", "system.run", `{"command":["ask"],"approved":true}`, false,
			"SYSTEM_RUN_DENIED", ""},
		{"approvals of the gateway count", "system.run", `{"command":["ask"],"approved":true}`, true, `"exitCode":3`, "ask"},
		{"cannot be planned", "system.run", `{"command":["bad"]}`, false, "no such folder", ""},
		{"prepared", "system.run.prepare", `{"command":["/bin/sh","-lc","ls"],"rawCommand":"ls","cwd":"/w","agentId":"main"}`, false, `{"plan":{"argv":["/bin/sh","-lc","ls"],"cwd":"/w","commandText":"ls","agentId":"main"},"execPolicy":{"security":"allowlist","ask":"off"}}`, ""},
		{"which", "system.which", `{"bins":["ls","nope"]}`, false, `{"bins":{"ls":"/bin/ls"}}`, ""},
		{"which without programs", "system.which", `{}`, false, "bins required", ""},
		{"no notifications", "system.notify", `{"title":"a"}`, false, "shows no notifications", ""},
		{"unknown", "camera.snap", `{}`, false, "command not supported", ""},
	} {
		r := &rules{}
		tools := nodehost.Tools{
			Run: r, Dir: "/", Hint: "Type this.", Asks: func() bool { return tc.asks },
			Policy: func() (wire.NodeExecPolicy, error) {
				return wire.NodeExecPolicy{Security: "allowlist", Ask: "off"}, nil
			},
			Look: func(name string) string {
				if name == "ls" {
					return "/bin/ls"
				}
				return ""
			},
		}
		got, err := tools.Do(t.Context(), wire.NodeInvokeRequest{ID: "c1", Command: tc.command, ParamsJSON: &tc.params})
		text := ""
		if b, merr := json.Marshal(got); err == nil && merr == nil {
			text = string(b)
		} else if err != nil {
			text = err.Error()
		}
		ran := strings.Join(r.ran, "")
		if !strings.Contains(text, tc.want) || !strings.Contains(ran, tc.ran) || tc.ran == "" && ran != "" {
			t.Errorf("%s: %s, %v; ran %q", tc.name, text, err, ran)
		}
	}
}

func TestState(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if nodehost.Exists(dir) {
		t.Error("an empty folder has a node")
	}
	s, err := identity.Open(nodehost.Path(dir))
	if err != nil {
		t.Fatal(err)
	}
	g := identity.Gateway{URL: "wss://g", Pin: "ab"}
	if err := s.SetLast(g, "desk"); err != nil {
		t.Fatal(err)
	}
	again, err := identity.Open(nodehost.Path(dir))
	if err != nil {
		t.Fatal(err)
	}
	last, name := again.Last()
	if again.ID() != s.ID() || last != g || name != "desk" || again.Paired(g.URL) || !nodehost.Exists(dir) {
		t.Errorf("read again: %s, %+v, %q", again.ID(), last, name)
	}
	path := filepath.Join(dir, filepath.FromSlash(nodehost.File))
	if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("others can read the key: %v, %v", info, err)
	}
	if err := os.WriteFile(path, []byte(`{"seed":"aaaa"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := identity.Open(nodehost.Path(dir)); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("a damaged key: %v", err)
	}
}

// TestRefused checks that the host ends when the gateway is not there for it, and that it does
// not send a credential in the clear.
func TestRefused(t *testing.T) {
	t.Parallel()
	s, err := identity.Open(nodehost.Path(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	o := nodehost.Options{
		Gateway: "ws://example.org", URL: "ws://example.org", State: s, Tell: func(l string) { lines = append(lines, l) },
		Delay: func(int, error) time.Duration { return 0 }, Auth: wire.Auth{Token: "secret"},
	}
	if err := nodehost.Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "without encryption") {
		t.Errorf("%v, told %q", err, lines)
	}
}
