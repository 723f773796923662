package app

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/core/config"
	"github.com/chela-ai/chela/wire"
)

const canary = "canary-8c1e77"

// TestConfigGet checks that clients see no secret of the configuration, the providers
// and the models, whether the file is valid, broken or edited.
func TestConfigGet(t *testing.T) {
	t.Parallel()
	o := on(t, nil, nil)
	o.ConfigPath = filepath.Join(o.State, "chela.json")
	o.NoProbe, o.NoSocket = true, true
	good := `{
		// the key is ` + canary + `
		gateway: {port: 19000, auth: {token: "` + canary + `-token", mode: "token"}},
		models: {providers: {mock: {baseUrl: "http://u:` + canary + `@127.0.0.1:1/v1", apiKey: "` + canary +
		`", headers: {"X-Key": "` + canary + `"}, models: [{id: "m1"}]}}},
		agents: {defaults: {model: "mock/m1", params: {authorization: "` + canary + `"}}},
		env: {vars: {PLAIN: "` + canary + `"}},
		channels: {telegram: {botToken: "` + canary + `"}},
		hooks: {token: "` + canary + `"},
	}`
	write(t, o.ConfigPath, good)
	tree, err := config.Options{}.Load(o.ConfigPath)
	if err != nil {
		t.Fatal(err)
	}
	o.Config = tree
	e, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close(t.Context()) })
	c, err := client.Dial(t.Context(), client.Options{Dial: e.Dial})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	get := func() wire.ConfigSnapshot {
		t.Helper()
		for _, method := range []string{wire.MethodConfigGet, wire.MethodConfigSchema, wire.MethodModelsAuthStatus,
			wire.MethodModelsList, wire.MethodHealth, wire.MethodStatus, wire.MethodChannelsStatus} {
			var raw json.RawMessage
			if err := c.Call(t.Context(), method, nil, &raw); err != nil {
				t.Errorf("%s: %v", method, err)
			}
			if strings.Contains(string(raw), canary) {
				t.Errorf("%s shows a secret: %s", method, raw)
			}
		}
		var s wire.ConfigSnapshot
		if err := c.Call(t.Context(), wire.MethodConfigGet, nil, &s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := get()
	if !s.Valid || !s.Exists || s.Path != o.ConfigPath || s.Hash == "" || s.Hash != s.Applied || s.Hash == tree.Hash() ||
		!strings.Contains(s.Raw, "19000") {
		t.Errorf("after the start: %+v", s)
	}

	write(t, o.ConfigPath, strings.Replace(good, "19000", "19001", 1))
	if s := get(); s.Hash == s.Applied || !strings.Contains(string(s.Parsed), "19001") ||
		!strings.Contains(string(s.Runtime), "19000") {
		t.Errorf("after an edit: %s, in use %s", s.Parsed, s.Runtime)
	}
	write(t, o.ConfigPath, `{gateway: {port: "sk-`+canary+`", auth: {token: ["`+canary+`"]}}}`)
	if s := get(); s.Valid || len(s.Issues) == 0 || s.Issues[0].Path == "" || string(s.Parsed) != "{}" {
		t.Errorf("with values of other types: %+v", s)
	}
	write(t, o.ConfigPath, `{gateway: {auth: {token: "`+canary+`" "`+canary+`"}}`)
	if s := get(); s.Valid || len(s.Issues) != 1 {
		t.Errorf("broken: %+v", s)
	}
	if err := os.Remove(o.ConfigPath); err != nil {
		t.Fatal(err)
	}
	if s := get(); !s.Valid || s.Exists || s.Raw != "{}\n" {
		t.Errorf("removed: %+v", s)
	}
}
