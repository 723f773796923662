package chatconfig_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/app/chatconfig"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/config"
)

const text = `{
  // mine
  agents: { defaults: { model: "one/m" }, list: [{ id: "ops" }] },
  models: { providers: { one: { apiKey: "sk-canary" } } },
}
`

func TestConfig(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "chela.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	tree, err := config.Options{Env: func(string) string { return "" }}.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	c := chatconfig.Config{Tree: func() *config.Tree { return tree },
		Change: func(_ context.Context, draft func(*config.Tree) (*config.Draft, error)) (bool, error) {
			d, err := draft(tree)
			if err == nil {
				tree, err = d.Write()
			}
			return err == nil, err
		}}
	for path, want := range map[string]string{
		"agents.defaults.model":       `"one/m"`,
		"agents.list[0].id":           `"ops"`,
		"models.providers.one.apiKey": `"[redacted]"`,
		"agents.list":                 "[\n  {\n    \"id\": \"ops\"\n  }\n]",
		"commands.config":             "false",
	} {
		if got, err := c.Get(path); got != want || err != nil {
			t.Errorf("%s: %s, %v; want %s", path, got, err, want)
		}
	}
	if all, err := c.Get(""); err != nil || strings.Contains(all, "canary") || !strings.Contains(all, `"one/m"`) {
		t.Errorf("all: %s, %v", all, err)
	}
	if got, err := c.Get("agents.list[7].id"); err == nil {
		t.Errorf("an unknown agent: %s", got)
	}
	for _, tt := range []struct{ path, value string }{
		{"models.providers.one.apiKey", "sk-other"}, {"models.providers.one.apiKey", "[redacted]"},
		{"agents.list[0].name", "[redacted]"},
		{"models.providers", "{two: {apiKey: 'sk-other', baseUrl: 'http://127.0.0.1:1'}}"}, {"env.vars.A", "b"}, {"a[", "x"},
		{"agents.defaults.model", "{a"},
	} {
		if ok, err := c.Set(t.Context(), tt.path, tt.value); ok || err == nil {
			t.Errorf("%s = %s: %v, %v", tt.path, tt.value, ok, err)
		} else if strings.Contains(err.Error(), "sk-other") {
			t.Errorf("the secret is in the error: %v", err)
		}
	}
	if b, _ := os.ReadFile(path); string(b) != text {
		t.Errorf("a refused value is in the file:\n%s", b)
	}
	for _, tt := range []struct{ path, value string }{
		{"models.providers.one.apiKey", "${ONE_KEY}"}, {"session.reset", "{mode: 'daily', atHour: 4}"},
		{"agents.list[0].name", "Ops <1>"},
	} {
		if ok, err := c.Set(t.Context(), tt.path, tt.value); !ok || err != nil {
			t.Errorf("%s = %s: %v, %v", tt.path, tt.value, ok, err)
		}
	}
	if ok, err := c.Unset(t.Context(), "session.reset"); !ok || err != nil {
		t.Errorf("unset: %v, %v", ok, err)
	}
	if _, err := c.Unset(t.Context(), "session.reset"); err == nil || chela.CodeOf(err) == "" {
		t.Errorf("unset of a missing value: %v", err)
	}
	b, _ := os.ReadFile(path)
	if s := string(b); !strings.Contains(s, "// mine") || !strings.Contains(s, "${ONE_KEY}") ||
		!strings.Contains(s, "Ops <1>") || strings.Contains(s, "daily") {
		t.Errorf("the file is\n%s", s)
	}
}
