// Package gemini implements the format of Google's Gemini API (generateContent). Newer models
// require that each call is sent back with the signature that came with it, which only the model
// that made it accepts; calls of other models get a signature that the service does not check.
//
// The stream has no last event: an answer is complete when it has a finish reason. A call is
// never split, and may have no id. Results of calls follow the calls alone.
package gemini

import (
	"cmp"
	"context"
	"iter"
	"net/http"
	"net/url"
	"strings"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/schema"
	"github.com/chela-ai/chela/internal/plugin/llm/dialect"
)

// Options configure a service. A base URL without a path gets /v1beta; one that ends in
// /openai, where the service speaks another format, loses that. The zero Options are Google's
// own service, without a key.
type Options = dialect.Options

// Provider is an llm.Provider. It is safe for concurrent use.
type Provider struct {
	name    string
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
	o = o.WithDefaults("google")
	p := &Provider{name: o.Name, model: o.Model}
	p.adapter.Rules, p.adapter.Log = p.toolRules, o.Log
	p.repairs.Fix, p.repairs.Log = repair, o.Log
	u, err := dialect.BaseURL(o.BaseURL, "https://generativelanguage.googleapis.com")
	if err == nil {
		u.Path = cmp.Or(strings.TrimSuffix(u.Path, "/openai"), "/v1beta")
	}
	h := http.Header{}
	if !o.Key.IsZero() {
		h.Set("X-Goog-Api-Key", o.Key.Reveal())
	}
	p.client = dialect.NewClient(o, u, err, h, func(id string) bool { return dialect.SupportsImages(p.model(id)) }, nil)
	p.client.Address = address
	return p
}

// address returns the address of the requests for a model.
func address(base *url.URL, model string) *url.URL {
	u := base.JoinPath("models", strings.TrimPrefix(model, "models/")+":streamGenerateContent")
	u.RawQuery = "alt=sse"
	return u
}

// toolRules returns the tool rules of a model.
func (p *Provider) toolRules(id string) dialect.ToolRules {
	return dialect.NewToolRules(p.model(id).Compat, schema.Gemini)
}

// Name returns the provider's id.
func (p *Provider) Name() string { return p.name }

// Stream implements llm.Provider.
func (p *Provider) Stream(ctx context.Context, r *llm.Request) iter.Seq2[llm.Event, error] {
	return p.repairs.Stream(r.Model, omitted{}, func(no omitted) iter.Seq2[llm.Event, error] {
		return p.client.Stream(ctx, r, func(r *llm.Request) (*dialect.Body, error) { return p.body(r, no) }, &decoder{})
	})
}

// omitted are fields that a service refused. Not every model thinks.
type omitted struct{ thinking bool }

// repair leaves out the field that an error message names, and reports whether it did.
func repair(no *omitted, message string) bool {
	if no.thinking || !strings.Contains(message, "thinking") && !strings.Contains(message, "thought") {
		return false
	}
	no.thinking = true
	return true
}
