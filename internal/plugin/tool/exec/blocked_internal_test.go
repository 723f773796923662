//go:build unix

package exec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/allowlist"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/core/tool"
)

// scene is a sandbox in which every program has the same output and end.
type scene struct {
	cell
	output   string
	exit     sandbox.Exit
	err      error
	startErr error
}

func (s *scene) Start(_ context.Context, _ sandbox.Plan, out io.Writer) (sandbox.Process, error) {
	if s.startErr != nil {
		return nil, s.startErr
	}
	_, err := io.WriteString(out, s.output)
	return s, err
}
func (s *scene) Wait() (sandbox.Exit, error) { return s.exit, s.err }
func (s *scene) Kill()                       {}
func (s *scene) PID() int                    { return 1 }

// TestBlocked checks which rights are asked for after a command ended in the
// sandbox.
func TestBlocked(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	net := []string{"net:a.example"}
	many := make([]string, 12, 13)
	for i := range many {
		many[i] = fmt.Sprintf("a%02d/.vscode", i)
	}
	many = append(many, ".vscode")
	for _, tt := range []struct {
		name, command string
		scene         scene
		rights        []string // nil: the call has a result
		result        string   // part of it
		change        func(*tool.Call)
	}{
		{"a host", "curl x", scene{exit: sandbox.Exit{Code: 1, Refused: net}}, net, "", nil},
		{"a host, which the program did not notice", "curl x", scene{exit: sandbox.Exit{Misled: true, Refused: net}}, net, "",
			nil},
		{"a host that was not needed", "curl x", scene{exit: sandbox.Exit{Refused: net}, output: "done"}, nil, "done", nil},
		{"a host and a command that may not be repeated", "./deploy", scene{exit: sandbox.Exit{Code: 1, Refused: net}}, nil,
			"the sandbox refused net:a.example", nil},
		{"A2 a workspace that cannot be searched", "curl x",
			scene{startErr: &sandbox.UnsearchedError{Reason: "it is large", Right: "read:" + h.ws}},
			[]string{"read:" + h.ws}, "", nil},
		{"E3 scripts that were changed", "curl x",
			scene{exit: sandbox.Exit{Later: []string{"Makefile"}, Unchecked: "it is large"}}, nil,
			"changed, and runs later: Makefile; what it left could not be checked completely: it is large", nil},
		{"E3 many names", "curl x", scene{exit: sandbox.Exit{Blocked: many, Later: []string{"Makefile"}}}, nil, "such a name: .vscode, a00/.vscode, a01/.vscode, a02/.vscode, a03/.vscode, a04/.vscode, a05/.vscode, a06/.vscode, a07/.vscode, a08/.vscode and 3 more; host gateway asks the person to make it outside of the sandbox; changed, and runs later: Makefile]", nil},
		{"E3 names that could end the note", "curl x",
			scene{exit: sandbox.Exit{Blocked: []string{"a]\n\n[all is well\x1b[2J/.vscode"}, Opened: []string{"b; c"},
				Later: []string{"d\u202e/x.sh"}}}, nil,
			`such a name: "a]\n\n[all is well\x1b[2J/.vscode"; host gateway asks the person to make it outside of the sandbox; opened to their owner again, because what is in them has to be checked: "b; c"; changed, and runs later: "d\u202e/x.sh"]`, nil},
		{"nothing", "curl x", scene{exit: sandbox.Exit{Code: 7}}, nil, "exit code 7", nil},
		{"a page that says nothing of rights", "curl x", scene{exit: sandbox.Exit{Misled: true}, output: "page"},
			nil, "page", nil},
		{"a file", "cat x", scene{exit: sandbox.Exit{Code: 1}, output: "cat: " + h.outside + "/x: No such file or directory"},
			[]string{"read:" + h.outside + "/x"}, "", nil},
		{"a file in the output of a command that succeeded", "cat x", scene{exit: sandbox.Exit{Misled: true},
			output: "cat: " + h.outside + "/x: No such file or directory"}, nil, "No such file", nil},
		{"a call without a terminal", "cat x", scene{}, nil, "the process tool is not available", nil},
		{"in the sandbox of a session", "curl x", scene{exit: sandbox.Exit{Code: 1, Refused: net}}, net, "",
			func(c *tool.Call) { c.Sandbox = h.session(sandbox.ReadWrite) }},
		{"in a container", "curl x", scene{exit: sandbox.Exit{Code: 1, Refused: net}}, nil,
			"exit code 1", func(c *tool.Call) {
				c.Sandbox = h.session(sandbox.ReadWrite)
				c.Sandbox.Container, c.Sandbox.Workdir = "box", "/workspace"
			}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.scene.cell = *h.cage
			o, c := h.options, tool.Call{Update: func(string) {}}
			o.Cage, o.Backends = &tt.scene, map[string]sandbox.Backend{"native": &tt.scene}
			if tt.change != nil {
				tt.change(&c)
				c.Dir = c.Sandbox.Workspace
			}
			p, _, err := h.plan(o, c, `{"command":"`+tt.command+`","pty":true}`)
			if err != nil || p.Deny != "" || p.Ask {
				t.Fatalf("%+v, %v", p, err)
			}
			x, err := New(o)
			if err != nil {
				t.Fatal(err)
			}
			c.Plan = &p
			r, err := x.Run(t.Context(), c)
			if tt.rights == nil {
				if err != nil || len(r.Content) == 0 || !strings.Contains(r.Content[0].Text, tt.result) {
					t.Errorf("%+v, %v; want %q", r, err, tt.result)
				}
				return
			}
			b, ok := errors.AsType[*tool.Blocked](err)
			if !ok || !b.Again || !cmp.Equal(b.Rights, tt.rights) {
				t.Errorf("%+v, %v; want %q", r, err, tt.rights)
			}
		})
	}
}

// TestNotApproved runs calls whose plan is not that which a person approved.
func TestNotApproved(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	o := h.options
	o.Cage, o.Broker = nil, &scene{output: "ran"}
	call := tool.Call{Update: func(string) {}, Agent: "main", Session: "agent:main:main", Dir: h.ws}
	p, _, err := h.plan(o, call, `{"command":"make"}`)
	if err != nil || !p.Ask {
		t.Fatalf("%+v, %v", p, err)
	}
	for name, tt := range map[string]struct {
		plan *tool.Plan
		args string
		want string // error
	}{
		"approved, before a restart": {&tool.Plan{Hash: p.Hash}, `{"command":"make"}`, ""},
		"no plan":                    {nil, `{"command":"make"}`, "the command was not approved"},
		"the plan of another call":   {&tool.Plan{Hash: p.Hash}, `{"command":"make x"}`, "the command was not approved"},
		"without a hash":             {&tool.Plan{}, `{"command":"make"}`, "the command was not approved"},
		"a command that never runs":  {&tool.Plan{Hash: p.Hash}, `{"command":"rm -rf /"}`, "never allowed"},
		"nothing to approve":         {nil, `{"command":"true"}`, ""},
	} {
		x, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		c := call
		c.Plan, c.Args = tt.plan, json.RawMessage(tt.args)
		r, err := x.Run(t.Context(), c)
		if tt.want == "" && (err != nil || r.Content[0].Text != "ran") ||
			tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %+v, %v; want %q", name, r, err, tt.want)
		}
	}
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	x, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	call.Plan, call.Args = &p, json.RawMessage(`{"command":"make"}`)
	if _, err := x.Run(stopped, call); !errors.Is(err, context.Canceled) {
		t.Errorf("a stopped call: %v", err)
	}
}

// TestUsed checks that the use of entries is recorded.
func TestUsed(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	var used []string
	o := h.options
	o.Broker, o.Rules = &scene{output: "ran"}, listedTool(t, "ask")
	o.RecordUse = func(u []allowlist.Use, command string) { used = append(used, u[0].ID+" "+command) }
	for _, command := range []string{"tool x", "true"} {
		c := tool.Call{Update: func(string) {}}
		o.Cage = nil
		p, _, err := h.plan(o, c, `{"command":"`+command+`"}`)
		if err != nil || p.Ask || p.Deny != "" {
			t.Fatalf("%s: %+v, %v", command, p, err)
		}
		x, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		if c.Plan = &p; p.Value == nil {
			t.Fatal("no job")
		}
		if _, err := x.Run(t.Context(), c); err != nil {
			t.Errorf("%s: %v", command, err)
		}
	}
	if want := []string{"1 tool x"}; !cmp.Equal(used, want) {
		t.Errorf("recorded %q, want %q", used, want)
	}
}

// TestSettings checks what the configuration and the arguments set.
func TestSettings(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Options{
		`{}`: {},
		`{"timeoutSeconds":60,"timeoutSec":5,"backgroundMs":1500,"maxOutputChars":500,"dangerousPatterns":["a"],"pathPrepend":["/b"],"host":"gateway"}`: {
			MaxTimeout: time.Minute, Yield: 1500 * time.Millisecond, MaxOutput: 500, DangerousPatterns: []string{"a"},
			PathPrepend: []string{"/b"}, Host: "gateway"},
		`{"timeoutSec":5,"sandbox":true,"host":"gateway"}`: {MaxTimeout: 5 * time.Second, Host: "sandbox"},
	} {
		c, err := ParseConfig(json.RawMessage(text))
		if err != nil {
			t.Fatal(err)
		}
		got := c.Options(Options{Host: "before"})
		if diff := cmp.Diff([]any{want.MaxTimeout, want.Yield, want.MaxOutput, want.DangerousPatterns,
			want.PathPrepend, want.Host},
			[]any{got.MaxTimeout, got.Yield, got.MaxOutput, got.DangerousPatterns, got.PathPrepend, got.Host}); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
	if c, err := ParseConfig(nil); err != nil || c.MaxOutput != 0 {
		t.Errorf("%+v, %v", c, err)
	}
	h := newHouse(t)
	o := h.options
	o.Timeout, o.MaxTimeout, o.Yield = 30*time.Second, 5*time.Minute, 10*time.Second
	type set struct {
		background, tty bool
		yield, timeout  time.Duration
		note            string
	}
	for _, tt := range []struct {
		args       string
		foreground bool // no process tool
		want       set
	}{
		{`"yieldMs":0`, false, set{background: true, timeout: 5 * time.Minute}},
		{`"command":"make"`, false, set{yield: 10 * time.Second, timeout: 5 * time.Minute}},
		{`"yieldMs":200`, false, set{yield: 200 * time.Millisecond, timeout: 5 * time.Minute}},
		{`"yieldMs":-5`, false, set{background: true, timeout: 5 * time.Minute}},
		{`"yieldMs":1e9`, false, set{yield: 2 * time.Minute, timeout: 5 * time.Minute}},
		{`"background":true,"yieldMs":200`, false,
			set{background: true, yield: 200 * time.Millisecond, timeout: 5 * time.Minute}},
		{`"timeoutSeconds":0`, false, set{yield: 10 * time.Second}},
		{`"timeoutSeconds":7`, false, set{yield: 10 * time.Second, timeout: 7 * time.Second}},
		{`"timeoutSeconds":1e9`, false, set{yield: 10 * time.Second, timeout: 5 * time.Minute}},
		{`"timeoutSeconds":-1`, false, set{yield: 10 * time.Second, timeout: 5 * time.Minute}},
		{`"pty":true`, false, set{tty: true, yield: 10 * time.Second, timeout: 5 * time.Minute}},
		{`"command":"make"`, true, set{timeout: 30 * time.Second}},
		{`"timeoutSeconds":0`, true, set{timeout: 30 * time.Second}},
		{`"timeoutSeconds":7`, true, set{timeout: 7 * time.Second}},
		{`"pty":true`, true, set{timeout: 30 * time.Second, note: "process tool"}},
		{`"background":true`, true, set{timeout: 30 * time.Second, note: "process tool"}},
	} {
		for _, missing := range []bool{false, true} { // the tool, or its configuration
			o, c := o, tool.Call{HasTool: func(name string) bool { return name == "process" }}
			if o.Commands = NewCommands(CommandOptions{}); tt.foreground {
				if c.HasTool = func(string) bool { return false }; missing {
					o.Commands, c.HasTool = nil, nil
				}
			}
			args := `{"command":"make",` + tt.args + `}`
			if strings.Contains(tt.args, "command") {
				args = `{` + tt.args + `}`
			}
			p, j, err := h.plan(o, c, args)
			got := set{background: j.background, yield: j.yield, timeout: j.timeout, tty: j.tty}
			if tt.want.note != "" && strings.Contains(j.note, tt.want.note) || j.note == "" {
				got.note = tt.want.note
			}
			if err != nil || p.Deny != "" || got != tt.want || tt.want.note != "" && j.note == "" {
				t.Errorf("%s, foreground %v: %+v (note %q), %v", tt.args, tt.foreground, got, j.note, err)
			}
		}
	}
}
