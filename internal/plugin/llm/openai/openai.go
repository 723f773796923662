// Package openai implements the Chat Completions format of OpenAI's API, also for the many other
// servers that use it. Fields that only OpenAI's own host supports are not sent to others.
//
// Every server deviates from the format in its own way. What is known of a service, by its host
// or the provider's id, is in a table ([quirks]); the configuration of a model overrides it; and
// a request that is refused because of a field is made again in another form, which is then
// remembered for the model ([repair]). Encoding depends only on the quirks and the message, so
// that a message is encoded once for all requests with the same quirks.
package openai

import (
	"cmp"
	"context"
	"iter"
	"net/http"
	"strings"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/plugin/llm/dialect"
)

// Options configure a service. A base URL without a path gets /v1. The zero
// Options are OpenAI's own service, without a key.
type Options = dialect.Options

// Provider is an llm.Provider. It is safe for concurrent use.
type Provider struct {
	name    string
	model   func(id string) llm.Model
	quirks  quirks // of the service
	client  *dialect.Client
	adapter dialect.ToolAdapter
	schema  string // the profile of the service's schemas
	tools   dialect.Memo[[]llm.ToolSpec]
	system  dialect.Memo[prompt]
	repairs dialect.Repairs[quirks]
}

var _ llm.Provider = (*Provider)(nil)

// New returns a service. If the base URL is invalid, each call fails.
func New(o Options) *Provider {
	o = o.WithDefaults("openai")
	p := &Provider{name: o.Name, model: o.Model}
	p.adapter.Rules, p.adapter.Log = p.toolRules, o.Log
	p.repairs.Fix, p.repairs.Log = repair, o.Log
	u, err := dialect.BaseURL(o.BaseURL, "https://api.openai.com")
	if err == nil {
		p.quirks = quirksOf(p.name, u.Hostname())
		p.schema = profileOf(p.name, u.Hostname())
		u.Path = cmp.Or(u.Path, "/v1")
		u.Path = strings.TrimSuffix(u.Path, "/chat/completions") + "/chat/completions"
	}
	h := http.Header{}
	for k, v := range p.quirks.header {
		h.Set(k, v)
	}
	if !o.Key.IsZero() {
		h.Set("Authorization", "Bearer "+o.Key.Reveal())
	}
	p.client = dialect.NewClient(o, u, err, h, p.vision, p.fast)
	return p
}

// Name returns the provider's id.
func (p *Provider) Name() string { return p.name }

// Stream implements llm.Provider.
func (p *Provider) Stream(ctx context.Context, r *llm.Request) iter.Seq2[llm.Event, error] {
	return p.repairs.Stream(r.Model, *p.quirksFor(r.Model),
		func(q quirks) iter.Seq2[llm.Event, error] { return p.once(ctx, r, &q) })
}

// once makes a call with the quirks.
func (p *Provider) once(ctx context.Context, r *llm.Request, q *quirks) iter.Seq2[llm.Event, error] {
	body := func(r *llm.Request) (*dialect.Body, error) { return p.body(r, q) }
	return p.client.Stream(ctx, r, body, &decoder{tags: q.tags, entities: p.htmlEntities(r.Model)})
}

// vision reports whether a model supports images, or is unknown.
func (p *Provider) vision(id string) bool {
	return dialect.SupportsImages(p.model(id)) && !p.quirksFor(id).stringContent
}

// fast reports whether the service has a faster tier for a model.
func (p *Provider) fast(id string) bool { return p.quirks.tier && p.model(id).Fast > 0 }

// quirksFor returns the quirks of the service for a model.
func (p *Provider) quirksFor(model string) *quirks {
	c := p.model(model).Compat
	return p.quirks.of(model).with(&c)
}
