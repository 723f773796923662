package httpapi

import (
	"net/http"

	"github.com/chela-ai/chela/internal/access"
	"github.com/chela-ai/chela/internal/chela"
)

// Who a [Route] answers.
const (
	Anyone     = "anyone"
	Near       = "this machine, or a credential"
	Credential = "a credential"
)

// Route is a way into the gateway over HTTP.
type Route struct {
	Pattern string // of http.ServeMux
	For     string // Anyone, Near, Credential
	Works   bool   // a tool may work for who asks; the others have no effect

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
		looks("/healthz", Anyone, s.live),
		looks("/health", Anyone, s.live),
		looks("/readyz", Anyone, s.ready), // details only for who is near
		looks("/ready", Anyone, s.ready),
		looks("/startupz", Anyone, s.startup),
		looks("/startup", Anyone, s.startup),
	}
	if s.stage() == Starting {
		return append(out, Route{Pattern: "/", For: Anyone, serve: s.later})
	}
	out = append(out, looks("/metrics", Near, s.metrics))
	if o.Invoke != nil {
		out = append(out, Route{Pattern: "POST /tools/invoke", For: Credential, Works: true, serve: s.invoke},
			looks("/tools/invoke", Anyone, notAllowed(http.MethodPost)))
	}
	if o.UI == nil {
		return append(out, looks("/{$}", Anyone, s.bare))
	}
	return append(out, o.UI.routes()...)
}

// looks is a route that only looks.
func looks(path, who string, serve http.HandlerFunc) Route {
	return Route{Pattern: "GET " + path, For: who, serve: serve}
}

// admit returns the handler of a route, for those only whom it answers.
func (s server) admit(route Route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ok := route.For == Anyone
		switch route.For {
		case Near:
			ok = s.trusts(r)
		case Credential:
			var who chela.Principal
			who, ok = s.o.Door.Bearer(r)
			r = r.WithContext(chela.WithPrincipal(r.Context(), who))
		}
		if !ok {
			access.Error(w, http.StatusUnauthorized, "unauthorized", "Unauthorized")
			return
		}
		route.serve(w, r)
	}
}
