package chelatest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/estimate"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/core/window"
)

func TestContext(t *testing.T) {
	t.Parallel()
	conf := Config{
		"models": json.RawMessage(
			`{"providers": {"mock": {"models": [{"id": "m", "contextWindow": 200000, "input": ["text", "image"],
			"cost": {"input": 3, "output": 15, "cacheRead": 0.3}}]}}}`),
		"agents.defaults": json.RawMessage(`{"bootstrapMaxChars": 2000, "skipBootstrap": true}`),
	}
	model := llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
		if last := r.Messages[len(r.Messages)-1]; last.Role == llm.RoleUser && last.PlainText() == "spew" {
			return llmtest.Call(fmt.Sprint("c", n), "spew", `{}`)
		}
		return llmtest.Say("ok")
	})
	g := Start(t, Options{Model: model, Config: conf, Tools: []tool.Tool{spewing(30_000)}})
	workspace := filepath.Join(g.Dir, "workspace")
	for name, text := range map[string]string{
		"AGENTS.md": "Be brief.\n" + strings.Repeat("long ", 1000),
		"SOUL.md":   "Dry.",
	} {
		if err := os.WriteFile(filepath.Join(workspace, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := g.Client()
	if got := c.Ask("main", "/context").Text; !strings.Contains(got, "[") || !strings.Contains(got, "System prompt") ||
		!strings.Contains(got, "of 200k tokens") || !strings.Contains(got, "modelsConfig") {
		t.Errorf("before the first message: %s", got)
	}
	for range 3 {
		c.Ask("main", "spew")
	}
	t.Run("CTX-05 /context list shows raw and injected sizes and truncation", func(t *testing.T) {
		got := c.Ask("main", "/context list").Text
		for _, want := range []string{"AGENTS.md: raw 5009 characters, injected 2000", "truncated",
			"SOUL.md: raw 4 characters, injected 4", "USER.md: missing", "spew", "read"} {
			if !strings.Contains(got, want) {
				t.Errorf("%q is not in\n%s", want, got)
			}
		}
	})
	t.Run("CTX-09 the parts add up to the size of the request", func(t *testing.T) {
		var r window.Report
		if err := json.Unmarshal([]byte(c.Ask("main", "/context json").Text), &r); err != nil {
			t.Fatal(err)
		}
		sum := 0
		for _, p := range r.Parts {
			sum += p.Tokens
		}
		if sum != r.Total {
			t.Errorf("the parts have %d tokens, all together %d", sum, r.Total)
		}
		before := len(model.Requests())
		c.Ask("main", "and now")
		req := model.Requests()[before]
		n := estimate.Blocks(req.System) + estimate.Tools(req.Tools) +
			estimate.Messages(req.Messages[:len(req.Messages)-1]...)
		if want := window.Calibrated(n, r.Ratio); r.Ratio == 0 || r.Total < want*98/100 || r.Total > want*102/100 {
			t.Errorf("reported %d tokens, the request has %d; ratio %v", r.Total, want, r.Ratio)
		}
		if len(r.Tools) != len(req.Tools) {
			t.Errorf("%d tools, the request has %d", len(r.Tools), len(req.Tools))
		}
		var system string
		for _, b := range req.System {
			system += b.Text
		}
		if n := len([]rune(system)); r.System.Chars != n {
			t.Errorf("system prompt %d characters, the request has %d", r.System.Chars, n)
		}
		if r.NanoUSD == nil || *r.NanoUSD != int64(r.Total)*3000 || *r.Cached != int64(r.Total)*300 {
			t.Errorf("price %v, %v for %d tokens", r.NanoUSD, r.Cached, r.Total)
		}
	})
	t.Run("CTX-09 /context detail has each file, tool and kind of message", func(t *testing.T) {
		got := c.Ask("main", "/context detail").Text
		for _, want := range []string{"AGENTS.md: raw", "SOUL.md: raw", "tool results: 3, 90000 characters", "tool calls: 3",
			"0 results trimmed", "never"} {
			if !strings.Contains(got, want) {
				t.Errorf("%q is not in\n%s", want, got)
			}
		}
		for _, s := range model.Requests()[0].Tools {
			if !strings.Contains(got, "\n"+s.Name+" ") {
				t.Errorf("the tool %s is not in\n%s", s.Name, got)
			}
		}
	})
	if got := c.Ask("main", "/context map").Text; !strings.HasPrefix(got, "Usage:") {
		t.Errorf("an unknown form: %q", got)
	}
}

func TestWindowSources(t *testing.T) {
	t.Parallel()
	status := func(t *testing.T, models, defaults string) string {
		t.Helper()
		o := Options{Config: Config{"models": json.RawMessage(models), "agents.defaults": json.RawMessage(defaults)}}
		return Start(t, o).Client().Ask("main", "/status").Text
	}
	for _, tt := range []struct{ name, models, defaults, want string }{
		{"CTX-07 a configured window over the catalog",
			`{"providers": {"anthropic": {"apiKey": "k", "models": [{"id": "claude-opus-4-5", "contextWindow": 100000}]}}}`,
			`{"model": "anthropic/claude-opus-4-5"}`, "of 100k (0%) · window: modelsConfig"},
		{"a configured model without a window has that of the catalog",
			`{"providers": {"anthropic": {"apiKey": "k", "models": [{"id": "claude-opus-4-5"}]}}}`,
			`{"model": "anthropic/claude-opus-4-5"}`, "of 200k (0%) · window: model"},
		{"CTX-04 context1m", `{"providers": {"anthropic": {"apiKey": "k"}}}`,
			`{"model": "anthropic/claude-opus-4-5", "models": {"anthropic/claude-opus-4-5": {"params": {"context1m": true}}}}`,
			"of 1M (0%) · window: context1m"},
		{"CTX-06 an override", `{"providers": {"anthropic": {"apiKey": "k"}}}`,
			`{"model": "anthropic/claude-opus-4-5", "contextTokens": 50000, "params": {"contextTokensOverride": 300000}}`,
			"of 300k (0%) · window: override"},
		{"CTX-03 the cap", `{"providers": {"anthropic": {"apiKey": "k"}}}`,
			`{"model": "anthropic/claude-opus-4-5", "contextTokens": 100000}`, "of 100k (0%) · window: agentContextTokens"},
		{"an unknown model", `{"providers": {"x": {"baseUrl": "http://127.0.0.1:9/v1", "apiKey": "k"}}}`, `{"model": "x/y"}`,
			"of 200k (0%) · window: assumed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := status(t, tt.models, tt.defaults); !strings.Contains(got, tt.want) {
				t.Errorf("%q is not in\n%s", tt.want, got)
			}
		})
	}
}
