package model

import (
	"encoding/json"
	"log/slog"
	"net/http"

	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/internal/secret"
)

// Options is what a Set is made of.
type Options struct {
	Config
	Default Choice
	// Params are fields of requests: to any model, and over those of a model, of
	// the agent.
	Params, AgentParams json.RawMessage
	Looks   Choice // models that look at pictures for one that does not see
	Models  map[string]Settings     // by provider/model
	Env     func(string) string     // the environment
	HTTP    *http.Client            // for providers
	Keys    string                  // directory of saved keys
	Rests   string                  // file that keeps which keys rest; "": they are forgotten with the process
	Log     *slog.Logger            // nil: nothing is logged
	Image   Image                   // of messages that refer to some; nil: there are none
	NoProbe bool                    // do not look for model servers on this machine
	Made    map[string]llm.Provider // answer in place of those that are configured, by id
}

// Choice is the default model, and those that answer when it does not.
type Choice struct {
	Primary   string   `json:"primary"` // provider/model, or an alias; "": none is configured
// Image returns the content of an image that a message refers to, and its type.
type Image = func(ref string) (data []byte, mime string, err error)

	Fallbacks []string `json:"fallbacks"`
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
	Alias string `json:"alias"`
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
	Models         []struct {
		ID        string     `json:"id"`
		Name      string     `json:"name"`
		Reasoning bool       `json:"reasoning"`
		Input     []string   `json:"input"`
		Context   int        `json:"contextWindow"`
		MaxTokens int        `json:"maxTokens"`
		Cost      *llm.Price `json:"cost"`
		Compat    llm.Compat `json:"compat"`
	} `json:"models"`
}
