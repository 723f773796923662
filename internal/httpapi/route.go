package httpapi

import (
	"net/http"

	"github.com/chela-ai/chela/internal/access"
)

// Who a [Route] answers.
const (
	Anyone     = "anyone"
	Near       = "this machine, or a credential"
	Credential = "a credential"
)

// Route is a way into the gateway over HTTP. None of them has an effect.
type Route struct {
	Pattern string // of http.ServeMux
	For     string // Anyone, Near, Credential

	serve http.HandlerFunc
}

// probes are the paths that are answered also to who is locked out.
var probes = [...]string{"/healthz", "/health", "/readyz", "/ready", "/startupz", "/startup"}

// Routes returns all routes. Requests for a WebSocket, at any path, are not
// among them. While the gateway is starting, only probes get another answer
// than that, and Metrics, Ready and UI are not used.
func Routes(o Options) []Route {
	s := server{o}
	out := []Route{
		{"GET /healthz", Anyone, s.live},
		{"GET /health", Anyone, s.live},
		{"GET /readyz", Anyone, s.ready}, // details only for who is near
		{"GET /ready", Anyone, s.ready},
		{"GET /startupz", Anyone, s.startup},
		{"GET /startup", Anyone, s.startup},
	}
	if s.stage() == Starting {
		return append(out, Route{"/", Anyone, s.later})
	}
	out = append(out, Route{"GET /metrics", Near, s.metrics})
	if o.UI != nil {
		out = append(out, o.UI.routes()...)
	}
	return out
}

// admit returns the handler of a route, for those only whom it answers.
func (s server) admit(route Route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ok := route.For == Anyone
		switch route.For {
		case Near:
			ok = s.trusts(r)
		case Credential:
			_, ok = s.o.Door.Bearer(r)
		}
		if !ok {
			access.Error(w, http.StatusUnauthorized, "unauthorized", "Unauthorized")
			return
		}
		route.serve(w, r)
	}
}
