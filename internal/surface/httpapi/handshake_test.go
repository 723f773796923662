package httpapi_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/pairing"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/kit/secret"
	"github.com/chela-ai/chela/internal/surface/access"
	"github.com/chela-ai/chela/internal/test/power"
)

const (
	tokenMismatch = "INVALID_REQUEST AUTH_TOKEN_MISMATCH unauthorized: gateway token mismatch (use this gateway's gateway.auth.token or pair the device)"
	noDevice      = "NOT_PAIRED DEVICE_IDENTITY_REQUIRED device identity required"
	uiDevice      = "INVALID_REQUEST CONTROL_UI_DEVICE_IDENTITY_REQUIRED control ui requires device identity (use HTTPS or localhost secure context)"
	readWrite     = "operator.read,operator.write"
	everything    = "operator.admin,operator.read,operator.write,operator.approvals,operator.pairing"
	ui            = `"client":{"id":"openclaw-control-ui","version":"1","platform":"linux","mode":"webchat"}`
	tui           = `"client":{"id":"openclaw-tui","version":"1","platform":"linux","mode":"ui"}`
	backend       = `"client":{"id":"gateway-client","version":"1","platform":"linux","mode":"backend"}`
	node          = `"role":"node","scopes":[],"client":{"id":"node-host","version":"1","platform":"linux","mode":"node"}`
)

func set(key string, v any) func(map[string]any) { return func(d map[string]any) { d[key] = v } }

func TestHandshake(t *testing.T) {
	own := map[string]string{"Origin": "http://127.0.0.1:18789"}
	dev := newDevice('a')
	for _, tt := range []struct {
		name string
		try  attempt
		want string
	}{
		{"the token, a command without a device", attempt{}, "ok 4 token " + readWrite},
		{"the token, a command that requests admin", attempt{merge: `{"scopes":["operator.admin"]}`},
			"ok 4 token " + everything},
		{"the token, a program", attempt{merge: `{` + backend + `,"scopes":["operator.admin"]}`}, "ok 4 token " + everything},
		{"the token, another client",
			attempt{merge: `{"client":{"id":"test","version":"1","platform":"linux","mode":"test"}}`}, "ok 4 token"},
		{"the token, this program", attempt{merge: `{"client":{"id":"chela","version":"1","platform":"linux","mode":"cli"}}`},
			"ok 4 token " + readWrite},
		{"the token, a command that is a page",
			attempt{merge: `{"client":{"id":"cli","version":"1","platform":"linux","mode":"webchat"}}`, header: own},
			"ok 4 token"},
		{"the token, a command that is a page without an origin",
			attempt{merge: `{"client":{"id":"cli","version":"1","platform":"linux","mode":"webchat"}}`},
			"1008 INVALID_REQUEST CONTROL_UI_ORIGIN_NOT_ALLOWED " + access.OriginRefused},
		{"the token, a chat without an origin",
			attempt{merge: `{"client":{"id":"webchat","version":"1","platform":"linux","mode":"ui"}}`},
			"1008 INVALID_REQUEST CONTROL_UI_ORIGIN_NOT_ALLOWED " + access.OriginRefused},
		{"null as the role", attempt{merge: `{"role":null}`},
			"1008 INVALID_REQUEST invalid connect params: at /role: must be string"},
		{"null as the scopes", attempt{merge: `{"scopes":null}`},
			"1008 INVALID_REQUEST invalid connect params: at /scopes: must be array"},
		{"null as the abilities", attempt{merge: `{"caps":null}`},
			"1008 INVALID_REQUEST invalid connect params: at /caps: must be array"},
		{"null as the locale", attempt{merge: `{"locale":null}`},
			"1008 INVALID_REQUEST invalid connect params: at /locale: must be string"},
		{"null as a name of the client",
			attempt{merge: `{"client":{"id":"cli","version":"1","platform":"linux","mode":"cli","displayName":null}}`},
			"1008 INVALID_REQUEST invalid connect params: at /client/displayName: must be string"},
		{"null as the models", attempt{merge: `{"modelCatalog":null}`}, "ok 4 token " + readWrite},
		{"an empty role", attempt{merge: `{"role":""}`},
			"1008 INVALID_REQUEST invalid connect params: at /role: must NOT have fewer than 1 characters"},
		{"an empty version", attempt{merge: `{"client":{"id":"cli","version":"","platform":"linux","mode":"cli"}}`},
			"1008 INVALID_REQUEST invalid connect params: at /client/version: must NOT have fewer than 1 characters"},
		{"the token, this program as a backend",
			attempt{merge: `{"client":{"id":"chela","version":"1","platform":"linux","mode":"backend"}}`}, "ok 4 token"},
		{"the token, a program that is a command",
			attempt{merge: `{"client":{"id":"gateway-client","version":"1","platform":"linux","mode":"cli"}}`}, "ok 4 token"},
		{"the token, a probe",
			attempt{merge: `{"minProtocol":3,"client":{"id":"cli","version":"dev","platform":"linux","mode":"probe"}}`},
			"ok 4 token"},
		{"the token, a probe of protocol 3",
			attempt{merge: `{"minProtocol":3,"maxProtocol":3,"client":{"id":"cli","version":"dev","platform":"linux","mode":"probe"}}`}, "ok 3 " + readWrite},
		{"the token, a command in a browser", attempt{header: own}, "ok 4 token"},
		{"the token, a command elsewhere", attempt{addr: remote, host: "192.168.1.5:18789"}, "ok 4 token"},
		{"the token, no scopes requested", attempt{drop: "scopes"}, "ok 4 token"},
		{"the token, an unknown scope", attempt{merge: `{"scopes":["operator.read","operator.god"]}`},
			"ok 4 token operator.read"},
		{"the token, a terminal without a device", attempt{merge: `{` + tui + `}`}, "1008 " + uiDevice},
		{"the token, a page without a device", attempt{header: own, merge: `{` + ui + `}`}, "1008 " + uiDevice},
		{"the token, a page without an origin", attempt{merge: `{` + ui + `}`},
			"1008 INVALID_REQUEST CONTROL_UI_ORIGIN_NOT_ALLOWED " + access.OriginRefused},
		{"the token, a foreign page", attempt{header: map[string]string{"Origin": "https://evil.example"}, merge: `{` + ui +
			`}`}, "HTTP 403"},
		{"the token, a node without a device", attempt{merge: `{` + node + `}`}, "1008 " + noDevice},
		{"nothing", attempt{drop: "auth"}, "1008 " + noDevice},
		{"nothing, a terminal without a device", attempt{merge: `{` + tui + `}`, drop: "auth"}, "1008 " + noDevice},
		{"a wrong token", attempt{merge: `{"auth":{"token":"bad"}}`}, "1008 " + tokenMismatch},
		{"a prefix of the token", attempt{merge: `{"auth":{"token":"test-token-ab"}}`}, "1008 " + tokenMismatch},
		{"an empty token", attempt{merge: `{"auth":{"token":""}}`}, "1008 " + noDevice},
		{"a password in token mode", attempt{merge: `{"auth":{"password":"` + password + `"}}`}, "1008 " + tokenMismatch},
		{"token and password equal, as the page sends them",
			attempt{merge: `{"auth":{"token":"` + token + `","password":"` + token + `"}}`}, "ok 4 token " + readWrite},
		{"a wrong token with a device", attempt{merge: `{"auth":{"token":"bad"}}`, device: &dev}, "1008 " + tokenMismatch},
		{"no token with a device", attempt{drop: "auth", device: &dev}, "1008 INVALID_REQUEST AUTH_TOKEN_MISSING unauthorized: gateway token missing (use this gateway's gateway.auth.token or pair the device)"},
		{"GW-16 protocol 5 to 6", attempt{merge: `{"minProtocol":5,"maxProtocol":6}`},
			"1002 INVALID_REQUEST PROTOCOL_MISMATCH protocol mismatch"},
		{"GW-16 protocol 4", attempt{}, "ok 4 token " + readWrite},
		{"GW-16 protocol 3", attempt{merge: `{"minProtocol":3,"maxProtocol":3}`}, "ok 3 " + readWrite},
		{"GW-16 protocol 2", attempt{merge: `{"minProtocol":2,"maxProtocol":2}`},
			"1002 INVALID_REQUEST PROTOCOL_MISMATCH protocol mismatch"},
		{"protocol 3 to 4", attempt{merge: `{"minProtocol":3,"maxProtocol":4}`}, "ok 4 token " + readWrite},
		{"an unknown client", attempt{merge: `{"client":{"id":"evil","version":"1","platform":"linux","mode":"cli"}}`},
			"1008 INVALID_REQUEST invalid connect params: at /client/id: must be equal to one of the allowed values"},
		{"an unknown property", attempt{merge: `{"bogus":1}`},
			"1008 INVALID_REQUEST invalid connect params: at root: unexpected property 'bogus'"},
		{"an unknown role", attempt{merge: `{"role":"root"}`}, "1008 INVALID_REQUEST invalid role"},
		{"GW-17 the first frame is not connect", attempt{frame: `{"type":"req","id":"1","method":"read","params":{}}`},
			"1008 INVALID_REQUEST invalid handshake: first request must be connect"},
		{"the first frame is not JSON", attempt{frame: "hello"}, "1000"},
		{"a new device on this machine", attempt{merge: `{` + tui + `}`, device: &dev}, "ok 4 token " + readWrite},
		{"a device that requests fewer scopes", attempt{merge: `{"scopes":["operator.read"]}`, device: &dev},
			"ok 4 token operator.read"},
		{"a new device on another machine", attempt{addr: remote, host: "192.168.1.5:18789", device: &dev},
			"1008 NOT_PAIRED PAIRING_REQUIRED pairing required: device is not approved yet"},
		{"an invalid signature", attempt{device: &dev, break_: set("signature", "AAAA")},
			"1008 INVALID_REQUEST DEVICE_AUTH_SIGNATURE_INVALID device signature invalid"},
		{"the nonce of another connection", attempt{device: &dev, break_: set("nonce", "other")},
			"1008 INVALID_REQUEST DEVICE_AUTH_NONCE_MISMATCH device nonce mismatch"},
		{"an expired signature", attempt{device: &dev, break_: set("signedAt", 1)},
			"1008 INVALID_REQUEST DEVICE_AUTH_SIGNATURE_EXPIRED device signature expired"},
		{"the id of another device", attempt{device: &dev, break_: set("id", "00")},
			"1008 INVALID_REQUEST DEVICE_AUTH_DEVICE_ID_MISMATCH device identity mismatch"},
		{"a new node on this machine", attempt{merge: `{` + node + `}`, device: &dev}, "ok 4 token"},
		{"an unnamed command of a node", attempt{merge: `{` + node + `,"commands":[""]}`, device: &dev},
			"1008 INVALID_REQUEST invalid connect params: a node may declare at most 256 names of 1 to 128 bytes"},
		{"an unnamed command of an operator", attempt{merge: `{"commands":[""]}`, device: &dev}, "ok 4 token " + readWrite},
		{"a new node on this machine that requests scopes of an operator",
			attempt{merge: `{` + node + `,"scopes":["operator.admin"]}`, device: &dev}, "ok 4 token"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if got, _ := newTestServer(t, nil).connect(tt.try); got != tt.want {
					t.Errorf("got  %s\nwant %s", got, tt.want)
				}
			})
		})
	}
}

func TestModes(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	proxied := func(o *access.Options) {
		o.Mode, o.Proxies = access.ModeProxy, proxies
		o.Proxy = access.ProxyOptions{UserHeader: "X-Auth-User", Required: []string{"X-Auth-Proof"}, Users: []string{"anna"}}
	}
	mode := func(m string) func(*access.Options) { return func(o *access.Options) { o.Mode = m } }
	unset := func(m string) func(*access.Options) {
		return func(o *access.Options) { o.Mode, o.Token, o.Password = m, secret.Value{}, secret.Value{} }
	}
	ownProxy := func(allowed bool) func(*access.Options) {
		return func(o *access.Options) {
			proxied(o)
			o.Proxies, o.Proxy.Loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, allowed
		}
	}
	anna := map[string]string{"X-Auth-User": "anna", "X-Auth-Proof": "1", "X-Forwarded-For": "203.0.113.9"}
	with := func(k, v string) map[string]string {
		h := map[string]string{}
		for k, v := range anna {
			h[k] = v
		}
		h[k] = v
		return h
	}
	const proxy = "10.1.2.3:40000"
	dev := newDevice('a')
	for _, tt := range []struct {
		name   string
		change func(*access.Options)
		try    attempt
		want   string
	}{
		{"GW-19 the password", mode("password"), attempt{merge: `{"auth":{"password":"` + password + `"}}`},
			"ok 4 password " + readWrite},
		{"GW-19 a wrong password", mode("password"), attempt{merge: `{"auth":{"password":"x"}}`}, "1008 INVALID_REQUEST AUTH_PASSWORD_MISMATCH unauthorized: gateway password mismatch (use this gateway's gateway.auth.password or pair the device)"},
		{"the token in password mode", mode("password"), attempt{}, "1008 INVALID_REQUEST AUTH_PASSWORD_MISMATCH unauthorized: gateway password mismatch (use this gateway's gateway.auth.password or pair the device)"},
		{"mode none, this machine", mode("none"), attempt{drop: "auth"}, "ok 4 none " + readWrite},
		{"mode none, another machine", mode("none"), attempt{addr: remote, host: "192.168.1.5", drop: "auth"},
			"1008 " + noDevice},
		{"mode none, another machine, a device", mode("none"), attempt{addr: remote, host: "192.168.1.5", drop: "auth", device: &dev}, "1008 INVALID_REQUEST AUTH_TOKEN_MISSING unauthorized: gateway token missing (use this gateway's gateway.auth.token or pair the device)"},
		{"mode none, a device", mode("none"), attempt{drop: "auth", device: &dev}, "ok 4 none " + readWrite},
		{"GW-19 the user of a trusted proxy", proxied, attempt{addr: proxy, header: anna}, "ok 4 trusted-proxy " + readWrite},
		{"GW-19 the header from another address", proxied, attempt{addr: remote, host: "192.168.1.5",
			header: map[string]string{"X-Auth-User": "anna", "X-Auth-Proof": "1"}},
			"1008 INVALID_REQUEST AUTH_UNAUTHORIZED unauthorized: trusted proxy source is not in gateway.trustedProxies"},
		{"forwarded from another address", proxied, attempt{addr: remote, host: "192.168.1.5", header: anna}, "HTTP 403"},
		{"another user", proxied, attempt{addr: proxy, header: with("X-Auth-User", "eve")}, "1008 INVALID_REQUEST AUTH_VERIFIED_USER_REQUIRED unauthorized: user is not in gateway.auth.trustedProxy.allowUsers"},
		{"no user", proxied, attempt{addr: proxy, header: with("X-Auth-User", "")},
			"1008 INVALID_REQUEST AUTH_IDENTITY_HEADER_REQUIRED unauthorized: trusted proxy identity header is missing"},
		{"no proof", proxied, attempt{addr: proxy, header: with("X-Auth-Proof", "")},
			"1008 INVALID_REQUEST AUTH_UNAUTHORIZED unauthorized: trusted proxy header X-Auth-Proof is missing"},
		{"the proxy limits the scopes", proxied, attempt{addr: proxy, header: with("X-Openclaw-Scopes", "operator.read")},
			"ok 4 trusted-proxy operator.read"},
		{"the proxy allows more scopes than requested", proxied,
			attempt{addr: proxy, header: with("X-Openclaw-Scopes", "operator.admin")}, "ok 4 trusted-proxy " + readWrite},
		{"no scopes requested through a proxy", proxied, attempt{addr: proxy, header: anna, drop: "scopes"},
			"ok 4 trusted-proxy"},
		{"a node that requests scopes of an operator through a proxy", proxied,
			attempt{addr: proxy, header: anna, merge: `{` + node + `,"scopes":["operator.admin"]}`}, "ok 4 trusted-proxy"},
		{"a proxy on this machine", ownProxy(true), attempt{header: anna}, "ok 4 trusted-proxy " + readWrite},
		{"a proxy on this machine that does not name the client", ownProxy(true),
			attempt{header: map[string]string{"X-Auth-User": "anna", "X-Auth-Proof": "1"}}, "ok 4 trusted-proxy " + readWrite},
		{"a program on this machine that acts as a proxy", ownProxy(false), attempt{header: anna}, "HTTP 403"},
		{"a program on this machine that acts as a proxy and names no client", ownProxy(false),
			attempt{header: map[string]string{"X-Auth-User": "anna", "X-Auth-Proof": "1"}},
			"1008 INVALID_REQUEST AUTH_UNAUTHORIZED unauthorized: trusted proxy source is not in gateway.trustedProxies"},
		{"an empty token where none is set", unset("token"), attempt{merge: `{"auth":{"token":""}}`}, "1008 " + noDevice},
		{"an empty token where none is set, with a device", unset("token"), attempt{merge: `{"auth":{"token":""}}`, device: &dev}, "1008 INVALID_REQUEST AUTH_TOKEN_MISSING unauthorized: gateway token missing (use this gateway's gateway.auth.token or pair the device)"},
		{"an empty password where none is set", unset("password"), attempt{merge: `{"auth":{"password":""}}`},
			"1008 " + noDevice},
		{"no password with a device", mode("password"), attempt{drop: "auth", device: &dev}, "1008 INVALID_REQUEST AUTH_PASSWORD_MISSING unauthorized: gateway password missing (use this gateway's gateway.auth.password or pair the device)"},
		{"a wrong password with a device", mode("password"), attempt{merge: `{"auth":{"password":"x"}}`, device: &dev}, "1008 INVALID_REQUEST AUTH_PASSWORD_MISMATCH unauthorized: gateway password mismatch (use this gateway's gateway.auth.password or pair the device)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if got, _ := newTestServer(t, tt.change).connect(tt.try); got != tt.want {
					t.Errorf("got  %s\nwant %s", got, tt.want)
				}
			})
		})
	}
}

// TestFailures checks which refusals count as wrong credentials, after ten of which
// the address is locked out, and which tell a device to try its own token.
func TestFailures(t *testing.T) {
	dev, other := newDevice('a'), newDevice('b')
	for _, tt := range []struct {
		name  string
		try   attempt
		wrong bool
		retry bool
	}{
		{"a wrong token", attempt{merge: `{"auth":{"token":"bad"}}`}, true, false},
		{"a wrong token with a device", attempt{merge: `{"auth":{"token":"bad"}}`, device: &other}, true, true},
		{"a wrong password with a device", attempt{merge: `{"auth":{"password":"bad"}}`, device: &other}, true, true},
		{"a wrong device token", attempt{merge: `{"auth":{"deviceToken":"bad"}}`, device: &dev}, true, false},
		{"a wrong invitation", attempt{merge: `{"auth":{"bootstrapToken":"bad"}}`, device: &other}, true, false},
		{"an invalid signature", attempt{device: &dev, break_: set("signature", "AAAA")}, true, false},
		{"the nonce of another connection", attempt{device: &dev, break_: set("nonce", "other")}, false, false},
		{"an expired signature", attempt{device: &dev, break_: set("signedAt", 1)}, false, false},
		{"nothing", attempt{drop: "auth"}, false, false},
		{"nothing with a device", attempt{drop: "auth", device: &other}, false, false},
		{"a device that is not approved", attempt{device: &other}, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newTestServer(t, nil)
				s.connect(attempt{device: &dev}) // paired
				tt.try.addr, tt.try.host = remote, "192.168.1.5:18789"
				for range 10 {
					if got, c := s.connect(tt.try); c != nil {
						t.Fatal(got)
					}
				}
				var details struct {
					CanRetryWithDeviceToken bool
					RecommendedNextStep     string
				}
				if err := json.Unmarshal(s.refused.Details, &details); err != nil {
					t.Fatal(err)
				}
				if advised := details.RecommendedNextStep == "retry_with_device_token"; details.CanRetryWithDeviceToken !=
					tt.retry || advised != tt.retry {
					t.Errorf("told to try its own token: %+v, want %v", details, tt.retry)
				}
				want, counted := "ok 4 token", int64(0)
				if tt.wrong {
					want, counted = "HTTP 429", 10
				}
				if n := s.auth.Failures(); n != counted {
					t.Errorf("%d failures, want %d", n, counted)
				}
				if got, _ := s.connect(attempt{addr: remote, host: "192.168.1.5:18789"}); got != want {
					t.Errorf("the right token: %s, want %s", got, want)
				}
			})
		})
	}
}

// TestModeNone sends HTTP requests to a gateway without a secret.
func TestModeNone(t *testing.T) {
	for _, tt := range []struct {
		name, addr string
		header     map[string]string
		want       int
	}{
		{"this machine", local, nil, 200},
		{"another machine", remote, nil, 401},
		{"another machine, with a token", remote, map[string]string{"Authorization": "Bearer " + token}, 401},
		{"another machine, through a proxy on this one", local, map[string]string{"X-Forwarded-For": "203.0.113.9"}, 401},
		{"a proxy that reports this machine", local, map[string]string{"X-Forwarded-For": "127.0.0.1"}, 401},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newTestServer(t, func(o *access.Options) {
					o.Mode, o.Proxies = access.ModeNone, []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
				})
				if got, body, _ := s.get(tt.addr, "127.0.0.1", "/control-ui-config.json", tt.header); got != tt.want {
					t.Errorf("status %d, want %d: %s", got, tt.want, body)
				}
			})
		})
	}
}

func TestDeviceToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestServer(t, nil)
		dev, other := newDevice('a'), newDevice('b')
		_, first := s.connect(attempt{merge: `{` + tui + `}`, device: &dev})
		if first == nil || first.hello.Auth.DeviceToken == "" {
			t.Fatalf("no device token in the hello: %+v", first)
		}
		auth := func(key string) string {
			return fmt.Sprintf(`{%s,"auth":{%q:%q}}`, tui, key, first.hello.Auth.DeviceToken)
		}
		for _, tt := range []struct {
			name string
			try  attempt
			want string
		}{
			{"as a device token", attempt{merge: auth("deviceToken"), device: &dev}, "ok 4 device-token " + readWrite},
			{"instead of the token", attempt{merge: auth("token"), device: &dev}, "ok 4 device-token " + readWrite},
			{"from another machine", attempt{addr: remote, host: "192.168.1.5", merge: auth("deviceToken"), device: &dev},
				"ok 4 device-token " + readWrite},
			{"of another device", attempt{merge: auth("deviceToken"), device: &other}, "1008 INVALID_REQUEST AUTH_DEVICE_TOKEN_MISMATCH unauthorized: device token mismatch (rotate/reissue device token)"},
			{"without the device", attempt{merge: fmt.Sprintf(`{"auth":{"deviceToken":%q}}`, first.hello.Auth.DeviceToken)},
				"1008 " + tokenMismatch},
			{"with more scopes", attempt{merge: auth("deviceToken")[:len(auth("deviceToken"))-1] + `,"scopes":["operator.admin"]}`, device: &dev}, "1008 INVALID_REQUEST AUTH_SCOPE_MISMATCH unauthorized: device token scope mismatch (re-pair or approve scope upgrade)"},
		} {
			if got, _ := s.connect(tt.try); got != tt.want {
				t.Errorf("%s:\ngot  %s\nwant %s", tt.name, got, tt.want)
			}
		}

		if got := s.call(first, "read"); got != "ok" {
			t.Errorf("before: %s", got)
		}
		s.gate.Drop("device:"+dev.id(), nil)
		if got := s.call(first, "read"); got != "closed 4001" && got != "closed" {
			t.Errorf("next frame of a dropped device: %s, want the connection closed", got)
		}
		synctest.Wait()
		if n := s.calls.Load(); n != 1 {
			t.Errorf("%d calls were executed, want the one before", n)
		}
	})
}

// TestDeviceBearer checks that the Control UI may send its device's token with
// its first request, and that this does not count as a failure.
func TestDeviceBearer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestServer(t, nil)
		dev := newDevice('a')
		_, first := s.connect(attempt{merge: `{` + tui + `}`, device: &dev})
		get := func() int {
			status, _, _ := s.get(local, "127.0.0.1", "/control-ui-config.json",
				map[string]string{"Authorization": "Bearer " + first.hello.Auth.DeviceToken})
			return status
		}
		for range 20 {
			if status := get(); status != 200 {
				t.Fatalf("status %d, want 200", status)
			}
		}
		if n := s.auth.Failures(); n != 0 {
			t.Errorf("%d failures were counted, want none", n)
		}
		err := s.store.Update(t.Context(), store.Synced, func(tx store.Tx) error {
			_, _, err := pairing.Remove(tx.Devices(), chela.Owner("test"), dev.id(), time.Now())
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if status := get(); status != 401 || s.auth.Failures() != 1 {
			t.Errorf("after the device was removed: status %d and %d failures, want 401 and 1", status, s.auth.Failures())
		}
	})
}

func TestScopes(t *testing.T) {
	missing := func(s chela.Scope) string { return "FORBIDDEN missing scope: " + string(s) }
	for _, tt := range []struct{ name, merge, read, write, admin, node string }{
		{"GW-18 read", `{"scopes":["operator.read"]}`, "ok", missing(chela.ScopeWrite), missing(chela.ScopeAdmin),
			"INVALID_REQUEST unauthorized role: operator"},
		{"GW-18 write", `{"scopes":["operator.write"]}`, "ok", "ok", missing(chela.ScopeAdmin),
			"INVALID_REQUEST unauthorized role: operator"},
		{"GW-18 admin", `{"scopes":["operator.admin"]}`, "ok", "ok", "ok", "INVALID_REQUEST unauthorized role: operator"},
		{"GW-18 none", `{"scopes":[]}`, missing(chela.ScopeRead), missing(chela.ScopeWrite), missing(chela.ScopeAdmin),
			"INVALID_REQUEST unauthorized role: operator"},
		{"GW-18 a node", `{` + node + `}`, "INVALID_REQUEST unauthorized role: node",
			"INVALID_REQUEST unauthorized role: node", "INVALID_REQUEST unauthorized role: node", "ok"},
		{"GW-18 read in protocol 3", `{"minProtocol":3,"maxProtocol":3,"scopes":["operator.read"]}`, "ok",
			"INVALID_REQUEST missing scope: operator.write", "INVALID_REQUEST missing scope: operator.admin",
			"INVALID_REQUEST unauthorized role: operator"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, dev := newTestServer(t, nil), newDevice('a')
				said, c := s.connect(attempt{merge: tt.merge, device: &dev})
				if c == nil {
					t.Fatal(said)
				}
				for method, want := range map[string]string{
					"read":  tt.read,
					"write": tt.write,
					"admin": tt.admin,
					"node":  tt.node,
				} {
					if got := s.call(c, method); got != want {
						t.Errorf("%s: got %s, want %s", method, got, want)
					}
				}
			})
		})
	}
}

// TestGuessing checks that of 10,000 wrong tokens ten are compared. For five
// minutes the right token is refused as well, also from this machine.
func TestGuessing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestServer(t, nil)
		locked := 0
		for i := range 10_000 {
			status, _, _ := s.get(local, "127.0.0.1", "/control-ui-config.json",
				map[string]string{"Authorization": fmt.Sprintf("Bearer guess-%d", i)})
			switch status {
			case 401:
			case 429:
				locked++
			default:
				t.Fatalf("guess %d: status %d", i, status)
			}
		}
		if n := s.auth.Failures(); n != 10 || locked != 9990 {
			t.Errorf("%d guesses were compared and %d were not, want 10 and 9990", n, locked)
		}
		if got, _ := s.connect(attempt{}); got != "HTTP 429" {
			t.Errorf("the right token: %s, want it refused", got)
		}
		if got, _ := s.connect(attempt{addr: "127.0.0.2:1"}); got != "ok 4 token "+readWrite {
			t.Errorf("another address: %s, want it accepted", got)
		}
		if status, _, h := s.get(local, "127.0.0.1", "/", nil); status != 429 || h.Get("Retry-After") != "60" {
			t.Errorf("status %d, Retry-After %q", status, h.Get("Retry-After"))
		}
		for _, path := range []string{"/healthz", "/readyz", "/startupz"} {
			if status, body, _ := s.get(local, "127.0.0.1", path, nil); status != 200 {
				t.Errorf("%s: %d %s; probes must be answered to locked-out addresses", path, status, body)
			}
		}
		if status, _, _ := s.get(local, "127.0.0.1", "/healthz",
			map[string]string{"Upgrade": "websocket", "Connection": "Upgrade"}); status != 429 {
			t.Errorf("a WebSocket on a probe's path: %d, want it refused", status)
		}
		time.Sleep(5*time.Minute + time.Second)
		if got, _ := s.connect(attempt{}); got != "ok 4 token "+readWrite {
			t.Errorf("after five minutes: %s, want it accepted", got)
		}
	})
}

// TestBadTokens checks that ten wrong tokens lock out their address and no
// other.
func TestBadTokens(t *testing.T) {
	t.Run("SE-13 ten wrong tokens from a remote address, then the right one", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newTestServer(t, nil)
			away := attempt{addr: remote, host: "192.168.1.5:18789"}
			bad := away
			bad.merge = `{"auth":{"token":"bad"}}`
			for i := range 10 {
				if got, _ := s.connect(bad); got != "1008 "+tokenMismatch {
					t.Fatalf("guess %d: %s", i, got)
				}
			}
			if got, _ := s.connect(away); got != "HTTP 429" {
				t.Errorf("the right token: %s, want it refused", got)
			}
			if got, _ := s.connect(attempt{}); got != "ok 4 token "+readWrite {
				t.Errorf("from this machine: %s", got)
			}
			if _, body, _ := s.get(remote, "192.168.1.5:18789", "/readyz",
				map[string]string{"Authorization": "Bearer " + token}); strings.Contains(body, "parts") {
				t.Errorf("a probe shows that the token is right: %s", body)
			}
			synctest.Wait()
			for line, want := range map[string]int{
				`level=INFO msg="connection refused" from=192.168.1.20 client=cli why="unauthorized: gateway token mismatch`: 10,
				`level=WARN msg="too many wrong credentials" from=192.168.1.20 "locked out for"=5m0s`:                        1,
			} {
				if got := strings.Count(s.log.String(), line); got != want {
					t.Errorf("%d lines of the log are %s, want %d:\n%s", got, line, want, &s.log)
				}
			}
			time.Sleep(5*time.Minute - time.Second)
			if got, _ := s.connect(away); got != "HTTP 429" {
				t.Errorf("before five minutes have passed: %s", got)
			}
			time.Sleep(2 * time.Second)
			if got, _ := s.connect(away); got != "ok 4 token" {
				t.Errorf("after five minutes: %s", got)
			}
		})
	})
}

// TestManySilentClients checks that the number of silent clients is limited, and that each
// is dropped after the handshake timeout.
func TestManySilentClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestServer(t, nil)
		refused := 0
		for range 600 {
			ws, res, err := websocket.Dial(t.Context(), "ws://127.0.0.1/", &websocket.DialOptions{HTTPClient: s.http(local)})
			if err != nil {
				if res == nil || res.StatusCode != 503 {
					t.Fatal(err)
				}
				refused++
				continue
			}
			t.Cleanup(func() { ws.CloseNow() })
			var challenge any
			s.read(ws, &challenge)
		}
		if refused != 600-512 {
			t.Errorf("%d of 600 were refused, want 88", refused)
		}
		time.Sleep(16 * time.Second)
		if got, _ := s.connect(attempt{}); got != "ok 4 token "+readWrite {
			t.Errorf("after the handshake timeout: %s, want it accepted", got)
		}
	})
}

// TestReplay checks that a device's signature is useless on another connection.
func TestReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, dev := newTestServer(t, nil), newDevice('a')
		var seen map[string]any
		first, _ := s.connect(attempt{device: &dev, break_: func(d map[string]any) { seen = maps.Clone(d) }})
		if first != "ok 4 token "+readWrite {
			t.Fatal(first)
		}
		again, _ := s.connect(attempt{device: &dev, break_: func(d map[string]any) { maps.Copy(d, seen) }})
		if want := "1008 INVALID_REQUEST DEVICE_AUTH_NONCE_MISMATCH device nonce mismatch"; again != want {
			t.Errorf("got %s, want %s", again, want)
		}
	})
}

// TestPowerAdmission cuts the power after every commit of connections of devices. What a
// client or an operator was told is then on the disk.
func TestPowerAdmission(t *testing.T) {
	power.Sweep(t, func(t testing.TB, st store.Store, report func(power.Fact)) {
		s := newTestServer(t.(*testing.T), func(o *access.Options) {
			o.Store = st
			o.PairingRequested = func(in pairing.Admission) {
				report(func(r store.Reader) error {
					if in.NodeRequested != nil {
						d, err := r.Devices().Device(in.Device.ID)
						if err == nil && (d.Node == nil || d.Node.Request == nil) {
							err = errors.New("the request of the node is lost")
						}
						return err
					}
					_, err := r.Devices().Request(in.Requested.ID)
					return err
				})
			}
		})
		dev, away, camera := newDevice('a'), newDevice('b'), newDevice('c')
		_, c := s.connect(attempt{merge: `{` + tui + `}`, device: &dev})
		report(func(r store.Reader) error {
			_, ok, err := pairing.Bearer(r.Devices(), c.hello.Auth.DeviceToken)
			if err == nil && !ok {
				err = errors.New("the token of the device is not valid")
			}
			return err
		})
		s.connect(attempt{addr: remote, host: "192.168.1.5:18789", device: &away})
		s.connect(attempt{merge: `{` + node + `,"caps":["camera"],"commands":["camera.snap"]}`, device: &camera})
	})
}
