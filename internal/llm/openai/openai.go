// Package openai speaks the Chat Completions format of OpenAI's API, and with
// it the many servers that speak it too: what only OpenAI's own host knows is
// sent to no other.
package openai

import (
	"context"
	"iter"
	"log/slog"
	"net/http"
	"strings"

	"github.com/chela-ai/chela/internal/dialect"
	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/internal/secret"
)

// Options are of one service. The zero Options are OpenAI's own, without a key.
type Options struct {
	Name    string                    // the provider's id; "": openai
	BaseURL string                    // a host alone gets /v1; "": OpenAI's
	Key     secret.Value              // none for most local servers
	Header  http.Header               // sent with each request, in place of what is set here
	HTTP    *http.Client              // the way out; nil: none
	Model   func(id string) llm.Model // what is known of a model; nil: nothing
	Log     *slog.Logger              // of tools that a model is not told of; nil: nothing is logged
	// Image returns the content of an image that a message refers to, and its
	// type; nil: there is none to be had.
	Image func(ref string) (data []byte, mime string, err error)
}

// Provider is a service. It is safe for concurrent use.
type Provider struct {
	name   string
	model  func(id string) llm.Model
	quirks quirks // of the service
	client *dialect.Client
	offers dialect.Offers
	schema string // the profile of the service's schemas
	tools  dialect.Kept[[]llm.ToolSpec]
	system dialect.Kept[prompt]
}

var _ llm.Provider = (*Provider)(nil)

// New returns a service. A base URL that is none is the error of each call.
func New(o Options) *Provider {
	p := &Provider{name: o.Name, model: o.Model}
	if p.name == "" {
		p.name = "openai"
	}
	if p.model == nil {
		p.model = func(string) llm.Model { return llm.Model{} }
	}
	p.offers.Ways, p.offers.Log = p.tells, o.Log
	u, err := dialect.BaseURL(o.BaseURL, "https://api.openai.com")
	if err == nil {
		p.quirks = quirksOf(p.name, u.Hostname())
		p.schema = profileOf(p.name, u.Hostname())
		if u.Path == "" {
			u.Path = "/v1"
		}
		u.Path = strings.TrimSuffix(u.Path, "/chat/completions") + "/chat/completions"
	}
	h := http.Header{}
	for k, v := range p.quirks.header {
		h.Set(k, v)
	}
	if !o.Key.IsZero() {
		h.Set("Authorization", "Bearer "+o.Key.Reveal())
	}
	for k, v := range o.Header {
		h[http.CanonicalHeaderKey(k)] = v
	}
	p.client = dialect.NewClient(p.name, u, err, o.HTTP, h, o.Key)
	p.client.Images.Load, p.client.Images.Seen = o.Image, p.sees
	return p
}

// Name returns the provider's id.
func (p *Provider) Name() string { return p.name }

// Stream implements llm.Provider.
func (p *Provider) Stream(ctx context.Context, r *llm.Request) iter.Seq2[llm.Event, error] {
	q := p.ways(r.Model)
	body := func(r *llm.Request) (*dialect.Body, error) { return p.body(r, q) }
	return p.client.Stream(ctx, r, body, &decoder{tags: q.tags, entities: p.encodes(r.Model)})
}

// sees reports whether a model takes images, as far as is known.
func (p *Provider) sees(id string) bool {
	m := p.model(id)
	return (m.ID == "" || m.Images) && !p.ways(id).texts
}

// ways returns the service's quirks with a model.
func (p *Provider) ways(model string) *quirks {
	c := p.model(model).Compat
	return p.quirks.with(&c)
}
