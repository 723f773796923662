package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/chela"
)

const drafted = `{
  // where
  gateway: { port: 1, auth: { token: "hunter2" } },
  models: { providers: {
    a: { baseUrl: "http://u:pw@h/v1", apiKey: "${KEY}", headers: { "X-Key": "sk-1" } }, // mine
    c: { baseUrl: "http://$${HOST}/v1?key=1" },
  } },
  agents: { list: [
    { id: "x", name: "X", params: { token: "t-x" } },
    { id: "y", name: "Y", params: { token: "t-y" } }, // second
  ] },
  tools: { $include: "tools.json" },
}
`

// drafts loads a configuration of two files.
func drafts(t *testing.T) (tr *Tree, file func() string, more func() string) {
	t.Helper()
	dir := write(t, map[string]string{"chela.json": drafted, "tools.json": "{deny: ['exec'] /* no */}"})
	tr, err := Options{Env: env("KEY", "sk-secret", "HOST", "h")}.Load(filepath.Join(dir, "chela.json"))
	if err != nil {
		t.Fatal(err)
	}
	return tr, func() string { return read(t, filepath.Join(dir, "chela.json")) },
		func() string { return read(t, filepath.Join(dir, "tools.json")) }
}

func TestRewrite(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, old, new string // in what is shown
		from, to       string // in the file
	}{
		{"unchanged", "", "", "", ""},
		{"one value", `"port":1`, `"port":2`, "port: 1", "port: 2"},
		{"a name next to a secret", `"name":"Y"`, `"name":"Z"`, `name: "Y"`, `name: "Z"`},
		{"an element is removed, and the others keep their secrets", `{"id":"x","name":"X","params":{"token":"[redacted]"}},`,
			"", "    { id: \"x\", name: \"X\", params: { token: \"t-x\" } },\n", ""},
		{"a new secret", `"token":"[redacted]"},"port"`, `"token":"new"},"port"`, `"hunter2"`, `"new"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tr, file, more := drafts(t)
			shown := string(tr.Written())
			if strings.Contains(shown, "hunter2") || strings.Contains(shown, "pw@") || !strings.Contains(shown, tt.old) {
				t.Fatalf("shown: %s", shown)
			}
			d, err := tr.Rewrite([]byte(strings.Replace(shown, tt.old, tt.new, 1)))
			if err != nil {
				t.Fatal(err)
			}
			if empty := len(d.changed) == 0; empty != (tt.from == tt.to) {
				t.Errorf("empty: %v", empty)
			}
			if _, err := d.Write(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.Replace(drafted, tt.from, tt.to, 1), file()); diff != "" {
				t.Error(diff)
			}
			if more() != "{deny: ['exec'] /* no */}" {
				t.Errorf("the other file: %s", more())
			}
		})
	}
	t.Run("the effective values are accepted, too", func(t *testing.T) {
		tr, file, _ := drafts(t)
		d, err := tr.Rewrite(tr.InForce())
		if err != nil || len(d.changed) > 0 {
			t.Fatalf("%v, %s", err, file())
		}
		shown := string(tr.InForce())
		if strings.Contains(shown, "sk-secret") || !strings.Contains(shown, `"http://${HOST}/v1?key=[redacted]"`) {
			t.Fatalf("shown: %s", shown)
		}
		d, err = tr.Rewrite([]byte(strings.Replace(shown, `"port":1`, `"port":2`, 1)))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Write(); err != nil || file() != strings.Replace(drafted, "port: 1", "port: 2", 1) {
			t.Errorf("%v, %s", err, file())
		}
	})
	t.Run("a value of an included file is changed there", func(t *testing.T) {
		tr, file, more := drafts(t)
		d, err := tr.Rewrite([]byte(strings.Replace(string(tr.Written()), `["exec"]`, `["exec","write"]`, 1)))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Write(); err != nil || file() != drafted || more() != "{deny: ['exec', 'write'] /* no */}" {
			t.Errorf("%v, %s", err, more())
		}
	})
	t.Run("a redacted value of another path is refused", func(t *testing.T) {
		tr, file, _ := drafts(t)
		for _, text := range []string{`{"hooks":{"token":"[redacted]"}}`,
			`{"agents":{"list":[{"id":"z","params":{"token":"[redacted]"}}]}}`,
			`{"models":{"providers":{"b":{"baseUrl":"http://[redacted]@h"}}}}`} {
			if _, err := tr.Rewrite([]byte(text)); chela.CodeOf(err) != chela.CodeInvalid ||
				!strings.Contains(err.Error(), "[redacted] is not a value") {
				t.Errorf("%s: %v", text, err)
			}
		}
		if file() != drafted {
			t.Error("it was written")
		}
	})
	t.Run("a concurrent edit is not overwritten", func(t *testing.T) {
		tr, file, _ := drafts(t)
		d, err := tr.Draft(Edit{"gateway.port", []byte("3")})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(tr.Path(), []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Write(); chela.CodeOf(err) != chela.CodeConflict || file() != "{}" {
			t.Errorf("%v, %s", err, file())
		}
	})
	t.Run("a missing file gets the text unchanged", func(t *testing.T) {
		tr, err := Options{Env: env()}.Load(filepath.Join(t.TempDir(), "chela.json"))
		if err != nil {
			t.Fatal(err)
		}
		const text = "{ gateway: { port: 4 } } // mine\n"
		d, err := tr.Rewrite([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if next, err := d.Write(); err != nil || read(t, tr.Path()) != text || string(next.Section("gateway.port")) != "4" {
			t.Errorf("%v", err)
		}
	})
}

func TestMerge(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		patch    string
		replace  []string
		from, to string // in the file
		err      string
	}{
		{patch: `{}`},
		{patch: `{gateway: {port: 1}}`},
		{patch: `{gateway: {auth: null}}`, from: `, auth: { token: "hunter2" }`},
		{patch: `{agents: {list: [{id: "y", name: "Z"}]}}`, from: `name: "Y"`, to: `name: "Z"`},
		{patch: `{agents: {list: [{id: "x", params: {token: "[redacted]", top_p: 1}}]}}`, from: `token: "t-x" }`,
			to: `token: "t-x", top_p: 1 }`},
		{patch: `{agents: {list: [{id: "y", name: "Z"}]}}`, replace: []string{"agents.list"}, err: "agents.list"},
		{patch: `{agents: {list: null}}`, err: "array path(s): agents.list"},
		{patch: `{agents: null}`, err: "array path(s): agents.list"},
		{patch: `{agents: {list: [{id: "n"}, {id: "n"}]}}`, err: "the id n occurs twice"},
		{patch: `{tools: {deny: ["write"]}}`, err: "array path(s): tools.deny"},
		{patch: `{bogus: 1}`, err: "bogus"},
		{patch: `7`, err: "want an object"},
	} {
		t.Run(tt.patch, func(t *testing.T) {
			tr, file, _ := drafts(t)
			d, err := tr.Merge([]byte(tt.patch), tt.replace)
			if tt.err == "agents.list" { // what the person says is meant
				if err != nil {
					t.Fatal(err)
				}
				next, err := d.Write()
				if err != nil || string(next.Section("agents.list")) != `[{"id":"y","name":"Z"}]` {
					t.Errorf("%v, %s", err, file())
				}
				return
			}
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) || file() != drafted {
					t.Errorf("%v, want %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := d.Write(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.Replace(drafted, tt.from, tt.to, 1), file()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCold(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{
		"gateway.port":            true,
		"gateway":                 true,
		"gateway.tools.deny":      false,
		"gateway.reload.mode":     false,
		"gatewayed":               false,
		"logging.level":           true,
		"agents.defaults.model":   false,
		"agents.list":             false,
		"tools.exec.notifyOnExit": true,
		"tools.exec.mode":         false,
	} {
		if got := Cold(path); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}

// FuzzRewrite checks that a rewrite results in the configuration of the new text,
// whatever the old one was.
func FuzzRewrite(f *testing.F) {
	for _, s := range []string{`{}`, `{agents: {list: [1, {id: "x"}, null]}}`, `{env: {A: "b", B: null}}`,
		`{session: {a: [[], {}]}}`, `{agents: {list: [{id: "y"}, {id: "x"}]}}`} {
		f.Add(drafted, s)
		f.Add(s, drafted)
	}
	f.Fuzz(func(t *testing.T, now, want string) {
		a, err1 := decodeObject([]byte(now))
		b, err2 := decodeObject([]byte(want))
		if err1 != nil || err2 != nil || strings.Contains(now+want, includeKey) {
			return
		}
		text := []byte(now)
		tr := &Tree{known: &node{}}
		for _, e := range edits(a, b, nil) {
			var err error
			if len(e.steps) == 0 {
				return
			}
			if text, err = Edited(text, Edit{FormatPath(e.steps), e.value}); err != nil {
				t.Skip(err) // a name that no path holds, a bound of the reader
			}
		}
		got, err := decodeObject(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if diff := cmp.Diff(string(encode(b)), string(encode(got))); diff != "" {
			t.Errorf("%s (known: %v)", diff, tr.known == nil)
		}
	})
}
