// Package anthropic implements the Messages format of Anthropic's API, which several other
// services also use.
//
// What is particular to it: the conversation must begin and end with the user, and messages of
// one role are joined; results of tools are parts of user messages; a request must set the limit
// of the answer, which includes thinking; thinking has a signature and goes back to the same
// provider unchanged; and what is to be cached is marked in the request, in up to four places.
package anthropic

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/schema"
	"github.com/chela-ai/chela/internal/plugin/llm/dialect"
)

const (
	host    = "api.anthropic.com"
	version = "2023-06-01"
)

// Options configure a service. The base URL may end in /v1. The key is an API
// key or an OAuth token (sk-ant-oat…). The zero Options are Anthropic's own
// service, without a key.
type Options = dialect.Options

// Provider is an llm.Provider. It is safe for concurrent use.
type Provider struct {
	name    string
	model   func(id string) llm.Model
	client  *dialect.Client
	adapter dialect.ToolAdapter
	tools   dialect.Memo[toolList]
	system  dialect.Memo[prompt]
	repairs dialect.Repairs[omitted]
}

// toolList and prompt are the parts of a request before the conversation, with
// the cache marker.
type toolList struct {
	tools  []llm.ToolSpec
	marker string
}

type prompt struct {
	blocks []llm.Block
	marker string
}

func sameTools(a, b toolList) bool {
	return a.marker == b.marker && dialect.SameTools(a.tools, b.tools)
}

func samePrompt(a, b prompt) bool {
	return a.marker == b.marker && slices.Equal(a.blocks, b.blocks)
}

var _ llm.Provider = (*Provider)(nil)

// New returns a service. If the base URL is invalid, each call fails.
func New(o Options) *Provider {
	o = o.WithDefaults("anthropic")
	p := &Provider{name: o.Name, model: o.Model}
	p.adapter.Rules, p.adapter.Log = p.toolRules, o.Log
	p.repairs.Fix, p.repairs.Log = repair, o.Log
	u, err := dialect.BaseURL(o.BaseURL, "https://"+host)
	if err == nil {
		u.Path = strings.TrimSuffix(u.Path, "/v1") + "/v1/messages"
	}
	home := err == nil && u.Host == host
	p.client = dialect.NewClient(o, u, err, header(o, u),
		func(id string) bool { return dialect.SupportsImages(p.model(id)) },
		func(id string) bool { return home && p.model(id).Fast > 0 })
	return p
}

// toolRules returns the tool rules of a model.
func (p *Provider) toolRules(id string) dialect.ToolRules {
	return dialect.NewToolRules(p.model(id).Compat, schema.Full)
}

// header returns the header fields of each request.
func header(o Options, u *url.URL) http.Header {
	h := http.Header{}
	h.Set("Anthropic-Version", version)
	switch key := o.Key.Reveal(); {
	case strings.HasPrefix(key, "sk-ant-oat"):
		h.Set("Authorization", "Bearer "+key)
		if u != nil && u.Host == host {
			h.Set("Anthropic-Beta", "oauth-2025-04-20")
		}
	case key != "":
		h.Set("X-Api-Key", key)
	}
	return h
}

// Name returns the provider's id.
func (p *Provider) Name() string { return p.name }

// Stream implements llm.Provider.
func (p *Provider) Stream(ctx context.Context, r *llm.Request) iter.Seq2[llm.Event, error] {
	return p.repairs.Stream(r.Model, omitted{}, func(no omitted) iter.Seq2[llm.Event, error] {
		return p.client.Stream(ctx, r, func(r *llm.Request) (*dialect.Body, error) { return p.body(r, no) }, &decoder{})
	})
}

// omitted are fields that a service refused. Compatible services do not accept all of
// them.
type omitted struct{ thinking, output, cache, temperature bool }

// repair leaves out the field that an error message names, and reports whether it did.
func repair(no *omitted, message string) bool {
	says := func(field string) bool { return dialect.Mentions(message, field) }
	leave := func(field *bool) bool {
		before := *field
		*field = true
		return !before
	}
	switch refuses := dialect.Refuses(message); {
	case says("cache_control"):
		return leave(&no.cache)
	case says("output_config"), says("effort"):
		return leave(&no.output)
	case says("temperature"):
		return leave(&no.temperature)
	case refuses && (says("thinking") || says("budget_tokens")):
		return leave(&no.thinking)
	}
	return false
}
