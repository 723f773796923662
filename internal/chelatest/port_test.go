package chelatest_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/app"
	"github.com/chela-ai/chela/internal/chelatest"
	"github.com/chela-ai/chela/wire"
)

// TestPort talks to the whole application over a real port of this machine.
func TestPort(t *testing.T) {
	g := chelatest.Start(t, chelatest.Options{
		Listen: &app.Listen{Port: -1},
		Config: chelatest.Config{"gateway": json.RawMessage(`{"auth": {"token": "a-token"}}`)},
	})
	if g.NewToken() != "" {
		t.Error("a token was made though there is one")
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
			Auth: &wire.Auth{Token: token},
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
	var w wire.Waited
	if err := c.Call(t.Context(), wire.MethodAgentWait, wire.AgentWait{RunID: run, TimeoutMs: 20_000}, &w); err != nil || w.Status != wire.StatusOK {
		t.Fatalf("the run ended with %q, %v", w.Status, err)
	}
	t.Run("ME-01 one turn adds one to the runs", func(t *testing.T) {
		for _, want := range []string{"chela_runs_total{outcome=\"ok\"} 1\n", "chela_auth_failures_total 1\n", "chela_sessions 1\n"} {
			if got := get("/metrics"); !strings.Contains(got, want) {
				t.Errorf("no %q in\n%s", want, got)
			}
		}
	})
	t.Run("GW-06 clients are told before it stops", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := g.Close(ctx); err != nil {
			t.Errorf("Close: %v", err)
		}
		g.Engine = nil
		last := ""
		for e := range c.Events() {
			last = e.Name
		}
		if ce, ok := errors.AsType[*client.CloseError](c.Err()); last != wire.EventShutdown || !ok || ce.Code != wire.CloseRestart {
			t.Errorf("the last event is %s and the connection ended with %v, want shutdown and 1012", last, c.Err())
		}
	})
}
