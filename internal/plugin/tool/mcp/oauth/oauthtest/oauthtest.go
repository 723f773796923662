// Package oauthtest has a service with an MCP server and an authorization server that
// accept only what the specifications say, for tests of clients.
package oauthtest

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Service is an MCP server at MCP.URL + "/mcp", and the authorization server at
// Auth.URL + "/tenant" that protects it.
type Service struct {
	MCP, Auth *httptest.Server

	mu sync.Mutex
	b  Behaviour

	clients map[string]*registered
	codes   map[string]*grant
	grants  []*grant
	counts  Counts
	t       testing.TB
}

// Behaviour is what a test can change.
type Behaviour struct {
	Life      time.Duration                              // of access tokens; 0: it is not said
	NoRefresh bool                                       // no refresh tokens
	Methods   []string                                   // of clients; nil: none
	Secret    string                                     // of the client "manual", which is registered
	Scopes    []string                                   // that exist; nil: read, write, offline_access
	Wants     []string                                   // rights without which the MCP server answers 403
	Resource  func(map[string]any)                       // changes the description of the MCP server
	Meta      func(map[string]any)                       // changes the description of the authorization server
	Token     func(http.ResponseWriter, url.Values) bool // answers instead of the endpoint, after it did its work
	// answers a request to the authorization server; false: it does not
	Intercept func(http.ResponseWriter, *http.Request) bool
}

// Counts are what was asked for.
type Counts struct {
	Registered, Agreed, Exchanged, Renewed, Revoked, Refused int
}

type registered struct {
	secret, method string
	redirects      []string
}

// grant is what a person agreed to.
type grant struct {
	client, redirect, challenge, resource string
	scopes                                []string
	used, revoked                         bool
	access, refresh                       string // the newest
	expired                               bool
	old                                   []string // refresh tokens that were used
}

// New starts a service. handler is the MCP server behind the tokens.
func New(t testing.TB, handler http.Handler, b Behaviour) *Service {
	s := &Service{t: t, b: b, clients: map[string]*registered{}, codes: map[string]*grant{}}
	s.Auth = httptest.NewServer(http.HandlerFunc(s.auth))
	s.MCP = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.mcp(w, r, handler) }))
	t.Cleanup(func() {
		s.MCP.CloseClientConnections()
		s.MCP.Close()
		s.Auth.Close()
	})
	if b.Secret != "" {
		s.clients["manual"] = &registered{secret: b.Secret, method: "client_secret_basic"}
	}
	return s
}

// URL is the address of the MCP server.
func (s *Service) URL() string { return s.MCP.URL + "/mcp" }

// Issuer is the name of the authorization server.
func (s *Service) Issuer() string { return s.Auth.URL + "/tenant" }

// Counts returns what was asked for until now.
func (s *Service) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts
}

// Change changes the behaviour.
func (s *Service) Change(f func(*Behaviour)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.b)
}

// Expire makes all access tokens invalid.
func (s *Service) Expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.grants {
		g.expired = true
	}
}

// Revoke makes all grants invalid, as a person does in the settings of a service.
func (s *Service) Revoke() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.grants {
		g.revoked = true
	}
}

// Agree does what the browser of a person does who agrees, and returns the address to
// which it is redirected.
func (s *Service) Agree(address string) string {
	s.t.Helper()
	c := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := c.Get(address)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusFound {
		b, _ := io.ReadAll(res.Body)
		s.t.Fatalf("the authorization server answers %s: %s", res.Status, b)
	}
	return res.Header.Get("Location")
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client is gone
}

func (s *Service) refuse(w http.ResponseWriter, code, why string) {
	s.counts.Refused++
	answer(w, http.StatusBadRequest, map[string]string{"error": code, "error_description": why})
}

// mcp answers a request to the MCP server.
func (s *Service) mcp(w http.ResponseWriter, r *http.Request, handler http.Handler) {
	const description = "/.well-known/oauth-protected-resource/mcp"
	s.mu.Lock()
	switch {
	case r.URL.Path == description:
		defer s.mu.Unlock()
		m := map[string]any{
			"resource":                 s.URL(),
			"authorization_servers":    []string{s.Issuer()},
			"scopes_supported":         []string{"read"},
			"bearer_methods_supported": []string{"header"},
		}
		if s.b.Resource != nil {
			s.b.Resource(m)
		}
		answer(w, http.StatusOK, m)
		return
	case r.URL.Path != "/mcp":
		defer s.mu.Unlock()
		http.NotFound(w, r)
		return
	}
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	g := s.byAccess(token)
	switch {
	case !ok, g == nil, g.revoked, g.expired, g.resource != s.URL():
		w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token", resource_metadata="`+s.MCP.URL+description+`"`)
		w.WriteHeader(http.StatusUnauthorized)
		s.mu.Unlock()
	case slices.ContainsFunc(s.b.Wants, func(want string) bool { return !slices.Contains(g.scopes, want) }):
		w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+strings.Join(s.b.Wants, " ")+`"`)
		w.WriteHeader(http.StatusForbidden)
		s.mu.Unlock()
	default:
		s.mu.Unlock()
		handler.ServeHTTP(w, r)
	}
}

func (s *Service) byAccess(token string) *grant {
	for _, g := range s.grants {
		if token != "" && g.access == token {
			return g
		}
	}
	return nil
}

// auth answers a request to the authorization server.
func (s *Service) auth(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.b.Intercept != nil && s.b.Intercept(w, r) {
		return
	}
	if r.Header.Get("Authorization") != "" && !strings.HasPrefix(r.Header.Get("Authorization"), "Basic ") {
		s.t.Errorf("the authorization server got a token of the MCP server")
	}
	switch r.Method + " " + r.URL.Path {
	case "GET /.well-known/oauth-authorization-server/tenant":
		methods := s.b.Methods
		if methods == nil {
			methods = []string{"none"}
		}
		m := map[string]any{
			"issuer":                   s.Issuer(),
			"authorization_endpoint":   s.Issuer() + "/authorize?tenant=1",
			"token_endpoint":           s.Issuer() + "/token",
			"registration_endpoint":    s.Issuer() + "/register",
			"revocation_endpoint":      s.Issuer() + "/revoke",
			"response_types_supported": []string{"code"},

			"code_challenge_methods_supported":      []string{"S256"},
			"token_endpoint_auth_methods_supported": methods,
			"scopes_supported":                      s.scopes(),

			"authorization_response_iss_parameter_supported": true,
		}
		if s.b.Meta != nil {
			s.b.Meta(m)
		}
		answer(w, http.StatusOK, m)
	case "POST /tenant/register":
		s.register(w, r)
	case "GET /tenant/authorize":
		s.authorize(w, r)
	case "POST /tenant/token":
		s.token(w, r)
	case "POST /tenant/revoke":
		s.revoke(w, r)
	default:
		http.NotFound(w, r)
	}
}

func (s *Service) scopes() []string {
	if s.b.Scopes != nil {
		return s.b.Scopes
	}
	return []string{"read", "write", "offline_access"}
}

func (s *Service) register(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Redirects []string `json:"redirect_uris"`
		Method    string   `json:"token_endpoint_auth_method"`
		Grants    []string `json:"grant_types"`
		Responses []string `json:"response_types"`
		Name      string   `json:"client_name"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || r.Header.Get("Content-Type") != "application/json" {
		s.refuse(w, "invalid_client_metadata", "want JSON")
		return
	}
	allowed := s.b.Methods
	if allowed == nil {
		allowed = []string{"none"}
	}
	if len(in.Redirects) != 1 || !slices.Contains(allowed, in.Method) || !slices.Contains(in.Grants, "refresh_token") ||
		!slices.Equal(in.Responses, []string{"code"}) || in.Name == "" {
		s.refuse(w, "invalid_client_metadata", "a field is wrong")
		return
	}
	c := &registered{method: in.Method, redirects: in.Redirects}
	out := map[string]any{
		"client_id":                  "client-" + rand.Text(),
		"redirect_uris":              in.Redirects,
		"token_endpoint_auth_method": in.Method,
	}
	if in.Method != "none" {
		c.secret = "secret/+" + rand.Text()
		out["client_secret"], out["client_secret_expires_at"] = c.secret, 0
	}
	s.clients[out["client_id"].(string)] = c
	s.counts.Registered++
	answer(w, http.StatusCreated, out)
}

func (s *Service) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	for name, values := range q {
		if len(values) != 1 {
			http.Error(w, name+" is repeated", http.StatusBadRequest)
			return
		}
	}
	c := s.clients[q.Get("client_id")]
	redirect, err := url.Parse(q.Get("redirect_uri"))
	switch {
	case q.Get("tenant") != "1":
		http.Error(w, "the query of the endpoint is lost", http.StatusBadRequest)
		return
	case c == nil || err != nil || c.redirects != nil && !slices.Contains(c.redirects, q.Get("redirect_uri")):
		http.Error(w, "unknown client or redirect", http.StatusBadRequest)
		return
	}
	out := url.Values{"iss": {s.Issuer()}, "state": {q.Get("state")}}
	g := &grant{
		client:    q.Get("client_id"),
		redirect:  q.Get("redirect_uri"),
		challenge: q.Get("code_challenge"),
		resource:  q.Get("resource"),
		scopes:    strings.Fields(q.Get("scope")),
	}
	switch {
	case q.Get("response_type") != "code" || q.Get("state") == "" || q.Get("code_challenge_method") != "S256" ||
		len(g.challenge) != 43:
		out.Set("error", "invalid_request")
	case g.resource != s.URL():
		out.Set("error", "invalid_target")
	case slices.ContainsFunc(g.scopes, func(x string) bool { return !slices.Contains(s.scopes(), x) }):
		out.Set("error", "invalid_scope")
	default:
		code := "4/" + rand.Text() + "=="
		s.codes[code] = g
		s.counts.Agreed++
		out.Set("code", code)
	}
	redirect.RawQuery = out.Encode()
	w.Header().Set("Location", redirect.String())
	w.WriteHeader(http.StatusFound)
}

// client returns who sends a form; "": nobody that is known.
func (s *Service) client(r *http.Request) string {
	id, secret, basic := r.BasicAuth()
	method := "client_secret_basic"
	if basic {
		id, _ = url.QueryUnescape(id)
		secret, _ = url.QueryUnescape(secret)
	} else {
		id, secret, method = r.PostForm.Get("client_id"), r.PostForm.Get("client_secret"), "client_secret_post"
		if secret == "" {
			method = "none"
		}
	}
	if c := s.clients[id]; c != nil && c.method == method && c.secret == secret &&
		(!basic || !r.PostForm.Has("client_id")) {
		return id
	}
	return ""
}

func (s *Service) parse(w http.ResponseWriter, r *http.Request) (client string, ok bool) {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if r.ParseForm() != nil || kind != "application/x-www-form-urlencoded" || r.URL.RawQuery != "" {
		s.refuse(w, "invalid_request", "want a form")
		return "", false
	}
	for name, values := range r.PostForm {
		if len(values) != 1 || values[0] == "" {
			s.refuse(w, "invalid_request", name+" is empty or repeated")
			return "", false
		}
	}
	if client = s.client(r); client == "" {
		s.counts.Refused++
		answer(w, http.StatusUnauthorized, map[string]string{"error": "invalid_client"})
		return "", false
	}
	return client, true
}

func (s *Service) token(w http.ResponseWriter, r *http.Request) {
	client, ok := s.parse(w, r)
	if !ok {
		return
	}
	f := r.PostForm
	var g *grant
	switch f.Get("grant_type") {
	case "authorization_code":
		g = s.codes[f.Get("code")]
		sum := sha256.Sum256([]byte(f.Get("code_verifier")))
		if g != nil && g.used {
			g.revoked = true // OAuth 2.1: a code that comes twice was stolen
		}
		if g == nil || g.used || g.client != client || g.redirect != f.Get("redirect_uri") ||
			g.challenge != base64.RawURLEncoding.EncodeToString(sum[:]) || g.resource != f.Get("resource") {
			s.refuse(w, "invalid_grant", "the code is not valid")
			return
		}
		g.used = true
		s.grants = append(s.grants, g)
		s.counts.Exchanged++
	case "refresh_token":
		token := f.Get("refresh_token")
		for _, x := range s.grants {
			if slices.Contains(x.old, token) {
				x.revoked = true // a refresh token that comes twice was stolen
			}
			if x.refresh == token {
				g = x
			}
		}
		if g == nil || g.revoked || g.client != client || g.resource != f.Get("resource") {
			s.refuse(w, "invalid_grant", "the refresh token is not valid")
			return
		}
		g.old = append(g.old, token)
		s.counts.Renewed++
	default:
		s.refuse(w, "unsupported_grant_type", "")
		return
	}
	g.access, g.expired = "access-"+rand.Text(), false
	out := map[string]any{"access_token": g.access, "token_type": "bearer", "scope": strings.Join(g.scopes, " ")}
	if s.b.Life > 0 {
		out["expires_in"] = int(s.b.Life / time.Second)
	}
	if !s.b.NoRefresh {
		g.refresh = "refresh-" + rand.Text()
		out["refresh_token"] = g.refresh
	}
	if s.b.Token != nil && s.b.Token(w, f) {
		return
	}
	answer(w, http.StatusOK, out)
}

func (s *Service) revoke(w http.ResponseWriter, r *http.Request) {
	client, ok := s.parse(w, r)
	if !ok {
		return
	}
	for _, g := range s.grants {
		if t := r.PostForm.Get("token"); g.client == client && (t == g.access || t == g.refresh) {
			g.revoked = true
		}
	}
	s.counts.Revoked++
	w.WriteHeader(http.StatusOK)
}
