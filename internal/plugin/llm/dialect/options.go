package dialect

import (
	"cmp"
	"log/slog"
	"net/http"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/kit/secret"
)

// Options configure a provider, in any dialect.
type Options struct {
	Name    string                    // the provider's id; "": that of the dialect's own service
	BaseURL string                    // "": that of the dialect's own service
	Key     secret.Value              // an API key or a token; empty for most local servers
	Header  http.Header               // sent with each request; replaces headers of the dialect
	HTTP    *http.Client              // nil: every request fails
	Model   func(id string) llm.Model // returns what is known of a model; nil: nothing
	Log     *slog.Logger              // warns about tools that are left out of a request; nil: nothing is logged
	// Image returns the content of an image that a message refers to, and its MIME
	// type; nil: there are no images.
	Image func(ref string) (data []byte, mime string, err error)
}

// WithDefaults returns o with a name and a function Model.
func (o Options) WithDefaults(name string) Options {
	o.Name = cmp.Or(o.Name, name)
	if o.Model == nil {
		o.Model = func(string) llm.Model { return llm.Model{} }
	}
	return o
}
