//go:build unix

package exec

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/allowlist"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/core/tool"
)

// cell is a sandbox that starts nothing: these tests only plan.
type cell struct {
	sandbox.Backend
	level sandbox.Level
}

func (c *cell) Level(context.Context) sandbox.Level { return c.level }

// house is a machine to plan commands on: a workspace in Chela's own folder, a
// folder outside, and a sandbox.
type house struct {
	t                      *testing.T
	root, own, ws, outside string
	cage, native           *cell
	options                Options
}

func newHouse(t *testing.T) *house {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h := &house{
		t:       t,
		root:    root,
		own:     filepath.Join(root, "own"),
		ws:      filepath.Join(root, "own", "ws"),
		outside: filepath.Join(root, "outside"),
	}
	for _, name := range []string{"own/ws/sub/notes", "own/ws/.env", "own/chela.json", "outside/x",
		"private/y", "bin/tool"} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"own/ws/state": h.own, "bridge": h.own} {
		if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	full := sandbox.Level{Name: "full", Complete: true}
	h.cage, h.native = &cell{level: full}, &cell{level: full}
	h.options = Options{
		Broker:      h.cage,
		Cage:        h.cage,
		Backends:    map[string]sandbox.Backend{"native": h.native},
		Never:       func() []string { return []string{h.own} },
		Interactive: true,
		PathPrepend: []string{filepath.Join(root, "bin")},
	}
	return h
}

// plan plans a call with arguments in JSON, in which R is the root.
func (h *house) plan(o Options, c tool.Call, args string) (tool.Plan, job, error) {
	h.t.Helper()
	x, err := New(o)
	if err != nil {
		h.t.Fatal(err)
	}
	c.Agent, c.Session, c.Args = "main", "agent:main:main", json.RawMessage(strings.ReplaceAll(args, "R/", h.root+"/"))
	if c.Dir == "" {
		c.Dir = h.ws
	}
	p, err := x.(tool.Planner).Plan(h.t.Context(), c)
	j, _ := p.Value.(job)
	return p, j, err
}

// decided describes what was decided about a call.
func (h *house) decided(p tool.Plan, j job, err error) string {
	switch {
	case err != nil:
		return "error: " + err.Error()
	case p.Deny != "":
		return "denied: " + p.Deny
	}
	out := "runs"
	if p.Ask {
		out = "asks"
	}
	switch j.cage {
	case nil:
		out += " outside"
	case sandbox.Broker(h.native):
		out += " in the session's sandbox"
	}
	if j.cage != nil && !j.plan.Rights.Write {
		out += ", reading"
	}
	return out
}

// listedTool returns the rules of a mode with an entry for a program that runs
// on the host.
func listedTool(t *testing.T, mode string) func(chela.AgentID) (*allowlist.Rules, error) {
	t.Helper()
	d, err := allowlist.Parse(
		[]byte(`{"version":1,"agents":{"main":{"allowlist":[{"id":"1","pattern":"tool","host":true}]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	return func(id chela.AgentID) (*allowlist.Rules, error) {
		return allowlist.Config{Mode: mode}.Rules(allowlist.Default(), d, id, "")
	}
}

// TestPlace checks where a command of an unsandboxed session runs.
func TestPlace(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for _, tt := range []struct {
		mode, args, want, reason string
		change                   func(*Options)
	}{
		{"auto", `{"command":"make"}`, "runs", "", nil},
		{"auto", `{"command":"ls"}`, "runs, reading", "", nil},
		{"auto", `{"command":"ls","background":true}`, "runs, reading", "",
			func(o *Options) { o.Commands = NewCommands(CommandOptions{}) }},
		{"auto", `{"command":"make","workdir":"R/outside"}`, "asks outside", "", nil},
		{"auto", `{"command":"make","host":"gateway"}`, "asks outside", "it is to run outside of the sandbox", nil},
		{"auto", `{"command":"ls","host":"local"}`, "asks outside", "it is to run outside of the sandbox", nil},
		{"auto", `{"command":"make","elevated":true}`, "asks outside", "it is to run outside of the sandbox", nil},
		{"auto", `{"command":"make","host":"auto"}`, "runs", "", nil},
		{"auto", `{"command":"make","sandbox":true}`, "runs", "", nil},
		{"auto", `{"command":"make","host":"moon"}`, `error: host "moon": no such node`, "", nil},
		{"auto", `{"command":"make","host":"sandbox"}`, "error: host sandbox: commands are not sandboxed here", "",
			func(o *Options) { o.Cage = nil }},
		{"auto", `{"command":"make"}`, "error: tools.exec.host: host sandbox: commands are not sandboxed here", "",
			func(o *Options) { o.Cage, o.Host = nil, "sandbox" }},
		{"auto", `{"command":"make"}`, "asks outside", "", func(o *Options) { o.Cage = nil }},
		{"auto", `{"command":"make"}`, "asks outside", "", func(o *Options) { o.Cage = &cell{} }},
		{"full", `{"command":"make"}`, "runs outside", "", nil},
		{"full", `{"command":"X=/; rm -rf $X"}`, "runs", "", nil},
		{"full", `{"command":"X=/; rm -rf $X"}`, "asks outside", "", func(o *Options) { o.Cage = nil }},
		{"full", `{"command":"make","security":"allowlist"}`, "denied: Only commands on the allowlist", "", nil},
		{"full", `{"command":"make","ask":"always"}`, "asks outside", "", nil},
		{"auto", `{"command":"make","security":"maybe"}`, "error: security", "", nil},
		{"auto", `{"command":"make","ask":"maybe"}`, "error: ask", "", nil},

		// Chela's own files, by whatever name.
		{"auto", `{"command":"cat R/own/chela.json"}`, "asks outside",
			"which holds the configuration or the state of Chela", nil},
		{"auto", `{"command":"cat ../chela.json"}`, "asks outside", "the state of Chela", nil},
		{"auto", `{"command":"ls && cat x ../chela.json"}`, "asks outside", "the state of Chela", nil},
		{"auto", `{"command":"cd sub && cat ../../chela.json"}`, "asks outside", "the state of Chela", nil},
		{"auto", `{"command":"make --file=../chela.json"}`, "asks outside", "the state of Chela", nil},
		{"auto", `{"command":"make -f../chela.json"}`, "asks outside", "the state of Chela", nil},
		{"auto", `{"command":"git show HEAD:../chela.json"}`, "asks outside", "the state of Chela", nil},
		{"auto", `{"command":"make O=../chela.json"}`, "asks outside", "the state of Chela", nil},
		{"auto", `{"command":"make < ../chela.json"}`, "asks outside", "the state of Chela", nil},
		{"auto", `{"command":"make > ../chela.json"}`, "asks outside", "the state of Chela", nil},
		{"auto", `{"command":"cat state/chela.json"}`, "asks outside", "the state of Chela", nil},
		{"auto", `{"command":"cat R/bridge/chela.json"}`, "asks outside", "the state of Chela", nil},
		{"auto", `{"command":"cat R/own/ws/sub/notes state/ws/sub/notes"}`, "runs, reading", "", nil}, // of the workspace
		{"auto", `{"command":"curl http://R/own/chela.json"}`, "runs", "", nil},
		{"auto", `{"command":"cat ../chela.json"}`, "asks outside", "outside the workspace",
			func(o *Options) { o.Never = nil }},
		// R is in the host's /tmp
		{"auto", `{"command":"rm -rf R/own"}`, "asks outside", "outside the workspace", func(o *Options) { o.Never = nil }},
		{"auto", `{"command":"touch R/own/new"}`, "asks outside", "outside the workspace",
			func(o *Options) { o.Never = nil }},
		{"auto", `{"command":"touch /tmp/no-such-file-of-the-host"}`, "runs", "", nil},
		{"auto", `{"command":"tool x"}`, "runs", "", nil},
		{"ask", `{"command":"tool x"}`, "runs outside", "", nil},
		{"ask", `{"command":"tool R/outside/x"}`, "runs outside", "", nil},
		{"ask", `{"command":"tool ../chela.json"}`, "asks outside", "the state of Chela", nil},

		// Variables of the call.
		{"ask", `{"command":"tool x","env":{"LANG":"C"}}`, "runs outside", "", nil},
		{"ask", `{"command":"tool x","env":{"LANG":"C","MY":"1"}}`, "asks outside", "", nil},
		{"ask", `{"command":"ls","env":{"MY":"1"}}`, "asks outside", "it sets environment variables", nil},
	} {
		o := h.options
		o.Rules = listedTool(t, tt.mode)
		if tt.change != nil {
			tt.change(&o)
		}
		p, j, err := h.plan(o, tool.Call{}, tt.args)
		got := h.decided(p, j, err)
		exact := !strings.Contains(tt.want, ":")
		if got != tt.want && (exact || !strings.HasPrefix(got, tt.want)) || !strings.Contains(p.Reason, tt.reason) {
			t.Errorf("mode %s, %s: %s (%s), want %s (%s)", tt.mode, tt.args, got, p.Reason, tt.want, tt.reason)
		}
	}
}

// TestRights checks what a confined command may use.
func TestRights(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	o := h.options
	asked := ""
	o.Granted = func(_ context.Context, s chela.SessionKey, own bool) ([]string, error) {
		if asked = string(s); own {
			return []string{"net:own.example"}, nil
		}
		return []string{"write:" + h.outside, "net:b.example:443", "read:" + h.root + "/none", "write:" + h.root + "/none"},
			nil
	}
	call := tool.Call{Rights: []string{"net:a.example", "net:b.example:443", "read:" + h.outside + "/x"}}
	p, j, err := h.plan(o, call, `{"command":"make"}`)
	if err != nil {
		t.Fatal(err)
	}
	want := &sandbox.Rights{
		Workspace: h.ws,
		Write:     true,
		Read:      []string{h.outside + "/x"},
		Change:    []string{h.outside},
		Hosts:     []string{"a.example", "b.example:443"},
	}
	if diff := cmp.Diff(want, j.plan.Rights); diff != "" || asked != "agent:main:main" {
		t.Errorf("of session %s: %s", asked, diff)
	}
	says := "connect to a.example and connect to b.example:443 and read " + h.outside + "/x"
	if p.Reason != "the sandbox did not let it "+says ||
		!strings.Contains(p.Text, "in the sandbox, with the right to "+says) {
		t.Errorf("reason %q, text %q", p.Reason, p.Text)
	}
	plain, _, err := h.plan(o, tool.Call{}, `{"command":"make"}`)
	if err != nil || plain.Hash == p.Hash || strings.Contains(plain.Text, "with the right") {
		t.Errorf("without rights of its own: %+v, %v", plain, err)
	}
	if _, j, err := h.plan(o, tool.Call{Sandbox: h.session(sandbox.ReadWrite)}, `{"command":"make"}`); err != nil ||
		!cmp.Equal(j.plan.Rights.Hosts, []string{"own.example"}) {
		t.Errorf("of a sandboxed session: %+v, %v", j.plan.Rights, err)
	}
	if _, _, err := h.plan(o, tool.Call{Rights: []string{"fly:x"}}, `{"command":"make"}`); err == nil ||
		!strings.Contains(err.Error(), `unknown right "fly:x"`) {
		t.Errorf("an unknown right: %v", err)
	}
	o.Granted = func(context.Context, chela.SessionKey, bool) ([]string, error) { return nil, os.ErrClosed }
	if _, _, err := h.plan(o, tool.Call{}, `{"command":"make"}`); err == nil {
		t.Error("rights that cannot be read: no error")
	}
	for command, want := range map[string][2]bool{ // it can be repeated; it may be in other folders
		"make":              {true, false},
		"curl x | sort > y": {true, false},
		"X=1; make":         {true, false},
		"./deploy":          {false, false},
		"make && ./deploy":  {false, false},
		"ls":                {true, false},
		"cd sub && make":    {true, true},
		"$X y":              {false, false},
	} {
		if _, j, err := h.plan(h.options, tool.Call{}, `{"command":"`+command+`"}`); err != nil ||
			[2]bool{j.repeat, j.moves} != want {
			t.Errorf("%s: %v %v, %v", command, j.repeat, j.moves, err)
		}
	}
}

// session returns a sandbox of a session whose workspace is not the agent's.
func (h *house) session(a sandbox.Access) *sandbox.Session {
	return &sandbox.Session{
		Backend:        "native",
		Key:            "agent:main",
		Access:         a,
		Workspace:      filepath.Join(h.root, "private"),
		AgentWorkspace: h.ws,
		Elevated:       sandbox.Elevated{Level: "off", Reason: "nobody may"},
	}
}

// TestSandboxedSession checks where a command of a sandboxed session runs.
func TestSandboxedSession(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	const inside = "runs in the session's sandbox"
	for _, tt := range []struct {
		name, mode, args, want string
		change                 func(*sandbox.Session)
	}{
		{"work", "auto", `{"command":"make"}`, inside, nil},
		{"looking", "auto", `{"command":"ls"}`, inside + ", reading", nil},
		{"mode full", "full", `{"command":"make"}`, inside, nil},
		{"what needs the host", "auto", `{"command":"sudo ls R/outside"}`, inside, nil},
		{"mode ask", "ask", `{"command":"make"}`, "asks in the session's sandbox", nil},
		{"a workspace that is read only", "auto", `{"command":"make"}`, inside + ", reading",
			func(s *sandbox.Session) { s.Access = sandbox.ReadOnly }},
		{"another folder", "auto", `{"command":"make","workdir":"R/outside"}`,
			"error: working directory R/outside: it is not in the sandbox", nil},
		{"no such backend", "auto", `{"command":"ls"}`, "denied: This session is sandboxed, but the sandbox backend docker is not available here. Commands are not run without it.",
			func(s *sandbox.Session) { s.Backend = "docker" }},
		{"to leave, which the sender may not", "full", `{"command":"ls","host":"gateway"}`,
			"denied: This session is sandboxed, and commands may not leave the sandbox: nobody may.", nil},
		{"to leave by another name", "full", `{"command":"ls","elevated":true}`,
			"denied: This session is sandboxed, and commands may not leave the sandbox: nobody may.", nil},
		{"level on, which the sender may not", "full", `{"command":"ls"}`, inside + ", reading",
			func(s *sandbox.Session) { s.Elevated.Level = "on" }},
		{"to leave, which the sender may", "full", `{"command":"ls","host":"local"}`, "asks outside",
			func(s *sandbox.Session) { s.Elevated.Reason = "" }},
		{"not to leave, which the sender may", "full", `{"command":"ls"}`, inside + ", reading",
			func(s *sandbox.Session) { s.Elevated.Reason = "" }},
		{"level on", "full", `{"command":"ls"}`, "asks outside",
			func(s *sandbox.Session) { s.Elevated = sandbox.Elevated{Level: "on"} }},
		{"level full", "full", `{"command":"make"}`, "runs outside",
			func(s *sandbox.Session) { s.Elevated = sandbox.Elevated{Level: "full"} }},
		{"level full where commands are asked about", "auto", `{"command":"make"}`, "asks outside",
			func(s *sandbox.Session) { s.Elevated = sandbox.Elevated{Level: "full"} }},
		{"level full where nothing else is", "allowlist", `{"command":"tool"}`, "asks outside",
			func(s *sandbox.Session) { s.Elevated = sandbox.Elevated{Level: "full"} }},
		{"level full in a call that asks", "full", `{"command":"make","ask":"on-miss"}`, "asks outside",
			func(s *sandbox.Session) { s.Elevated = sandbox.Elevated{Level: "full"} }},
	} {
		o, s := h.options, h.session(sandbox.ReadWrite)
		if tt.change != nil {
			tt.change(s)
		}
		o.Rules = listedTool(t, tt.mode)
		p, j, err := h.plan(o, tool.Call{Dir: s.Workspace, Sandbox: s}, tt.args)
		if got := strings.ReplaceAll(h.decided(p, j, err), h.root+"/", "R/"); got != tt.want {
			t.Errorf("%s: %s (%s), want %s", tt.name, got, p.Reason, tt.want)
			continue
		}
		dir := s.Workspace
		if j.cage == nil {
			dir = h.ws
		}
		if err == nil && p.Deny == "" && j.plan.Dir != dir {
			t.Errorf("%s: in %s, want %s", tt.name, j.plan.Dir, dir)
		}
	}
	for hint, want := range map[string]string{
		"":       "does not work here: no kernel.",
		"update": "does not work here: no kernel. The person can try: update",
	} {
		o := h.options
		o.Backends = map[string]sandbox.Backend{"native": &cell{level: sandbox.Level{Reason: "no kernel", Hint: hint}}}
		if p, _, err := h.plan(o, tool.Call{Sandbox: h.session(sandbox.ReadWrite)}, `{"command":"ls"}`); err != nil ||
			!strings.HasSuffix(p.Deny, want) || p.Effect != tool.Acts {
			t.Errorf("%+v, %v", p, err)
		}
	}
}

// TestInContainer checks what is started in the container of a session.
func TestInContainer(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	if err := os.Mkdir(filepath.Join(h.root, "private", "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ scratch, workdir, want string }{
		{"", "", "/workspace"}, {"", "sub", "/workspace/sub"}, {"", "/workspace/sub", "/workspace/sub"},
		{"/scratch", "", "/scratch"},
		{"/scratch", "/scratch/a/../b", "/scratch/b"}, {"/scratch", "sub", "/workspace/sub"},
		{"/scratch", "/workspace", "/workspace"},
	} {
		s := h.session(sandbox.ReadWrite)
		s.Container, s.Workdir, s.Scratch = "box", "/workspace", tt.scratch
		p, j, err := h.plan(h.options, tool.Call{Dir: s.Workspace, Sandbox: s}, `{"command":"tool a","workdir":"`+
			tt.workdir+`","env":{"A":"b"}}`)
		if err != nil || p.Deny != "" {
			t.Errorf("%+v: %v, %s", tt, err, p.Deny)
			continue
		}
		want := sandbox.Plan{Path: "/bin/sh", Argv: []string{"sh", "-lc", "tool a"}, Dir: tt.want,
			Env: []string{"CHELA_SHELL=exec", "OPENCLAW_SHELL=exec", "A=b"}}
		if diff := cmp.Diff([]any{want.Path, want.Argv, want.Dir, want.Env},
			[]any{j.plan.Path, j.plan.Argv, j.plan.Dir, j.plan.Env}); diff != "" || j.plan.Session != s {
			t.Errorf("scratch %q, workdir %q: %s", tt.scratch, tt.workdir, diff)
		}
	}
}

// TestNamesTemp checks which commands are told that their temporary files are gone.
func TestNamesTemp(t *testing.T) {
	t.Parallel()
	r := &sandbox.Rights{Workspace: "/tmp/work", Change: []string{"/tmp/given"}}
	for command, want := range map[string]bool{
		"cp a /tmp/out.txt":        true,
		"echo x >/tmp/out":         true,
		"sort a -o '/var/tmp/b c'": true,
		"F=/tmp/x; date > $F":      true,
		"cp a /tmp/work/b":         false,
		"touch /tmp/given/x":       false,
		"cp a b":                   false,
		"ls /usr/tmp/x":            false,
		"cp /tmp/work/../out b":    true,
	} {
		if namesTemp(command, r) != want || namesTemp(command, nil) {
			t.Errorf("%s: not %v", command, want)
		}
	}
}

// TestLinkedFile asks before a command outside of the sandbox reads a file of the workspace
// that has another name.
func TestLinkedFile(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	if err := os.Link(filepath.Join(h.outside, "x"), filepath.Join(h.ws, "linked")); err != nil {
		t.Fatal(err)
	}
	o := h.options
	o.Cage = nil
	for name, ask := range map[string]bool{"linked": true, "sub/notes": false} {
		t.Run("B3 "+name, func(t *testing.T) {
			p, _, err := h.plan(o, tool.Call{Dir: h.ws, Update: func(string) {}}, `{"command":"cat `+name+`"}`)
			if err != nil || p.Deny != "" || p.Ask != ask {
				t.Errorf("%+v, %v", p, err)
			}
		})
	}
}
