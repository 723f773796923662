package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/policy"
	calls "github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/engine/invoke"
	"github.com/chela-ai/chela/internal/surface/access"
)

// gadget is a tool that returns its arguments, unless run is set.
type gadget struct {
	spec tool.Spec
	run  func(context.Context, tool.Call) (tool.Result, error)
	ask  bool
}

func (g gadget) Spec() tool.Spec { return g.spec }

func (g gadget) Plan(context.Context, tool.Call) (tool.Plan, error) {
	return tool.Plan{Effect: g.spec.Effect, Ask: g.ask, Reason: "it acts"}, nil
}

func (g gadget) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	if g.run != nil {
		return g.run(ctx, c)
	}
	return tool.Text(string(c.Args)), nil
}

// toolServer is a testServer with tools.
type toolServer struct {
	*testServer
	ran   atomic.Int64 // calls of count
	enter chan bool    // a call of slow has started
	leave chan bool    // lets it end

	options invoke.DirectOptions
}

func newToolServer(t *testing.T, allow []string, change func(*access.Options)) *toolServer {
	s := &toolServer{enter: make(chan bool), leave: make(chan bool)}
	plain := func(name string) gadget { return gadget{spec: tool.Spec{Name: name}} }
	set := tool.NewSet(
		plain("session_status"), gadget{spec: tool.Spec{Name: "exec", Names: []string{"bash"}, InRuns: true}},
		gadget{spec: tool.Spec{Name: "apply_patch", InRuns: true}}, plain("read"),
		gadget{spec: tool.Spec{Name: "gateway", OwnerOnly: true, InRuns: true}},
		gadget{spec: tool.Spec{Name: "danger", Effect: tool.Acts}, ask: true},
		gadget{spec: tool.Spec{Name: "browser",
			Schema: json.RawMessage(`{"type":"object","properties":{"action":{"type":"string"},"n":{"type":"integer"}}}`)}},
		gadget{spec: tool.Spec{Name: "boom"}, run: func(context.Context, tool.Call) (tool.Result, error) {
			return tool.Result{}, errors.New("open /home/me/secret.txt: no such file")
		}},
		gadget{spec: tool.Spec{Name: "panics"},
			run: func(context.Context, tool.Call) (tool.Result, error) { panic("at /home/me") }},
		gadget{spec: tool.Spec{Name: "count", Effect: tool.Writes},
			run: func(context.Context, tool.Call) (tool.Result, error) {
				return tool.Text(fmt.Sprint(s.ran.Add(1))), nil
			}},
		gadget{spec: tool.Spec{Name: "slow"}, run: func(ctx context.Context, _ tool.Call) (tool.Result, error) {
			s.enter <- true
			select {
			case <-s.leave:
			case <-ctx.Done():
				return tool.Result{}, ctx.Err()
			}
			return tool.Text(fmt.Sprint(s.ran.Add(1))), nil
		}},
	)
	s.testServer = newTestServer(t, change)
	s.options = invoke.DirectOptions{
		Executor: invoke.New(invoke.Options{}),
		Store:    s.store,
		Default:  "main",
		Agent:    func(id chela.AgentID) bool { return id == "main" || id == "other" },
		Direct:   func() (deny, _ []string) { return []string{"secretive"}, allow },
		Scope: func(_ context.Context, who chela.Principal, key chela.SessionKey) (invoke.Scope, error) {
			return invoke.Scope{Agent: key.Agent(), Tools: set,
				Policy: policy.Pipeline{{Label: "global", Key: "tools", Deny: []string{"read"}}}}, nil
		},
	}
	s.direct = invoke.NewDirect(s.options)
	return s
}

// post makes a call with the token.
func (s *toolServer) post(body string) (int, string) {
	s.t.Helper()
	status, text, _ := s.send(http.MethodPost, local, strings.NewReader(body), "Bearer "+token)
	return status, text
}

func (s *toolServer) send(method, addr string, body io.Reader, auth string) (int, string, http.Header) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, "http://gateway/tools/invoke", body)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Host = "127.0.0.1:18789"
	if auth != "" {
		r.Header.Set("Authorization", auth)
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
	return res.StatusCode, strings.TrimSpace(string(b)), res.Header
}

// TestBodyType sends bodies of other types, which any web page can send.
func TestBodyType(t *testing.T) {
	for kind, want := range map[string]int{
		"application/json":                  200,
		"Application/JSON; charset=utf-8":   200,
		"":                                  200,
		"text/plain":                        415,
		"text/plain;charset=UTF-8":          415,
		"application/x-www-form-urlencoded": 415,
		"multipart/form-data; boundary=x":   415,
		";":                                 415,
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newToolServer(t, nil, nil)
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://gateway/tools/invoke",
				strings.NewReader(`{"tool":"count"}`))
			if err != nil {
				t.Fatal(err)
			}
			r.Host = "127.0.0.1:18789"
			r.Header.Set("Authorization", "Bearer "+token)
			if kind != "" {
				r.Header.Set("Content-Type", kind)
			}
			res, err := s.http(local).Do(r)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if res.StatusCode != want || s.ran.Load() != int64(200/want) {
				t.Errorf("%q: status %d, %d calls; want %d", kind, res.StatusCode, s.ran.Load(), want)
			}
		})
	}
}

// proxied makes a proxy report the user.
func proxied(o *access.Options) {
	o.Mode, o.Proxies = access.ModeProxy, []netip.Prefix{netip.MustParsePrefix("192.168.1.0/24")}
	o.Proxy = access.ProxyOptions{UserHeader: "X-User"}
}

// postAs makes a call that a proxy reports as made by the user, with the scopes.
func (s *toolServer) postAs(user, scopes, body string) (int, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, "http://gateway/tools/invoke",
		strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Host = "127.0.0.1:18789"
	r.Header.Set("X-User", user)
	r.Header.Set("X-Openclaw-Scopes", scopes)
	res, err := s.http(remote).Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

// record returns the recorded calls, newest first.
func (s *toolServer) record() []string {
	s.t.Helper()
	var out []string
	err := s.store.View(s.t.Context(), func(r store.Reader) error {
		list, err := r.Calls().Recent(calls.CallQuery{Limit: 100})
		for _, c := range list {
			o := c.Outcome
			out = append(out, strings.Join([]string{o.Who, c.Wire.Name, string(o.Decision), o.Rule, string(o.Result)}, " "))
		}
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

func TestInvoke(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		body   string
		status int
		want   string
	}{
		{"TI-01 a call", `{"tool":"session_status"}`, 200, `{"ok":true,"result":{"content":[{"type":"text","text":"{}"}]}}`},
		{"name takes precedence over tool", `{"tool":"boom","name":"session_status","args":{"a":1}}`, 200,
			`{"ok":true,"result":{"content":[{"type":"text","text":"{\"a\":1}"}]}}`},
		{"TI-03 exec", `{"tool":"exec","args":{"command":"id"}}`, 404,
			`{"error":{"message":"Tool not available: exec","type":"not_found"},"ok":false}`},
		{"exec by its alias", `{"tool":"BASH"}`, 404,
			`{"error":{"message":"Tool not available: exec","type":"not_found"},"ok":false}`},
		{"gateway, which is not allowed", `{"tool":"gateway"}`, 404,
			`{"error":{"message":"Tool not available: gateway","type":"not_found"},"ok":false}`},
		{"TI-05 TOOL-10 denied by the configuration", `{"tool":"read"}`, 404,
			`{"error":{"message":"Tool not available: read","type":"not_found"},"ok":false}`},
		{"an unknown tool", `{"tool":"nope"}`, 404,
			`{"error":{"message":"Tool not available: nope","type":"not_found"},"ok":false}`},
		{"TI-06 invalid JSON", `{`, 400,
			`{"error":{"message":"invalid request body: unexpected end of JSON input","type":"invalid_request_error"}}`},
		{"no name", `{"args":{}}`, 400,
			`{"error":{"message":"the name of the tool is missing","type":"invalid_request"},"ok":false}`},
		{"TI-07 a tool that fails", `{"tool":"boom"}`, 500,
			`{"error":{"message":"tool execution failed","type":"tool_error"},"ok":false}`},
		{"TI-07 a tool that crashes", `{"tool":"panics"}`, 500,
			`{"error":{"message":"tool execution failed","type":"tool_error"},"ok":false}`},
		{"TI-08 the action is an argument", `{"tool":"browser","action":"screenshot","args":{}}`, 200,
			`{"ok":true,"result":{"content":[{"type":"text","text":"{\"action\":\"screenshot\"}"}]}}`},
		{"an action with a matching argument", `{"tool":"browser","action":"a","args":{"action":"b"}}`, 200,
			`{"ok":true,"result":{"content":[{"type":"text","text":"{\"action\":\"b\"}"}]}}`},
		{"an unsupported action", `{"tool":"session_status","action":"a"}`, 200,
			`{"ok":true,"result":{"content":[{"type":"text","text":"{}"}]}}`},
		{"invalid arguments", `{"tool":"browser","args":{"n":"many"}}`, 400, `{"error":{"message":"invalid arguments: \"n\" is string, want integer. The fields are: action (string), n (integer)","type":"tool_error"},"ok":false}`},
		{"TI-09 another agent's session", `{"tool":"session_status","agentId":"main","sessionKey":"agent:other:main"}`, 400, `{"error":{"message":"agent id \"main\" does not match session agent \"other\"","type":"invalid_request"},"ok":false}`},
		{"an unknown agent", `{"tool":"session_status","agentId":"stranger"}`, 400,
			`{"error":{"message":"unknown agent id \"stranger\"","type":"invalid_request"},"ok":false}`},
		{"a call that needs approval", `{"tool":"danger"}`, 403, `{"error":{"message":"this needs an approval, and nobody can be asked here: it acts","requiresApproval":true,"type":"tool_call_blocked"},"ok":false}`},
	}
	type answer struct {
		status int
		body   string
	}
	answers := make([]answer, len(tests))
	synctest.Test(t, func(t *testing.T) {
		s := newToolServer(t, nil, nil)
		for i, tt := range tests {
			answers[i].status, answers[i].body = s.post(tt.body)
		}
	})
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := answers[i]; got != (answer{tt.status, tt.want}) {
				t.Errorf("%d %s\nwant %d %s", got.status, got.body, tt.status, tt.want)
			}
		})
	}
	t.Run("TI-04 tools the configuration allows the owner", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			if status, body := newToolServer(t, []string{"gateway"},
				nil).post(`{"tool":"gateway","args":{"action":"config.get"}}`); status != 200 {
				t.Errorf("%d %s", status, body)
			}
		})
	})
	t.Run("TI-06 a body that is too large, and another method", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newToolServer(t, nil, nil)
			for size, want := range map[int]int{2 << 20: 200, 2<<20 + 1: 413} {
				const frame = `{"tool":"session_status","args":{"a":""}}`
				body := strings.Replace(frame, `""`, `"`+strings.Repeat("x", size-len(frame))+`"`, 1)
				if status, text := s.post(body); status != want {
					t.Errorf("%d bytes: %d %.200s, want %d", len(body), status, text, want)
				}
				time.Sleep(time.Second) // the server lets the client read the answer before it closes the connection
			}
			for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete} {
				status, body, h := s.send(method, local, nil, "Bearer "+token)
				if status != 405 || !strings.Contains(h.Get("Allow"), "POST") {
					t.Errorf("%s: %d %s, allowed %q", method, status, body, h.Get("Allow"))
				}
			}
		})
	})
	t.Run("a body that does not arrive", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r, w := io.Pipe()
			defer w.Close()
			go io.WriteString(w, `{"tool":`)
			begun := time.Now()
			if status, body, _ := newToolServer(t, nil, nil).send(http.MethodPost, local, r, "Bearer "+token); status != 408 ||
				time.Since(begun) > time.Minute {
				t.Errorf("%d %s after %v, want 408", status, body, time.Since(begun))
			}
		})
	})
}

func TestInvokeAccess(t *testing.T) {
	t.Parallel()
	const call = `{"tool":"count"}`
	t.Run("TI-02 no credential, then a guessing client", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newToolServer(t, nil, nil)
			for _, auth := range []string{"", "Basic x", "Bearer "} {
				if status, body, _ := s.send(http.MethodPost, remote, strings.NewReader(call), auth); status != 401 {
					t.Errorf("with %q: %d %s, want 401", auth, status, body)
				}
			}
			last := 0
			for range 11 {
				status, _, h := s.send(http.MethodPost, remote, strings.NewReader(call), "Bearer wrong")
				if last = status; status == 429 && h.Get("Retry-After") == "" {
					t.Error("locked out without Retry-After")
				}
			}
			if last != 429 || s.ran.Load() != 0 {
				t.Errorf("after eleven wrong tokens: %d, and %d calls", last, s.ran.Load())
			}
		})
	})
	t.Run("read scope calls nothing, write scope is not the owner", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newToolServer(t, []string{"gateway", "exec"}, proxied)
			for scopes, want := range map[string][2]int{
				"operator.read":  {403, 403},
				"operator.write": {200, 404},
				"operator.admin": {200, 200},
			} {
				var got [2]int
				for i, name := range []string{"session_status", "exec"} {
					got[i], _ = s.postAs("ada", scopes, `{"tool":"`+name+`"}`)
				}
				if got != want {
					t.Errorf("with %s: %v, want %v", scopes, got, want)
				}
			}
		})
	})
}

func TestInvokeOnce(t *testing.T) {
	t.Parallel()
	t.Run("concurrent calls with the same key share one execution", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newToolServer(t, nil, nil)
			answers := make(chan string, 3)
			for range 3 {
				go func() {
					status, body := s.post(`{"tool":"slow","idempotencyKey":"k"}`)
					answers <- fmt.Sprint(status, body)
				}()
			}
			<-s.enter
			synctest.Wait()
			s.leave <- true
			first := <-answers
			if second, third := <-answers, <-answers; first != second || first != third ||
				!strings.HasPrefix(first, "200") || s.ran.Load() != 1 {
				t.Errorf("%d calls: %s, %s, %s", s.ran.Load(), first, second, third)
			}
			if status, body := s.post(`{"tool":"count","idempotencyKey":"k"}`); status != 400 {
				t.Errorf("the key for another call: %d %s", status, body)
			}
		})
	})
	t.Run("a key belongs to one principal with one set of scopes", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newToolServer(t, []string{"gateway"}, proxied)
			const count, settings = `{"tool":"count","idempotencyKey":"k"}`, `{"tool":"gateway","idempotencyKey":"g"}`
			const admin, write = "operator.admin", "operator.write"
			for i, tt := range []struct {
				user, scopes, body string
				status             int
				says               string
			}{
				{"ada", admin, count, 200, `"text":"1"`},
				{"bob", admin, count, 200, `"text":"2"`},
				{"ada", admin, count, 200, `"text":"1"`},
				{"bob", admin, count, 200, `"text":"2"`},
				{"ada", write, count, 400, "other scopes"},
				{"ada", admin, settings, 200, `"ok":true`},
				{"ada", write, settings, 400, "other scopes"}, // only the owner has the tool
				{"eve", write, settings, 404, "not available"},
				{"eve", write + "," + "operator.read", count, 200, `"text":"3"`},
				{"eve", "operator.read," + write, count, 200, `"text":"3"`},
			} {
				if status, body := s.postAs(tt.user, tt.scopes, tt.body); status != tt.status || !strings.Contains(body, tt.says) {
					t.Errorf("call %d, %s with %s: %d %s, want %d %s", i, tt.user, tt.scopes, status, body, tt.status, tt.says)
				}
			}
			s.direct = invoke.NewDirect(s.options) // as after a restart
			for _, scopes := range []string{admin, write} {
				if status, body := s.postAs("ada", scopes, count); status != 400 || s.ran.Load() != 3 {
					t.Errorf("after a restart with %s: %d %s after %d calls", scopes, status, body, s.ran.Load())
				}
			}
			if status, body := s.postAs("dan", admin, count); status != 200 || s.ran.Load() != 4 {
				t.Errorf("after a restart, another principal: %d %s after %d calls", status, body, s.ran.Load())
			}
		})
	})
	t.Run("a call made before a restart is not repeated", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newToolServer(t, nil, nil)
			const call = `{"tool":"count","idempotencyKey":"k"}`
			if status, body := s.post(call); status != 200 {
				t.Fatal(status, body)
			}
			s.direct = invoke.NewDirect(s.options)
			if status, body := s.post(call); status != 400 || s.ran.Load() != 1 {
				t.Errorf("%d %s after %d calls", status, body, s.ran.Load())
			}
		})
	})
	t.Run("a disconnect aborts and records a call that no other client waits for", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newToolServer(t, nil, nil)
			ctx, cancel := context.WithCancel(t.Context())
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://gateway/tools/invoke",
				strings.NewReader(`{"tool":"slow"}`))
			if err != nil {
				t.Fatal(err)
			}
			r.Host = "127.0.0.1"
			r.Header.Set("Authorization", "Bearer "+token)
			go func() { <-s.enter; cancel() }()
			if _, err := s.http(local).Do(r); err == nil {
				t.Error("the call was answered")
			}
			synctest.Wait()
			if diff := cmp.Diff([]string{"owner slow allowed default aborted"}, s.record()); diff != "" {
				t.Error(diff)
			}
		})
	})
	t.Run("all calls are recorded", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newToolServer(t, nil, nil)
			for _, name := range []string{"count", "read", "danger", "boom", "exec"} {
				s.post(`{"tool":"` + name + `"}`)
			}
			got := s.record()
			slices.Reverse(got)
			want := []string{
				"owner count allowed default ok", "owner read refused policy global tools error",
				"owner danger denied approval error",
				"owner boom allowed default error", "owner exec refused policy direct gateway.tools.deny error",
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	})
}
