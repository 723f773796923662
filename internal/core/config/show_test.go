package config_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/config"
	"github.com/chela-ai/chela/internal/kit/secret"
	"github.com/chela-ai/chela/wire"
)

const canary = "canary-51d0f3"

// shown loads a configuration and returns everything that clients see of it.
func shown(t testing.TB, text string, env map[string]string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "chela.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	tree, err := config.Options{Env: func(k string) string { return env[k] }}.Load(path)
	if err != nil {
		return secret.RedactCredentials(err.Error())
	}
	out := string(tree.Written()) + "\n" + string(tree.InForce())
	for _, p := range append(tree.Warnings(), tree.Unguarded()...) {
		out += "\n" + secret.RedactCredentials(p.String())
	}
	return out
}

// TestShownSecrets sets each key that may contain a secret: every secret key of the
// table, every key that this build does not know, and names that suggest a secret
// wherever any name is allowed.
func TestShownSecrets(t *testing.T) {
	t.Parallel()
	places := []string{
		"channels.telegram.botToken", "channels.telegram.accounts.two.token", "channels.x.webhookUrl", "hooks.token",
		"hooks.mappings[0].secret",
		"env.vars.HARMLESS", "env.PLAIN", "tools.exec.env.HARMLESS", "plugins.entries.x.config.password",
		"plugins.entries.x.config.hunter",
		"agents.defaults.params.apiKey", "agents.defaults.params.extra.auth_token",
		"agents.defaults.params.credentials.deep.er",
		"secrets.providers.vault.whatever", "models.providers.m.apiKey", "models.providers.m.headers.Authorization",
		"models.providers.m.headers.X-Odd",
		"models.providers.m.models[0].apiKey", "models.providers.m.request.headers.x", "unknown", "unknown.deep.er[2].thing",
		"gateway.controlUi.odd",
		"gateway.remote.password", "mcp.servers.s.env.TOKEN", "skills.entries.s.apiKey", "web.search.key",
		"agents.list[0].params.secretKey",
	}
	for _, k := range config.Keys() {
		if k.Kind == config.Secret || k.Doc == "" {
			places = append(places, strings.NewReplacer("*", "any", "[]", "[0]").Replace(k.Path))
		}
	}
	for _, path := range places {
		for _, v := range []string{quote(canary), quote("prefix-" + canary + "-${SUFFIX}"),
			fmt.Sprintf(`["a",{"x":%q}]`, canary), fmt.Sprintf(`{"value":%q}`, canary)} {
			if got := shown(t, nested(t, path, v), nil); strings.Contains(got, canary) {
				t.Errorf("%s = %s is shown: %s", path, v, got)
			}
		}
	}
}

func quote(s string) string { return fmt.Sprintf("%q", s) }

// nested returns an object with the value at path.
func nested(t testing.TB, path, value string) string {
	t.Helper()
	steps, err := config.ParsePath(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := len(steps) - 1; i >= 0; i-- {
		if steps[i] == "0" || steps[i] == "2" {
			value = "[" + value + "]"
			continue
		}
		value = fmt.Sprintf("{%q: %s}", steps[i], value)
	}
	return value
}

// TestShownForms checks secrets in values that are shown otherwise.
func TestShownForms(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{models:{providers:{m:{baseUrl:"https://user:` + canary + `@host/v1"}}}}`,
		`{models:{providers:{m:{baseUrl:"https://host/v1?api_key=` + canary + `&x=1"}}}}`,
		`{models:{providers:{m:{baseUrl:"sk-` + canary + `"}}}}`,
		`{models:{providers:{m:{baseUrl:"${HIDDEN}"}}}}`,
		`{agents:{defaults:{workspace:"${HIDDEN}/x"}}}`,
		`{agents:{defaults:{params:{note:"Bearer ` + canary + `"}}}}`,
		`{gateway:{auth:{token:{source:"env", id:"` + canary + `"}}}}`,
		`{gateway:{auth:{token:{source:"` + canary + `", id:"X"}}}}`,
		`{gateway:{port:"` + "sk-" + canary + `"}}`,
		`{/* token: ` + canary + ` */ gateway:{port:1}}`,
		`{gateway:{auth:{token: 12345678}}, /* ` + canary + ` */}`,
	} {
		if got := shown(t, text, map[string]string{"HIDDEN": canary}); strings.Contains(got, canary) ||
			strings.Contains(got, "12345678") {
			t.Errorf("%s is shown as %s", text, got)
		}
	}
}

// TestShown checks that values that are not secret, and references to secrets, are
// shown.
func TestShown(t *testing.T) {
	t.Parallel()
	got := shown(t, `{
		gateway: {port: 19000, bind: "lan", auth: {mode: "token", token: "${GATE}"}, tls: {keyPath: "/etc/key.pem"}},
		models: {providers: {m: {baseUrl: "http://127.0.0.1:1/v1", apiKey: "env:KEY", models: [{id: "m1", maxTokens: 77}]}}},
		agents: {defaults: {model: {primary: "m/m1"}, budget: {tokens: 5000}}},
		hooks: {token: {source: "env", id: "HOOK_TOKEN"}}, other: {token: {source: "file", id: "/etc/token"}},
	}`, nil)
	for _, want := range []string{
		`"port":19000`, `"bind":"lan"`, `"token":"${GATE}"`, `"keyPath":"/etc/key.pem"`, `"baseUrl":"http://127.0.0.1:1/v1"`,
		`{"id":"HOOK_TOKEN","source":"env"}`, `{"id":"/etc/token","source":"file"}`, `"apiKey":"env:KEY"`, `"id":"m1"`,
		`"maxTokens":77`, `"primary":"m/m1"`, `"tokens":5000`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not shown in %s", want, got)
		}
	}
}

// FuzzShown checks that a value below a name that suggests a secret is never shown.
func FuzzShown(f *testing.F) {
	for _, s := range [][2]string{{"hooks", "x"}, {"agents.defaults.params", "${X}y"}, {"channels.telegram", "a\"b"},
		{"", "http://a:b@c"}, {"gateway.auth", "env:"}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, above, value string) {
		value = "<" + canary + ">" + value // no reference
		steps, err := config.ParsePath(above)
		if err != nil || len(steps) > 8 {
			t.Skip()
		}
		b, err := json.Marshal(value)
		if err != nil {
			t.Skip()
		}
		text := `{"password":` + string(b) + `}`
		for i := len(steps) - 1; i >= 0; i-- {
			name, err := json.Marshal(steps[i])
			if err != nil || steps[i] == "$include" {
				t.Skip()
			}
			text = "{" + string(name) + ":" + text + "}"
		}
		if got := shown(t, text, nil); strings.Contains(got, canary) {
			t.Errorf("%s is shown as %s", text, got)
		}
	})
}

func TestChildren(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		path string
		ok   bool
		kids string // the first ones
	}{
		{"", true, "$schema accessGroups"},
		{"gateway.auth", true, "allowTailscale mode"},
		{"gateway/auth/token", true, ""},
		{"models.providers.openai", true, "api apiKey"},
		{"agents.list[0]", true, "agentDir agentId"},
		{"agents.list.*.model", true, "fallbacks primary"},
		{"gateway.bogus.x", false, ""},
		{"gateway..x", false, ""},
		{"[", false, ""},
	} {
		p, ok := config.Lookup(tc.path)
		var kids []string
		for _, k := range p.Children[:min(len(p.Children), 2)] {
			kids = append(kids, k.Key)
		}
		if ok != tc.ok || strings.Join(kids, " ") != tc.kids {
			t.Errorf("Lookup(%q) = %v, %v; want %v, %s", tc.path, kids, ok, tc.ok, tc.kids)
		}
	}
}

// TestSchema checks that the schema has every key of the table.
func TestSchema(t *testing.T) {
	t.Parallel()
	type node struct {
		Type                 any
		Properties           map[string]*node
		AdditionalProperties *node
		Items                *node
		Enum                 []string
	}
	var root node
	if err := json.Unmarshal(config.Schema(), &root); err != nil {
		t.Fatal(err)
	}
	for _, k := range config.Keys() {
		at := &root
		for step := range strings.SplitSeq(k.Path, ".") {
			name, elem := strings.CutSuffix(step, "[]")
			next := at.Properties[name]
			if name == "*" {
				next = at.AdditionalProperties
			}
			if at = next; at == nil {
				break
			}
			if elem {
				at = at.Items
			}
		}
		if at == nil || len(at.Enum) != len(k.Values) {
			t.Errorf("the schema has no %s, or other values: %+v", k.Path, at)
		}
	}
}

func TestLookup(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		path, reload, child string
		sensitive           bool
	}{
		{"gateway", wire.ReloadRestart, "auth", false},
		{"gateway.auth.token", wire.ReloadRestart, "", true},
		{"tools.swarm", wire.ReloadNone, "", false},
		{"gateway.tools.deny", wire.ReloadHot, "", false},
		{"tools.exec", wire.ReloadRestart, "notifyOnExit", false},
		{"models.providers.mine", wire.ReloadHot, "apiKey", false},
		{"models.providers.*.apiKey", wire.ReloadHot, "", true},
	} {
		p, ok := config.Lookup(tt.path)
		has := tt.child == ""
		for _, c := range p.Children {
			has = has || c.Key == tt.child && c.Path == tt.path+"."+tt.child
		}
		if !ok || p.Reload != tt.reload || !has || p.Hint != nil && p.Hint.Sensitive != tt.sensitive {
			t.Errorf("%s: %+v, %v", tt.path, p, ok)
		}
	}
	types := map[string]any{}
	p, _ := config.Lookup("gateway")
	for _, c := range p.Children {
		types[c.Key] = c.Type
	}
	for name, want := range map[string]string{"port": "[integer]", "bind": "[string]", "auth": "[object]"} {
		if got := fmt.Sprint(types[name]); got != want {
			t.Errorf("gateway.%s is shown as %s, want %s", name, got, want)
		}
	}
	if _, ok := config.Lookup("gateway.bogus"); ok {
		t.Error("an unknown key is described")
	}
}

func TestShownArguments(t *testing.T) {
	t.Parallel()
	got := shown(t, `{
		mcp: {servers: {s: {command: "srv", args: ["--verbose", "--api-key=`+canary+`", "--token", "`+canary+
		`", "--port", "80", "--secret", "--dir", "/data"]}}},
		hooks: {points: [{point: "before_tool_call", command: "curl -H 'Authorization: Bearer `+canary+
		`' http://127.0.0.1/"}]},
	}`, nil)
	if strings.Contains(got, canary) {
		t.Errorf("a secret is shown: %s", got)
	}
	for _, want := range []string{"--verbose", "--token", `"80"`, "--dir", "/data"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not shown: %s", want, got)
		}
	}
}
