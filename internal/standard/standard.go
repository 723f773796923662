// Package standard is the table of stock plug-ins: which dialects and tools a
// plain build has. A build of one's own copies cmd/chela/main.go and changes a
// line here.
package standard

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/internal/llm/anthropic"
	"github.com/chela-ai/chela/internal/llm/offline"
	"github.com/chela-ai/chela/internal/llm/openai"
	"github.com/chela-ai/chela/internal/reach"
	"github.com/chela-ai/chela/internal/sandbox/host"
	"github.com/chela-ai/chela/internal/secret"
	"github.com/chela-ai/chela/internal/tool"
	"github.com/chela-ai/chela/internal/tool/exec"
	"github.com/chela-ai/chela/internal/tool/fs"
	"github.com/chela-ai/chela/internal/tool/media"
	"github.com/chela-ai/chela/internal/tool/message"
	"github.com/chela-ai/chela/internal/tool/status"
	"github.com/chela-ai/chela/internal/tool/web"
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
	Log     *slog.Logger              // nil: nothing is logged
	// Image returns the content of an image that a message refers to, and its type.
	Image func(ref string) (data []byte, mime string, err error)
}

// Provider makes a provider that speaks c.API.
func Provider(c ProviderConfig) (llm.Provider, error) {
	switch c.API {
	case Anthropic:
		return anthropic.New(anthropic.Options{
			Name: c.Name, BaseURL: c.BaseURL, Key: c.Key, HTTP: c.HTTP, Header: c.Header, Model: c.Model, Log: c.Log, Image: c.Image,
		}), nil
	case OpenAI:
		return openai.New(openai.Options{
			Name: c.Name, BaseURL: c.BaseURL, Key: c.Key, HTTP: c.HTTP, Header: c.Header, Model: c.Model, Log: c.Log, Image: c.Image,
		}), nil
	case Offline:
		return offline.New(), nil
	}
	return nil, fmt.Errorf("provider %s: api %q: want %s or %s", c.Name, c.API, Anthropic, OpenAI)
}

// ToolConfig is what the tools are made of.
type ToolConfig struct {
	State  string       // directory whose mark commands carry, for Sweep; "": none
	Exec   exec.Options // without its broker; with its Commands there is the tool process
	Files  fs.Options   // its Reach is each agent's, see Reaching
	Status status.Options
	Image  *media.Options     // nil: the tool is off; its Reach as that of Files
	Send   *message.Options   // nil: the tool message is off; the same
	Fetch  *web.FetchOptions  // nil: the tool is off
	Search *web.SearchOptions // nil: the tool is off
}

// Tools makes the tools that are the same for all agents.
func Tools(c ToolConfig) ([]tool.Tool, error) {
	mark, err := markOf(c.State)
	if err != nil {
		return nil, err
	}
	c.Exec.Broker = host.New(mark)
	run, err := exec.New(c.Exec)
	if err != nil {
		return nil, err
	}
	tools := []tool.Tool{run, status.New(c.Status)}
	if c.Exec.Commands != nil {
		tools = append(tools, c.Exec.Commands.Tool())
	}
	if c.Fetch != nil {
		tools = append(tools, web.NewFetch(*c.Fetch))
	}
	if c.Search != nil {
		search, err := web.NewSearch(*c.Search)
		if err != nil {
			return nil, err
		}
		tools = append(tools, search)
	}
	return tools, nil
}

// Reaching makes the tools that name files of the person's: for the agents that
// the rule is of.
func Reaching(c ToolConfig, r reach.Rule) []tool.Tool {
	c.Files.Reach = r
	tools := fs.New(c.Files)
	if c.Image != nil {
		o := *c.Image
		o.Reach = r
		tools = append(tools, media.New(o))
	}
	if c.Send != nil {
		o := *c.Send
		o.Reach = r
		tools = append(tools, message.New(o))
	}
	return tools
}

// Sweep ends the commands that the tools of a process which was killed left
// running, and returns how many processes those were. state is the directory
// that the tools were made with; a lock on it is the caller's.
func Sweep(ctx context.Context, log *slog.Logger, state string) (int, error) {
	mark, err := markOf(state)
	if err != nil {
		return 0, err
	}
	return host.Sweep(ctx, log, mark)
}

func markOf(state string) (string, error) {
	if state == "" {
		return "", nil
	}
	return host.Mark(state)
}
