package httpapi

import (
	"net/http"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/canvas"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/surface/access"
)

// Audiences of a [Route].
const (
	Anyone            = "anyone"
	LocalOrCredential = "this machine, or a credential"
	Credential        = "a credential"
	WebhookToken      = "the token of the webhooks, or a signature"
	Platform          = "a chat platform, whose channel checks the request"
	Capability        = "a capability, which is part of the address"
)

// Route is an HTTP route.
type Route struct {
	Pattern string // of http.ServeMux
	// Anyone, LocalOrCredential, Credential, or WebhookToken, Platform or Capability, which the
	// handler checks
	For        string
	StartsWork bool // a request may start a tool; other routes have no effect

	fallback bool // it answers for paths that no other route has
	serve    http.HandlerFunc
	refuse   http.HandlerFunc // answers requests without a credential; nil: a general answer
}

// probes are the paths that are answered even to locked-out addresses.
var probes = [...]string{"/healthz", "/health", "/readyz", "/ready", "/startupz", "/startup"}

// Routes returns all routes. WebSocket requests, on any path, are not among
// them. While the gateway is starting, only the probes are answered, and
// Metrics, Ready and UI are not used. An earlier route wins against a later one with the same
// pattern: a configured path may be that of a fallback.
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
	if stage := s.stage(); stage == Starting || stage == Standby {
		return append(out, Route{Pattern: "/", For: Anyone, serve: s.retry})
	}
	out = append(out, get("/metrics", LocalOrCredential, s.metrics))
	if o.Invoke != nil {
		out = append(out, Route{Pattern: "POST /tools/invoke", For: Credential, StartsWork: true, serve: s.invoke},
			fallback("/tools/invoke", notAllowed(http.MethodPost)))
	}
	if m := o.Models; m != nil {
		for _, p := range m.Patterns() {
			out = append(out, Route{
				Pattern:    p,
				For:        Credential,
				StartsWork: strings.HasPrefix(p, "POST "),
				serve:      m.ServeHTTP,
				refuse:     m.Refuse,
			})
		}
	}
	if h := o.Webhooks; h != nil {
		out = append(out, Route{Pattern: "POST " + h.Path + "/", For: WebhookToken, StartsWork: true,
			serve: h.Handler.ServeHTTP},
			get(h.Path+"/", Anyone, h.Handler.ServeHTTP))
	}
	if o.Canvas != nil {
		for _, p := range [...]string{canvas.PagesPath, canvas.A2UIPath} {
			out = append(out, get(p, Credential, o.Canvas.ServeHTTP),
				get(strings.TrimSuffix(p, "/"), Credential, o.Canvas.ServeHTTP))
		}
		out = append(out, get(canvas.CapabilityPath, Capability, o.Canvas.ServeHTTP))
	}
	if o.Post != nil {
		out = append(out, Route{Pattern: "POST /", For: Platform, StartsWork: true, fallback: true, serve: s.post()})
	}
	more := []Route{fallback("/{$}", s.withoutUI), fallback("/", s.notFound)}
	switch {
	case o.UI != nil:
		more = o.UI.routes()
	case o.Page != nil:
		more = pageRoutes(o.Page)
		more = append(more, fallback("/", s.notFound))
	}
	for _, other := range [...]string{"/api/", "/mcp", "/v1/", "/hooks/", "/tools/", "/__openclaw__/"} {
		more = append(more, fallback(other, s.notFound))
	}
	for _, r := range more {
		if !slices.ContainsFunc(out, func(have Route) bool { return have.Pattern == r.Pattern }) {
			out = append(out, r)
		}
	}
	return out
}

// pageRoutes returns the routes of a page. Its address also works without the slash at its end,
// from which the page's files are found.
func pageRoutes(p Page) (out []Route) {
	for i, path := range p.Paths() {
		if i > 0 {
			out = append(out, get(path, Anyone, p.ServeHTTP))
			continue
		}
		out = append(out, get(path+"{$}", Anyone, p.ServeHTTP))
		if path != "/" {
			out = append(out, get(strings.TrimSuffix(path, "/"), Anyone, func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, path, http.StatusTemporaryRedirect)
			}))
		}
	}
	return out
}

// maxPosts is the maximum number of posts of chat platforms at the same time.
const maxPosts = 64

// post returns the handler of the posts of chat platforms.
func (s server) post() http.HandlerFunc {
	slots := make(chan struct{}, maxPosts)
	return func(w http.ResponseWriter, r *http.Request) {
		h := s.o.Post(r.URL.Path)
		if h == nil { // it was there a moment ago
			s.notFound(w, r)
			return
		}
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
			h.ServeHTTP(w, r)
		default:
			w.Header().Set("Retry-After", "1")
			access.Error(w, http.StatusServiceUnavailable, "unavailable", "too many requests at once; try again later")
		}
	}
}

// notFound answers requests for what does not exist, in the form of the interface that the
// client expects there.
func (s server) notFound(w http.ResponseWriter, r *http.Request) {
	if m := s.o.Models; m != nil && strings.HasPrefix(r.URL.Path, "/v1/") {
		m.NotFound(w, r)
		return
	}
	access.Error(w, http.StatusNotFound, "not_found", "there is nothing at "+r.URL.Path)
}

// get returns a GET route, which has no effect.
func get(path, who string, serve http.HandlerFunc) Route {
	return Route{Pattern: "GET " + path, For: who, serve: serve}
}

// fallback returns a GET route for anyone to what does not exist.
func fallback(path string, serve http.HandlerFunc) Route {
	r := get(path, Anyone, serve)
	r.fallback = true
	return r
}

// admit returns the handler of a route, restricted to its audience.
func (s server) admit(route Route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ok := route.For == Anyone || route.For == WebhookToken || route.For == Platform || route.For == Capability
		switch route.For {
		case LocalOrCredential:
			ok = s.mayInspect(r)
		case Credential:
			var who chela.Principal
			who, ok = s.o.Auth.Bearer(r)
			r = r.WithContext(chela.WithPrincipal(r.Context(), who))
		}
		switch {
		case ok:
			route.serve(w, r)
		case route.refuse != nil:
			route.refuse(w, r)
		default:
			access.Error(w, http.StatusUnauthorized, "unauthorized", "Unauthorized")
		}
	}
}
