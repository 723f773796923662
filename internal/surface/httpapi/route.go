package httpapi

import (
	"net/http"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/surface/access"
)

// Audiences of a [Route].
const (
	Anyone            = "anyone"
	LocalOrCredential = "this machine, or a credential"
	Credential        = "a credential"
)

// Route is an HTTP route.
type Route struct {
	Pattern    string // of http.ServeMux
	For        string // Anyone, LocalOrCredential or Credential
	StartsWork bool   // a request may start a tool; other routes have no effect

	serve http.HandlerFunc
}

// probes are the paths that are answered even to locked-out addresses.
var probes = [...]string{"/healthz", "/health", "/readyz", "/ready", "/startupz", "/startup"}

// Routes returns all routes. WebSocket requests, on any path, are not among
// them. While the gateway is starting, only the probes are answered, and
// Metrics, Ready and UI are not used.
func Routes(o Options) []Route {
	s := server{o}
	out := []Route{
		get("/healthz", Anyone, s.live),
		get("/health", Anyone, s.live),
		get("/readyz", Anyone, s.ready), // details for LocalOrCredential only
		get("/ready", Anyone, s.ready),
		get("/startupz", Anyone, s.startup),
		get("/startup", Anyone, s.startup),
	}
	if s.stage() == Starting {
		return append(out, Route{Pattern: "/", For: Anyone, serve: s.retry})
	}
	out = append(out, get("/metrics", LocalOrCredential, s.metrics))
	if o.Invoke != nil {
		out = append(out, Route{Pattern: "POST /tools/invoke", For: Credential, StartsWork: true, serve: s.invoke},
			get("/tools/invoke", Anyone, notAllowed(http.MethodPost)))
	}
	if o.UI == nil {
		return append(out, get("/{$}", Anyone, s.noUI))
	}
	return append(out, o.UI.routes()...)
}

// get returns a GET route, which has no effect.
func get(path, who string, serve http.HandlerFunc) Route {
	return Route{Pattern: "GET " + path, For: who, serve: serve}
}

// admit returns the handler of a route, restricted to its audience.
func (s server) admit(route Route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ok := route.For == Anyone
		switch route.For {
		case LocalOrCredential:
			ok = s.mayInspect(r)
		case Credential:
			var who chela.Principal
			who, ok = s.o.Auth.Bearer(r)
			r = r.WithContext(chela.WithPrincipal(r.Context(), who))
		}
		if !ok {
			access.Error(w, http.StatusUnauthorized, "unauthorized", "Unauthorized")
			return
		}
		route.serve(w, r)
	}
}
