// Package ollama implements the format of Ollama's own API, which serves models on a
// person's machine. A request says how large the context window has to be, which it cannot in
// OpenAI's format: without that, a server silently cuts a long prompt.
package ollama

import (
	"context"
	"iter"
	"net/http"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/schema"
	"github.com/chela-ai/chela/internal/plugin/llm/dialect"
)

// Options configure a server. A base URL may end in /v1, where the server speaks OpenAI's
// format, or in /api. The zero Options are a server on this machine.
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

// New returns a server. If the base URL is invalid, each call fails.
func New(o Options) *Provider {
	o = o.WithDefaults("ollama")
	p := &Provider{name: o.Name, model: o.Model}
	p.adapter.Rules, p.adapter.Log = p.toolRules, o.Log
	p.repairs.Fix, p.repairs.Log = repair, o.Log
	u, err := dialect.BaseURL(o.BaseURL, "http://127.0.0.1:11434")
	if err == nil {
		for _, end := range [...]string{"/chat", "/api", "/v1"} {
			u.Path = strings.TrimSuffix(u.Path, end)
		}
		u.Path += "/api/chat"
	}
	h := http.Header{}
	if !o.Key.IsZero() {
		h.Set("Authorization", "Bearer "+o.Key.Reveal())
	}
	p.client = dialect.NewClient(o, u, err, h, func(id string) bool { return dialect.SupportsImages(p.model(id)) }, nil)
	return p
}

// toolRules returns the tool rules of a model.
func (p *Provider) toolRules(id string) dialect.ToolRules {
	return dialect.NewToolRules(p.model(id).Compat, schema.LlamaCPP)
}

// Name returns the provider's id.
func (p *Provider) Name() string { return p.name }

// Stream implements llm.Provider.
func (p *Provider) Stream(ctx context.Context, r *llm.Request) iter.Seq2[llm.Event, error] {
	return p.repairs.Stream(r.Model, omitted{}, func(no omitted) iter.Seq2[llm.Event, error] {
		return p.client.Stream(ctx, r, func(r *llm.Request) (*dialect.Body, error) { return p.body(r, no) }, &decoder{})
	})
}

// omitted are fields that a server refused. Not every model thinks.
type omitted struct{ think bool }

// repair leaves out the field that an error message names, and reports whether it did.
func repair(no *omitted, message string) bool {
	names := []string{"thinking", "think"}
	if no.think || !slices.ContainsFunc(names, func(n string) bool { return dialect.Mentions(message, n) }) {
		return false
	}
	no.think = true
	return true
}
