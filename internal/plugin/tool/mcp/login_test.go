package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	core "github.com/chela-ai/chela/internal/core/mcp"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/core/untrusted"
	"github.com/chela-ai/chela/internal/kit/secret"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/internal/plugin/tool/mcp"
	"github.com/chela-ai/chela/internal/plugin/tool/mcp/oauth/oauthtest"
)

// back is where browsers return to; nothing is there.
const back = "http://127.0.0.1:1/callback"

// bench is a service, and the client of it with a state directory.
type bench struct {
	*oauthtest.Service
	t     *testing.T
	state string
	pool  *mcp.Pool
	tools map[string]tool.Tool
	conf  core.Server

	changed chan struct{}
	mu      sync.Mutex
	told    []string
	hidden  []string
	tell    error
}

func newBench(t *testing.T, b oauthtest.Behaviour) *bench {
	t.Helper()
	server := good()
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server },
		&sdk.StreamableHTTPOptions{JSONResponse: true, Stateless: true})
	x := &bench{Service: oauthtest.New(t, handler, b), t: t, state: t.TempDir()}
	x.conf = core.Server{URL: x.URL(), Transport: core.HTTP, ConnectMS: patientMS, RequestMS: patientMS}
	x.start()
	t.Cleanup(func() { x.stop() })
	return x
}

// start starts a client with what is stored in the state directory.
func (x *bench) start() {
	changed, notify := signal()
	transport := &http.Transport{}
	client := func(core.Server) *http.Client { return &http.Client{Transport: transport} }
	x.changed = changed
	x.pool = mcp.New(mcp.Options{
		Log:     slog.New(slog.DiscardHandler),
		Broker:  &memory{server: always},
		State:   x.state,
		Label:   untrusted.New(),
		Changed: notify,
		HTTP:    client,
		Hide: func(v secret.Value) {
			x.mu.Lock()
			defer x.mu.Unlock()
			x.hidden = append(x.hidden, v.Reveal())
		},
		Lapsed: func(text string) error {
			x.mu.Lock()
			defer x.mu.Unlock()
			if x.tell == nil {
				x.told = append(x.told, text)
			}
			return x.tell
		},
	})
	x.pool.Use(map[string]core.Server{"srv": x.conf}, time.Hour)
	x.t.Cleanup(transport.CloseIdleConnections)
}

func (x *bench) stop() {
	if x.pool == nil {
		return
	}
	if err := x.pool.Close(context.WithoutCancel(x.t.Context())); err != nil {
		x.t.Error(err)
	}
	x.pool = nil
}

// restart ends the client and starts another one.
func (x *bench) restart() {
	x.stop()
	x.start()
}

func (x *bench) toldNow() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return append([]string(nil), x.told...)
}

// logIn logs in as a person does.
func (x *bench) logIn() {
	x.t.Helper()
	b, err := x.pool.BeginLogin(x.t.Context(), "srv", x.conf, back)
	if err != nil {
		x.t.Fatal(err)
	}
	l, err := x.pool.FinishLogin(x.t.Context(), "srv", x.conf, x.Agree(b.URL))
	if err != nil || l.State != mcp.LoginIn {
		x.t.Fatalf("%+v, %v", l, err)
	}
}

// echo calls a tool.
func (x *bench) echo() error {
	x.t.Helper()
	if x.tools == nil {
		x.pool.Discover()
		x.tools = inForce(x.t, x.pool, map[string]core.Server{"srv": x.conf}, x.changed, 1)
	}
	for _, v := range x.pool.Tools(map[string]core.Server{"srv": x.conf}) {
		if v.Spec().Name == "srv__echo" {
			text, err := call(x.t, v, "hello")
			if err == nil && !strings.Contains(text, "hello") {
				err = errors.New(text)
			}
			return err
		}
	}
	return errors.New("no tool")
}

// record returns the text of the stored login.
func (x *bench) record() string {
	x.t.Helper()
	files, err := filepath.Glob(filepath.Join(x.state, "credentials", "mcp", "*.json"))
	if err != nil || len(files) != 1 {
		return ""
	}
	if st, err := os.Stat(files[0]); err != nil || st.Mode().Perm()&0o077 != 0 {
		x.t.Errorf("the file of the login: %v, %v", st.Mode(), err)
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		x.t.Fatal(err)
	}
	return string(b)
}

func (x *bench) wantErr(err error, want ...string) {
	x.t.Helper()
	for _, w := range want {
		if err == nil || !strings.Contains(err.Error(), w) {
			x.t.Errorf("error %v, want %q", err, w)
		}
	}
	if err != nil {
		x.mu.Lock()
		defer x.mu.Unlock()
		for _, h := range x.hidden {
			if h != "" && strings.Contains(err.Error(), h) {
				x.t.Errorf("a secret is in the error: %v", err)
			}
		}
	}
}

func TestLogin(t *testing.T) {
	t.Parallel()
	t.Run("MCP-05 401, then a login, then its tools work", func(t *testing.T) {
		t.Parallel()
		x := newBench(t, oauthtest.Behaviour{Life: time.Hour})
		_, err := x.pool.Probe(t.Context(), "srv", x.conf)
		x.wantErr(err, "log in: chela mcp login srv")
		x.logIn()
		if err := x.echo(); err != nil {
			t.Error(err)
		}
		st := x.pool.Status()[0]
		if st.State != mcp.Running || st.Login.State != mcp.LoginIn || st.Login.Issuer != x.Issuer() || !st.Login.Renews ||
			strings.Join(st.Login.Scopes, " ") != "read offline_access" {
			t.Errorf("%+v", st)
		}
		text, _ := json.Marshal(st)
		stored := x.record()
		x.mu.Lock()
		hidden := x.hidden
		x.mu.Unlock()
		for _, h := range hidden {
			if strings.Contains(string(text), h) {
				t.Errorf("the status shows %s", h)
			}
		}
		if !strings.Contains(stored, "access-") || !strings.Contains(stored, "refresh-") ||
			strings.Contains(stored, "verifier") || len(hidden) < 3 {
			t.Errorf("stored: %s; hidden: %d", stored, len(hidden))
		}
		x.restart()
		if err := x.echo(); err != nil || x.Counts().Agreed != 1 || x.Counts().Refused != 0 {
			t.Errorf("after a restart: %v, %+v", err, x.Counts())
		}
	})
	t.Run("a server with auth oauth is not asked without a login", func(t *testing.T) {
		t.Parallel()
		x := newBench(t, oauthtest.Behaviour{})
		x.conf.Auth = core.OAuthLogin
		x.conf.Headers = map[string]string{"authorization": "Bearer wrong"}
		x.restart()
		if st := x.pool.Status()[0]; st.State != mcp.NeedsAuth {
			t.Errorf("%+v", st)
		}
		_, err := x.pool.Probe(t.Context(), "srv", x.conf)
		x.wantErr(err, "log in: chela mcp login srv")
		x.logIn()
		if err := x.echo(); err != nil { // with the token, not the header
			t.Error(err)
		}
		x.conf.Auth = ""
		_, err = x.pool.BeginLogin(t.Context(), "srv", x.conf, back)
		x.wantErr(err, "chela config set mcp.servers.srv.auth oauth")
	})
	t.Run("callers at once renew a token once", func(t *testing.T) {
		t.Parallel()
		x := newBench(t, oauthtest.Behaviour{Life: time.Hour})
		x.logIn()
		if err := x.echo(); err != nil {
			t.Fatal(err)
		}
		for round := range 3 {
			x.Expire()
			var all sync.WaitGroup
			for range 8 {
				all.Go(func() {
					if err := x.echo(); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			if got := x.Counts().Renewed; got != round+1 {
				t.Fatalf("round %d: %d renewals", round, got)
			}
		}
		x.restart()
		if err := x.echo(); err != nil {
			t.Error("after a restart:", err)
		}
	})
	t.Run("a token is renewed before it expires", func(t *testing.T) {
		t.Parallel()
		x := newBench(t, oauthtest.Behaviour{Life: time.Second})
		x.logIn()
		if err := x.echo(); err != nil {
			t.Fatal(err)
		}
		waittest.Until(t, "a renewal", func() bool { return x.echo() == nil && x.Counts().Renewed > 0 })
		if x.Counts().Refused != 0 {
			t.Errorf("%+v", x.Counts())
		}
	})
	t.Run("a renewal that its caller gives up is stored", func(t *testing.T) {
		t.Parallel()
		x := newBench(t, oauthtest.Behaviour{Life: time.Hour})
		x.logIn()
		if err := x.echo(); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		x.Change(func(b *oauthtest.Behaviour) {
			b.Token = func(http.ResponseWriter, url.Values) bool { cancel(); return false }
		})
		x.Expire()
		for _, v := range x.pool.Tools(map[string]core.Server{"srv": x.conf}) {
			if v.Spec().Name == "srv__echo" {
				_, _ = run(ctx, v, "hello") // it may or may not succeed
			}
		}
		x.restart()
		if err := x.echo(); err != nil || x.Counts().Renewed != 1 {
			t.Errorf("%v, %+v", err, x.Counts())
		}
	})
	t.Run("a renewal that the end of the gateway meets is stored", func(t *testing.T) {
		t.Parallel()
		x := newBench(t, oauthtest.Behaviour{Life: time.Hour})
		x.logIn()
		if err := x.echo(); err != nil {
			t.Fatal(err)
		}
		begun, release := make(chan struct{}), make(chan struct{})
		x.Change(func(b *oauthtest.Behaviour) {
			b.Token = func(http.ResponseWriter, url.Values) bool { close(begun); <-release; return false }
		})
		x.Expire()
		ended := make(chan struct{})
		pool := x.pool
		go func() {
			defer close(ended)
			for _, v := range pool.Tools(map[string]core.Server{"srv": x.conf}) {
				if v.Spec().Name == "srv__echo" {
					_, _ = run(t.Context(), v, "hello") // the gateway ends
				}
			}
		}()
		waittest.For(t, "the renewal", begun)
		closed := make(chan error, 1)
		go func() { closed <- pool.Close(context.WithoutCancel(t.Context())) }()
		waittest.Until(t, "the pool is closing", func() bool {
			_, err := pool.Probe(t.Context(), "other", core.Server{})
			return err != nil && strings.Contains(err.Error(), "shutting down")
		})
		waittest.For(t, "the end of the call", ended)
		close(release)
		if err := waittest.For(t, "the end of the pool", closed); err != nil {
			t.Error(err)
		}
		x.Change(func(b *oauthtest.Behaviour) { b.Token = nil })
		x.start()
		if err := x.echo(); err != nil || x.Counts().Renewed != 1 || x.Counts().Refused != 0 {
			t.Errorf("%v, %+v", err, x.Counts())
		}
	})
	t.Run("what cannot be stored is not renewed", func(t *testing.T) {
		t.Parallel()
		x := newBench(t, oauthtest.Behaviour{Life: time.Hour})
		x.logIn()
		if err := x.echo(); err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(x.state, "credentials", "mcp")
		if err := os.Rename(dir, dir+".away"); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		x.Expire()
		x.wantErr(x.echo(), "store the login")
		if x.Counts().Renewed != 0 {
			t.Errorf("%+v", x.Counts())
		}
		if err := errors.Join(os.Remove(dir), os.Rename(dir+".away", dir)); err != nil {
			t.Fatal(err)
		}
		waittest.Until(t, "the call works again", func() bool { return x.echo() == nil })
	})
	t.Run("a service that does not answer keeps the login", func(t *testing.T) {
		t.Parallel()
		x := newBench(t, oauthtest.Behaviour{Life: time.Hour})
		x.logIn()
		if err := x.echo(); err != nil {
			t.Fatal(err)
		}
		x.Change(func(b *oauthtest.Behaviour) {
			b.Intercept = func(w http.ResponseWriter, _ *http.Request) bool {
				http.Error(w, "busy", http.StatusServiceUnavailable)
				return true
			}
		})
		x.Expire()
		x.wantErr(x.echo(), "renew the login", "503")
		if len(x.toldNow()) != 0 || x.pool.Status()[0].Login.State != mcp.LoginIn {
			t.Errorf("%q, %+v", x.toldNow(), x.pool.Status())
		}
		x.Change(func(b *oauthtest.Behaviour) { b.Intercept = nil })
		waittest.Until(t, "the call works again", func() bool { return x.echo() == nil })
	})
	t.Run("an answer that is lost: another one is asked for, and a refusal says what happened", func(t *testing.T) {
		t.Parallel()
		x := newBench(t, oauthtest.Behaviour{Life: time.Hour})
		x.logIn()
		if err := x.echo(); err != nil {
			t.Fatal(err)
		}
		x.Change(func(b *oauthtest.Behaviour) {
			b.Token = func(http.ResponseWriter, url.Values) bool { panic(http.ErrAbortHandler) }
		})
		x.Expire()
		x.wantErr(x.echo(), "renew the login")
		x.Change(func(b *oauthtest.Behaviour) { b.Token = nil })
		x.restart()
		x.wantErr(x.echo(), "after a renewal was interrupted", "log in: chela mcp login srv")
	})
	t.Run("a login that is revoked: needs-auth, and the person is told once", func(t *testing.T) {
		t.Parallel()
		x := newBench(t, oauthtest.Behaviour{Life: time.Hour})
		x.logIn()
		if err := x.echo(); err != nil {
			t.Fatal(err)
		}
		x.Revoke()
		for range 3 {
			x.wantErr(x.echo(), "the login has ended", "log in: chela mcp login srv")
		}
		refused := x.Counts().Refused
		x.restart()
		x.wantErr(x.echo(), "log in: chela mcp login srv")
		if st := x.pool.Status()[0]; st.State != mcp.NeedsAuth || st.Login.State != mcp.LoginLost || len(st.Tools) == 0 {
			t.Errorf("%+v", st)
		}
		if told := x.toldNow(); len(told) != 1 || !strings.Contains(told[0], "chela mcp login srv") || x.Counts().Refused !=
			refused || strings.Contains(x.record(), "access-") || !strings.Contains(x.record(), `"told":true`) {
			t.Errorf("told %q, %+v, %s", told, x.Counts(), x.record())
		}
		x.logIn()
		if err := x.echo(); err != nil {
			t.Error("after another login:", err)
		}
	})
	t.Run("a person who could not be told is told after the next start", func(t *testing.T) {
		t.Parallel()
		x := newBench(t, oauthtest.Behaviour{NoRefresh: true})
		x.logIn()
		if err := x.echo(); err != nil {
			t.Fatal(err)
		}
		x.mu.Lock()
		x.tell = errors.New("the store is closed")
		x.mu.Unlock()
		x.Expire()
		x.wantErr(x.echo(), "nothing to renew it with")
		x.mu.Lock()
		x.tell = nil
		x.mu.Unlock()
		x.restart()
		x.pool.Discover()
		waittest.Until(t, "the person is told", func() bool { return len(x.toldNow()) == 1 })
	})
	t.Run("a logout revokes the tokens and removes them", func(t *testing.T) {
		t.Parallel()
		x := newBench(t, oauthtest.Behaviour{Life: time.Hour, Methods: []string{"client_secret_basic"}})
		x.logIn()
		if err := x.echo(); err != nil {
			t.Fatal(err)
		}
		removed, untold, err := x.pool.Logout(t.Context(), "srv", core.Server{}) // also if it is not configured any more
		if !removed || untold != nil || err != nil || x.record() != "" || x.Counts().Revoked != 2 {
			t.Errorf("%v, %v, %v, %+v", removed, untold, err, x.Counts())
		}
		x.wantErr(x.echo(), "log in: chela mcp login srv")
		if removed, _, err := x.pool.Logout(t.Context(), "srv", x.conf); removed || err != nil {
			t.Errorf("twice: %v, %v", removed, err)
		}
	})
	t.Run("a logout removes the tokens if the service is away", func(t *testing.T) {
		t.Parallel()
		x := newBench(t, oauthtest.Behaviour{})
		x.logIn()
		x.Auth.Close()
		removed, untold, err := x.pool.Logout(t.Context(), "srv", x.conf)
		if !removed || untold == nil || err != nil || x.record() != "" {
			t.Errorf("%v, %v, %v", removed, untold, err)
		}
		x.wantErr(untold)
	})
	for _, methods := range [][]string{{"client_secret_post"}, {"client_secret_basic", "client_secret_post"}, {"none"}} {
		t.Run("clients with "+strings.Join(methods, " "), func(t *testing.T) {
			t.Parallel()
			x := newBench(t, oauthtest.Behaviour{Methods: methods})
			x.logIn()
			x.Expire()
			if err := x.echo(); err != nil || x.Counts().Refused != 0 || x.Counts().Registered != 1 {
				t.Errorf("%v, %+v", err, x.Counts())
			}
		})
	}
	t.Run("a configured client does not register, and its secret is not stored", func(t *testing.T) {
		t.Parallel()
		x := newBench(t, oauthtest.Behaviour{Secret: "s3cret-of-the-client", Methods: []string{"client_secret_basic"},
			Meta: func(m map[string]any) { delete(m, "registration_endpoint") }})
		_, err := x.pool.BeginLogin(t.Context(), "srv", x.conf, back)
		x.wantErr(err, "does not let programs register", "chela config set mcp.servers.srv.oauth.clientId", back)
		x.conf.OAuth = core.OAuth{ClientID: "manual", ClientSecret: "s3cret-of-the-client", Scope: "write",
			RedirectURL: "http://localhost:7/x"}
		x.restart()
		x.logIn()
		x.Expire()
		if err := x.echo(); err != nil || x.Counts().Registered != 0 || strings.Contains(x.record(), "s3cret") {
			t.Errorf("%v, %+v, %s", err, x.Counts(), x.record())
		}
		if got := x.pool.Status()[0].Login.Scopes; strings.Join(got, " ") != "write offline_access" {
			t.Errorf("scopes %q", got)
		}
	})
	t.Run("a server that wants more rights", func(t *testing.T) {
		t.Parallel()
		x := newBench(t, oauthtest.Behaviour{Life: time.Hour})
		x.logIn()
		if err := x.echo(); err != nil {
			t.Fatal(err)
		}
		x.Change(func(b *oauthtest.Behaviour) { b.Wants = []string{"write"} })
		x.wantErr(x.echo(), "more rights than the login has (write)", "log in: chela mcp login srv")
		if x.Counts().Renewed != 0 {
			t.Errorf("a renewal cannot give rights: %+v", x.Counts())
		}
		x.logIn()
		if err := x.echo(); err != nil {
			t.Error(err)
		}
		if got := x.pool.Status()[0].Login.Scopes; strings.Join(got, " ") != "read offline_access write" {
			t.Errorf("scopes %q", got)
		}
	})
	t.Run("a login is for one address", func(t *testing.T) {
		t.Parallel()
		x := newBench(t, oauthtest.Behaviour{})
		x.logIn()
		other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "" {
				t.Error("another server got the token")
			}
			w.WriteHeader(http.StatusUnauthorized)
		}))
		defer other.Close()
		moved := x.conf
		moved.URL = other.URL
		_, err := x.pool.Probe(t.Context(), "srv", moved)
		x.wantErr(err, "log in: chela mcp login srv")
		if l := x.pool.LoginOf("srv", moved); l.State != mcp.LoginNone || l.Problem == "" {
			t.Errorf("%+v", l)
		}
	})
}

func TestLoginRefused(t *testing.T) {
	t.Parallel()
	var reached bool
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	t.Cleanup(other.Close)
	set := func(name string, v any) func(map[string]any) {
		return func(m map[string]any) { m[name] = v }
	}
	for _, tt := range []struct {
		name     string
		resource func(map[string]any)
		meta     func(map[string]any)
		want     string
	}{
		{"a description of another resource", set("resource", "https://bank.example.com/mcp"), nil,
			`is about "https://bank.example.com/mcp"`},
		{"a description of a folder beside it", set("resource", "ORIGIN/mc"), nil, "is about"},
		{"no authorization server", set("authorization_servers", []string{}), nil, "no authorization_servers"},
		{"an authorization server without https", set("authorization_servers", []string{"http://login.example.com"}),
			nil, "is not encrypted"},
		{"another authorization server's description", nil, set("issuer", "https://login.example.com"),
			"is of another authorization server"},
		{"no PKCE", nil, set("code_challenge_methods_supported", []string{"plain"}), "PKCE"},
		{"an authorization endpoint without https", nil, set("authorization_endpoint", "http://login.example.com/a"),
			"is not encrypted"},
		{"an authorization endpoint that runs code", nil, set("authorization_endpoint", "javascript:alert(1)"),
			"is not an address"},
		{"a token endpoint without https", nil, set("token_endpoint", "http://login.example.com/t"), "is not encrypted"},
		{"no token endpoint", nil, set("token_endpoint", ""), "is not an address"},
		{"a registration endpoint without https", nil, set("registration_endpoint", "http://login.example.com/r"),
			"is not encrypted"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			x := newBench(t, oauthtest.Behaviour{})
			x.Change(func(b *oauthtest.Behaviour) {
				b.Meta = tt.meta
				if tt.resource != nil {
					b.Resource = func(m map[string]any) {
						tt.resource(m)
						if r, _ := m["resource"].(string); strings.HasPrefix(r, "ORIGIN") {
							m["resource"] = strings.Replace(r, "ORIGIN", x.MCP.URL, 1)
						}
					}
				}
			})
			_, err := x.pool.BeginLogin(t.Context(), "srv", x.conf, back)
			x.wantErr(err, tt.want)
			if x.Counts().Registered != 0 || x.record() != "" {
				t.Errorf("%+v, %s", x.Counts(), x.record())
			}
		})
	}
	t.Run("a description of the origin is enough", func(t *testing.T) {
		t.Parallel()
		x := newBench(t, oauthtest.Behaviour{})
		x.Change(func(b *oauthtest.Behaviour) { b.Resource = set("resource", x.MCP.URL+"/") })
		b, err := x.pool.BeginLogin(t.Context(), "srv", x.conf, back)
		if u, _ := url.Parse(b.URL); err != nil || u.Query().Get("resource") != x.MCP.URL+"/" {
			t.Errorf("%+v, %v", b, err)
		}
	})
	for _, path := range []string{"/.well-known/oauth-authorization-server/tenant", "/tenant/register", "/tenant/token"} {
		t.Run("a redirect of "+path, func(t *testing.T) {
			t.Parallel()
			x := newBench(t, oauthtest.Behaviour{Intercept: func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path == path {
					http.Redirect(w, r, other.URL+path, http.StatusTemporaryRedirect)
				}
				return r.URL.Path == path
			}})
			b, err := x.pool.BeginLogin(t.Context(), "srv", x.conf, back)
			if err == nil {
				_, err = x.pool.FinishLogin(t.Context(), "srv", x.conf, x.Agree(b.URL))
			}
			x.wantErr(err, "redirects to "+other.URL)
		})
	}
	t.Run("a server that says nothing about logins", func(t *testing.T) {
		t.Parallel()
		x := newBench(t, oauthtest.Behaviour{})
		mute := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/open" {
				return
			}
			w.WriteHeader(http.StatusUnauthorized)
		}))
		defer mute.Close()
		for path, want := range map[string]string{"/mcp": "chela mcp add srv --url", "/open": "does not ask for a login"} {
			conf := x.conf
			conf.URL = mute.URL + path
			_, err := x.pool.BeginLogin(t.Context(), "srv", conf, back)
			x.wantErr(err, want)
		}
		conf := x.conf
		conf.URL = "http://192.0.2.7/mcp"
		_, err := x.pool.BeginLogin(t.Context(), "srv", conf, back)
		x.wantErr(err, "is not encrypted")
		_, err = x.pool.BeginLogin(t.Context(), "srv", core.Server{Command: "x"}, back)
		x.wantErr(err, "is a program on this machine")
	})
	t.Run("answers that do not belong to the login", func(t *testing.T) {
		t.Parallel()
		x := newBench(t, oauthtest.Behaviour{})
		_, err := x.pool.FinishLogin(t.Context(), "srv", x.conf, "code")
		x.wantErr(err, "no login waits", "chela mcp login srv")
		b, err := x.pool.BeginLogin(t.Context(), "srv", x.conf, back)
		if err != nil {
			t.Fatal(err)
		}
		right := x.Agree(b.URL)
		change := func(name, value string) string {
			u, _ := url.Parse(right)
			q := u.Query()
			q.Set(name, value)
			u.RawQuery = q.Encode()
			return u.String()
		}
		for answer, want := range map[string]string{
			"":                   "want the address",
			"the page says no":   "want the address",
			"4/abc==":            "the whole address",
			change("state", "x"): "another login",
			right + "&state=x":   "another login",
			change("iss", "https://evil.example.com"): "another server",
			strings.Replace(right, "iss=", "is=", 1):  "another server",
			change("code", ""):                        "no code",
		} {
			_, err := x.pool.FinishLogin(t.Context(), "srv", x.conf, answer)
			x.wantErr(err, want)
		}
		if x.Counts().Exchanged != 0 {
			t.Errorf("a code was sent: %+v", x.Counts())
		}
		x.restart() // the login waits across a restart
		if _, err := x.pool.FinishLogin(t.Context(), "srv", x.conf, " "+right+"\n"); err != nil {
			t.Error(err)
		}
		_, err = x.pool.FinishLogin(t.Context(), "srv", x.conf, right)
		x.wantErr(err, "no login waits")
	})
	t.Run("a person who says no", func(t *testing.T) {
		t.Parallel()
		x := newBench(t, oauthtest.Behaviour{})
		x.logIn()
		b, err := x.pool.BeginLogin(t.Context(), "srv", x.conf, back)
		if err != nil {
			t.Fatal(err)
		}
		u, _ := url.Parse(b.URL)
		no := back + "?" + url.Values{"error": {"access_denied"}, "error_description": {"not\x1b[31m today"},
			"state": {u.Query().Get("state")}, "iss": {x.Issuer()}}.Encode()
		_, err = x.pool.FinishLogin(t.Context(), "srv", x.conf, no)
		x.wantErr(err, "access_denied", "today")
		if strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%q", err)
		}
		if err := x.echo(); err != nil { // the login before remains
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		if reached {
			t.Error("a redirect was followed")
		}
	})
}
