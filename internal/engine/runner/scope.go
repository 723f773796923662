package runner

import (
	"slices"
	"time"

	"github.com/chela-ai/chela/internal/core/policy"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/core/usage"
	"github.com/chela-ai/chela/internal/engine/invoke"
)

// scope returns what the executor has to know about the run.
func (r *Runner) scope(e *Execution) invoke.Scope {
	var rules policy.Pipeline
	if e.profile.Policy != nil {
		rules = e.profile.Policy(e.run.Principal)
	}
	var box *sandbox.Session
	if e.profile.Sandbox != nil {
		box = e.profile.Sandbox(e.run.Principal)
	}
	s := invoke.Scope{
		Agent:      e.run.Agent,
		Session:    e.run.Session,
		Run:        e.run.ID,
		Dir:        e.profile.Dir,
		Folder:     e.meta.Bounds.Folder,
		Sandbox:    box,
		Env:        e.profile.Env,
		Exec:       e.run.Overrides.Exec.Or(e.meta.Exec).Within(e.meta.Bounds.Exec),
		Principal:  e.run.Principal,
		Requester:  e.requester(),
		Transcript: e.run.SessionID,

		Tools:    e.permitted(e.meta.Bounds, e.run.Overrides),
		Policy:   rules,
		Budget:   e.profile.Budget,
		Loop:     e.profile.Loop,
		ReadOnly: e.meta.Bounds.ReadOnly,
		Private:  !e.meta.Shared(e.run),
		Awaited:  e.task,
		Ledger:   ledger{r, e},

		MaxResult: e.window().MaxResult(e.profile.MaxResult),
		Started:   time.Now(), // the time that a person took to decide does not count
		Spent: func() usage.Sum {
			return usage.Sum{Tokens: e.spent.tokens, NanoUSD: e.spent.nanoUSD, Calls: e.spent.calls}
		},
	}
	if e.meta.Forked() && e.profile.ForkPolicy != nil {
		from := e.meta.ForkOf(e.run)
		shown, _ := invoke.Allowed(e.permitted(from.Bounds, from.Overrides),
			e.profile.ForkPolicy(e.run.Principal), e.run.Principal)
		s.Shown = &shown
	}
	return s
}

// permitted returns the tools that the bounds of a session and the overrides of a run
// permit.
func (e *Execution) permitted(b session.Bounds, o run.Overrides) tool.Set {
	if len(b.Tools) == 0 && o.Tools.IsZero() {
		if e.hooked.prompt.ToolsAllow == nil {
			return e.profile.Tools
		}
		return e.profile.Tools.Filter(func(s tool.Spec) bool { return e.allows(s.Name) })
	}
	names := session.Permitted(e.profile.Tools.Names(), b, o, e.profile.Catalog.Match)
	return e.profile.Tools.Filter(func(s tool.Spec) bool { return slices.Contains(names, s.Name) && e.allows(s.Name) })
}
