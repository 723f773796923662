package chelatest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/app/endpoint"
	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/internal/test/chelatest"
	"github.com/chela-ai/chela/wire"
)

// TestDrain stops an application in the middle of a turn.
func TestDrain(t *testing.T) {
	t.Run("GW-06 a run in progress ends first, and its client sees the end", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g := chelatest.Start(t,
				chelatest.Options{Model: llmtest.NewScript(llmtest.Step{Delay: 3 * time.Second,
					Parts: []llm.Part{llm.Text("in time")}})})
			c := g.Client()
			run := c.Send("main", "hi")
			synctest.Wait()
			stopped := make(chan error, 1)
			go func() { stopped <- g.Close(t.Context()) }()
			if end := c.Await(run); end.State != wire.StateFinal || end.Text != "in time" {
				t.Errorf("the run ended %s %q %s", end.State, end.Text, end.Error)
			}
			if err := <-stopped; err != nil {
				t.Error(err)
			}
			last := ""
			for e := range c.Events() {
				last = e.Name
			}
			if last != wire.EventShutdown {
				t.Errorf("the last event is %s, want shutdown", last)
			}
			g.Engine = nil
		})
	})
	t.Run("GW-06 a run that takes too long is aborted after the time limit", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g := chelatest.Start(t,
				chelatest.Options{Model: llmtest.NewScript(llmtest.Step{Delay: time.Hour, Parts: []llm.Part{llm.Text("late")}})})
			g.Client().Send("main", "hi")
			synctest.Wait()
			begin := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			if err := g.Close(ctx); err != nil {
				t.Error(err)
			}
			if took := time.Since(begin); took > 10*time.Second {
				t.Errorf("the stop took %v", took)
			}
			g.Engine = nil
		})
	})
}

// TestRestart restarts an application that has a client.
func TestRestart(t *testing.T) {
	t.Run("GW-07 clients are notified, reconnect, and find their sessions", func(t *testing.T) {
		o := chelatest.Options{
			Dir: t.TempDir(), Listen: &endpoint.Listen{Port: -1},
			Config: chelatest.Config{"gateway": json.RawMessage(`{"auth": {"token": "a-token"}}`)},
		}
		g := chelatest.Start(t, o)
		u, err := url.Parse(g.URL())
		if err != nil {
			t.Fatal(err)
		}
		if o.Listen.Port, err = strconv.Atoi(u.Port()); err != nil {
			t.Fatal(err)
		}
		dial := func() *client.Client {
			t.Helper()
			c, err := client.Dial(t.Context(), client.Options{
				URL:    u.String(),
				ID:     "gateway-client",
				Mode:   wire.ModeBackend,
				Scopes: []string{wire.ScopeAdmin},
				Auth:   &wire.Auth{Token: "a-token"},
				Once:   true,
			})
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		c := dial()
		g.Client().Ask("main", "hello")
		if err := g.CloseForRestart(t.Context()); err != nil {
			t.Fatal(err)
		}
		g.Engine = nil
		var told wire.Shutdown
		for e := range c.Events() {
			if e.Name == wire.EventShutdown {
				if err := e.Decode(&told); err != nil {
					t.Fatal(err)
				}
			}
		}
		if ce, ok := errors.AsType[*client.CloseError](c.Err()); told.RestartMs <= 0 || !ok || ce.Code != wire.CloseRestart {
			t.Errorf("got %+v, closed with %v; want the expected restart time, and 1012", told, c.Err())
		}
		chelatest.Start(t, o)
		c = dial()
		defer c.Close()
		h, err := c.History(t.Context(), "main", 10)
		if err != nil || len(h.Messages) != 2 {
			t.Errorf("%d messages, %v; want the two from before the restart", len(h.Messages), err)
		}
	})
}

// TestHooksToken starts gateways with tokens of hooks.
func TestHooksToken(t *testing.T) {
	for _, tt := range []struct {
		name, auth, hooks string
		warns             bool
	}{
		{"SE-15 the start warns of a hooks token that is the gateway's token", `{"token": "a-token"}`, "a-token", true},
		{"SE-15 the start warns of a hooks token that is the gateway's password",
			`{"mode": "password", "password": "a-token"}`, "a-token", true},
		{"a separate hooks token", `{"token": "a-token"}`, "another-token", false},
		{"a hooks token that is an unused password", `{"mode": "token", "token": "a-token", "password": "b-token"}`,
			"b-token", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var log lockedBuffer
			chelatest.Start(t, chelatest.Options{
				Log: slog.New(slog.NewTextHandler(&log, nil)), Listen: &endpoint.Listen{Port: -1},
				Config: chelatest.Config{
					"gateway": json.RawMessage(`{"auth": ` + tt.auth + `}`), "hooks": json.RawMessage(`{"token": "` + tt.hooks + `"}`),
				},
			}).Stop()
			text := log.String()
			if got := strings.Contains(text, `level=WARN msg="hooks.token is the gateway's credential`); got != tt.warns ||
				strings.Contains(text, tt.hooks) {
				t.Errorf("warned %v, want %v, without the token:\n%s", got, tt.warns, text)
			}
		})
	}
}

// failing is a channel that cannot connect before ok is closed.
type failing struct {
	channel.Channel
	ok <-chan struct{}
}

func (f failing) Run(ctx context.Context, _ channel.Sink) error {
	select {
	case <-f.ok:
		<-ctx.Done()
		return ctx.Err()
	default:
		return errors.New("no connection")
	}
}

func TestFailingChannel(t *testing.T) {
	t.Run("HL-01 the gateway is live but not ready while a channel fails, and remote requests get no details",
		func(t *testing.T) {
			recovered := make(chan struct{})
			g := chelatest.Start(t, chelatest.Options{
				Log: slog.New(slog.DiscardHandler), Channels: map[string]channel.Channel{"broken": failing{ok: recovered}},
				Listen: &endpoint.Listen{Port: -1},
				Config: chelatest.Config{
					"gateway": json.RawMessage(`{"auth": {"token": "a-token"}, "trustedProxies": ["127.0.0.1"]}`)},
			})
			get := func(path, from string) (int, string) {
				t.Helper()
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
					"http"+strings.TrimPrefix(g.URL(), "ws")+path, nil)
				if err != nil {
					t.Fatal(err)
				}
				if from != "" {
					r.Header.Set("X-Forwarded-For", from)
				}
				res, err := http.DefaultClient.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				defer res.Body.Close()
				b, err := io.ReadAll(res.Body)
				if err != nil {
					t.Fatal(err)
				}
				return res.StatusCode, string(b)
			}
			var status int
			var body string
			waittest.Until(t, "the gateway is not ready",
				func() bool { status, body = get("/readyz", ""); return status != http.StatusOK })
			if status != http.StatusServiceUnavailable || !strings.Contains(body, "broken") {
				t.Errorf("/readyz: %d %s, want 503 with the channel", status, body)
			}
			if status, body := get("/readyz", "203.0.113.9"); status != http.StatusServiceUnavailable ||
				strings.Contains(body, "broken") {
				t.Errorf("/readyz for a remote request: %d %s, want 503 without the channel", status, body)
			}
			health := func() {
				t.Helper()
				for _, from := range []string{"", "203.0.113.9"} {
					if status, body := get("/healthz", from); status != http.StatusOK || strings.Contains(body, "broken") {
						t.Errorf("/healthz from %q: %d %s, want 200", from, status, body)
					}
				}
			}
			health()
			close(recovered)
			c := g.Client() // a change of its configuration starts the account again
			var conf wire.ConfigSnapshot
			if err := c.Call(t.Context(), wire.MethodConfigGet, nil, &conf); err != nil {
				t.Fatal(err)
			}
			patch := wire.ConfigPatch{Raw: `{"channels": {"broken": {"name": "again"}}}`, BaseHash: conf.Hash}
			if err := c.Call(t.Context(), wire.MethodConfigPatch, patch, nil); err != nil {
				t.Fatal(err)
			}
			waittest.Until(t, "the gateway is ready",
				func() bool { status, body = get("/readyz", ""); return status == http.StatusOK })
			if status != http.StatusOK || !strings.Contains(body, `"ready":true`) {
				t.Errorf("/readyz after the channel is connected: %d %s, want 200", status, body)
			}
			if status, body := get("/readyz", "203.0.113.9"); status != http.StatusOK || strings.Contains(body, "broken") {
				t.Errorf("/readyz for a remote request, after the channel is connected: %d %s, want 200", status, body)
			}
			health()
		})
}

// unreadable is a store in which runs cannot be read while it is broken.
type unreadable struct {
	store.Store
	broken atomic.Bool
}

func (u *unreadable) View(ctx context.Context, f func(store.Reader) error) error {
	return u.Store.View(ctx, func(r store.Reader) error {
		if u.broken.Load() {
			r = withoutRuns{r}
		}
		return f(r)
	})
}

type withoutRuns struct{ store.Reader }

func (r withoutRuns) Runs() run.Reader { return noRuns{r.Reader.Runs()} }

type noRuns struct{ run.Reader }

func (noRuns) Active(chela.SessionKey) ([]run.Run, error) {
	return nil, errors.New("a page is damaged")
}

func TestUnreadableStore(t *testing.T) {
	u := &unreadable{}
	g := chelatest.Start(t, chelatest.Options{
		Log: slog.New(slog.DiscardHandler), Listen: &endpoint.Listen{Port: -1},
		Wrap: func(s store.Store) store.Store { u.Store = s; return u },
	})
	for _, broken := range []bool{false, true, false} {
		u.broken.Store(broken)
		res, err := http.Get("http" + strings.TrimPrefix(g.URL(), "ws") + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || (res.StatusCode != http.StatusOK) != broken ||
			strings.Contains(string(b), "a page is damaged") != broken {
			t.Errorf("broken %v: %d %s, %v", broken, res.StatusCode, b, err)
		}
	}
}

// lockedBuffer is a log that is safe for concurrent use.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// TestPort tests the whole application over a real port of this machine.
func TestPort(t *testing.T) {
	g := chelatest.Start(t, chelatest.Options{
		Listen: &endpoint.Listen{Port: -1},
		Config: chelatest.Config{"gateway": json.RawMessage(`{"auth": {"token": "a-token"}}`)},
	})
	if g.NewToken() != "" {
		t.Error("a token was generated although there is one")
	}
	page := "http" + strings.TrimPrefix(g.URL(), "ws")
	get := func(path string) string {
		t.Helper()
		res, err := http.Get(page + path)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d %s, %v", path, res.StatusCode, b, err)
		}
		return string(b)
	}
	if got := get("/healthz"); got != `{"ok":true,"status":"live"}`+"\n" {
		t.Errorf("/healthz: %s", got)
	}
	if got := get("/readyz"); !strings.HasPrefix(got, `{"ready":true`) {
		t.Errorf("/readyz: %s", got)
	}
	dial := func(token string) (*client.Client, error) {
		return client.Dial(t.Context(), client.Options{
			URL: g.URL(), ID: "gateway-client", Mode: wire.ModeBackend, Scopes: []string{wire.ScopeAdmin},
			Auth: &wire.Auth{Token: token}, Once: true,
		})
	}
	if _, err := dial("wrong"); err == nil || !strings.Contains(err.Error(), "token mismatch") {
		t.Errorf("a wrong token: %v", err)
	}
	c, err := dial("a-token")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	run, err := c.Send(t.Context(), "main", "hello")
	if err != nil {
		t.Fatal(err)
	}
	var w wire.AgentWaited
	if err := c.Call(t.Context(), wire.MethodAgentWait,
		wire.AgentWait{RunID: run, TimeoutMs: waittest.Limit.Milliseconds()}, &w); err != nil || w.Status != wire.StatusOK {
		t.Fatalf("the run ended with %q, %v", w.Status, err)
	}
	t.Run("ME-01 a turn increments the counter of runs", func(t *testing.T) {
		for _, want := range []string{"chela_runs_total{outcome=\"ok\"} 1\n", "chela_auth_failures_total 1\n",
			"chela_sessions 1\n"} {
			// it is counted after it is stored
			waittest.Until(t, "the metric "+want, func() bool { return strings.Contains(get("/metrics"), want) })
		}
	})
	t.Run("GW-06 clients are notified before the stop", func(t *testing.T) {
		if err := g.Close(waittest.Context(t)); err != nil {
			t.Errorf("Close: %v", err)
		}
		g.Engine = nil
		last := ""
		for e := range c.Events() {
			last = e.Name
		}
		if ce, ok := errors.AsType[*client.CloseError](c.Err()); last != wire.EventShutdown || !ok ||
			ce.Code != wire.CloseRestart {
			t.Errorf("the last event is %s and the connection was closed with %v, want shutdown and 1012", last, c.Err())
		}
	})
}

// TestMetricSeries has 200 sessions, each with a model and a tool of its own.
func TestMetricSeries(t *testing.T) {
	t.Run("ME-01 neither sessions nor models nor tools add series", func(t *testing.T) {
		const sessions = 200
		model := llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
			if r.Messages[len(r.Messages)-1].Role == llm.RoleTool {
				return llmtest.Say("done")
			}
			return llmtest.Call(fmt.Sprint("c", n), r.Messages[0].PlainText(), `{}`)
		})
		var models, tools []string
		var parts []tool.Tool
		for i := range sessions {
			models = append(models, fmt.Sprintf(`{"id": "m%d"}`, i))
			tools = append(tools, fmt.Sprint("tool", i))
			parts = append(parts, named(tools[i]))
		}
		g := chelatest.Start(t, chelatest.Options{
			Model: model, Tools: parts, Listen: &endpoint.Listen{Port: -1},
			Config: chelatest.Config{"models": json.RawMessage(`{"providers": {"mock": {"models": [` + strings.Join(models,
				",") + `]}}}`), "agents.defaults": json.RawMessage(`{"model": "mock/m0"}`)},
		})
		c := g.Client()
		series := func() (names []string) {
			res, err := http.Get("http" + strings.TrimPrefix(g.URL(), "ws") + "/metrics")
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			b, err := io.ReadAll(res.Body)
			if err != nil || res.StatusCode != http.StatusOK {
				t.Fatalf("%d %s, %v", res.StatusCode, b, err)
			}
			for line := range strings.Lines(string(b)) {
				if name, _, ok := strings.Cut(line, " "); ok && name != "#" {
					names = append(names, name)
				}
			}
			return names
		}
		before := series()
		for i := range sessions {
			key := fmt.Sprint("agent:main:s", i)
			if err := c.Call(t.Context(), wire.MethodSessionsCreate,
				map[string]string{"key": key, "model": fmt.Sprint("mock/m", i)}, nil); err != nil {
				t.Fatal(err)
			}
			if end := c.Ask(key, tools[i]); end.Text != "done" {
				t.Fatalf("session %d ended %q %s", i, end.Text, end.Error)
			}
		}
		asked := map[string]bool{}
		for _, r := range model.Requests() {
			asked[r.Model] = true
		}
		if len(asked) != sessions {
			t.Errorf("%d models were asked, want %d", len(asked), sessions)
		}
		if got := series(); len(before) < 20 || !slices.Equal(got, before) {
			t.Errorf("after %d sessions the series are %q, before %q", sessions, got, before)
		}
	})
}

// named is a tool that does nothing.
type named string

func (n named) Spec() tool.Spec {
	return tool.Spec{Name: string(n), Schema: json.RawMessage(`{"type":"object"}`), Effect: tool.Reads}
}

func (named) Run(context.Context, tool.Call) (tool.Result, error) { return tool.Text("ok"), nil }
