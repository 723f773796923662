package model

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"

	"github.com/chela-ai/chela/internal/app/standard"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/kit/secret"
	"github.com/chela-ai/chela/internal/plugin/llm/dialect"
)

// Options is what a Set is made of.
type Options struct {
	Config
	Defaults
	AgentParams json.RawMessage         // fields of the default agent's requests, over all others
	Env         func(string) string     // environment variables
	HTTP        *http.Client            // for providers
	Keys        string                  // directory of the saved keys
	Own         string                  // directory of saved keys that are tried first; "": none
	Cooldowns   string                  // file of the keys' cooldowns; "": they are lost with the process
	Log         *slog.Logger            // nil: nothing is logged
	Image       Image                   // of messages that refer to images; nil: there are none
	NoProbe     bool                    // do not look for model servers on this machine
	Made        map[string]llm.Provider // used instead of the configured providers, by id
	Before      *Set                    // the Set that this one replaces, whose cooldowns it takes over; nil: none
	NewProvider func(api string, o dialect.Options) (llm.Provider, error)
}

// Defaults is the part of agents.defaults about models.
type Defaults struct {
	Model       Choice              `json:"model"`
	Models      map[string]Settings `json:"models"` // by provider/model
	ModelPolicy Policy              `json:"modelPolicy"`
	ImageModel  Choice              `json:"imageModel"` // looks at pictures for a model that takes none
	Params      json.RawMessage     `json:"params"`     // fields of requests to any model
}

// Policy is which models people may choose, in the words of [llm.Catalog]; none:
// all.
type Policy struct {
	Allow []string `json:"allow"`
}

// Image returns the content of an image that a message refers to, and its type.
type Image = func(ref string) (data []byte, mime string, err error)

// Choice is a model and its fallbacks.
type Choice struct {
	Primary   string   `json:"primary"` // provider/model, or an alias; "": not configured
	Fallbacks []string `json:"fallbacks"`
}

// Or returns the choice, or other if it has no model.
func (m Choice) Or(other Choice) Choice {
	if m.Primary == "" {
		return other
	}
	return m
}

// UnmarshalJSON accepts "provider/model" and {"primary": "provider/model"}.
func (m *Choice) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, &m.Primary)
	}
	type plain Choice
	return json.Unmarshal(b, (*plain)(m))
}

// Settings is the configuration of a model.
type Settings struct {
	Alias  string          `json:"alias"`
	Params json.RawMessage `json:"params"`
}

// Config is models.
type Config struct {
	Mode      string              `json:"mode"`
	Providers map[string]Provider `json:"providers"`
}

// Provider is models.providers.<id>.
type Provider struct {
	BaseURL          string            `json:"baseUrl"`
	APIKey           secret.Ref        `json:"apiKey"`
	API              string            `json:"api"`
	Headers          map[string]string `json:"headers"`
	TimeoutSeconds   int               `json:"timeoutSeconds"`
	KeepAliveSeconds int               `json:"keepAliveSeconds"`
	MaxTokens        int               `json:"maxTokens"` // of an answer, for models without their own
	Params           json.RawMessage   `json:"params"`
	Compat           json.RawMessage   `json:"compat"` // for models without their own
	Models           []Entry           `json:"models"`
	Request          struct {
		Private bool `json:"allowPrivateNetwork"` // all ports of its host can be reached
	} `json:"request"`
}

// Entry is a model of a provider.
type Entry struct {
	ID            string          `json:"id"`
	Name          string          `json:"name"`
	Reasoning     bool            `json:"reasoning"`
	Input         []string        `json:"input"`
	Context       int             `json:"contextWindow"`
	ContextTokens int             `json:"contextTokens"` // maximum to use of it; 0: all
	MaxTokens     int             `json:"maxTokens"`
	Cost          *llm.Price      `json:"cost"`
	Compat        json.RawMessage `json:"compat"` // overrides the provider's
}

// model returns the configured model.
func (p *Provider) model(provider string, e *Entry) (llm.Model, error) {
	m := llm.Model{
		Provider: provider, ID: e.ID, Name: e.Name, Context: e.Context, MaxOutput: cmp.Or(e.MaxTokens, p.MaxTokens),
		Images: slices.Contains(e.Input, "image"), Price: e.Cost,
	}
	if e.ContextTokens > 0 && (m.Context == 0 || e.ContextTokens < m.Context) {
		m.Context = e.ContextTokens
	}
	if serviceOf(provider).id != "" || p.API == standard.Anthropic { // what they charge for reads is known
		m.Price = m.Price.WithReads()
	}
	if e.Reasoning {
		m.Levels = llm.Levels[:]
	}
	var err error
	if m.Compat, err = compat(p.Compat, e.Compat); err != nil {
		return m, fmt.Errorf("models.providers.%s.models: compat of %s: %w", provider, e.ID, err)
	}
	return m, nil
}

// compat decodes the abilities of a service, and those of a model over them.
func compat(said ...json.RawMessage) (llm.Compat, error) {
	var c llm.Compat
	for _, raw := range said {
		if len(raw) == 0 {
			continue
		}
		if err := json.Unmarshal(raw, &c); err != nil {
			return c, err
		}
	}
	return c, nil
}
