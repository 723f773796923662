// Package anthropic speaks the Messages format of Anthropic's API, which
// several other services speak too.
package anthropic

import (
	"cmp"
	"context"
	"iter"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/dialect"
	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/internal/schema"
	"github.com/chela-ai/chela/internal/secret"
)

const (
	host    = "api.anthropic.com"
	version = "2023-06-01"
)

// Options are of one service. The zero Options are Anthropic's own, without a
// key.
type Options struct {
	Name    string                    // the provider's id; "": anthropic
	BaseURL string                    // with or without /v1; "": Anthropic's
	Key     secret.Value              // an API key, or an OAuth token (sk-ant-oat…)
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
	client *dialect.Client
	offers dialect.Offers
	tools  dialect.Kept[offer]
	system dialect.Kept[prompt]
}

// offer and prompt are what a request says before the conversation, with the
// marker of what is to be cached.
type offer struct {
	tools  []llm.ToolSpec
	marker string
}

type prompt struct {
	blocks []llm.Block
	marker string
}

func sameOffer(a, b offer) bool {
	return a.marker == b.marker && dialect.SameTools(a.tools, b.tools)
}

func samePrompt(a, b prompt) bool {
	return a.marker == b.marker && slices.Equal(a.blocks, b.blocks)
}

var _ llm.Provider = (*Provider)(nil)

// New returns a service. A base URL that is none is the error of each call.
func New(o Options) *Provider {
	p := &Provider{name: o.Name, model: o.Model}
	if p.name == "" {
		p.name = "anthropic"
	}
	if p.model == nil {
		p.model = func(string) llm.Model { return llm.Model{} }
	}
	p.offers.Ways, p.offers.Log = p.ways, o.Log
	u, err := dialect.BaseURL(o.BaseURL, "https://"+host)
	if err == nil {
		u.Path = strings.TrimSuffix(u.Path, "/v1") + "/v1/messages"
	}
	p.client = dialect.NewClient(p.name, u, err, o.HTTP, header(o, u), o.Key)
	p.client.Images.Load = o.Image
	p.client.Images.Seen = func(id string) bool { return sees(p.model(id)) }
	return p
}

// sees reports whether a model takes images, as far as is known.
func sees(m llm.Model) bool { return m.ID == "" || m.Images }

// ways returns what a model takes of tools.
func (p *Provider) ways(id string) dialect.Ways {
	c := p.model(id).Compat
	return dialect.Ways{
		Schema: schema.Rules{Profile: cmp.Or(c.ToolSchemaProfile, schema.Full), Without: c.UnsupportedToolSchemaKeywords},
		None:   !c.Tools(),
	}
}

// header returns what goes with each request.
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
	for k, v := range o.Header {
		h[http.CanonicalHeaderKey(k)] = v
	}
	return h
}

// Name returns the provider's id.
func (p *Provider) Name() string { return p.name }

// Stream implements llm.Provider.
func (p *Provider) Stream(ctx context.Context, r *llm.Request) iter.Seq2[llm.Event, error] {
	return p.client.Stream(ctx, r, p.body, &decoder{})
}
