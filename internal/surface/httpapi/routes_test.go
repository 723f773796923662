package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/engine/invoke"
	"github.com/chela-ai/chela/internal/kit/secret"
	"github.com/chela-ai/chela/internal/surface/access"
	"github.com/chela-ai/chela/internal/surface/gateway"
	"github.com/chela-ai/chela/internal/surface/httpapi"
	"github.com/chela-ai/chela/internal/surface/webui"
)

// TestOrigins tries every origin with every host on every route and the
// WebSocket upgrade: the result must be the same for all routes.
func TestOrigins(t *testing.T) {
	hosts := map[string]bool{ // known names of the gateway
		"127.0.0.1:18789":        true,
		"localhost:18789":        true,
		"[::1]:18789":            true,
		"box:18789":              true,
		"box.local":              true,
		"ui.example":             true,
		"evil.example:18789":     false,
		"127.0.0.1.evil.example": false,
	}
	origins := []string{
		"", "http://127.0.0.1:18789", "http://localhost:3000", "https://ui.example", "http://box:18789",
		"https://evil.example", "null", "file://", "http://127.0.0.1.evil.example", "https://ui.example.evil.example",
	}
	routes := map[string]int{
		"/healthz":                             200,
		"/health":                              200,
		"/readyz":                              200,
		"/ready":                               200,
		"/metrics":                             200,
		"/":                                    200,
		"/chat/main":                           200,
		"/assets/app.js":                       200,
		"/control-ui-config.json":              401,
		"/__openclaw__/control-ui-config.json": 401,
		"/nothing.js":                          404,
	}
	for _, configured := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			s := newTestServer(t, func(o *access.Options) {
				if configured {
					o.Origins = []string{"https://ui.example"}
				}
			})
			n := 0
			for host, known := range hosts {
				known = known && (configured || host != "ui.example")
				local := known && (strings.Contains(host, "127.0.0.1") || strings.Contains(host, "localhost") ||
					strings.Contains(host, "::1"))
				for _, origin := range origins {
					n++
					may := false
					switch origin {
					case "":
						may = known
					case "https://ui.example":
						may = known && configured
					case "http://127.0.0.1:18789":
						may = host == "127.0.0.1:18789" || local && !configured
					case "http://localhost:3000": // another page of this machine
						may = local && !configured
					case "http://box:18789":
						may = host == "box:18789"
					}
					header := map[string]string{}
					if origin != "" {
						header["Origin"] = origin
					}
					for path, want := range routes {
						if path == "/metrics" && !local {
							want = 401
						}
						if !may {
							want = 403
						}
						if got, body, _ := s.get("127.0.0.1:40000", host, path, header); got != want {
							t.Errorf("host %s, origin %s, %s: %d %s, want %d", host, origin, path, got, body, want)
						}
					}
					for _, r := range s.routes {
						method, path, both := strings.Cut(r.Pattern, " ")
						if !both {
							t.Fatalf("route %s has no method", r.Pattern)
						}
						if got, body, _ := s.request(method, "127.0.0.1:40000", host, path, header); (got != 403) != may {
							t.Errorf("host %s, origin %s, %s: %d %s, want it accepted: %v", host, origin, r.Pattern, got, body, may)
						}
					}
					if said, _ := s.connect(attempt{host: host, header: header}); (said != "HTTP 403") != may {
						t.Errorf("host %s, origin %s, upgrade: %s, want it accepted: %v", host, origin, said, may)
					}
				}
			}
			if n != 80 {
				t.Errorf("%d combinations, want 80", n)
			}
		})
	}
}

func TestGuard(t *testing.T) {
	for _, tt := range []struct {
		name   string
		addr   string
		path   string
		header map[string]string
		want   int
	}{
		{"a token in the URL", local, "/healthz?token=" + token, nil, 400},
		{"a password in the URL", local, "/?password=x", nil, 400},
		{"X-Forwarded-For from an unknown proxy", local, "/healthz", map[string]string{"X-Forwarded-For": "127.0.0.1"}, 403},
		{"Forwarded from an unknown proxy", local, "/healthz", map[string]string{"Forwarded": "for=127.0.0.1"}, 403},
		{"X-Real-IP from an unknown proxy", local, "/healthz", map[string]string{"X-Real-IP": "127.0.0.1"}, 403},
		{"two origins", local, "/healthz", map[string]string{"Origin": "http://127.0.0.1:18789, http://evil.example"}, 403},
		{"remote metrics", remote, "/metrics", nil, 401},
		{"remote metrics with the token", remote, "/metrics", map[string]string{"Authorization": "Bearer " + token}, 200},
		{"remote metrics with a wrong token", remote, "/metrics", map[string]string{"Authorization": "Bearer x"}, 401},
		{"the bootstrap with the token", local, "/control-ui-config.json",
			map[string]string{"Authorization": "Bearer " + token}, 200},
		{"a path out of the directory", local, "/assets/../../etc/passwd.txt", nil, 404},
		{"another interface", local, "/v1/models", nil, 404},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got, body, h := newTestServer(t, nil).get(tt.addr, "127.0.0.1:18789", tt.path, tt.header)
				if got != tt.want {
					t.Errorf("status %d: %s, want %d", got, body, tt.want)
				}
				if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "no-referrer" ||
					h.Get("Permissions-Policy") == "" {
					t.Errorf("without the headers that protect pages: %v", h)
				}
				if strings.HasPrefix(body, "{") && (h.Get("Cache-Control") != "no-store" ||
					h.Get("Content-Type") != "application/json; charset=utf-8" || h.Get("Retry-After") != "") {
					t.Errorf("JSON with the headers %v", h)
				}
			})
		})
	}
}

func TestReady(t *testing.T) {
	t.Run("HL-01 live without a credential, not ready while a channel fails, details hidden from remote requests",
		func(t *testing.T) {
			synctest.Test(t, testReady)
		})
}

func testReady(t *testing.T) {
	s := newTestServer(t, nil)
	ask := func(addr, path string) (status int, parts map[string]string, failing []string) {
		status, body, _ := s.get(addr, "127.0.0.1:18789", path, nil)
		var r struct {
			Failing []string
			Parts   map[string]string
		}
		if err := json.Unmarshal([]byte(body), &r); err != nil {
			t.Fatal(err)
		}
		return status, r.Parts, r.Failing
	}
	if status, parts, _ := ask(local, "/readyz"); status != 200 || parts["store"] != "ok" {
		t.Errorf("status %d, parts %v; want 200 with the store ok", status, parts)
	}
	s.parts["channel telegram"] = "not connected"
	if status, _, _ := ask(remote, "/healthz"); status != 200 {
		t.Errorf("/healthz: %d, want 200", status)
	}
	if status, _, failing := ask(local, "/readyz"); status != 503 || fmt.Sprint(failing) != "[channel telegram]" {
		t.Errorf("/readyz: %d, failing %v; want 503 for the channel", status, failing)
	}
	if status, parts, failing := ask(remote, "/ready"); status != 503 || parts != nil || failing != nil {
		t.Errorf("remote /ready: %d, %v, %v; want 503 without details", status, parts, failing)
	}
}

func TestMetrics(t *testing.T) {
	const want = `# HELP chela_clients Connected clients.
# TYPE chela_clients gauge
chela_clients 2
# HELP chela_runs_total Runs.
# TYPE chela_runs_total counter
chela_runs_total{outcome="a\"b\\\n"} 1
chela_runs_total{outcome="ok"} 3
# HELP chela_tokens_total Tokens.
# TYPE chela_tokens_total counter
chela_tokens_total 1.2345678901e+10
# HELP chela_seconds Time.
# TYPE chela_seconds gauge
chela_seconds 0.1234567
`
	synctest.Test(t, func(t *testing.T) {
		_, got, h := newTestServer(t, nil).get(local, "localhost", "/metrics", nil)
		if got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		if ct := h.Get("Content-Type"); !strings.HasPrefix(ct, "text/plain; version=0.0.4") {
			t.Errorf("Content-Type %q", ct)
		}
	})
}

func TestUI(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestServer(t, nil)
		for path, want := range map[string]string{
			"/":                            page,
			"/chat/agent:main:main":        page,
			"/index.html":                  page,
			"/settings":                    page,
			"/assets/app.js":               "run()",
			"/chat/assets/app.js":          "run()",
			"/favicon.ico":                 "icon",
			"/settings/device/favicon.ico": "icon",
			"/missing.js":                  "404 page not found\n",
		} {
			_, got, h := s.get(local, "localhost", path, nil)
			if got != want {
				t.Errorf("%s: %q, want %q", path, got, want)
			}
			csp := h.Get("Content-Security-Policy")
			if want == page && (!strings.Contains(csp, "'sha256-") || strings.Contains(csp, "script-src 'self' 'unsafe")) {
				t.Errorf("%s: the page's script is missing in %q", path, csp)
			}
			if h.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s: X-Content-Type-Options is missing", path)
			}
		}
	})
}

// TestStages requests a gateway that is starting and one that is draining.
func TestStages(t *testing.T) {
	ask := func(t *testing.T, s *testServer, path, want string, wantStatus int) {
		t.Helper()
		if status, body, _ := s.get(local, "127.0.0.1", path, nil); status != wantStatus || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s, want %d and %s", path, status, body, wantStatus, want)
		}
	}
	t.Run("draining", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newTestServer(t, nil)
			ask(t, s, "/startupz", `"started"`, 200)
			s.stage = httpapi.Draining
			ask(t, s, "/startupz", `"draining"`, 503)
			ask(t, s, "/readyz", `{"gateway":"draining"}`, 503)
			ask(t, s, "/healthz", "live", 200)
		})
	})
	t.Run("starting", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newTestServer(t, nil)
			s.starting.Store(true)
			ask(t, s, "/healthz", "live", 200)
			ask(t, s, "/startupz", `"starting"`, 503)
			ask(t, s, "/readyz", `{"gateway":"starting"}`, 503)
			ask(t, s, "/metrics", "gateway starting", 503)
			ask(t, s, "/", "gateway starting; retry shortly", 503)
			if got, _ := s.connect(attempt{}); got != "1013 UNAVAILABLE gateway starting; retry shortly" {
				t.Errorf("a client: %s", got)
			}
			if got, _ := s.connect(attempt{frame: "nonsense"}); got != "1013 UNAVAILABLE gateway starting; retry shortly" {
				t.Errorf("nonsense: %s", got)
			}
			if got, _ := s.connect(attempt{header: map[string]string{"Origin": "http://evil.example"}}); got != "HTTP 403" {
				t.Errorf("a foreign page: %s", got)
			}
		})
	})
}

// TestNoUI checks that a browser gets an explanation if there is no web page.
func TestNoUI(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestServer(t, nil)
		synctest.Wait()
		h := httpapi.New(httpapi.Options{Log: slog.New(slog.DiscardHandler), Auth: s.auth, Upgrade: gateway.Starting(nil),
			Post: func(string) http.Handler { return nil }})
		for path, want := range map[string]string{
			"/": "chela config set gateway.controlUi.enabled true", "/chat": "there is nothing at /chat",
			"/v1/models": `{"error":{"message":"there is nothing at /v1/models","type":"not_found"}}`,
			"/hooks/x":   `{"error":{"message":"there is nothing at /hooks/x","type":"not_found"}}`,
		} {
			w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "http://localhost"+path, nil)
			r.RemoteAddr = local
			if h.ServeHTTP(w, r); w.Code != 404 || !strings.Contains(w.Body.String(), want) {
				t.Errorf("%s: %d %s, want %s", path, w.Code, w.Body, want)
			}
		}
	})
}

// TestPage checks where a page is served, and that nothing else changes for it.
func TestPage(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	for _, tt := range []struct{ base, path, want string }{
		{"", "/", "200 text/html; charset=utf-8"}, {"", "/icon.svg", "200 image/svg+xml"},
		{"", "/chat", "404 application/json; charset=utf-8"},
		{"", "/assets/", "404 application/json; charset=utf-8"}, {"", "/v1/models", "404 application/json; charset=utf-8"},
		{"chela", "/chela/", "200 text/html; charset=utf-8"}, {"chela", "/chela/icon.svg", "200 image/svg+xml"},
		{"chela", "/chela", "307 text/html; charset=utf-8"}, {"chela", "/", "404 application/json; charset=utf-8"},
	} {
		h := httpapi.New(httpapi.Options{
			Log:     log,
			Auth:    access.New(access.Options{Log: log, Token: secret.New(token)}),
			Started: time.Now(),
			Page:    webui.New(tt.base),
			Post:    func(string) http.Handler { return nil },
		})
		for _, method := range []string{"GET", "HEAD"} {
			w, r := httptest.NewRecorder(), httptest.NewRequest(method, "http://127.0.0.1:18789"+tt.path, nil)
			r.RemoteAddr = local
			h.ServeHTTP(w, r)
			if got := fmt.Sprint(w.Code, " ", w.Header().Get("Content-Type")); got != tt.want {
				t.Errorf("base %q, %s %s: %s, want %s", tt.base, method, tt.path, got, tt.want)
			}
		}
		w, r := httptest.NewRecorder(), httptest.NewRequest("POST", "http://127.0.0.1:18789"+tt.path, nil)
		r.RemoteAddr = local
		if h.ServeHTTP(w, r); w.Code != http.StatusMethodNotAllowed && w.Code != http.StatusNotFound {
			t.Errorf("base %q, POST %s: %d", tt.base, tt.path, w.Code)
		}
	}
}

// TestOtherMethods checks what requests with a method get that no route has, and that a
// path that no client asks for is not upgraded.
func TestOtherMethods(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	h := httpapi.New(httpapi.Options{
		Log: log, Auth: access.New(access.Options{Log: log, Token: secret.New(token)}), Started: time.Now(),
		Upgrade: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusSwitchingProtocols)
		}),
		Post: func(string) http.Handler { return nil },
		Invoke: func(context.Context, chela.Principal, invoke.DirectCall) (invoke.Answer, error) {
			return invoke.Answer{}, nil
		},
	})
	do := func(method, path string, header http.Header) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, "http://127.0.0.1:18789", nil)
		var err error
		if r.URL, err = url.Parse("http://127.0.0.1:18789" + path); err != nil {
			t.Fatal(err)
		}
		r.RemoteAddr, r.Header = local, header
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	for request, want := range map[string]string{
		"POST /nothing":     `404  {"error":{"message":"there is nothing at /nothing","type":"not_found"}}`,
		"PUT /":             `404  {"error":{"message":"there is nothing at /","type":"not_found"}}`,
		"DELETE /v1/models": `404  {"error":{"message":"there is nothing at /v1/models","type":"not_found"}}`,

		"PATCH /hooks/x":    `404  {"error":{"message":"there is nothing at /hooks/x","type":"not_found"}}`,
		"POST /healthz":     `405 GET {"error":{"message":"want GET","type":"invalid_request_error"}}`,
		"PUT /tools/invoke": `405 POST {"error":{"message":"want POST","type":"invalid_request_error"}}`,
		"GET /v1":           `404  {"error":`,
		"GET /hooks":        `404  {"error":`,
		"GET //v1/models":   `404  {"error":`,

		"GET /v1/../healthz": `404  {"error":`,
		"GET /tools/invoke":  `405 POST {"error":{"message":"want POST","type":"invalid_request_error"}}`,
	} {
		method, path, _ := strings.Cut(request, " ")
		w := do(method, path, http.Header{})
		if got := fmt.Sprintf("%d %s %s", w.Code, w.Header().Get("Allow"), w.Body); !strings.HasPrefix(got, want) ||
			!json.Valid(w.Body.Bytes()) {
			t.Errorf("%s: %s, want %s", request, got, want)
		}
	}
	for path, want := range map[string]int{
		"":        101,
		"/":       101,
		"/ws":     101,
		"/a/b/":   101,
		"//":      400,
		"/a//b":   400,
		"/%ff":    400,
		"/a/../b": 400,
		"/.":      400,
	} {
		if w := do(http.MethodGet, path, http.Header{"Upgrade": {"websocket"}, "Connection": {"Upgrade"}}); w.Code != want {
			t.Errorf("an upgrade at %q: status %d, want %d: %s", path, w.Code, want, w.Body)
		}
	}
}

// TestForeignPosts posts to interfaces that do not exist.
func TestForeignPosts(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	h := httpapi.New(httpapi.Options{
		Log:     log,
		Auth:    access.New(access.Options{Log: log, Token: secret.New(token)}),
		Upgrade: http.NotFoundHandler(),
		Started: time.Now(),
		Post:    func(string) http.Handler { return nil },
	})
	for path, want := range map[string]string{
		"/v1/chat/completions": `"type":"not_found"`, "/hooks/agent": `"type":"not_found"`, "/nothing": `"type":"not_found"`,
	} {
		r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1:18789"+path, strings.NewReader("{}"))
		r.RemoteAddr = local
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if body := w.Body.String(); w.Code != http.StatusNotFound || !json.Valid(w.Body.Bytes()) ||
			!strings.Contains(body, want) {
			t.Errorf("%s: status %d, %s", path, w.Code, body)
		}
	}
}
