package httpapi_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/coder/websocket"

	"github.com/chela-ai/chela/internal/core/bus"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/engine/invoke"
	"github.com/chela-ai/chela/internal/kit/secret"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/internal/plugin/store/sqlite"
	"github.com/chela-ai/chela/internal/surface/access"
	"github.com/chela-ai/chela/internal/surface/gateway"
	"github.com/chela-ai/chela/internal/surface/httpapi"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/wire"
)

const (
	token    = "test-token-abc"
	password = "test-password"
	local    = "127.0.0.1:40000"
	remote   = "192.168.1.20:40000"
)

// testServer is a gateway whose port is in memory.
type testServer struct {
	t        *testing.T
	conns    chan net.Conn
	done     chan struct{}
	store    store.Store
	gate     *gateway.Server
	auth     *access.Authenticator
	parts    map[string]string // of readiness
	stage    httpapi.Stage
	starting atomic.Bool    // answer as while starting
	calls    atomic.Int64   // of methods
	direct   *invoke.Direct // executes tool calls
	log      bytes.Buffer
	refused  *wire.Error // by the last refusal

	routes []httpapi.Route
}

func newTestServer(t *testing.T, change func(*access.Options)) *testServer {
	t.Helper()
	s := &testServer{t: t}
	log := slog.New(slog.NewTextHandler(&s.log, nil))
	db, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "chela.db"), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	o := access.Options{
		Log:      log,
		Store:    db,
		Token:    secret.New(token),
		Password: secret.New(password),
		Hosts:    []string{"box", "box.local"},
	}
	if change != nil {
		change(&o)
	}
	s.store, s.conns, s.done, s.auth = db, make(chan net.Conn), make(chan struct{}), access.New(o)
	s.parts, s.stage = map[string]string{"store": "ok", "model": "ok"}, httpapi.Started
	s.gate = gateway.New(gateway.Options{
		Log:     log,
		Version: "1",
		Bus:     bus.New(log),
		Methods: rpc.NewSet(s.methods()),
		Models:  catalog,
	})
	ho := httpapi.Options{
		Log: log, Auth: s.auth, Upgrade: s.gate.Upgrade(s.auth.Connect), Started: time.Now(),
		Ready: func(context.Context) map[string]string { return s.parts },
		Stage: func() httpapi.Stage { return s.stage },
		Invoke: func(ctx context.Context, who chela.Principal, e invoke.DirectCall) (invoke.Answer, error) {
			return s.direct.Do(ctx, who, e)
		},
		Metrics: func(context.Context) ([]httpapi.Metric, error) { return metrics(), nil },
		UI: &httpapi.UI{
			Files: fstest.MapFS{"index.html": {Data: []byte(page)}, "assets/app.js": {Data: []byte("run()")},
				"favicon.ico": {Data: []byte("icon")}},
			Bootstrap: func() httpapi.Bootstrap { return httpapi.Bootstrap{Name: "Chela", Version: "1"} },
		},
	}
	h := httpapi.New(ho)
	s.routes = httpapi.Routes(ho)
	early := httpapi.New(httpapi.Options{
		Log: log, Auth: s.auth, Upgrade: gateway.Starting(nil), Stage: func() httpapi.Stage { return httpapi.Starting },
	})
	served := make(chan error, 1)
	go func() {
		served <- s.gate.Serve(s, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if s.starting.Load() {
				early.ServeHTTP(w, r)
				return
			}
			h.ServeHTTP(w, r)
		}))
	}()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), waittest.Limit)
		defer cancel()
		s.gate.Shutdown(ctx, wire.Shutdown{Reason: "gateway stopping"})
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
		db.Close()
	})
	return s
}

const page = `<html><script>boot()</script><script src="./assets/app.js"></script></html>`

func (s *testServer) methods() []rpc.Method {
	ok := func(context.Context, rpc.Peer, wire.None) (wire.OK, error) {
		s.calls.Add(1)
		return wire.OK{OK: true}, nil
	}
	return []rpc.Method{
		rpc.New("read", wire.RoleOperator, chela.ScopeRead, ok),
		rpc.New("write", wire.RoleOperator, chela.ScopeWrite, ok),
		rpc.New("admin", wire.RoleOperator, chela.ScopeAdmin, ok),
		rpc.New("node", wire.RoleNode, "", ok),
	}
}

// catalog returns the models of the session main.
func catalog(_ context.Context, of wire.ModelsScope) (wire.ModelsList, error) {
	if of.SessionKey != "main" {
		return wire.ModelsList{}, errors.New("no such session")
	}
	return wire.ModelsList{Models: []wire.Model{{ID: "m1", Name: "m1", Provider: "mock"}}}, nil
}

func metrics() []httpapi.Metric {
	return []httpapi.Metric{
		httpapi.One("chela_clients", "Connected clients.", httpapi.Gauge, 2),
		{Name: "chela_runs_total", Help: "Runs.", Kind: httpapi.Counter, Label: "outcome",
			Values: map[string]float64{"ok": 3, "a\"b\\\n": 1}},
		httpapi.One("chela_tokens_total", "Tokens.", httpapi.Counter, 12345678901),
		httpapi.One("chela_seconds", "Time.", httpapi.Gauge, 0.1234567),
	}
}

// clientConn is a connection with the address of its client.
type clientConn struct {
	net.Conn
	addr net.Addr
}

func (f clientConn) RemoteAddr() net.Addr { return f.addr }

// Accept, Close and Addr make testServer a listener.
func (s *testServer) Accept() (net.Conn, error) {
	select {
	case c := <-s.conns:
		return c, nil
	case <-s.done:
		return nil, net.ErrClosed
	}
}

func (s *testServer) Close() error { close(s.done); return nil }
func (s *testServer) Addr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:18789"))
}

// http returns a client with an address.
func (s *testServer) http(addr string) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			near, far := net.Pipe()
			select {
			case s.conns <- clientConn{far, net.TCPAddrFromAddrPort(netip.MustParseAddrPort(addr))}:
				return near, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		},
	}}
}

// get returns the status, body and header of a GET request.
func (s *testServer) get(addr, host, path string, header map[string]string) (int, string, http.Header) {
	s.t.Helper()
	return s.request("GET", addr, host, path, header)
}

// request makes a request without a body.
func (s *testServer) request(method, addr, host, path string, header map[string]string) (int, string, http.Header) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, "http://gateway"+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Host = host
	for k, v := range header {
		r.Header.Set(k, v)
	}
	res, err := s.http(addr).Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return res.StatusCode, string(b), res.Header
}

// device is a client's key.
type device struct{ key ed25519.PrivateKey }

func newDevice(seed byte) device {
	return device{ed25519.NewKeyFromSeed([]byte(strings.Repeat(string(rune(seed)), ed25519.SeedSize)))}
}

func (d device) id() string {
	sum := sha256.Sum256(d.key.Public().(ed25519.PublicKey))
	return hex.EncodeToString(sum[:])
}

// sign adds the device to the parameters of connect.
func (d device) sign(p map[string]any, nonce string) {
	cl, auth := p["client"].(map[string]any), map[string]any{}
	if a, ok := p["auth"].(map[string]any); ok {
		auth = a
	}
	tok := ""
	for _, k := range [...]string{"bootstrapToken", "deviceToken", "token"} {
		if v, ok := auth[k].(string); ok && v != "" {
			tok = v
		}
	}
	var scopes []string
	for _, s := range p["scopes"].([]any) {
		scopes = append(scopes, s.(string))
	}
	family, _ := cl["deviceFamily"].(string)
	at := time.Now().UnixMilli()
	text := strings.Join([]string{
		"v3", d.id(), cl["id"].(string), cl["mode"].(string), p["role"].(string), strings.Join(scopes, ","),
		fmt.Sprint(at), tok, nonce,
		strings.ToLower(cl["platform"].(string)), strings.ToLower(family),
	}, "|")
	b64 := base64.RawURLEncoding.EncodeToString
	p["device"] = map[string]any{
		"id":        d.id(),
		"publicKey": b64(d.key.Public().(ed25519.PublicKey)),
		"signature": b64(ed25519.Sign(d.key, []byte(text))),
		"signedAt":  at,
		"nonce":     nonce,
	}
}

// attempt is an attempt to connect.
type attempt struct {
	addr   string            // "": this machine
	host   string            // "": 127.0.0.1
	header map[string]string // of the upgrade
	merge  string            // JSON merged into the parameters of connect
	drop   string            // a parameter to omit
	frame  string            // sent instead of connect
	device *device
	break_ func(device map[string]any) // changes the signed device
}

// session is a connection after its hello.
type session struct {
	ws    *websocket.Conn
	hello wire.Hello
}

// connect makes an attempt and describes its outcome.
func (s *testServer) connect(c attempt) (string, *session) {
	s.t.Helper()
	addr, host := c.addr, c.host
	if addr == "" {
		addr = local
	}
	if host == "" {
		host = "127.0.0.1:18789"
	}
	h := http.Header{}
	for k, v := range c.header {
		h.Set(k, v)
	}
	ws, res, err := websocket.Dial(s.t.Context(), "ws://"+host+"/",
		&websocket.DialOptions{HTTPClient: s.http(addr), HTTPHeader: h})
	if err != nil {
		if res == nil {
			s.t.Fatal(err)
		}
		return fmt.Sprint("HTTP ", res.StatusCode), nil
	}
	s.t.Cleanup(func() { ws.CloseNow() })
	var challenge struct{ Payload wire.Challenge }
	s.read(ws, &challenge)
	frame := c.frame
	if frame == "" {
		frame = s.frame(c, challenge.Payload.Nonce)
	}
	if err := ws.Write(s.t.Context(), websocket.MessageText, []byte(frame)); err != nil {
		s.t.Fatal(err)
	}
	return s.outcome(ws)
}

func (s *testServer) frame(c attempt, nonce string) string {
	p := map[string]any{
		"minProtocol": 4,
		"maxProtocol": 4,
		"role":        "operator",
		"scopes":      []any{"operator.read", "operator.write"},
		"caps":        []any{},
		"client":      map[string]any{"id": "cli", "version": "1.0", "platform": "linux", "mode": "cli"},
		"auth":        map[string]any{"token": token},
	}
	if c.merge != "" {
		if err := json.Unmarshal([]byte(c.merge), &p); err != nil {
			s.t.Fatal(err)
		}
	}
	delete(p, c.drop)
	if c.device != nil {
		c.device.sign(p, nonce)
		if c.break_ != nil {
			c.break_(p["device"].(map[string]any))
		}
	}
	b, err := json.Marshal(map[string]any{"type": "req", "id": "1", "method": "connect", "params": p})
	if err != nil {
		s.t.Fatal(err)
	}
	return string(b)
}

func (s *testServer) read(ws *websocket.Conn, v any) {
	s.t.Helper()
	_, b, err := ws.Read(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	if err := json.Unmarshal(b, v); err != nil {
		s.t.Fatal(err)
	}
}

// outcome describes the end of a handshake: "ok METHOD SCOPES" or "CLOSE DETAIL
// MESSAGE".
func (s *testServer) outcome(ws *websocket.Conn) (string, *session) {
	s.t.Helper()
	said, code := "", ""
	for {
		_, b, err := ws.Read(s.t.Context())
		if err != nil {
			return strings.Join(strings.Fields(fmt.Sprintf("%d %s %s", websocket.CloseStatus(err), code, said)), " "), nil
		}
		var r wire.Response
		if err := json.Unmarshal(b, &r); err != nil {
			s.t.Fatal(err)
		}
		if r.Type != wire.TypeResponse {
			continue
		}
		if r.OK {
			var h wire.Hello
			if err := json.Unmarshal(r.Payload, &h); err != nil {
				s.t.Fatal(err)
			}
			words := fmt.Sprintf("ok %d %s %s", h.Protocol, h.Auth.Method, strings.Join(h.Auth.Scopes, ","))
			return strings.Join(strings.Fields(words), " "), &session{ws, h}
		}
		s.refused = r.Error
		said, code = r.Error.Message, r.Error.Code+" "+r.Error.Detail()
	}
}

// call returns "ok" or the error of a method.
func (s *testServer) call(c *session, method string) string {
	s.t.Helper()
	frame := `{"type":"req","id":"9","method":"` + method + `"}`
	if err := c.ws.Write(s.t.Context(), websocket.MessageText, []byte(frame)); err != nil {
		return "closed"
	}
	for {
		_, b, err := c.ws.Read(s.t.Context())
		if err != nil {
			return fmt.Sprint("closed ", int(websocket.CloseStatus(err)))
		}
		var r wire.Response
		if json.Unmarshal(b, &r) != nil || r.Type != wire.TypeResponse || r.ID != "9" {
			continue
		}
		if r.OK {
			return "ok"
		}
		return r.Error.Code + " " + r.Error.Message
	}
}
