package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/config"
	"github.com/chela-ai/chela/internal/kit/secret"
)

// redactor returns a redactor that knows the secrets of a configuration.
func redactor(t *testing.T, text string, env map[string]string) *secret.Redactor {
	t.Helper()
	path := filepath.Join(t.TempDir(), "chela.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	tree, err := config.Options{Env: func(k string) string { return env[k] }}.Load(path)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	r := new(secret.Redactor)
	r.Add(tree.Secrets()...)
	return r
}

// TestSecrets puts a secret at each place that may hold one, in each form.
func TestSecrets(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(canary+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	places := []string{
		"channels.telegram.botToken", "channels.telegram.accounts.two.token", "channels.x.webhookUrl",
		"channels.x.signingSecret", "hooks.token", "hooks.mappings[0].secret",
		"env.vars.HARMLESS", "env.PLAIN", "env.vars.DB_PASSWORD", "plugins.entries.x.config.password",
		"plugins.entries.brave.config.webSearch.apiKey",
		"models.providers.m.apiKey", "models.providers.m.headers.Authorization", "models.providers.m.headers.X-Odd",
		"tools.web.fetch.headers.X-Odd",
		"gateway.remote.password", "mcp.servers.s.env.TOKEN", "mcp.servers.s.env.PLAIN", "skills.entries.s.apiKey",
		"agents.list[0].params.secretKey", "memory.qdrant.api_key",
	}
	n := 0
	for _, k := range config.Keys() {
		if k.Kind == config.Secret {
			n++
			places = append(places, strings.NewReplacer("*", "any", "[]", "[0]").Replace(k.Path))
		}
	}
	if n < 8 {
		t.Errorf("the schema has %d secret keys", n)
	}
	env := map[string]string{"FROM_ENV": canary}
	for _, path := range places {
		values := []string{quote(canary), quote("${FROM_ENV}")}
		if strings.Contains(path, "oken") || strings.Contains(path, "Key") || strings.Contains(path, "assword") {
			values = append(values, quote("env:FROM_ENV"), quote("file:"+file),
				`{"source":"env","provider":"default","id":"FROM_ENV"}`, fmt.Sprintf(`{"source":"file","id":%q}`, file))
		}
		for _, v := range values {
			if path == "channels.x.webhookUrl" && v[0] == '{' || strings.HasPrefix(path, "env.") && v[0] == '{' ||
				strings.HasPrefix(path, "mcp.servers.s.env.") && v[0] == '{' {
				continue // such a value is a string
			}
			if got := redactor(t, nested(t, path, v), env).Redact("is " + canary + "."); got != "is "+secret.Redacted+"." {
				t.Errorf("%s = %s: %q", path, v, got)
			}
		}
	}
	for _, text := range []string{
		`{models:{providers:{m:{baseUrl:"https://user:` + canary + `@host/v1"}}}}`,
		`{models:{providers:{m:{baseUrl:"https://host/v1?api_key=` + canary + `&x=1"}}}}`,
		`{env:{vars:{DATABASE_URL:"postgres://me:` + canary + `@db/x"}}}`,
		`{models:{providers:{m:{headers:{Authorization:"Bearer ` + canary + `"}}}}}`,
		`{tools:{web:{fetch:{headers:{Cookie:"a=b; session=` + canary + `; c=d"}}}}}`,
		`{env:{vars:{X:"` + canary + `"}}, gateway:{auth:{token:"${X}"}}}`,
	} {
		if got := redactor(t, text, nil).Redact("is " + canary + "."); got != "is "+secret.Redacted+"." {
			t.Errorf("%s: %q", text, got)
		}
	}
}

// TestNoSecrets checks that values that are not secret do not mangle text.
func TestNoSecrets(t *testing.T) {
	t.Parallel()
	plain := []string{
		"true", "8080", "production", "/usr/local/go/bin:/opt/bin", "~/src/project", "./data", "http://127.0.0.1:11434",
		"https://api.example.com/v1", "proxy.example.com:3128", "localhost:5432",
		"en_US.UTF-8", "Europe/Berlin", "application/json", "2023-06-01", "v1.2.3", "127.0.0.1",
		"2.14.0-beta", "team_42", "2024.10.1-rc.3+build.5", "node:20-alpine", "claude-sonnet-4-5", "gpt-4o-mini", "us-east-1",
		"My Team, room 12", "k8s_prod_2024", "--max-old-space-size=4096", "München-1",
	}
	r := redactor(t, `{env:{vars:{`+vars(plain)+`}}, session:{mainKey:"main-session-1"}, hooks:{defaultSessionKey:"hook:ingress:1"}, channels:{telegram:{name:"my-name-is-1"}},
		gateway:{tls:{keyPath:"/etc/key-1.pem"}}, models:{providers:{m:{baseUrl:"http://127.0.0.1:1/v1", apiKey:"${GONE_1}", headers:{Accept:"application/json"}, models:[{id:"model-one-1", maxTokens:777777777777}]}}}}`, nil)
	for _, s := range append(plain, "main-session-1", "hook:ingress:1", "my-name-is-1", "/etc/key-1.pem",
		"http://127.0.0.1:1/v1", "${GONE_1}", "model-one-1", "777777777777") {
		if got := r.Redact("x " + s + " y"); got != "x "+s+" y" {
			t.Errorf("%q becomes %q", s, got)
		}
	}
}

// TestHiddenVariables checks that values that look like keys are secret in variables of
// any name.
func TestHiddenVariables(t *testing.T) {
	t.Parallel()
	keys := []string{
		"sk-proj-Ab3dE6gH9jK2mN5p", "ghp_16C7e42F292c6912E7710c838347Ae178B4a", "AKIAIOSFODNN7EXAMPLE",
		"550e8400-e29b-41d4-a716-446655440000", "AB12-CD34-EF56-GH78",
		"hunter2hunter2", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "xoxb-123456789012-abc",
		"correct-horse-battery-staple", "correct horse battery staple",
	}
	r := redactor(t, `{env:{vars:{`+vars(keys)+`}}}`, nil)
	for _, s := range keys {
		if got := r.Redact("x " + s + " y"); got != "x "+secret.Redacted+" y" {
			t.Errorf("%q becomes %q", s, got)
		}
	}
}

// vars returns variables with the values.
func vars(values []string) string {
	var b strings.Builder
	for i, v := range values {
		fmt.Fprintf(&b, "V%d:%q,", i, v)
	}
	return b.String()
}
