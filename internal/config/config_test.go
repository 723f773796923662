package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// write puts files into a new directory and returns it.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// env returns an environment of the pairs.
func env(pairs ...string) func(string) string {
	m := map[string]string{}
	for i := 0; i+1 < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return func(k string) string { return m[k] }
}

// load loads one file's text.
func load(t *testing.T, text string, pairs ...string) (*Tree, error) {
	t.Helper()
	dir := write(t, map[string]string{"chela.json": text})
	return Options{Env: env(pairs...)}.Load(filepath.Join(dir, "chela.json"))
}

func mustLoad(t *testing.T, text string, pairs ...string) *Tree {
	t.Helper()
	tr, err := load(t, text, pairs...)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func TestLoad(t *testing.T) {
	t.Parallel()
	t.Run("CF-01 no file is an empty configuration", func(t *testing.T) {
		tr, err := Options{Env: env()}.Load(filepath.Join(t.TempDir(), "chela.json"))
		if err != nil {
			t.Fatal(err)
		}
		if got := tr.Section("gateway"); got != nil {
			t.Errorf("Section(gateway) = %s, want nothing", got)
		}
		if v, err := tr.Get("gateway.port"); err != nil || string(v.JSON) != "18789" || v.Source != Default {
			t.Errorf("Get(gateway.port) = %+v, %v; want the default", v, err)
		}
	})
	t.Run("CF-02 comments and trailing commas", func(t *testing.T) {
		tr := mustLoad(t, "// mine\n{\n  gateway: { port: 0x10, /* why */ },\n}\n")
		if got := string(tr.Section("gateway.port")); got != "16" {
			t.Errorf("gateway.port = %s, want 16", got)
		}
	})
	t.Run("an empty file is an empty configuration", func(t *testing.T) {
		mustLoad(t, " \n")
	})
}

func TestTypes(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ in, want string }{
		{"{gateway: {port: 'x y'}}", `gateway.port: want a whole number, not "x y"`},
		{"{gateway: 7}", "gateway: want an object, not 7"},
		{"{gateway: {bind: 'lann'}}", `gateway.bind: want one of loopback, lan, tailnet, auto, custom, not "lann"`},
		{"{agents: {defaults: {timeoutSeconds: 'soon'}}}", "agents.defaults.timeoutSeconds: want a number of seconds"},
		{"{agents: {list: {}}}", "agents.list: want an array, not an object"},
		{"{agents: {list: [{id: 1}]}}", "agents.list[0].id: want a string, not 1"},
		{"{gateway: {auth: {token: 4711}}}", "gateway.auth.token: want a string or {source, id}, not 4711"},
		{"[]", "want an object, not an array"},
		{"{\n  a: 1\n  b: 2\n}", "line 3, column 3"},
	} {
		_, err := load(t, tc.in)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want %q", tc.in, err, tc.want)
		}
	}
}
