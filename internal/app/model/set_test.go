package model

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/app/standard"
	"github.com/chela-ai/chela/internal/core/chela"
)

const listed = `{"object":"list","data":[{"id":"first:7b"},{"id":"second"}]}`

// conf is a configuration by sections.
type conf map[string]string

// answers is an HTTP transport with responses by URL; other requests fail.
type answers map[string]string

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	body, ok := a[r.URL.String()]
	if !ok {
		return nil, io.ErrUnexpectedEOF
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)),
		Request: r}, nil
}

// on returns options with the environment and the network of a machine.
func on(t *testing.T, env map[string]string, net answers) Options {
	t.Helper()
	return Options{Env: func(name string) string { return env[name] },
		HTTP: &http.Client{Transport: net}, Keys: t.TempDir()}
}

// openWith opens the models with the standard dialects.
func openWith(t *testing.T, o Options) (*Set, error) {
	t.Helper()
	o.NewProvider = standard.New().NewProvider
	return Open(t.Context(), o)
}

// begin opens the models of a configuration.
func begin(t *testing.T, c conf, o Options) (*Set, error) {
	t.Helper()
	var defaults Defaults
	for section, into := range map[string]any{"agents.defaults": &defaults, "models": &o.Config} {
		if text, ok := c[section]; ok {
			if err := json.Unmarshal([]byte(text), into); err != nil {
				t.Fatal(err)
			}
		}
	}
	o.Model, o.Models, o.ImageModel = defaults.Model, defaults.Models, defaults.ImageModel
	return openWith(t, o)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestChoice(t *testing.T) {
	keys := map[string]string{"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k"}
	ollama := answers{"http://127.0.0.1:11434/v1/models": listed}
	tests := []struct {
		name string
		conf conf
		env  map[string]string
		net  answers
		want string
		why  string
	}{
		{"the configured model before keys and servers", conf{"agents.defaults": `{"model": "openai/gpt-5-mini"}`}, keys,
			ollama, "openai/gpt-5-mini", "configured"},
		{"with fallbacks", conf{"agents.defaults": `{"model": {"primary": "mine/m", "fallbacks": ["a/b"]}}`}, keys, nil,
			"mine/m", "configured"},
		{"by its alias", conf{"agents.defaults": `{"model": "quick", "models": {"mine/small": {"alias": "quick"}}}`}, nil,
			nil, "mine/small", "configured"},
		{"a configured provider before keys",
			conf{"models": `{"providers": {"zeta": {"models": [{"id": "z"}]}, "beta": {"models": [{"id": "b"}, {"id": "c"}]}, "alpha": {}}}`}, keys, ollama, "beta/b", "provider beta"},
		{"keys in the order of the services", nil, keys, ollama, "anthropic/claude-sonnet-4-5", "ANTHROPIC_API_KEY"},
		{"a server on this machine", nil, nil, ollama, "ollama/first:7b", "on this machine"},
		{"the first of two servers", nil, nil, answers{"http://127.0.0.1:8080/v1/models": listed,
			"http://127.0.0.1:1234/v1/models": listed}, "lmstudio/first:7b", "on this machine"},
		{"a server without models is ignored", nil, nil, answers{"http://127.0.0.1:11434/v1/models": `{"data":[]}`,
			"http://127.0.0.1:8080/v1/models": listed}, "llamacpp/first:7b", "on this machine"},
		{"another server is ignored", nil, nil, answers{"http://127.0.0.1:8080/v1/models": `<html>`},
			"offline/assistant", "no key"},
		{"nothing", nil, nil, nil, "offline/assistant", "no key"},
	}
	for _, s := range services {
		for _, name := range s.env {
			tests = append(tests, struct {
				name string
				conf conf
				env  map[string]string
				net  answers
				want string
				why  string
			}{"a key in " + name, nil, map[string]string{name: "k"}, ollama, s.id + "/" + s.model, name})
		}
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m, err := begin(t, tt.conf, on(t, tt.env, tt.net))
			if err != nil {
				t.Fatal(err)
			}
			if got := m.choice.String(); got != tt.want {
				t.Errorf("chose %s (%s), want %s", got, m.why, tt.want)
			}
			if !strings.Contains(m.why, tt.why) {
				t.Errorf("reason %q, want %q", m.why, tt.why)
			}
			info, p, err := m.Resolve("")
			if (err != nil) != strings.HasPrefix(tt.want, "mine/") && !strings.HasPrefix(tt.want, "beta/") {
				t.Errorf("its provider: %v", err)
			}
			if err == nil && (p == nil || info.Ref() != tt.want) {
				t.Errorf("resolved to %s, %v", info.Ref(), p)
			}
		})
	}
	t.Run("an invalid model name is an error with a hint", func(t *testing.T) {
		_, err := begin(t, conf{"agents.defaults": `{"model": "nonsense"}`}, on(t, nil, nil))
		if err == nil || !strings.Contains(err.Error(), `agents.defaults.model: model "nonsense"`) ||
			!strings.HasPrefix(chela.HintOf(err), "chela config set agents.defaults.model") {
			t.Errorf("%v (%s)", err, chela.HintOf(err))
		}
	})
	t.Run("with mode replace only the configured models are listed", func(t *testing.T) {
		m, err := begin(t,
			conf{"models": `{"mode": "replace", "providers": {"p": {"models": [{"id": "m", "reasoning": true, "input": ["text", "image"]}]}}}`}, on(t, nil, nil))
		if err != nil {
			t.Fatal(err)
		}
		if n := len(m.Catalog().Models); n != 2 || !m.Catalog().Models[0].Images || len(m.Catalog().Models[0].Levels) == 0 {
			t.Errorf("%d models: %+v", n, m.Catalog().Models)
		}
	})
}

func TestKeys(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "key.txt")
	write(t, file, "from-file\n")
	provider := func(ref string) conf {
		return conf{"models": `{"providers": {"openai": {"apiKey": ` + ref + `}}}`}
	}
	env := map[string]string{"OPENAI_API_KEY": "from-env", "OTHER": "from-other", "GOOGLE_API_KEY": "second"}
	tests := []struct {
		name string
		id   string
		conf conf
		want string
		from string
	}{
		{"in the configuration", "openai", provider(`"plain-text"`), "plain-text", "the configuration"},
		{"a reference to a variable", "openai", provider(`"env:OTHER"`), "from-other", "the configuration"},
		{"a reference as an object", "openai", provider(`{"source": "env", "id": "OTHER"}`),
			"from-other", "the configuration"},
		{"a reference to a file", "openai", provider(`"file:` + file + `"`), "from-file", "the configuration"},
		{"in the environment", "openai", nil, "from-env", "OPENAI_API_KEY"},
		{"in the second of two variables", "google", nil, "second", "GOOGLE_API_KEY"},
		{"saved", "anthropic", nil, "from-saved", "the saved keys"},
		{"nowhere", "groq", nil, "", ""},
	}
	o := on(t, env, nil)
	write(t, filepath.Join(o.Keys, "anthropic.key"), " from-saved \n")
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := begin(t, tt.conf, o)
			if err != nil {
				t.Fatal(err)
			}
			if k := m.first(tt.id); k.value.Reveal() != tt.want || k.from != tt.from {
				t.Errorf("%q from %q, want %q from %q", k.value.Reveal(), k.from, tt.want, tt.from)
			}
		})
	}
}

func TestLocal(t *testing.T) {
	for base, want := range map[string]bool{
		"http://127.0.0.1:11434/v1":     true,
		"http://localhost:1234":         true,
		"http://[::1]:80":               true,
		"http://0.0.0.0:8080":           true,
		"http://box.local/v1":           true,
		"https://api.acme.example/v1":   false,
		"http://192.168.1.5:11434":      false,
		"http://localhost.acme.example": false,
	} {
		m, err := begin(t, conf{"models": `{"providers": {"acme": {"baseUrl": "` + base + `", "apiKey": "k"}}}`},
			on(t, nil, nil))
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Provider("acme").Local; got == nil || *got != want {
			t.Errorf("%s: local %v, want %v", base, got, want)
		}
		if got := m.Provider(Offline.Provider).Local; got == nil || !*got {
			t.Errorf("the built-in assistant: local %v", got)
		}
	}
}

func TestProviderErrors(t *testing.T) {
	tests := []struct {
		name string
		conf conf
		id   string
		want string
		hint string
	}{
		{"no key", nil, "openai", "there is no key for openai", "chela models auth openai"},
		{"not known", nil, "acme", `unknown provider "acme"`, "chela config set models.providers.acme.baseUrl URL"},
		{"a key that is missing", conf{"models": `{"providers": {"acme": {"baseUrl": "http://h", "apiKey": "env:GONE"}}}`},
			"acme", "the key of acme: secret env:GONE: the variable is not set",
			"chela config set models.providers.acme.apiKey KEY"},
		{"an unknown api", conf{"models": `{"providers": {"acme": {"baseUrl": "http://h", "api": "telepathy"}}}`}, "acme",
			`provider acme: api "telepathy" is not supported yet; use one of ` + standard.Anthropic + ", " + standard.OpenAI +
				", " + standard.Responses + ", " + standard.Gemini + ", " + standard.Ollama + ", " + standard.Offline,
			"chela config set models.providers.acme.api " + standard.OpenAI},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := begin(t, tt.conf, on(t, nil, nil))
			if err != nil {
				t.Fatal(err)
			}
			_, _, err = m.Resolve(tt.id + "/m")
			if err == nil || err.Error() != tt.want || chela.HintOf(err) != tt.hint {
				t.Errorf("%v (%s), want %s (%s)", err, chela.HintOf(err), tt.want, tt.hint)
			}
		})
	}
	t.Run("a local server needs no key", func(t *testing.T) {
		m, err := begin(t, conf{"models": `{"providers": {"openai": {"baseUrl": "http://h/v1"}, "acme": {"baseUrl": "http://h/v1", "headers": {"X-Team": "a"}}}}`}, on(t, nil, nil))
		if err != nil {
			t.Fatal(err)
		}
		for _, ref := range []string{"openai/m", "acme/m", "ollama/m", "offline/assistant"} {
			if _, _, err := m.Resolve(ref); err != nil {
				t.Errorf("%s: %v", ref, err)
			}
		}
		api, c, err := m.config("acme", key{})
		if err != nil || api != standard.OpenAI || c.BaseURL != "http://h/v1" || c.Header.Get("X-Team") != "a" {
			t.Errorf("%+v %v", c, err)
		}
		m, err = begin(t, conf{"models": `{"providers": {"deepseek": {"baseUrl": "http://h", "api": "anthropic-messages"}}}`},
			on(t, nil, nil))
		if err != nil {
			t.Fatal(err)
		}
		if api, c, err := m.config("deepseek", key{}); err != nil || api != standard.Anthropic || c.BaseURL != "http://h" {
			t.Errorf("a known service with other settings: %s %+v %v", api, c, err)
		}
		_, a, _ := m.Resolve("acme/m")
		if _, b, _ := m.Resolve("acme/m"); a != b {
			t.Error("a provider was made twice")
		}
	})
}

func TestWith(t *testing.T) {
	t.Parallel()
	base := open(t, Options{
		Defaults: Defaults{Model: Choice{Primary: "a/one", Fallbacks: []string{"a/two"}}},
		Config: Config{Providers: map[string]Provider{
			"a": {BaseURL: "http://127.0.0.1:1", Models: []Entry{{ID: "one"}, {ID: "two"}}},
			"b": {BaseURL: "http://127.0.0.1:1", Models: []Entry{{ID: "three"}}},
		}},
	})
	same, err := base.With(Choice{}, nil, "agents.list[0]", "")
	if err != nil || same != base {
		t.Errorf("an agent without configuration: %v", err)
	}
	own, err := base.With(Choice{Primary: "b/three", Fallbacks: []string{"a/one"}}, nil, "agents.list[0]", "")
	if err != nil {
		t.Fatal(err)
	}
	ref, _ := own.Default()
	old, _ := base.Default()
	if ref.String() != "b/three" || old.String() != "a/one" || len(own.Fallbacks()) != 1 ||
		own.Fallbacks()[0].String() != "a/one" || own.health != base.health {
		t.Errorf("%s with %v beside %s", ref, own.Fallbacks(), old)
	}
	if info, _, err := own.Resolve(""); err != nil || info.ID != "three" {
		t.Errorf("%+v, %v", info, err)
	}
	if _, err := base.With(Choice{Primary: "b/three", Fallbacks: []string{"/"}}, nil, "agents.list[0]", ""); err == nil ||
		!strings.Contains(err.Error(), "agents.list[0].model.fallbacks[0]") {
		t.Errorf("an unknown fallback: %v", err)
	}
	next := open(t, Options{Defaults: Defaults{Model: Choice{Primary: "offline/assistant"}}, Before: base})
	if next.health != base.health || next.o.Before != nil {
		t.Error("cooldowns are lost when the configuration changes")
	}
}

func open(t *testing.T, o Options) *Set {
	t.Helper()
	o.NoProbe = true
	if o.Env == nil {
		o.Env = func(string) string { return "" }
	}
	m, err := openWith(t, o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestVision chooses the model that describes pictures for a model that takes none.
func TestVision(t *testing.T) {
	t.Parallel()
	with := func(images string) *Set {
		m, err := begin(t, conf{
			"models": `{"mode": "replace", "providers": {"p": {"baseUrl": "http://h/v1", "models": [
				{"id": "blind"}, {"id": "one", "input": ["text", "image"]}, {"id": "two"}]}}}`,
			"agents.defaults": `{"model": "p/blind"` + images + `}`,
		}, on(t, nil, nil))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	for _, tt := range []struct{ images, session, want, err string }{
		{``, "", "", "p/blind takes no pictures, and no image model is configured"},
		{``, "p/one", "p/one", ""},
		{`, "imageModel": "p/two"`, "", "p/two", ""},
		{`, "imageModel": "p/two"`, "p/one", "p/one", ""},
		{`, "imageModel": {"fallbacks": ["p/two"]}`, "", "p/two", ""},
		{`, "imageModel": "nonsense"`, "", "", "nonsense"},
		{`, "imageModel": "openai/gpt-5"`, "", "", "no key for openai"},
	} {
		info, p, err := with(tt.images).Vision(tt.session)
		if (err == nil) != (p != nil) || err == nil && (tt.err != "" || info.Ref() != tt.want) ||
			err != nil && (tt.err == "" || !strings.Contains(err.Error(), tt.err)) {
			t.Errorf("%s in a session with %q: %s, %v; want %q, %q", tt.images, tt.session, info.Ref(), err, tt.want, tt.err)
		}
	}
}
