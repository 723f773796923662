package httpapi

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/access"
	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/invoke"
)

// Options is what the routes work with. Log, Door and Upgrade are required.
type Options struct {
	Log     *slog.Logger
	Door    *access.Door
	Upgrade http.Handler // takes requests for a WebSocket
	Started time.Time

	// Stage is where the gateway is between its start and its end; nil: it is
	// Started.
	Stage func() Stage
	// Ready returns the parts that are not usable and why.
	Ready func(context.Context) map[string]string
	// Metrics returns what is counted and measured.
	Metrics func(context.Context) ([]Metric, error)
	// Invoke carries out a call of a tool; nil: nobody can call one.
	Invoke func(context.Context, chela.Principal, invoke.Errand) (invoke.Answer, error)
	// UI is the Control UI; nil: there is none.
	UI *UI
}

// Stage is where a gateway is between its start and its end.
type Stage string

// The stages.
const (
	Starting Stage = "starting"
	Started  Stage = "started"
	Draining Stage = "draining"
)

// New returns the handler of all routes, behind the door's guard.
func New(o Options) http.Handler {
	s := server{o}
	mux := http.NewServeMux()
	for _, r := range Routes(o) {
		mux.HandleFunc(r.Pattern, s.admit(r))
	}
	return o.Door.Guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
			o.Upgrade.ServeHTTP(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	}), probes[:]...)
}

type server struct{ o Options }

func (s server) live(w http.ResponseWriter, _ *http.Request) {
	s.write(w, http.StatusOK, map[string]any{"ok": true, "status": "live"})
}

// bare answers who looks for a page where there is none.
func (s server) bare(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(http.StatusNotFound)
	_, _ = io.WriteString(w, "This is the gateway of Chela. It serves pages when gateway.controlUi.root names their directory.\n") // who went away needs no answer
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
	s.write(w, status, map[string]Stage{"status": stage})
}

// later answers what cannot be answered yet.
func (s server) later(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Retry-After", "1")
	access.Error(w, http.StatusServiceUnavailable, "unavailable", "gateway starting; retry shortly")
}

// readiness is what /readyz answers.
type readiness struct {
	Ready   bool              `json:"ready"`
	Failing []string          `json:"failing,omitzero"`
	Parts   map[string]string `json:"parts,omitempty"` // "ok", or what is wrong
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
	if s.trusts(r) {
		out.Failing, out.Parts, out.Uptime = failing, parts, time.Since(s.o.Started).Milliseconds()
	}
	s.write(w, status, out)
}

func (s server) metrics(w http.ResponseWriter, r *http.Request) {
	all, err := s.o.Metrics(r.Context())
	if err != nil {
		s.o.Log.Warn("metrics are not known", "err", err)
		access.Error(w, http.StatusServiceUnavailable, "unavailable", "metrics are not known now")
		return
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write(expose(all)) // a client that went away needs no answer
}

// trusts reports whether the client may see how the gateway is: it is on this
// machine, or shows a credential.
func (s server) trusts(r *http.Request) bool {
	if access.FromContext(r.Context()).Local {
		return true
	}
	_, ok := s.o.Door.Bearer(r)
	return ok
}

func (s server) write(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // our own types
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n'))
}
