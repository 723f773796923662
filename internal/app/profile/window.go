package profile

import (
	"github.com/chela-ai/chela/internal/app/standard"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/window"
)

// window returns the window of a model in a session.
func (g *Generation) window(m session.Meta, info llm.Model) window.Size {
	c := g.AgentModels(m.Agent).Claims(info)
	c.Cap, c.Reported = g.Settings.Agent.ContextTokens, m.Learned.Limit(info.Ref())
	return window.Resolve(c)
}

// Window returns the window of the session's next run. It does no I/O.
func (g *Generation) Window(m session.Meta) window.Size { return g.window(m, g.Model(m)) }

// Window returns the window of the session's next run.
func (c *Current) Window(m session.Meta) window.Size { return c.Load().Window(m) }

// caches reports whether requests to a model are pruned by default when the provider's
// cache has expired: those to Anthropic's interface are.
func (g *Generation) caches(info llm.Model) bool {
	api := g.Settings.Models.Providers[info.Provider].API
	return api == standard.Anthropic || api == "" && info.Provider == "anthropic"
}
