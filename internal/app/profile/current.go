package profile

import (
	"context"
	"sync/atomic"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/policy"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/route"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/engine/inbound"
	"github.com/chela-ai/chela/internal/engine/invoke"
	"github.com/chela-ai/chela/internal/engine/runner"
)

// Current is the Generation in force. Its methods are those of the Generation at
// the time of the call, for parts that keep a function for longer. It must have a
// Generation before a method is called.
type Current struct{ p atomic.Pointer[Generation] }

var _ runner.Profiles = (*Current)(nil)

// Load returns the Generation.
func (c *Current) Load() *Generation { return c.p.Load() }

// Store puts another Generation in force.
func (c *Current) Store(g *Generation) { c.p.Store(g) }

// HasAgent reports whether an agent exists.
func (c *Current) HasAgent(id chela.AgentID) bool { return c.Load().Settings.Has(id) }

// Resolve implements runner.Profiles.
func (c *Current) Resolve(_ context.Context, m session.Meta, r run.Run) (*runner.Profile, error) {
	return c.Load().Resolve(m, r)
}

// Ready implements runner.Profiles.
func (c *Current) Ready(m session.Meta, r run.Run) (*runner.Profile, bool) {
	return c.Load().Ready(m, r)
}

// Policy implements runner.Profiles.
func (c *Current) Policy(m session.Meta, _ chela.Address) queue.Policy {
	return c.Load().Settings.Queueing().With(m.Queue)
}

// Gen implements runner.Profiles.
func (c *Current) Gen() uint64 { return c.Load().number }

// Route returns the session for messages from an address.
func (c *Current) Route(a chela.Address) route.Route {
	t := route.Table{DMScope: route.DMScope(c.Load().Settings.Session.DMScope)}
	return t.Resolve(a)
}

// Access decides whether a principal may use the agent, and returns the principal
// to act as.
func (c *Current) Access(who chela.Principal, in chela.Inbound) (chela.Principal, error) {
	return c.Load().Settings.Senders().Access(who, in)
}

// Reset returns when sessions start a new transcript.
func (c *Current) Reset(session.Meta) session.ResetPolicy { return c.Load().Settings.Session.Reset }

// Catalog returns the models that can be named.
func (c *Current) Catalog() llm.Catalog { return c.Load().Models.Catalog() }

// Model returns the model of the session's next run.
func (c *Current) Model(m session.Meta) llm.Model { return c.Load().Model(m) }

// Inherited returns the settings of a session that sets none itself.
func (c *Current) Inherited(m session.Meta) inbound.Settings { return c.Load().Inherited(m) }

// Offered returns the tools of a run that a principal starts in a session.
func (c *Current) Offered(ctx context.Context, who chela.Principal, key chela.SessionKey) ([]tool.Spec, error) {
	return c.Load().Offered(ctx, who, key)
}

// Rules returns the rules about tools for a run that a principal starts.
func (c *Current) Rules(ctx context.Context, who chela.Principal, key chela.SessionKey, v policy.Conversation) (policy.Pipeline, llm.Ref, error) {
	return c.Load().Rules(ctx, who, key, v)
}

// Scope returns the tools of a session outside of its runs.
func (c *Current) Scope(ctx context.Context, who chela.Principal, key chela.SessionKey) (invoke.Scope, error) {
	return c.Load().Scope(ctx, who, key)
}

// Direct returns the tools that may be called without a model.
func (c *Current) Direct() (deny, allow []string) {
	d := c.Load().Settings.Direct
	return d.Deny, d.Allow
}
