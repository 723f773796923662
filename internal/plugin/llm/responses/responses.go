// Package responses implements the Responses format of OpenAI's API, which other servers
// also offer. The service stores nothing: what a model thought is sent back to it in
// encrypted form with each request. Fields that only OpenAI's own host supports are not
// sent to others.
package responses

import (
	"cmp"
	"context"
	"iter"
	"net/http"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/schema"
	"github.com/chela-ai/chela/internal/plugin/llm/dialect"
)

// host is OpenAI's own.
const host = "api.openai.com"

// Options configure a service. A base URL without a path gets /v1. The zero Options are
// OpenAI's own service, without a key.
type Options = dialect.Options

// Provider is an llm.Provider. It is safe for concurrent use.
type Provider struct {
	name    string
	home    bool // the host is OpenAI's own
	model   func(id string) llm.Model
	client  *dialect.Client
	adapter dialect.ToolAdapter
	tools   dialect.Memo[[]llm.ToolSpec]
	system  dialect.Memo[[]llm.Block]
	repairs dialect.Repairs[omitted]
}

var _ llm.Provider = (*Provider)(nil)

// New returns a service. If the base URL is invalid, each call fails.
func New(o Options) *Provider {
	o = o.WithDefaults("openai")
	p := &Provider{name: o.Name, model: o.Model}
	p.adapter.Rules, p.adapter.Log = p.toolRules, o.Log
	p.repairs.Fix, p.repairs.Log = repair, o.Log
	u, err := dialect.BaseURL(o.BaseURL, "https://"+host)
	if err == nil {
		p.home = u.Hostname() == host
		u.Path = cmp.Or(u.Path, "/v1")
		u.Path = strings.TrimSuffix(u.Path, "/responses") + "/responses"
	}
	h := http.Header{}
	if !o.Key.IsZero() {
		h.Set("Authorization", "Bearer "+o.Key.Reveal())
	}
	p.client = dialect.NewClient(o, u, err, h, func(id string) bool { return dialect.SupportsImages(p.model(id)) },
		func(id string) bool { return p.home && p.model(id).Fast > 0 })
	return p
}

// toolRules returns the tool rules of a model.
func (p *Provider) toolRules(id string) dialect.ToolRules {
	c := p.model(id).Compat
	rules := dialect.NewToolRules(c, schema.OpenAI)
	rules.Strict = c.SupportsStrictMode != nil && *c.SupportsStrictMode
	return rules
}

// Name returns the provider's id.
func (p *Provider) Name() string { return p.name }

// Stream implements llm.Provider.
func (p *Provider) Stream(ctx context.Context, r *llm.Request) iter.Seq2[llm.Event, error] {
	return p.repairs.Stream(r.Model, omitted{}, func(no omitted) iter.Seq2[llm.Event, error] {
		return p.client.Stream(ctx, r, func(r *llm.Request) (*dialect.Body, error) { return p.body(r, no) }, &decoder{})
	})
}

// omitted are fields that a service refused. Not every model thinks, and not every account
// may see summaries of thinking.
type omitted struct{ summary, reasoning, encrypted, temperature, cacheKey bool }

// repair leaves out the field that an error message names, and reports whether it did.
func repair(no *omitted, message string) bool {
	fields := [...]struct {
		left  *bool
		names []string
	}{
		{&no.summary, []string{"reasoning.summary", "summary", "summaries"}},
		{&no.encrypted, []string{"encrypted_content", "encrypted", "include"}},
		{&no.reasoning, []string{"reasoning.effort", "effort", "reasoning"}},
		{&no.temperature, []string{"temperature"}},
		{&no.cacheKey, []string{"prompt_cache_key"}},
	}
	for _, f := range fields {
		if !*f.left && slices.ContainsFunc(f.names, func(n string) bool { return dialect.Mentions(message, n) }) {
			*f.left = true
			return true
		}
	}
	return false
}
