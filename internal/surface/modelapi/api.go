package modelapi

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/bus"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/engine/inbound"
)

// Limits of requests.
const (
	maxRequests = 64 // at the same time
	maxLarge    = 4  // of them, whose body is read and has more than small bytes
	small       = 1 << 20
	maxBody     = 28 << 20 // bytes: the attachments that a message may have, in base64, and text
	bodyTime    = time.Minute
	maxKey      = 256 // bytes of an idempotency key
	pingTime    = 15 * time.Second
	closeTime   = time.Second
	lastEntries = 20 // of a session, among which its last answer is
)

// Options configures an API. All fields are required.
type Options struct {
	Log     *slog.Logger
	Store   store.Store
	Bus     *bus.Bus
	Gate    *inbound.Gate
	Runs    Runs
	Agents  func() []chela.Agent
	Default func() chela.AgentID // agent of requests that name none
	Started time.Time
	// Enabled reports whether an endpoint of gateway.http.endpoints is switched on.
	Enabled func(key string) bool
}

// Runs finds the runs of messages.
type Runs interface {
	// Find returns the run with the id, or the run that took the message with the id.
	Find(context.Context, chela.RunID) (run.Run, error)
	// Wait is like Find, but returns the run when it is final.
	Wait(context.Context, chela.RunID) (run.Run, error)
}

// API handles the requests below /v1/.
type API struct {
	o       Options
	slots   chan struct{}
	large   chan struct{}
	closing chan struct{}
	once    sync.Once
}

// New returns an API.
func New(o Options) *API {
	return &API{o: o, slots: make(chan struct{}, maxRequests), large: make(chan struct{}, maxLarge),
		closing: make(chan struct{})}
}

// Close ends the requests in progress: those whose run has ended get its answer. It waits
// for them until ctx ends, and no longer than closeTime, since others are still being read.
func (a *API) Close(ctx context.Context) {
	a.once.Do(func() { close(a.closing) })
	ctx, cancel := context.WithTimeout(ctx, closeTime)
	defer cancel()
	for range maxRequests {
		select {
		case a.slots <- struct{}{}: // nobody leaves it again
		case <-ctx.Done():
			return
		}
	}
}

// names are the names of a form.
type names struct {
	path    string
	key     string // of gateway.http.endpoints
	id      string // beginning of the ids of answers
	session string // in the keys of sessions
}

// form is a way to write requests and answers.
type form interface {
	names() names
	parse(body []byte) (*request, error)
	answer(*exchange, answer) any // a complete answer
	stream(*exchange, *events) stream
	fault(*fault) any
}

// stream writes an answer in pieces: start, deltas, then end or fail.
type stream interface {
	start()
	delta(text string)
	end(answer)
	fail(*fault)
}

var forms = [...]form{chat{}, responses{}, messages{}}

// formOf returns the form of a request, by its path or, for the paths that forms share, by
// the headers of its client.
func formOf(r *http.Request) form {
	for _, f := range forms {
		if f.names().path == r.URL.Path {
			return f
		}
	}
	if strings.HasPrefix(r.URL.Path, messages{}.names().path+"/") || r.Header.Get("Anthropic-Version") != "" {
		return messages{}
	}
	return chat{}
}

// Patterns returns the routes that are switched on, as patterns of http.ServeMux.
func (a *API) Patterns() []string {
	var out []string
	for _, f := range forms {
		if n := f.names(); a.o.Enabled(n.key) {
			out = append(out, "POST "+n.path)
		}
	}
	if out != nil {
		out = append(out, "GET /v1/models", "GET /v1/models/{id...}")
	}
	return out
}

// Refuse answers a request without a credential.
func (a *API) Refuse(w http.ResponseWriter, r *http.Request) {
	write(w, formOf(r), &fault{
		status: http.StatusUnauthorized, code: "invalid_api_key",
		text: "Unauthorized: send the token of the gateway as the API key (Authorization: Bearer TOKEN, or x-api-key)",
	})
}

// NotFound answers a request for what is not switched on, or does not exist.
func (a *API) NotFound(w http.ResponseWriter, r *http.Request) {
	f := &fault{status: http.StatusNotFound, code: "not_found", text: "there is nothing at " + clip(r.URL.Path)}
	on := "this endpoint is switched off: chela config set gateway.http.endpoints.%s.enabled true"
	for _, of := range forms {
		switch n := of.names(); {
		case n.path != r.URL.Path:
		case a.o.Enabled(n.key):
			w.Header().Set("Allow", http.MethodPost)
			f.status, f.code, f.text = http.StatusMethodNotAllowed, "method_not_allowed", "send a POST request"
		default:
			f.text = fmt.Sprintf(on, n.key)
		}
	}
	if (r.URL.Path == "/v1/models" || strings.HasPrefix(r.URL.Path, "/v1/models/")) && a.Patterns() == nil {
		f.text = fmt.Sprintf(on, chat{}.names().key)
	}
	write(w, formOf(r), f)
}

// ServeHTTP handles a request with a credential to one of the routes.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	of := formOf(r)
	if who := chela.PrincipalFrom(r.Context()); !who.May(chela.ScopeWrite) {
		write(w, of, &fault{status: http.StatusForbidden, text: "missing scope: " + string(chela.ScopeWrite)})
		return
	}
	if r.Method == http.MethodGet {
		a.models(w, r)
		return
	}
	select {
	case a.slots <- struct{}{}:
		defer func() { <-a.slots }()
	default:
		write(w, of, &fault{status: http.StatusTooManyRequests, code: "rate_limit_exceeded",
			text: "too many requests at once; try again later", after: 1})
		return
	}
	x, err := a.accept(w, r, of)
	if err != nil {
		write(w, of, faultOf(a.o.Log, err))
		return
	}
	defer x.cancel()
	a.reply(w, r, x)
}
