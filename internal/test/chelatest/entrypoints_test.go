package chelatest_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/app/endpoint"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/internal/surface/httpapi"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/internal/surface/webui"
	"github.com/chela-ai/chela/internal/test/chelatest"
	"github.com/chela-ai/chela/wire"
)

var update = flag.Bool("update", false, "rewrite docs/entry-points.md")

// forAnyone are the routes without authentication. Any other such route fails
// the test.
var forAnyone = []string{
	"GET /healthz", "GET /health", "GET /readyz", "GET /ready", "GET /startupz", "GET /startup", "GET /",
	"GET /api/", "GET /mcp", "GET /v1/", "GET /hooks/", "GET /tools/", "GET /tools/invoke", "GET /__openclaw__/",
}

// counted is a model that counts its calls.
type counted struct{ n atomic.Int64 }

// Stream implements llm.Provider.
func (c *counted) Stream(context.Context, *llm.Request) iter.Seq2[llm.Event, error] {
	c.n.Add(1)
	return func(yield func(llm.Event, error) bool) { yield(llm.Event{}, errors.New("unexpected call")) }
}

// entry is the application with its entry points.
type entry struct {
	t       *testing.T
	g       *chelatest.Gateway
	model   *counted
	methods []rpc.MethodInfo
	routes  []httpapi.Route
	url     string // of the port, over HTTP
	key     ed25519.PrivateKey
}

const (
	entryPointToken     = "the-token-of-the-entry-points"
	entryPointHookToken = "the-token-of-the-webhooks"
)

// tokenFor returns the credential that a route accepts.
func tokenFor(r httpapi.Route) string {
	if r.For == httpapi.WebhookToken {
		return entryPointHookToken
	}
	return entryPointToken
}

// TestEntryPoints tries everything forbidden at every entry point of the real
// application. A refused request must have no effect: nothing in the state
// directory changes, and no model is called.
func TestEntryPoints(t *testing.T) {
	ui := t.TempDir()
	if err := os.WriteFile(filepath.Join(ui, "index.html"), []byte("<html></html>"), 0o600); err != nil {
		t.Fatal(err)
	}
	e := &entry{t: t, model: new(counted)}
	e.g = chelatest.Start(t, chelatest.Options{
		Model: e.model, Listen: &endpoint.Listen{Port: -1},
		Config: chelatest.Config{"hooks": json.RawMessage(`{"enabled": true, "token": "` + entryPointHookToken + `"}`), "gateway": json.RawMessage(fmt.Sprintf(`{"auth": {"token": %q}, "controlUi": {"root": %q}, "http": {"endpoints": {"chatCompletions": {"enabled": true}, "responses": {"enabled": true}, "messages": {"enabled": true}}}}`, entryPointToken, ui))},
	})
	e.methods, e.routes = e.g.EntryPoints()
	e.url = "http" + strings.TrimPrefix(e.g.URL(), "ws")
	var err error
	if _, e.key, err = ed25519.GenerateKey(rand.Reader); err != nil {
		t.Fatal(err)
	}
	e.settle()
	t.Run("A5 each entry point declares its audience", e.declared)
	t.Run("A5 no scope, no call", e.withoutScope)
	t.Run("A5 another role", e.wrongRole)
	t.Run("A5 another agent's session", e.otherAgent)
	t.Run("A5 foreign pages and host names", e.foreign)
	t.Run("A5 no credential", e.noCredential)
	t.Run("allowed requests have an effect", e.control)
	t.Run("A5 a wrong credential", e.wrongCredential) // last, because it locks this machine out
	t.Run("the documentation lists all of them", e.page)
}

// TestPageEntryPoints tries the routes of the web page without a credential, and as a page of
// another origin. None has an effect.
func TestPageEntryPoints(t *testing.T) {
	t.Parallel()
	e := &entry{t: t, model: new(counted)}
	e.g = chelatest.Start(t, chelatest.Options{
		Model: e.model, Listen: &endpoint.Listen{Port: -1},
		Config: chelatest.Config{"gateway": json.RawMessage(fmt.Sprintf(`{"auth": {"token": %q}}`, entryPointToken))},
	})
	e.methods, e.routes = e.g.EntryPoints()
	e.url = "http" + strings.TrimPrefix(e.g.URL(), "ws")
	files := webui.New("").Paths()
	e.settle()
	found := 0
	for _, r := range e.routes {
		method, path := at(r)
		if r.For != httpapi.Anyone || slices.Contains(forAnyone, r.Pattern) && path != "/" {
			continue
		}
		page := strings.TrimSuffix(path, "{$}")
		if path != "/" && (!slices.Contains(files, page) || method != http.MethodGet || r.StartsWork) {
			t.Errorf("route %s is for anyone and not part of the page", r.Pattern)
		}
		found++
		for origin, want := range map[string]int{"": http.StatusOK, "https://evil.example": http.StatusForbidden} {
			e.quiet(t, r.Pattern, func() {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, e.url+page, nil)
				if err != nil {
					t.Fatal(err)
				}
				if origin != "" {
					req.Header.Set("Origin", origin)
				}
				res, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				b, err := io.ReadAll(res.Body)
				res.Body.Close()
				if err != nil || res.StatusCode != want || strings.Contains(string(b), entryPointToken) {
					t.Errorf("%s from %q: %d, %v", page, origin, res.StatusCode, err)
				}
			})
		}
	}
	if found < len(files) {
		t.Errorf("%d routes for %d files", found, len(files))
	}
}

// control checks that effects would be detected.
func (e *entry) control(t *testing.T) {
	before := e.state()
	c := e.dial(t, wire.RoleOperator, []chela.Scope{chela.ScopeWrite})
	run, err := c.Send(t.Context(), "main", "hello")
	if err != nil {
		t.Fatal(err)
	}
	var w wire.AgentWaited
	if err := c.Call(t.Context(), wire.MethodAgentWait,
		wire.AgentWait{RunID: run, TimeoutMs: waittest.Limit.Milliseconds()}, &w); err != nil {
		t.Fatal(err)
	}
	if e.state() == before || e.model.n.Load() == 0 {
		t.Error("an accepted message has no visible effect")
	}
	e.settle()
	before = e.state()
	for _, r := range e.routes {
		if r.StartsWork && r.For != httpapi.Platform { // see TestPosts
			e.refusedHTTP(t, r.Pattern, r, "",
				func(req *http.Request) { req.Header.Set("Authorization", "Bearer "+tokenFor(r)) }, http.StatusOK)
		}
	}
	if e.state() == before {
		t.Error("an accepted call has no visible effect")
	}
	e.settle()
}

// settle waits until nothing writes to the state directory.
func (e *entry) settle() {
	for last := e.state(); ; {
		time.Sleep(150 * time.Millisecond)
		now := e.state()
		if now == last {
			return
		}
		last = now
	}
}

// state returns a digest of the state directory without logs.
func (e *entry) state() string {
	sum := sha256.New()
	err := filepath.WalkDir(e.g.Dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed meanwhile
		}
		if err != nil || !d.Type().IsRegular() || strings.HasSuffix(path, "-shm") || strings.HasSuffix(path, ".log") {
			return err
		}
		b, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		fmt.Fprintf(sum, "%s %d\n", path, len(b))
		sum.Write(b)
		return err
	})
	if err != nil {
		e.t.Fatal(err)
	}
	return fmt.Sprintf("%x", sum.Sum(nil))
}

// quiet calls f and checks that it has no effect.
func (e *entry) quiet(t *testing.T, what string, f func()) {
	t.Helper()
	before, asked := e.state(), e.model.n.Load()
	f()
	if e.state() != before {
		t.Errorf("%s: the state directory changed", what)
	}
	if e.model.n.Load() != asked {
		t.Errorf("%s: a model was called", what)
	}
}

// dial connects with the right token.
func (e *entry) dial(t *testing.T, role string, scopes []chela.Scope) *client.Client {
	t.Helper()
	o := client.Options{
		URL: e.g.URL(), ID: "gateway-client", Mode: wire.ModeBackend, Auth: &wire.Auth{Token: entryPointToken}, Once: true,
		Role: role, Scopes: []string{},
	}
	for _, s := range scopes {
		o.Scopes = append(o.Scopes, string(s))
	}
	if role == wire.RoleNode {
		o.ID, o.Mode, o.Key = "node-host", wire.ModeNode, e.key
	}
	c, err := client.Dial(t.Context(), o)
	if err != nil {
		t.Fatalf("as %s with %v: %v", role, scopes, err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func (e *entry) declared(t *testing.T) {
	if len(e.methods) < 50 || len(e.routes) < 5 {
		t.Fatalf("only %d methods and %d routes", len(e.methods), len(e.routes))
	}
	for _, m := range e.methods {
		if m.Scope == "" && m.Role == wire.RoleOperator {
			t.Errorf("method %s has no scope: nothing here shows that it checks its caller", m.Method)
		}
		// What is said to a node needs operator.write of its device, as TestTalk shows.
		if m.StartsWork && (m.Scope == chela.ScopeRead || m.Scope == "" && m.Method != wire.MethodNodeEvent) {
			t.Errorf("method %s starts a model or tool with the read scope", m.Method)
		}
		if m.Role != wire.RoleOperator && m.Role != wire.RoleNode {
			t.Errorf("method %s is for role %q", m.Method, m.Role)
		}
	}
	for _, r := range e.routes {
		switch method, _ := at(r); {
		case r.StartsWork && (r.For != httpapi.Credential && r.For != httpapi.WebhookToken && r.For != httpapi.Platform ||
			method != http.MethodPost):
			t.Errorf("route %s starts work for %s", r.Pattern, r.For)
		case !r.StartsWork && method != http.MethodGet:
			t.Errorf("route %s: only GET has no effect", r.Pattern)
		}
		if r.For == httpapi.Anyone && !slices.Contains(forAnyone, r.Pattern) {
			t.Errorf("route %s is for anyone and not listed in forAnyone", r.Pattern)
		}
	}
}

var allScopes = []chela.Scope{
	chela.ScopeRead, chela.ScopeWrite, chela.ScopeAdmin, chela.ScopeApprovals, chela.ScopeQuestions, chela.ScopePairing,
	chela.ScopeTalk, chela.ScopeTalkSecrets, chela.ScopeSessionsRead, chela.ScopeSessionsWrite,
}

func (e *entry) withoutScope(t *testing.T) {
	clients := map[chela.Scope]*client.Client{}
	for _, m := range e.methods {
		if m.Role != wire.RoleOperator || m.Scope == "" {
			continue
		}
		c := clients[m.Scope]
		if c == nil {
			others := slices.DeleteFunc(slices.Clone(allScopes), func(s chela.Scope) bool {
				return chela.Principal{Scopes: []chela.Scope{s}}.May(m.Scope)
			})
			c = e.dial(t, wire.RoleOperator, others)
			clients[m.Scope] = c
		}
		e.quiet(t, m.Method, func() {
			err := c.Call(t.Context(), m.Method, plausible(m), nil)
			if we, ok := errors.AsType[*wire.Error](err); !ok || we.Code != wire.Forbidden ||
				we.Detail() != wire.DetailMissingScope {
				t.Errorf("%s without %s: %v", m.Method, m.Scope, err)
			}
		})
	}
}

// plausible returns parameters that a method would accept.
func plausible(m rpc.MethodInfo) map[string]any {
	p := map[string]any{}
	for _, name := range m.Required {
		p[name] = "x"
	}
	for _, name := range m.Params {
		switch name {
		case "sessionKey", "key":
			p[name] = "agent:main:main"
		case "message":
			p[name] = "do something"
		}
	}
	return p
}

func (e *entry) wrongRole(t *testing.T) {
	var node *client.Client
	const before = 8 // calls before the connection is closed for them
	n := 0
	for _, m := range e.methods {
		if m.Role == wire.RoleNode {
			c := e.dial(t, wire.RoleOperator, []chela.Scope{chela.ScopeAdmin})
			e.quiet(t, m.Method, func() { refusedRole(t, c, m, wire.RoleOperator) })
			continue
		}
		if n%before == 0 {
			node = e.dial(t, wire.RoleNode, nil)
			e.settle() // the device has been stored
		}
		n++
		e.quiet(t, m.Method, func() { refusedRole(t, node, m, wire.RoleNode) })
	}
}

func refusedRole(t *testing.T, c *client.Client, m rpc.MethodInfo, role string) {
	t.Helper()
	err := c.Call(t.Context(), m.Method, plausible(m), nil)
	if we, ok := errors.AsType[*wire.Error](err); !ok || we.Message != "unauthorized role: "+role {
		t.Errorf("%s as %s: %v", m.Method, role, err)
	}
}

// otherAgent names the session of an agent that does not exist.
func (e *entry) otherAgent(t *testing.T) {
	c := e.dial(t, wire.RoleOperator, []chela.Scope{chela.ScopeAdmin})
	for _, m := range e.methods {
		p := plausible(m)
		named := false
		for _, name := range m.Params {
			switch name {
			case "sessionKey", "key":
				p[name], named = "agent:stranger:main", true
			case "agentId":
				p[name], named = "stranger", true
			case "keys":
				p[name], named = []string{"agent:stranger:main"}, true
			}
		}
		if !named || m.Role != wire.RoleOperator {
			continue
		}
		e.quiet(t, m.Method, func() {
			var out json.RawMessage
			err := c.Call(t.Context(), m.Method, p, &out)
			if err == nil && m.Scope != chela.ScopeRead && !bytes.Contains(out, []byte(`"deleted":false`)) &&
				!bytes.Contains(out, []byte(`"ok":false`)) {
				t.Errorf("%s for an unknown agent: %s", m.Method, out)
			}
		})
	}
}

// refusedHTTP makes a request that must be answered with one of the statuses.
func (e *entry) refusedHTTP(t *testing.T, what string, r httpapi.Route, query string,
	change func(*http.Request), statuses ...int) {
	t.Helper()
	method, path := at(r)
	path, _, _ = strings.Cut(path, "{") // a request for a part of the pattern
	var body io.Reader
	if r.For == httpapi.WebhookToken {
		path += "agent"
		body = strings.NewReader(`{"message": "do something"}`)
	} else if strings.HasPrefix(path, "/v1/") && r.StartsWork {
		body = strings.NewReader(`{"model": "chela", "stream": true, "input": "do something", "messages": [{"role": "user", "content": "do something"}]}`)
	} else if r.StartsWork {
		body = strings.NewReader(`{"tool": "write", "args": {"path": "made.txt", "content": "x"}}`)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, e.url+path+query, body)
	if err != nil {
		t.Fatal(err)
	}
	change(req)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if !slices.Contains(statuses, res.StatusCode) {
		t.Errorf("%s: %d, want %v", what, res.StatusCode, statuses)
	}
}

// at splits the pattern of a route.
func at(r httpapi.Route) (method, path string) {
	method, path, _ = strings.Cut(r.Pattern, " ")
	return method, path
}

// upgrade makes a request one for a WebSocket.
func upgrade(r *http.Request) {
	for name, value := range map[string]string{
		"Connection":            "Upgrade",
		"Upgrade":               "websocket",
		"Sec-WebSocket-Version": "13",
		"Sec-WebSocket-Key":     "dGhlIHNhbXBsZSBub25jZQ==",
		"Authorization":         "Bearer " + entryPointToken,
	} {
		r.Header.Set(name, value)
	}
}

// foreign sends requests as a page of another site and under foreign host
// names. All methods are behind the WebSocket request, which may use any path.
func (e *entry) foreign(t *testing.T) {
	ways := map[string]func(*http.Request){
		"foreign origin":   func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") },
		"null origin":      func(r *http.Request) { r.Header.Set("Origin", "null") },
		"rebinding host":   func(r *http.Request) { r.Host = "evil.example:80" },
		"forwarded header": func(r *http.Request) { r.Header.Set("X-Forwarded-For", "127.0.0.1") },
	}
	e.quiet(t, "foreign requests", func() {
		for what, way := range ways {
			for _, r := range e.routes {
				want := http.StatusForbidden
				// pages of the canvas have no origin; this one has no capability
				if r.For == httpapi.Capability && what == "null origin" {
					want = http.StatusUnauthorized
				}
				e.refusedHTTP(t, r.Pattern+", "+what, r, "", func(req *http.Request) {
					req.Header.Set("Authorization", "Bearer "+tokenFor(r))
					way(req)
				}, want)
				e.refusedHTTP(t, r.Pattern+" as a WebSocket, "+what, r, "", func(r *http.Request) {
					upgrade(r)
					way(r)
				}, http.StatusForbidden)
			}
		}
		for _, r := range e.routes {
			e.refusedHTTP(t, r.Pattern+" with a token in the URL", r, "?token="+entryPointToken,
				func(*http.Request) {}, http.StatusBadRequest)
		}
	})
}

// raw opens a WebSocket and reads the challenge.
func (e *entry) raw(t *testing.T) (*websocket.Conn, bool) {
	t.Helper()
	ws, res, err := websocket.Dial(t.Context(), e.g.URL(), nil)
	if err != nil {
		if res != nil && res.StatusCode == http.StatusTooManyRequests {
			return nil, false
		}
		t.Fatal(err)
	}
	if _, _, err := ws.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	return ws, true
}

// silent sends frames and checks that all are refused and the connection is
// closed.
func silent(t *testing.T, ws *websocket.Conn, what string, frames ...string) {
	t.Helper()
	defer ws.CloseNow()
	for _, f := range frames {
		if err := ws.Write(t.Context(), websocket.MessageText, []byte(f)); err != nil {
			break // closed already
		}
	}
	for {
		_, b, err := ws.Read(t.Context())
		if err != nil {
			if websocket.CloseStatus(err) != wire.ClosePolicy {
				t.Errorf("%s: the connection ended with %v", what, err)
			}
			return
		}
		if bytes.Contains(b, []byte(`"ok":true`)) || !bytes.Contains(b, []byte(`"ok":false`)) {
			t.Errorf("%s: answered %s", what, b)
		}
	}
}

func request(t *testing.T, method string, params any) string {
	t.Helper()
	p, err := wire.Encode(params)
	if err != nil {
		t.Fatal(err)
	}
	b, err := wire.Encode(wire.Request{Type: wire.TypeRequest, ID: "1", Method: method, Params: p})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// noCredential calls each method instead of connecting.
func (e *entry) noCredential(t *testing.T) {
	connect := wire.Connect{MinProtocol: 4, MaxProtocol: 4,
		Client: wire.ClientInfo{ID: "cli", Version: "1", Platform: "linux", Mode: wire.ModeCLI}}
	e.quiet(t, "without a credential", func() {
		for _, m := range e.methods {
			call := request(t, m.Method, plausible(m))
			for what, frames := range map[string][]string{
				"at once":                {call},
				"after an empty connect": {request(t, wire.MethodConnect, connect), call},
			} {
				if ws, ok := e.raw(t); ok {
					silent(t, ws, m.Method+" "+what, frames...)
				}
			}
		}
		for _, r := range e.routes {
			if r.For == httpapi.Credential || r.For == httpapi.WebhookToken || r.For == httpapi.Capability {
				e.refusedHTTP(t, r.Pattern, r, "", func(*http.Request) {}, http.StatusUnauthorized)
			}
			if r.For == httpapi.WebhookToken { // the gateway's own token is another one
				e.refusedHTTP(t, r.Pattern, r, "",
					func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+entryPointToken) }, http.StatusUnauthorized)
			}
		}
	})
}

// wrongCredential sends a wrong token to each entry point. After some attempts
// this machine is locked out, which is a refusal, too.
func (e *entry) wrongCredential(t *testing.T) {
	connect := wire.Connect{
		MinProtocol: 4,
		MaxProtocol: 4,
		Client:      wire.ClientInfo{ID: "cli", Version: "1", Platform: "linux", Mode: wire.ModeCLI},
		Scopes:      []string{wire.ScopeAdmin},
		Auth:        &wire.Auth{Token: entryPointToken + "x"},
	}
	e.quiet(t, "with a wrong credential", func() {
		for _, r := range e.routes {
			if r.For == httpapi.Credential || r.For == httpapi.WebhookToken || r.For == httpapi.Capability {
				e.refusedHTTP(t, r.Pattern, r, "", func(r *http.Request) { r.Header.Set("Authorization", "Bearer x") },
					http.StatusUnauthorized, http.StatusTooManyRequests)
			}
		}
		for _, m := range e.methods {
			if ws, ok := e.raw(t); ok {
				silent(t, ws, m.Method, request(t, wire.MethodConnect, connect), request(t, m.Method, plausible(m)))
			}
		}
	})
}

// page compares docs/entry-points.md with the entry points.
func (e *entry) page(t *testing.T) {
	const file = "../../../docs/entry-points.md"
	var b strings.Builder
	b.WriteString("# Entry points\n\nAll HTTP routes and methods of a running gateway. A test writes this page (`go test ./internal/test/chelatest -run TestEntryPoints -update`)\n" +
		"and tries everything that is forbidden at each of them.\n\n" +
		"Every request is checked first: its `Host` must be a name or address of this gateway, its `Origin`, if present, must be the gateway's own\n" +
		"or one of `gateway.controlUi.allowedOrigins`, the URL must not contain a credential, and the address must not be locked out after too many wrong credentials.\n\n" +
		"## Routes\n\nA WebSocket request, on any path, starts the handshake that gives access to the methods.\n\n" +
		"The web page has no routes that have an effect: `GET` for its address and each of its files, available to anyone. With\n" +
		"OpenClaw's Control UI in its place, `GET /` serves all of its files, as in this list.\n\n" +
		"| route | available to | may start a tool |\n|---|---|---|\n")
	yes := map[bool]string{true: "yes"}
	for _, r := range e.routes {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", r.Pattern, r.For, yes[r.StartsWork])
	}
	b.WriteString(
		"\n## Methods\n\nThe handshake accepts the shared secret or a device's token and grants a role and scopes.\n\n" +
			"| method | role | scope | may start a model or tool |\n|---|---|---|---|\n")
	for _, m := range e.methods {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.Method, m.Role, strings.TrimPrefix(string(m.Scope), "operator."),
			yes[m.StartsWork])
	}
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	have, err := os.ReadFile(file)
	if err != nil || string(have) != b.String() {
		t.Errorf("%s is outdated: run the test with -update (%v)", file, err)
	}
}
