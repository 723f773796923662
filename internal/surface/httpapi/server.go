package httpapi

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/engine/invoke"
	"github.com/chela-ai/chela/internal/surface/access"
)

// Options configures the routes. Log, Auth and Upgrade are required.
type Options struct {
	Log     *slog.Logger
	Auth    *access.Authenticator
	Upgrade http.Handler // handles WebSocket requests
	Started time.Time

	// Stage returns the gateway's stage; nil: always Started.
	Stage func() Stage
	// Ready returns the state of each part: "ok", or why it is unusable.
	Ready func(context.Context) map[string]string
	// Metrics returns all metrics.
	Metrics func(context.Context) ([]Metric, error)
	// Invoke executes a tool call; nil: not available.
	Invoke func(context.Context, chela.Principal, invoke.DirectCall) (invoke.Answer, error)
	// UI is the Control UI, which takes the place of Page; nil: none.
	UI *UI
	// Page is Chela's own page; nil: none.
	Page Page
	// Canvas serves what the assistant shows (package surface/canvas); nil: nothing.
	Canvas http.Handler
	// Models is the assistant in the forms of model services; nil: there is none.
	Models Models
	// Webhooks are the requests of other programs; nil: none.
	Webhooks *Webhooks
	// Post returns what receives the posts of a chat platform to a path, which
	// authenticates them itself; nil: nothing does.
	Post func(path string) http.Handler
}

// Models handles requests for models (package modelapi).
type Models interface {
	http.Handler                                     // of requests with a credential
	Patterns() []string                              // of its routes, below /v1/
	Refuse(http.ResponseWriter, *http.Request)       // answers requests without a credential
	NotFound(w http.ResponseWriter, r *http.Request) // answers requests to other paths below /v1/
}

// Page serves a web page and its files (package webui).
type Page interface {
	http.Handler
	Paths() []string // that it serves; the first is that of the page
}

// Webhooks are the webhooks, which authenticate their requests themselves.
type Webhooks struct {
	Path    string // without a slash at its end
	Handler http.Handler
}

// Stage is a stage in the life of a gateway.
type Stage string

// Stages.
const (
	Starting Stage = "starting"
	Standby  Stage = "standby" // another gateway serves
	Started  Stage = "started"
	Draining Stage = "draining"
)

// New returns the handler of all routes, protected by the guard of o.Auth.
func New(o Options) http.Handler {
	s := server{o}
	mux := http.NewServeMux()
	fallbacks := map[string]bool{"": true}
	for _, r := range Routes(o) {
		mux.HandleFunc(r.Pattern, s.admit(r))
		fallbacks[r.Pattern] = r.fallback
	}
	guarded := o.Auth.Guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
			upgrade(o.Upgrade, w, r)
			return
		}
		_, pattern := mux.Handler(r)
		// the mux would redirect, with a page
		if !isClean(r.URL.Path) || fallbacks[pattern] && strings.HasSuffix(pattern, r.URL.Path+"/") {
			s.notFound(w, r)
			return
		}
		if pattern == "" || fallbacks[pattern] && r.Method == http.MethodPost && o.Post(r.URL.Path) == nil {
			s.otherMethod(mux, fallbacks, w, r)
			return
		}
		mux.ServeHTTP(w, r)
	}), probes[:]...)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 { // also the rest of a body that no handler reads is read, before the answer
			// not every connection supports deadlines
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTime))
		}
		guarded.ServeHTTP(w, r)
	})
}

// isClean reports whether a path is one that a client would ask for: without empty names,
// dots and bytes that are not UTF-8.
func isClean(p string) bool {
	clean := path.Clean("/" + p)
	return utf8.ValidString(p) && (p == "" || p == clean || p == clean+"/" && clean != "/")
}

// upgrade passes a WebSocket request on if its path is a clean one.
func upgrade(to http.Handler, w http.ResponseWriter, r *http.Request) {
	if !isClean(r.URL.Path) {
		access.Error(w, http.StatusBadRequest, kindInvalid, "the path of the request is not a clean one")
		return
	}
	to.ServeHTTP(w, r)
}

// otherMethod answers a request with a method that the path does not have. fallbacks are the
// patterns of what is there for no method.
func (s server) otherMethod(mux *http.ServeMux, fallbacks map[string]bool, w http.ResponseWriter, r *http.Request) {
	var allow []string
	for _, method := range [...]string{http.MethodGet, http.MethodPost} {
		other := r.WithContext(r.Context())
		other.Method = method
		if _, pattern := mux.Handler(other); !fallbacks[pattern] {
			allow = append(allow, method)
		}
	}
	if allow == nil {
		s.notFound(w, r)
		return
	}
	notAllowed(allow...)(w, r)
}

type server struct{ o Options }

func (s server) live(w http.ResponseWriter, _ *http.Request) {
	access.WriteJSON(w, http.StatusOK, map[string]any{"ok": true, "status": "live"})
}

// noUI says what answers, and how to get a web page.
const noUI = `This is the gateway of Chela. Its web page is switched off (gateway.controlUi.enabled). In a terminal:

    chela chat                                         a conversation
    chela gateway status                               the address for other programs
    chela config set gateway.controlUi.enabled true    switches the page on
`

// withoutUI answers a browser when there is no web page.
func (s server) withoutUI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(http.StatusNotFound)
	_, _ = io.WriteString(w, noUI) // the client may be gone
}

func (s server) stage() Stage {
	if s.o.Stage == nil {
		return Started
	}
	return s.o.Stage()
}

func (s server) startup(w http.ResponseWriter, _ *http.Request) {
	stage, status := s.stage(), http.StatusOK
	if stage != Started {
		status = http.StatusServiceUnavailable
	}
	access.WriteJSON(w, status, map[string]Stage{"status": stage})
}

// retry answers requests while the gateway is starting.
func (s server) retry(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Retry-After", "1")
	text := "gateway starting; retry shortly"
	if s.stage() == Standby {
		text = "standby: another gateway serves"
	}
	access.Error(w, http.StatusServiceUnavailable, "unavailable", text)
}

// readiness is the answer of /readyz.
type readiness struct {
	Ready   bool              `json:"ready"`
	Failing []string          `json:"failing,omitzero"`
	Parts   map[string]string `json:"parts,omitempty"` // "ok", or why it is unusable
	Uptime  int64             `json:"uptimeMs,omitempty"`
}

func (s server) ready(w http.ResponseWriter, r *http.Request) {
	var parts map[string]string
	if stage := s.stage(); stage == Started {
		parts = s.o.Ready(r.Context())
	} else {
		parts = map[string]string{"gateway": string(stage)}
	}
	out, status := readiness{Ready: true}, http.StatusOK
	failing := []string{}
	for name, state := range parts {
		if state != "ok" {
			failing = append(failing, name)
			out.Ready, status = false, http.StatusServiceUnavailable
		}
	}
	if s.mayInspect(r) {
		out.Failing, out.Parts, out.Uptime = failing, parts, time.Since(s.o.Started).Milliseconds()
	}
	access.WriteJSON(w, status, out)
}

func (s server) metrics(w http.ResponseWriter, r *http.Request) {
	all, err := s.o.Metrics(r.Context())
	if err != nil {
		s.o.Log.Warn("collect metrics", "err", err)
		access.Error(w, http.StatusServiceUnavailable, "unavailable", "metrics are unavailable")
		return
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write(expose(all)) // the client may be gone
}

// mayInspect reports whether the client may see details of the gateway's state:
// it is on this machine or authenticated.
func (s server) mayInspect(r *http.Request) bool {
	if access.FromContext(r.Context()).Local {
		return true
	}
	_, ok := s.o.Auth.Bearer(r)
	return ok
}
