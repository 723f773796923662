package nodehost

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/shell"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/wire"
)

// Tools is what a machine does for a gateway.
type Tools struct {
	// Run runs commands: a tool.Planner with the role tool.RunsCommands. The details of
	// its results have an exitCode, and its texts are the output alone.
	Run tool.Tool
	Dir string // where commands start
	// Policy returns the rules about commands in words; see wire.NodeExecPolicy.
	Policy func() (wire.NodeExecPolicy, error)
	// Asks reports whether an approval that a person gave at the gateway counts.
	Asks func() bool
	Look func(program string) string // finds a program; "": there is none
	// Notify shows a notification; nil: this machine cannot.
	Notify func(ctx context.Context, title, body string) error
	// Hint is what a person can type here so that a refused command runs.
	Hint string
}

// commands returns the names of the commands.
func (t *Tools) commands() []string {
	list := []string{wire.NodeRun, wire.NodePrepare, wire.NodeWhich}
	if t.Notify != nil {
		list = append(list, wire.NodeNotify)
	}
	return list
}

// invalid is the code of the error about wrong parameters.
const invalid = wire.InvalidRequest

// Do carries out a call. The chain of an error may contain a *[Fault].
func (t *Tools) Do(ctx context.Context, q wire.NodeInvokeRequest) (any, error) {
	raw := "{}"
	if q.ParamsJSON != nil && *q.ParamsJSON != "" {
		raw = *q.ParamsJSON
	}
	switch q.Command {
	case wire.NodeRun, wire.NodePrepare:
		var p wire.NodeRunParams
		if err := json.Unmarshal([]byte(raw), &p); err != nil {
			return nil, fault(invalid, "%s: %v", q.Command, err)
		}
		line, err := lineOf(p)
		if err != nil {
			return nil, err
		}
		if q.Command == wire.NodePrepare {
			return t.prepare(p, line)
		}
		return t.run(ctx, q.ID, p, line)
	case wire.NodeWhich:
		var p wire.NodeWhichParams
		if err := json.Unmarshal([]byte(raw), &p); err != nil || p.Bins == nil {
			return nil, fault(invalid, "bins required")
		}
		out := wire.NodeWhichResult{Bins: map[string]string{}}
		for _, name := range p.Bins[:min(len(p.Bins), maxBins)] {
			if path := t.Look(name); path != "" {
				out.Bins[name] = path
			}
		}
		return out, nil
	case wire.NodeNotify:
		var p struct{ Title, Body string }
		if err := json.Unmarshal([]byte(raw), &p); err != nil || p.Title+p.Body == "" {
			return nil, fault(invalid, "title or body required")
		}
		if t.Notify == nil {
			return nil, fault(wire.Unavailable, "this machine shows no notifications")
		}
		return map[string]bool{"ok": true}, t.Notify(ctx, p.Title, p.Body)
	}
	return nil, fault(wire.Unavailable, "command not supported")
}

// maxBins is the number of programs that are looked for at once.
const maxBins = 64

// lineOf returns the command line of a call. What the gateway showed a person must be what
// runs.
func lineOf(p wire.NodeRunParams) (string, error) {
	if len(p.Command) == 0 || p.Command[0] == "" {
		return "", fault(invalid, "command required")
	}
	line, isShell := shellLine(p.Command)
	if !isShell {
		words := make([]string, len(p.Command))
		for i, w := range p.Command {
			words[i] = shell.Quote(w)
		}
		line = strings.Join(words, " ")
	}
	if p.RawCommand != "" && p.RawCommand != line && p.RawCommand != strings.Join(p.Command, " ") {
		return "", fault(invalid, "rawCommand is not the command")
	}
	return line, nil
}

// prepare says what a call would run.
func (t *Tools) prepare(p wire.NodeRunParams, line string) (any, error) {
	policy, err := t.Policy()
	if err != nil {
		return nil, err
	}
	text := p.RawCommand
	if text == "" {
		text = line
	}
	plan, err := json.Marshal(wire.NodePlan{Argv: p.Command, Dir: p.Dir, Text: text, Agent: p.Agent, Session: p.Session})
	return wire.NodePrepared{Plan: plan, Policy: policy}, err
}

// run runs a command line, if the rules of this machine allow it. It goes the way of a call of
// the tool exec on this machine, so that its rules hold, whatever the gateway has decided.
func (t *Tools) run(ctx context.Context, id string, p wire.NodeRunParams, line string) (any, error) {
	args := map[string]any{"command": line}
	if p.Dir != "" {
		args["workdir"] = p.Dir
	}
	if len(p.Env) > 0 {
		args["env"] = p.Env
	}
	if p.Timeout > 0 {
		args["timeoutSeconds"] = float64(p.Timeout) / 1000
	}
	raw, err := json.Marshal(args)
	if err != nil {
		return nil, fault(invalid, "%v", err)
	}
	ctx = chela.WithPrincipal(ctx, chela.Owner("gateway"))
	c := tool.Call{
		ID:      id,
		Args:    raw,
		Agent:   chela.DefaultAgent,
		Session: "node:" + chela.SessionKey(id),
		Dir:     t.Dir,
		Update:  func(string) {},
		HasTool: func(string) bool { return false }, // nothing goes to the background
	}
	planner, ok := t.Run.(tool.Planner)
	if !ok {
		return nil, errors.New("the tool that runs commands has no plans")
	}
	plan, err := planner.Plan(ctx, c)
	switch {
	case err != nil:
		return nil, fault(invalid, "%v", err)
	case plan.Deny != "":
		return nil, t.denied(plan.Deny)
	case plan.Ask && !(p.Approved && t.Asks()):
		return nil, t.denied("This command needs an approval that this machine accepts: " + plan.Reason + ".")
	}
	c.Plan = &plan
	res, err := t.Run.Run(ctx, c)
	if err != nil {
		return nil, fault(wire.Unavailable, "%v", err)
	}
	return result(res), nil
}

// denied is the error about a command that the rules refuse.
func (t *Tools) denied(why string) error {
	return fault(wire.NodeRunDenied, "%s: %s %s", wire.NodeRunDenied, why, t.Hint)
}

// result returns a result for the gateway.
func result(r tool.Result) wire.NodeRunResult {
	var d struct {
		Code     int    `json:"exitCode"`
		Signal   string `json:"signal"`
		TimedOut bool   `json:"timedOut"`
		Cut      bool   `json:"truncated"`
	}
	_ = json.Unmarshal(r.Details, &d) // without details it succeeded
	out := wire.NodeRunResult{TimedOut: d.TimedOut, Truncated: d.Cut}
	if d.Signal == "" && !d.TimedOut {
		out.ExitCode, out.Success = &d.Code, d.Code == 0
	} else if !d.TimedOut {
		out.Error = "ended by " + d.Signal
	}
	i := slices.IndexFunc(r.Content, func(p llm.Part) bool { return p.Text != "" })
	if i >= 0 {
		out.Stdout = r.Content[i].Text
	}
	return out
}
