package model

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"

	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/internal/secret"
)

// Options is what a Set is made of.
type Options struct {
	Config
	Default Choice
	Allow   []string // what people may choose, in the words of llm.Catalog; none: all
	Looks   Choice   // models that look at pictures for one that does not see
	// Params are fields of requests: to any model, and over those of a model, of
	// the agent.
	Params, AgentParams json.RawMessage
	Models              map[string]Settings     // by provider/model
	Env                 func(string) string     // the environment
	HTTP                *http.Client            // for providers
	Keys                string                  // directory of saved keys
	Rests               string                  // file that keeps which keys rest; "": they are forgotten with the process
	Log                 *slog.Logger            // nil: nothing is logged
	Image               Image                   // of messages that refer to some; nil: there are none
	NoProbe             bool                    // do not look for model servers on this machine
	Made                map[string]llm.Provider // answer in place of those that are configured, by id
	Before              *Set                    // the Set whose place this one takes: keys that rest there rest on; nil: there is none
}

// Image returns the content of an image that a message refers to, and its type.
type Image = func(ref string) (data []byte, mime string, err error)

// Choice is the default model, and those that answer when it does not.
type Choice struct {
	Primary   string   `json:"primary"` // provider/model, or an alias; "": none is configured
	Fallbacks []string `json:"fallbacks"`
}

// Or returns the choice; other, when it names no model.
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

// Settings is what the configuration says of one model.
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
	BaseURL        string            `json:"baseUrl"`
	APIKey         secret.Ref        `json:"apiKey"`
	API            string            `json:"api"`
	Headers        map[string]string `json:"headers"`
	TimeoutSeconds int               `json:"timeoutSeconds"`
	MaxTokens      int               `json:"maxTokens"` // of an answer, of models that say nothing else
	Params         json.RawMessage   `json:"params"`
	Compat         json.RawMessage   `json:"compat"` // of models that say nothing else
	Models         []Entry           `json:"models"`
	Request        struct {
		Private bool `json:"allowPrivateNetwork"` // all ports of its host may be reached
	} `json:"request"`
}

// Entry is a model of a provider.
type Entry struct {
	ID            string          `json:"id"`
	Name          string          `json:"name"`
	Reasoning     bool            `json:"reasoning"`
	Input         []string        `json:"input"`
	Context       int             `json:"contextWindow"`
	ContextTokens int             `json:"contextTokens"` // to use of it; 0: all
	MaxTokens     int             `json:"maxTokens"`
	Cost          *llm.Price      `json:"cost"`
	Compat        json.RawMessage `json:"compat"` // over the provider's
}

// model returns what is configured of a model.
func (p *Provider) model(provider string, e *Entry) (llm.Model, error) {
	m := llm.Model{
		Provider: provider, ID: e.ID, Name: e.Name, Context: e.Context, MaxOutput: cmp.Or(e.MaxTokens, p.MaxTokens),
		Images: slices.Contains(e.Input, "image"), Price: e.Cost,
	}
	if e.ContextTokens > 0 && (m.Context == 0 || e.ContextTokens < m.Context) {
		m.Context = e.ContextTokens
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

// compat reads what is said of a service, and over it of a model.
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
