package status_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/core/tool/tooltest"
	"github.com/chela-ai/chela/internal/kit/needtest"
	"github.com/chela-ai/chela/internal/plugin/tool/status"
)

func full(context.Context, chela.SessionKey) (status.Status, error) {
	return status.Status{
		Model: "anthropic/claude", Context: 50_000, Window: 200_000, Input: 1234, Output: 567, Cost: 0.0123,
		Session: "agent:main:main", SessionID: "s1", Queue: "steer", Uptime: 90*time.Second + 5, Version: "1.0",
	}, nil
}

func TestConformance(t *testing.T) {
	for name, o := range map[string]status.Options{"with a state": {Status: full}, "without": {}} {
		t.Run(name, func(t *testing.T) {
			tooltest.Run(t, status.New(o), tooltest.Options{Args: []string{`{}`, `{"sessionKey":"agent:main:main"}`}})
		})
	}
}

func TestText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the time is 2000-01-01 00:00 UTC
		zone, err := time.LoadLocation("Asia/Shanghai")
		if err != nil {
			needtest.Missing(t, "time zones")
		}
		tl := status.New(status.Options{Status: full, Location: zone})
		time.Sleep(6 * time.Hour) // until the afternoon there
		r, err := tl.Run(t.Context(), tool.Call{Args: json.RawMessage(`{}`), Session: "agent:main:main", Dir: "/ws",
			Update: func(string) {}})
		if err != nil {
			t.Fatal(err)
		}
		want := strings.Join([]string{
			"Time: Saturday, 1 January 2000, 14:00:00 +08:00 (Asia/Shanghai)", "Model: anthropic/claude",
			"Context: 50000 of 200000 tokens (25%)",
			"Tokens: 1234 in, 567 out", "Cost: 0.0123 USD", "Session: agent:main:main", "Session id: s1", "Workspace: /ws",
			"Queue: steer", "Up: 1m30s", "Version: 1.0",
		}, "\n")
		if got := r.Content[0].Text; got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	})
}

// Unknown fields are omitted, and the session of the call is the default.
func TestPartial(t *testing.T) {
	for _, tt := range []struct {
		state status.Status
		want  string
	}{
		{status.Status{}, "Session: agent:main:main\nWorkspace: /ws"},
		{status.Status{Context: 500}, "Context: 500 tokens\nSession: agent:main:main\nWorkspace: /ws"},
		{status.Status{Window: 1000, Output: 1, Cost: 2, Currency: "EUR", Session: "agent:main:other"},
			"Context: 0 of 1000 tokens (0%)\nTokens: 0 in, 1 out\nCost: 2.0000 EUR\nSession: agent:main:other\nWorkspace: /ws"},
	} {
		var asked chela.SessionKey
		tl := status.New(status.Options{Status: func(ctx context.Context, key chela.SessionKey) (status.Status, error) {
			asked = key
			return tt.state, ctx.Err()
		}})
		r, err := tl.Run(t.Context(),
			tool.Call{Args: json.RawMessage(`{"sessionKey":"current"}`), Session: "agent:main:main", Dir: "/ws"})
		if err != nil || asked != "agent:main:main" {
			t.Fatalf("asked about %q, %v", asked, err)
		}
		if _, got, _ := strings.Cut(r.Content[0].Text, "\n"); got != tt.want {
			t.Errorf("got\n%s\nwant\n%s", got, tt.want)
		}
		var details struct{ Session, Model, Time string }
		if err := json.Unmarshal(r.Details, &details); err != nil || details.Session == "" || details.Time == "" {
			t.Errorf("details %s, %v", r.Details, err)
		}
	}
	r, err := status.New(status.Options{}).Run(t.Context(),
		tool.Call{Args: json.RawMessage(`{}`), Session: "agent:main:main", Dir: "/ws"})
	if err != nil || !strings.HasSuffix(r.Content[0].Text, "\nSession: agent:main:main\nWorkspace: /ws") {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	broken := status.New(status.Options{Status: func(context.Context, chela.SessionKey) (status.Status, error) {
		return status.Status{}, errors.New("the store is closed")
	}})
	for _, tt := range []struct {
		tool tool.Tool
		args string
		want string
	}{
		{broken, `{}`, "the store is closed"},
		{status.New(status.Options{}), `{"sessionKey":"agent:other:main"}`, "its own session only"},
	} {
		_, err := tt.tool.Run(t.Context(),
			tool.Call{Args: json.RawMessage(tt.args), Session: "agent:main:main", Update: func(string) {}})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", tt.args, err, tt.want)
		}
	}
}

// TestLocal checks that the machine's time zone is shown by a meaningful
// name.
func TestLocal(t *testing.T) {
	t.Parallel()
	r, err := status.New(status.Options{}).Run(t.Context(),
		tool.Call{Args: json.RawMessage(`{}`), Session: "agent:main:main", Update: func(string) {}})
	if err != nil {
		t.Fatal(err)
	}
	zone, _ := time.Now().Zone()
	if line, _, _ := strings.Cut(r.Content[0].Text, "\n"); !strings.HasSuffix(line, " ("+zone+")") {
		t.Errorf("got %q, want the zone %s", line, zone)
	}
}
