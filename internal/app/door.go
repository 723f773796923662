package app

import (
	"context"
	"strings"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/hook"
	"github.com/chela-ai/chela/internal/invoke"
	"github.com/chela-ai/chela/internal/policy"
	"github.com/chela-ai/chela/internal/store"
)

// newDoor makes the tool door, with the program's own hooks.
func (e *Engine) newDoor() *invoke.Door {
	return invoke.New(invoke.Options{
		Log: e.o.Log, Redact: e.o.Secrets.Redact, Keep: e.files.KeepPart,
		Before: append([]hook.Before{e.keepSecrets()}, e.o.Before...), After: append([]hook.After{e.meter.Hook()}, e.o.After...),
	})
}

// keepSecrets has a person asked before a tool is handed a secret that Chela
// keeps: a command, a page's address or a file would carry it away. It is asked
// last, when the arguments are those that would be used.
func (e *Engine) keepSecrets() hook.Before {
	return hook.Before{Name: "secrets", Priority: -1000, Quick: true, Func: func(_ context.Context, c hook.Call) (hook.Verdict, error) {
		args := string(c.Args)
		return hook.Verdict{
			Ask:    e.o.Secrets.Redact(args) != args,
			Reason: "it would be given a secret that Chela keeps (a key of a service, or the gateway's credential)",
		}, nil
	}}
}

// newDesk makes what carries out calls of tools that no model asks for.
func (e *Engine) newDesk(door *invoke.Door, st store.Store) *invoke.Desk {
	return invoke.NewDesk(invoke.DeskOptions{
		Door: door, Store: st, Default: chela.DefaultAgent, Agent: e.knows,
		Direct: func() (deny, allow []string) { d := e.now().opts.Direct; return d.Deny, d.Allow },
		Scope: func(ctx context.Context, who chela.Principal, key chela.SessionKey) (invoke.Scope, error) {
			return e.now().scope(ctx, st, who, key)
		},
	})
}

// scope is the tools of a session outside of its runs, and the rules that hold
// for who.
func (p *profiles) scope(ctx context.Context, st store.Store, who chela.Principal, key chela.SessionKey) (invoke.Scope, error) {
	var c policy.Conversation
	if strings.Contains(string(key), ":subagent:") {
		c.Depth, c.MaxDepth = strings.Count(string(key), ":subagent:"), 1
	}
	rules, _, err := p.ask(ctx, st, who, key, c)
	if err != nil {
		return invoke.Scope{}, err
	}
	return invoke.Scope{
		Agent: key.Agent(), Dir: p.workspace(key.Agent()), Tools: p.tools[key.Agent()], Policy: rules, Budget: p.opts.RunBudget(), Loop: p.opts.Tools.Loop,
	}, nil
}
