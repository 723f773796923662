package plugindir

import (
	"os"
	"path/filepath"
	"testing"
)

// TestReadHash checks that the hash is that of the manifest that was read, when a
// program replaces files at the same time.
func TestReadHash(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(dir string) error
	}{
		{"another manifest", func(dir string) error {
			return os.WriteFile(filepath.Join(dir, ".claude-plugin", "plugin.json"), []byte(`{"name": "y"}`), 0o600)
		}},
		{"no manifest", func(dir string) error { return os.Remove(filepath.Join(dir, ".claude-plugin", "plugin.json")) }},
		{"other servers", func(dir string) error {
			return os.WriteFile(filepath.Join(dir, ".mcp.json"), []byte(`{}`), 0o600)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, ".claude-plugin", "plugin.json"), `{"name": "x"}`)
			write(t, filepath.Join(dir, ".mcp.json"), `{"a": {"command": "a"}}`)
			p, err := Read(dir)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.sum(); err != nil {
				t.Fatal(err)
			}
			if err := tt.change(dir); err != nil {
				t.Fatal(err)
			}
			if err := p.sum(); err == nil {
				t.Error("the hash is that of other files")
			}
		})
	}
}
