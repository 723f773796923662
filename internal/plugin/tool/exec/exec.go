package exec

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"time"

	"github.com/chela-ai/chela/internal/core/allowlist"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/node"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/core/tool"
)

// Options configure the tool. Broker is required.
type Options struct {
	Broker sandbox.Broker // runs commands without confining them
	// Cage confines commands; nil: they cannot be confined here.
	Cage Cage
	// Backends confine the commands of sandboxed sessions, by name.
	Backends map[string]sandbox.Backend
	// Granted returns the rights beyond the workspace that a person gave to the
	// confined commands of a session; nil: there are none. own leaves out those
	// that another session asked for: they do not open a sandboxed session.
	Granted func(ctx context.Context, session chela.SessionKey, own bool) ([]string, error)
	// Never returns Chela's own files and folders, which a confined command gets no
	// right to. It is called for every call. nil: there are none.
	Never func() []string
	// Notes returns files and folders, without links, that only calls with
	// [tool.Call].Private use. Other calls do not name them, and confined commands do not
	// see them. nil: there are none.
	Notes func() []string

	// Rules returns the rules for the commands of an agent. If it returns an
	// error, no command runs. nil: allowlist.Default.
	Rules func(chela.AgentID) (*allowlist.Rules, error)
	// RecordUse is called with the allowlist entries that allowed a command. It may be nil.
	RecordUse func(uses []allowlist.Use, command string)
	// Starts is called before a command starts that may change files. The function that it
	// returns is called when the command has ended, and returns the names of the files that
	// it changed without a way back. nil: nobody is told.
	Starts func(context.Context) (ended func() (lost []string))
	// Host is the configured host: "" or auto, sandbox, gateway (or local), node, or the
	// name of a node. Commands are refused if it is not available.
	Host        string
	Node        string      // the node that host node means; "": the only one that runs commands
	Nodes       node.Caller // nil: there are no nodes
	Interactive bool        // a person can be asked; if not, commands that need approval are refused

	// Commands holds the background commands; nil: commands run in the foreground only.
	Commands *Commands
	Yield    time.Duration // time after which a command goes to the background; 0: 10 s

	Timeout    time.Duration // default time limit in the foreground; 0: 30 s
	MaxTimeout time.Duration // maximum time limit, and the default in the background; 0: 30 min
	MaxOutput  int           // characters of output in a result; 0: 10 000

	// Plain leaves the notes of Chela out of results: they go to another machine, which
	// reads the details.
	Plain bool

	DangerousPatterns []string // regular expressions of commands that never run, in addition to the built-in list
	PathPrepend       []string // directories placed before those of PATH
	Shell             string   // absolute path of a POSIX shell; "": bash, or sh
	Environ           []string // source of the variables for commands; nil: os.Environ()
}

// Cage is a broker that confines commands.
type Cage interface {
	sandbox.Broker
	sandbox.Leveler
}

//go:embed exec.md
var description string

// New returns the exec tool.
func New(o Options) (tool.Tool, error) {
	if o.Broker == nil {
		return nil, errors.New("exec: no broker")
	}
	o.Timeout = cmp.Or(o.Timeout, 30*time.Second)
	o.MaxTimeout = cmp.Or(o.MaxTimeout, 30*time.Minute)
	o.Yield = cmp.Or(o.Yield, 10*time.Second)
	o.MaxOutput = cmp.Or(o.MaxOutput, 10_000)
	if o.Environ == nil {
		o.Environ = os.Environ()
	}
	t := &execTool{Options: o, spec: spec(), env: environment(o.Environ, o.PathPrepend)}
	for _, p := range o.DangerousPatterns {
		re, err := regexp.Compile(p)
		if err != nil {
			return nil, fmt.Errorf("exec: dangerous pattern: %w", err)
		}
		t.deny = append(t.deny, re)
	}
	t.Shell = cmp.Or(t.Shell, findShell())
	return t, nil
}

// execTool implements the tool exec.
type execTool struct {
	Options
	spec tool.Spec
	deny []*regexp.Regexp
	env  []string // environment of every command, PATH first
}

var (
	_ tool.Tool    = (*execTool)(nil)
	_ tool.Planner = (*execTool)(nil)
)

// args are the arguments of exec.
type args struct {
	Command string            `json:"command"`
	Workdir string            `json:"workdir"`
	Env     map[string]string `json:"env"`
	Timeout *float64          `json:"timeoutSeconds"` // 0: no limit, in the background

	Background bool     `json:"background"`
	Yield      *float64 `json:"yieldMs"`
	PTY        bool     `json:"pty"`

	// Settings that a call may only make stricter.
	Host     string `json:"host"`
	Node     string `json:"node"`
	Sandbox  bool   `json:"sandbox"`
	Security string `json:"security"`
	Ask      any    `json:"ask"` // a string or a boolean

	Elevated bool `json:"elevated"` // same as host gateway
}

func (t *execTool) Spec() tool.Spec { return t.spec }

func spec() tool.Spec {
	return tool.Spec{
		Name:        "exec",
		Label:       "Run command",
		Description: description,
		Effect:      tool.Acts,
		Names:       []string{"bash", "shell"},
		Groups:      []string{"group:runtime", tool.Reading},
		Sandboxed:   tool.Inside,
		InRuns:      true,
		Roles:       []tool.Role{tool.RunsCommands},
		Aliases: map[string]string{
			"cwd": "workdir", "dir": "workdir",
			"timeoutSec": "timeoutSeconds", "timeout": "timeoutSeconds",
			"backgroundMs": "yieldMs", "run_in_background": "background", "tty": "pty",
		},
		Volatile: []string{"durationMs", "sessionId", "pid", "startedAt"},
		Schema: json.RawMessage(`{"type":"object","properties":{
			"command":{"type":"string","minLength":1},
			"workdir":{"type":"string"},
			"env":{"type":"object","additionalProperties":{"type":"string"}},
			"timeoutSeconds":{"type":"number","minimum":0,"description":"0: no limit"},
			"background":{"type":"boolean"},
			"yieldMs":{"type":"number","minimum":0},
			"pty":{"type":"boolean"},
			"host":{"type":"string","description":"gateway: outside the sandbox, after approval; node: on another device"},
			"node":{"type":"string","description":"which device"},
			"sandbox":{"type":"boolean","deprecated":true,"description":"same as host sandbox"},
			"security":{"type":"string","enum":["deny","allowlist","full","off","ask","sudo","review"],"deprecated":true,"description":"can only be stricter than the configuration"},
			"ask":{"type":["string","boolean"],"description":"always"},
			"elevated":{"type":"boolean","deprecated":true,"description":"same as host gateway: run outside of the sandbox, after approval"}},
			"required":["command"],"additionalProperties":false}`),
	}
}

// Run runs the planned command.
func (t *execTool) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	if err := ctx.Err(); err != nil {
		return tool.Result{}, err
	}
	if c.Plan != nil {
		if r, ok := c.Plan.Value.(remoteJob); ok {
			return t.runOnNode(ctx, r, c)
		}
	}
	var j job
	if c.Plan != nil {
		j, _ = c.Plan.Value.(job)
	}
	if j.plan.Path == "" {
		p, err := t.Plan(ctx, c)
		switch {
		case err != nil:
			return tool.Result{}, err
		case p.Deny != "":
			return tool.Result{}, errors.New(p.Deny)
		case p.Ask && (c.Plan == nil || c.Plan.Hash != p.Hash):
			return tool.Result{}, errors.New("the command was not approved")
		}
		if r, ok := p.Value.(remoteJob); ok {
			return t.runOnNode(ctx, r, c)
		}
		j = p.Value.(job)
	}
	return t.run(ctx, j, c)
}

// run starts a job and waits until it ends or goes to the background.
func (t *execTool) run(ctx context.Context, j job, c tool.Call) (tool.Result, error) {
	if j.background {
		if err := t.Commands.checkCapacity(); err != nil {
			return tool.Result{}, fmt.Errorf("exec: %w", err)
		}
	}
	k, err := t.start(ctx, j, c)
	if u, ok := errors.AsType[*sandbox.UnsearchedError](err); ok && j.plan.Session == nil {
		return tool.Result{}, &tool.Blocked{Rights: []string{u.Right}, Again: true}
	}
	if err != nil {
		return tool.Result{}, err
	}
	if j.note != "" {
		k.note = j.note
	}
	if t.RecordUse != nil && len(j.used) > 0 {
		t.RecordUse(j.used, j.text)
	}
	var yield <-chan time.Time
	switch {
	case j.background:
		return t.toBackground(ctx, k, c)
	case j.yield > 0 && !j.awaited:
		timer := time.NewTimer(j.yield)
		defer timer.Stop()
		yield = timer.C
	}
	select {
	case <-k.done:
	case <-ctx.Done():
		k.cancel()
	case <-yield:
		if t.Commands.checkCapacity() == nil {
			return t.toBackground(ctx, k, c)
		}
	}
	select { // the command could not go to the background
	case <-k.done:
	case <-ctx.Done():
		k.cancel()
		<-k.done
	}
	if k.err != nil && ctx.Err() == nil {
		return tool.Result{}, fmt.Errorf("exec: %w", k.err)
	}
	// a container gets no further rights
	if j.plan.Rights != nil && j.plan.Session == nil && (k.exit.Code != 0 || k.exit.Misled) && ctx.Err() == nil {
		k.refused = k.exit.Refused
		if k.exit.Code != 0 {
			text, _ := k.out.text()
			k.refused = slices.Concat(k.refused, t.refusedPaths(text, j))
			if j.searches {
				all := j
				all.searches = false
				k.private = len(t.refusedPaths(text, all)) > len(t.refusedPaths(text, j))
			}
		}
		if len(k.refused) > 0 && j.repeat {
			return tool.Result{}, &tool.Blocked{Rights: k.refused, Again: true, Ran: resultText(t.foregroundResult(k, j))}
		}
	}
	return t.foregroundResult(k, j), ctx.Err()
}

// resultText returns the text of a result.
func resultText(r tool.Result) string { return (&llm.Message{Parts: r.Content}).PlainText() }

// toBackground leaves a command running in the background and returns the
// result of the call.
func (t *execTool) toBackground(ctx context.Context, k *command, c tool.Call) (tool.Result, error) {
	k.record.copying.Lock()
	_, _, err := k.record.unread(false) // the first poll returns what follows
	text, _ := k.out.text()
	k.record.copying.Unlock()
	if err == nil {
		err = t.Commands.detach(ctx, c, k)
	}
	if err != nil {
		k.end()
		return tool.Result{}, fmt.Errorf("exec: the command was ended: %w", err)
	}
	if p, ok := k.process.(sandbox.Publisher); ok {
		p.Publish()
	}
	return k.backgroundResult(text), nil
}

// foregroundResult returns the result of a command that has ended. If it does
// not contain all of the output, the command is retained.
func (t *execTool) foregroundResult(k *command, j job) tool.Result {
	text, cut := k.out.text()
	if cut && j.yield > 0 {
		t.Commands.retain(k)
	} else {
		k.record.drop()
	}
	r := report{
		Exit:     k.exit,
		id:       k.id,
		duration: k.ended.Sub(k.began),
		timedOut: k.timedOut,
		timeout:  j.timeout,
		text:     text,
		cut:      cut,
		note:     k.note,
		confined: j.plan.Rights != nil,
		refused:  k.refused,
		lost:     k.lost,
		edited:   k.edited,
		private:  k.private,
	}
	r.home = j.home && j.plan.Rights != nil
	r.held, r.outside = protectedNames(text, j), repositoryNote(text, j)
	r.refused = slices.DeleteFunc(slices.Clone(r.refused), func(right string) bool { // to read it does not help
		return slices.ContainsFunc(r.held,
			func(name string) bool { return right == "read:"+filepath.Join(j.plan.Rights.Workspace, name) })
	})
	r.temp, r.plain = namesTemp(j.text, j.plan.Rights), t.Plain
	return r.result()
}

// findShell returns the path of a POSIX shell, or "".
func findShell() string {
	paths := []string{
		"/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/opt/homebrew/bin/bash", "/run/current-system/sw/bin/bash",
		"/bin/sh", "/system/bin/sh",
	}
	if runtime.GOOS == "windows" {
		paths = []string{`C:\Program Files\Git\bin\bash.exe`, `C:\Program Files\Git\usr\bin\sh.exe`,
			`C:\msys64\usr\bin\bash.exe`}
	}
	for _, p := range paths {
		if info, err := os.Stat(p); err == nil && info.Mode().IsRegular() {
			return p
		}
	}
	return ""
}
