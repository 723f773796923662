// Package standard is the table of stock plug-ins: which dialects and tools a
// plain build has. A build of one's own copies cmd/chela/main.go and changes a
// line here.
package standard

import (
	"fmt"
	"net/http"

	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/internal/llm/anthropic"
	"github.com/chela-ai/chela/internal/llm/offline"
	"github.com/chela-ai/chela/internal/llm/openai"
	"github.com/chela-ai/chela/internal/sandbox/host"
	"github.com/chela-ai/chela/internal/secret"
	"github.com/chela-ai/chela/internal/tool"
	"github.com/chela-ai/chela/internal/tool/exec"
	"github.com/chela-ai/chela/internal/tool/fs"
	"github.com/chela-ai/chela/internal/tool/status"
)

// The dialects, as the configuration names them (models.providers.<id>.api).
const (
	Anthropic = "anthropic-messages"
	OpenAI    = "openai-completions"
	Offline   = "offline"
)

// ProviderConfig is what a provider is made of.
type ProviderConfig struct {
	Name    string // the provider's id
	API     string // one of the dialects
	BaseURL string
	Key     secret.Value
	HTTP    *http.Client
	Header  http.Header               // sent with each request, in place of what the dialect sets
	Model   func(id string) llm.Model // what is known of a model
}

// Provider makes a provider that speaks c.API.
func Provider(c ProviderConfig) (llm.Provider, error) {
	switch c.API {
	case Anthropic:
		return anthropic.New(anthropic.Options{
			Name: c.Name, BaseURL: c.BaseURL, Key: c.Key, HTTP: c.HTTP, Header: c.Header, Model: c.Model,
		}), nil
	case OpenAI:
		return openai.New(openai.Options{
			Name: c.Name, BaseURL: c.BaseURL, Key: c.Key, HTTP: c.HTTP, Header: c.Header, Model: c.Model,
		}), nil
	case Offline:
		return offline.New(), nil
	}
	return nil, fmt.Errorf("provider %s: api %q: want %s or %s", c.Name, c.API, Anthropic, OpenAI)
}

// ToolConfig is what the tools are made of.
type ToolConfig struct {
	Exec   exec.Options // without its broker
	Status status.Options
}

// Tools makes the tools.
func Tools(c ToolConfig) ([]tool.Tool, error) {
	c.Exec.Broker = host.Broker{}
	run, err := exec.New(c.Exec)
	if err != nil {
		return nil, err
	}
	return append(fs.New(fs.Options{}), run, status.New(c.Status)), nil
}
