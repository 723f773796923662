// Package openai speaks the Chat Completions format of OpenAI's API, and with
// it the many servers that speak it too: what only OpenAI's own host knows is
// sent to no other.
package openai

import (
	"context"
	"iter"
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
}

// Provider is a service. It is safe for concurrent use.
type Provider struct {
	name   string
	model  func(id string) llm.Model
	quirks quirks
	client *dialect.Client
	tools  dialect.Tools
}

var _ llm.Provider = (*Provider)(nil)

// quirks are what one host does differently.
type quirks struct {
	openai     bool // OpenAI's own host
	openrouter bool // takes reasoning as an object, and cache markers for some models
	mistral    bool // wants ids of calls of nine letters and digits, and refuses stream_options
	reasoning  bool // wants the reasoning back that led to calls
}

func quirksOf(host string) quirks {
	is := func(domain string) bool { return host == domain || strings.HasSuffix(host, "."+domain) }
	return quirks{
		openai:     host == "api.openai.com",
		openrouter: is("openrouter.ai"),
		mistral:    is("mistral.ai"),
		reasoning:  is("deepseek.com") || is("moonshot.ai") || is("moonshot.cn"),
	}
}

// New returns a service. A base URL that is none is the error of each call.
func New(o Options) *Provider {
	p := &Provider{name: o.Name, model: o.Model}
	if p.name == "" {
		p.name = "openai"
	}
	if p.model == nil {
		p.model = func(string) llm.Model { return llm.Model{} }
	}
	u, err := dialect.BaseURL(o.BaseURL, "https://api.openai.com")
	if err == nil {
		p.quirks = quirksOf(strings.ToLower(u.Hostname()))
		if u.Path == "" {
			u.Path = "/v1"
		}
		u.Path = strings.TrimSuffix(u.Path, "/chat/completions") + "/chat/completions"
	}
	h := http.Header{}
	if !o.Key.IsZero() {
		h.Set("Authorization", "Bearer "+o.Key.Reveal())
	}
	for k, v := range o.Header {
		h[http.CanonicalHeaderKey(k)] = v
	}
	p.client = dialect.NewClient(p.name, u, err, o.HTTP, h, o.Key)
	return p
}

// Name returns the provider's id.
func (p *Provider) Name() string { return p.name }

// Stream implements llm.Provider.
func (p *Provider) Stream(ctx context.Context, r *llm.Request) iter.Seq2[llm.Event, error] {
	return p.client.Stream(ctx, r, p.body, &decoder{})
}
