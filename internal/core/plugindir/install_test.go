package plugindir

import (
	"archive/zip"
	"errors"
	"github.com/chela-ai/chela/internal/core/installdir"
	"github.com/chela-ai/chela/internal/kit/needtest"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chela-ai/chela/internal/core/chela"
)

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// source makes the folder of a plug-in with a version.
func source(t testing.TB, version string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "chela.plugin.json"), `{"id": "x", "version": "`+version+`", "configSchema": {}}`)
	write(t, filepath.Join(dir, "lib", "a.txt"), version)
	return dir
}

// contents returns the names in a folder, without the lock.
func contents(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		if e.Name() != installdir.LockName {
			out = append(out, e.Name())
		}
	}
	return out
}

func TestInstall(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "plugins")
	one, two := source(t, "1"), source(t, "2")
	p, err := Install(one, dir, false)
	if err != nil || p.ID != "x" || p.Source != Installed || p.Dir != filepath.Join(dir, "x") ||
		p.File != filepath.Join(dir, "x", "chela.plugin.json") || len(p.Hash) != 64 || p.Changed() {
		t.Fatalf("%+v, %v", p, err)
	}
	var c *chela.Error
	if _, err := Install(two, dir, false); !errors.As(err, &c) || c.Code != chela.CodeConflict {
		t.Error(err)
	}
	again, err := Install(two, dir, true)
	if err != nil || again.Version != "2" || again.Hash == p.Hash {
		t.Errorf("%+v, %v", again, err)
	}
	zipped := filepath.Join(t.TempDir(), "x.bin")
	f, err := os.Create(zipped)
	if err != nil {
		t.Fatal(err)
	}
	w := zip.NewWriter(f)
	for name, text := range map[string]string{
		"package/chela.plugin.json": `{"id": "x", "version": "1", "configSchema": {}}`, "package/lib/a.txt": "1"} {
		e, err := w.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	if again, err := Install(zipped, dir, true); err != nil || again.Hash != p.Hash {
		t.Errorf("from an archive: %+v, %v, want the hash %s", again, err, p.Hash)
	}
	if got := contents(t, dir); !slices.Equal(got, []string{"x"}) {
		t.Errorf("left over: %q", got)
	}
	if err := Uninstall(dir, "x"); err != nil || len(contents(t, dir)) > 0 {
		t.Error(err, contents(t, dir))
	}
	if err := Uninstall(dir, "x"); !errors.As(err, &c) || c.Code != chela.CodeNotFound {
		t.Error(err)
	}
	if err := Uninstall(dir, "../x"); !errors.As(err, &c) || c.Code != chela.CodeInvalid {
		t.Error(err)
	}
}

func TestInstallRefuses(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "plugins")
	for _, tt := range []struct {
		name string
		make func(from string) error
		want string
	}{
		{"nothing", func(string) error { return nil }, "no manifest"},
		{"a manifest without configSchema", func(from string) error {
			return os.WriteFile(filepath.Join(from, "chela.plugin.json"), []byte(`{"id": "x"}`), 0o600)
		}, "configSchema is missing"},
		{"a link", func(from string) error { return os.Symlink("/etc/passwd", filepath.Join(from, "a")) },
			"not a regular file"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			from := t.TempDir()
			if tt.want != "no manifest" {
				write(t, filepath.Join(from, "chela.plugin.json"), `{"id": "x", "configSchema": {}}`)
			}
			if err := tt.make(from); err != nil {
				needtest.Missing(t, "files as the test makes them: "+err.Error())
			}
			if _, err := Install(from, dir, true); err == nil || !strings.Contains(err.Error(), tt.want) ||
				!strings.Contains(err.Error(), from) {
				t.Errorf("%v, want %q", err, tt.want)
			}
			if got := contents(t, dir); len(got) > 0 {
				t.Errorf("left over: %q", got)
			}
		})
	}
	if _, err := Install("/none", dir, true); err == nil {
		t.Error("installed from nothing")
	}
}

// TestInterrupted looks at what a kill before each step leaves.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	for _, replaces := range []bool{false, true} {
		dir := t.TempDir()
		one, two := source(t, "1"), source(t, "2")
		if replaces {
			if _, err := Install(one, dir, false); err != nil {
				t.Fatal(err)
			}
		}
		type state struct{ step, dir string }
		var states []state
		d, err := installdir.Lock(dir)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := install(d, two, replaces, func(step string) {
			left := filepath.Join(t.TempDir(), "plugins")
			if err := os.CopyFS(left, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			states = append(states, state{step, left})
		}); err != nil {
			t.Fatal(err)
		}
		d.Unlock()
		if want := map[bool]int{false: 5, true: 7}[replaces]; len(states) != want {
			t.Errorf("%d steps, want %d", len(states), want)
		}
		for _, s := range states {
			whole := func(when string) {
				for _, p := range folders(s.dir, Installed) {
					text, err := os.ReadFile(filepath.Join(p.Dir, "lib", "a.txt"))
					if err != nil || string(text) != p.Version || len(p.Reasons) > 0 {
						t.Errorf("killed before %q, %s: half a plug-in: %q, %q, %v", s.step, when, text, p.Version, err)
					}
				}
			}
			whole("then")
			if err := Recover(s.dir); err != nil {
				t.Error(err)
			}
			whole("recovered")
			got := contents(t, s.dir)
			if replaces && !slices.Equal(got, []string{"x"}) || !replaces && len(got) > 0 && !slices.Equal(got, []string{"x"}) {
				t.Errorf("killed before %q: %q", s.step, got)
			}
			if p, err := Install(two, s.dir, true); err != nil || p.Version != "2" ||
				!slices.Equal(contents(t, s.dir), []string{"x"}) {
				t.Errorf("killed before %q, installed again: %v, %q", s.step, err, contents(t, s.dir))
			}
		}
	}
}

func TestInstallAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	from := source(t, "1")
	var wg sync.WaitGroup
	var mu sync.Mutex
	installed := 0
	for range 4 {
		wg.Go(func() {
			_, err := Install(from, dir, false)
			var c *chela.Error
			switch {
			case err == nil:
				mu.Lock()
				installed++
				mu.Unlock()
			case !errors.As(err, &c) || c.Code != chela.CodeConflict:
				t.Error(err)
			}
		})
	}
	if wg.Wait(); installed != 1 {
		t.Errorf("installed %d times", installed)
	}
}

func FuzzManifest(f *testing.F) {
	for _, text := range []string{
		`{id: "x", configSchema: {type: "object", properties: {a: {type: "integer", default: 1}}}, skills: "a", hooks: ["b"], contracts: {tools: ["t"]}, toolMetadata: {t: {optional: true}}}`,
		`{"id": "x", "configSchema": {}, "process": {"command": "python3", "args": ["./a", "${PLUGIN_ROOT}"], "cwd": "b"}, "permissions": {"hosts": ["a:1"], "read": ["~/x"]}}`,
		`{"name": "A b", "mcpServers": {"a": {"command": "./x"}, "b": {"url": "https://x", "headers": {"A": "${B}"}}}, "hooks": {}, "agents": "./a"}`,
		`{"name": "x", "mcpServers": ["a.json"]}`, `[]`, `{`,
	} {
		f.Add([]byte(text), []byte(`{"a": 1}`))
	}
	f.Fuzz(func(t *testing.T, text, config []byte) {
		p := Plugin{Dir: filepath.Join(os.TempDir(), "plugindir-none", "x")}
		data := unknownData(p.Dir)
		for _, format := range []Format{OpenClaw, Agent, Claude, Codex} {
			m, err := parse(format, text)
			if m.id != "" && !validID(m.id) {
				t.Errorf("%s: id %q", format, m.id)
			}
			if err != nil {
				continue
			}
			if m.id == "" || (m.schema == nil) == (format == OpenClaw) {
				t.Errorf("%s: accepted %+v", format, m)
			}
			for _, s := range append(m.unsupported, m.warnings...) {
				if strings.ContainsAny(s, "\n\r\x1b") {
					t.Errorf("%s: %q", format, s)
				}
			}
			if m.process != nil {
				if s, err := p.resolve(*m.process, data); err == nil && s.Command != "" && !filepath.IsAbs(s.Dir) {
					t.Errorf("%s: %+v", format, s)
				}
			}
			if m.schema == nil {
				continue
			}
			if s, err := newSettings(m.schema); err == nil {
				s.complete(config, "x")
			}
		}
	})
}
