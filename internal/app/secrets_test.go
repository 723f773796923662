package app

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/app/endpoint"
	"github.com/chela-ai/chela/internal/core/config"
	"github.com/chela-ai/chela/internal/surface/cli"
	"github.com/chela-ai/chela/wire"
)

// TestKnownSecrets writes secrets wherever a person can keep them, before and after
// the start, and then names a session after each.
func TestKnownSecrets(t *testing.T) {
	t.Parallel()
	o := on(t, map[string]string{
		"GROQ_API_KEY": "canary-1-variable", "OPENAI_API_KEYS": "canary-2-first,canary-2-second",
		"DEEPSEEK_API_KEY_3": "canary-3-numbered",
	}, nil)
	save := func(provider, name, key string) {
		t.Helper()
		if err := saveKey(cli.Start{State: o.State}, provider, name, key); err != nil {
			t.Fatal(err)
		}
	}
	save("mistral", "", "canary-5-saved")
	save("mistral", "work", "canary-6-named")
	path := filepath.Join(o.State, "chela.json")
	write(t, path, `{
  models: { providers: { one: { baseUrl: "http://127.0.0.1:1/v1", apiKey: "canary-7-key", headers: { "X-Api-Key": "canary-8-header" }, models: [{ id: "m" }] } } },
  env: { vars: { HIDDEN_KEY: "canary-9-variable" } },
}`)
	tree, err := config.Options{Env: o.Env}.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	o.Config, o.ConfigPath, o.NoProbe, o.NoSocket, o.Listen = tree, path, true, true, &endpoint.Listen{Port: -1}
	e, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close(context.Background()) })
	c, err := client.Dial(t.Context(), client.Options{Dial: e.Dial})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	w := &tuned{Engine: e, t: t, c: c}
	hidden := func(keys ...string) {
		t.Helper()
		for _, k := range keys {
			if got := w.command("main", "/name "+k); strings.Contains(got, k) || !strings.Contains(got, "Named [redacted].") {
				t.Errorf("%s: %s", k, got)
			}
		}
	}
	hidden("canary-1-variable", "canary-2-first", "canary-2-second", "canary-3-numbered",
		"canary-5-saved", "canary-6-named",
		"canary-7-key", "canary-8-header", "canary-9-variable")
	token, err := os.ReadFile(filepath.Join(o.State, "credentials", "gateway.token"))
	if err != nil {
		t.Fatal(err)
	}
	hidden(strings.TrimSpace(string(token)))
	if got := w.command("main", "/name canary-0-unknown"); !strings.Contains(got, "Named canary-0-unknown.") {
		t.Errorf("%s", got)
	}

	// After the start.
	save("groq", "", "canary-a-saved")
	configuration{e}.KeysChanged(t.Context())
	hidden("canary-a-saved")
	var now wire.ConfigSnapshot
	w.must(wire.MethodConfigGet, nil, &now)
	w.must(wire.MethodConfigPatch, wire.ConfigPatch{Raw: `{models: {providers: {two: {baseUrl: "http://127.0.0.1:1/v1", apiKey: "canary-b-key", headers: {"X-Api-Key": "canary-c-header"}, models: [{id: "m"}]}}}}`, BaseHash: now.Hash}, nil)
	hidden("canary-a-saved", "canary-b-key", "canary-c-header", "canary-1-variable")
}
