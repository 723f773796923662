package exec

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"time"

	"github.com/chela-ai/chela/internal/allowlist"
	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/sandbox"
	"github.com/chela-ai/chela/internal/tool"
)

// Options are what the tool may do. Broker must be set.
type Options struct {
	Broker sandbox.Broker

	// Rules returns what holds for the commands of an agent; nil:
	// allowlist.Default. With an error no command is run.
	Rules func(chela.AgentID) (*allowlist.Rules, error)
	// Used is told which entries of the allowlist let a command run; nil: nobody is.
	Used        func(uses []allowlist.Use, command string)
	Interactive bool // somebody can be asked; without, what would ask is refused

	// Commands keeps what goes on in the background; nil: nothing does.
	Commands *Commands
	Yield    time.Duration // after which a command goes to the background; 0: 10 s

	Timeout    time.Duration // of a call in the foreground that names none; 0: 30 s
	MaxTimeout time.Duration // that a call may ask for, and has in the background; 0: 30 min
	MaxOutput  int           // characters of output that the model is given; 0: 10 000

	DangerousPatterns []string // regular expressions of commands that are never run, beside the built-in list
	PathPrepend       []string // directories before those of PATH
	Shell             string   // absolute path of a POSIX shell; "": bash, or sh
	Environ           []string // where the variables that a command gets are taken from; nil: os.Environ()
}

//go:embed exec.md
var description string

// New returns the tool.
func New(o Options) (tool.Tool, error) {
	if o.Broker == nil {
		return nil, errors.New("exec: no broker")
	}
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	if o.MaxTimeout == 0 {
		o.MaxTimeout = 30 * time.Minute
	}
	if o.Yield == 0 {
		o.Yield = 10 * time.Second
	}
	if o.MaxOutput == 0 {
		o.MaxOutput = 10_000
	}
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
	if t.Shell == "" {
		t.Shell = findShell()
	}
	return t, nil
}

// execTool is the tool.
type execTool struct {
	Options
	spec tool.Spec
	deny []*regexp.Regexp
	env  []string // of every command, PATH first
}

var (
	_ tool.Tool    = (*execTool)(nil)
	_ tool.Planner = (*execTool)(nil)
)

// args are the arguments of a call.
type args struct {
	Command string            `json:"command"`
	Workdir string            `json:"workdir"`
	Env     map[string]string `json:"env"`
	Timeout *float64          `json:"timeoutSeconds"` // 0: none, in the background

	Background bool     `json:"background"`
	Yield      *float64 `json:"yieldMs"`
	PTY        bool     `json:"pty"`

	// What a call may only make stricter.
	Host     string `json:"host"`
	Sandbox  bool   `json:"sandbox"`
	Security string `json:"security"`
	Ask      any    `json:"ask"` // a word or a boolean
}

func (t *execTool) Spec() tool.Spec { return t.spec }

func spec() tool.Spec {
	return tool.Spec{
		Name:        "exec",
		Label:       "Run command",
		Description: description,
		Effect:      tool.Acts,
		Aliases: map[string]string{
			"cwd": "workdir", "dir": "workdir",
			"timeoutSec": "timeoutSeconds", "timeout": "timeoutSeconds",
			"backgroundMs": "yieldMs", "run_in_background": "background", "tty": "pty",
		},
		Volatile: []string{"durationMs", "sessionId", "pid", "startedAt"},
		Schema: json.RawMessage(`{"type":"object","properties":{
			"command":{"type":"string","minLength":1,"description":"shell command"},
			"workdir":{"type":"string","description":"folder to run in (default: the workspace)"},
			"env":{"type":"object","additionalProperties":{"type":"string"},"description":"additional environment variables"},
			"timeoutSeconds":{"type":"number","minimum":0,"description":"end the command after this time; 0 for a server in the background: never"},
			"background":{"type":"boolean","description":"return at once and let it run; see process"},
			"yieldMs":{"type":"number","minimum":0,"description":"let it run in the background when it takes longer (default 10000)"},
			"pty":{"type":"boolean","description":"run it in a terminal: for programs that need one"},
			"host":{"type":"string","description":"auto, sandbox or gateway"},
			"sandbox":{"type":"boolean","description":"same as host sandbox"},
			"security":{"type":"string","enum":["deny","allowlist","full","off","ask","sudo","review"],"description":"may only be stricter than the configuration"},
			"ask":{"type":["string","boolean"],"description":"always: ask a person first"}},
			"required":["command"],"additionalProperties":false}`),
	}
}

// Run runs what was planned.
func (t *execTool) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	if err := ctx.Err(); err != nil {
		return tool.Result{}, err
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
		j = p.Value.(job)
	}
	return t.run(ctx, j, c)
}

// run starts a job and waits for its end, or until it goes on in the
// background.
func (t *execTool) run(ctx context.Context, j job, c tool.Call) (tool.Result, error) {
	if j.background {
		if err := t.Commands.room(); err != nil {
			return tool.Result{}, fmt.Errorf("exec: %w", err)
		}
	}
	k, err := t.begin(ctx, j, c)
	if err != nil {
		return tool.Result{}, err
	}
	if j.note != "" {
		k.note = j.note
	}
	if t.Used != nil && len(j.used) > 0 {
		t.Used(j.used, j.text)
	}
	var yield <-chan time.Time
	switch {
	case j.background:
		return t.leave(ctx, k, c)
	case j.yield > 0:
		timer := time.NewTimer(j.yield)
		defer timer.Stop()
		yield = timer.C
	}
	select {
	case <-k.done:
	case <-ctx.Done():
		k.cancel()
	case <-yield:
		if t.Commands.room() == nil {
			return t.leave(ctx, k, c)
		}
	}
	select { // one that could not go to the background
	case <-k.done:
	case <-ctx.Done():
		k.cancel()
		<-k.done
	}
	if k.err != nil && ctx.Err() == nil {
		return tool.Result{}, fmt.Errorf("exec: %w", k.err)
	}
	return t.finished(k, j), ctx.Err()
}

// leave lets a command go on in the background.
func (t *execTool) leave(ctx context.Context, k *command, c tool.Call) (tool.Result, error) {
	_, _, err := k.record.news(false) // the next look gives what comes after
	text, _ := k.out.text()
	if err == nil {
		err = t.Commands.adopt(ctx, c, k)
	}
	if err != nil {
		k.end()
		return tool.Result{}, fmt.Errorf("exec: the command was ended: %w", err)
	}
	return k.left(text), nil
}

// finished returns the result of a command that has ended. When not all of its
// output is in it, the output is kept.
func (t *execTool) finished(k *command, j job) tool.Result {
	text, cut := k.out.text()
	if cut && j.yield > 0 {
		t.Commands.keep(k)
	} else {
		k.record.drop()
	}
	r := report{Exit: k.exit, id: k.id, duration: k.ended.Sub(k.began), timedOut: k.timedOut, timeout: j.timeout, text: text, cut: cut, note: k.note}
	return r.result()
}

// findShell returns the path of a POSIX shell, or "".
func findShell() string {
	paths := []string{
		"/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/opt/homebrew/bin/bash", "/run/current-system/sw/bin/bash",
		"/bin/sh", "/system/bin/sh",
	}
	if runtime.GOOS == "windows" {
		paths = []string{`C:\Program Files\Git\bin\bash.exe`, `C:\Program Files\Git\usr\bin\sh.exe`, `C:\msys64\usr\bin\bash.exe`}
	}
	for _, p := range paths {
		if info, err := os.Stat(p); err == nil && info.Mode().IsRegular() {
			return p
		}
	}
	return ""
}
