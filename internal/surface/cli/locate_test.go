package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/surface/tui/ansi"
	"github.com/chela-ai/chela/wire"
)

// TestLocate checks what the first lines say about where the assistant works.
func TestLocate(t *testing.T) {
	home := t.TempDir()
	for _, d := range []string{"shop", "work/sub", "ops"} {
		if err := os.MkdirAll(filepath.Join(home, filepath.FromSlash(d)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	c := &commands{console: console{getenv: func(name string) string { return map[string]string{"HOME": home}[name] }}}
	agents := []wire.AgentInfo{{ID: "main", Workspace: filepath.Join(home, "work")},
		{ID: "ops", Workspace: filepath.Join(home, "ops")}}
	for dir, want := range map[string]string{
		"shop": "chela agents add shop --workspace .", "ops": "chela chat --agent ops", "work": "", "work/sub": "", "": "",
	} {
		got := c.locate(agents, "main", filepath.Join(home, filepath.FromSlash(dir)))
		if got.here != want || got.workspace != "~/work" {
			t.Errorf("in %q: %+v, want %q", dir, got, want)
		}
	}
	agents = append(agents, wire.AgentInfo{ID: "shop", Workspace: filepath.Join(home, "elsewhere")})
	if got := c.locate(agents, "main", filepath.Join(home, "shop")); got.here != "chela agents add shop-2 --workspace ." {
		t.Errorf("the name is taken: %+v", got)
	}
	lines := c.banner(wire.StatusDefaults{Provider: "offline"}, location{workspace: "~/work", here: "chela x"}, true)
	if !strings.Contains(lines[0], "works in ~/work") || !strings.Contains(lines[1], "to work in this folder: chela x") {
		t.Errorf("the first lines are %q", lines)
	}
}

// TestIsText checks what is taken as a message instead of an API key.
func TestIsText(t *testing.T) {
	for s, want := range map[string]bool{
		"list the files here":              true,
		"hello":                            true,
		"列出文件":                             true,
		"/help":                            true,
		"0123456789abcdef0123456789abcdef": false,
		"key-0123456789abcdefghij":         false,
	} {
		if got := isText(s); got != want {
			t.Errorf("%q: %v", s, got)
		}
	}
}

// TestHelpWidth checks that no line of a help text is wider than a terminal.
func TestHelpWidth(t *testing.T) {
	c := &commands{}
	var walk func(all []*cobra.Command)
	walk = func(all []*cobra.Command) {
		for _, cmd := range all {
			for line := range strings.Lines(help(cmd)) {
				if n := ansi.Width(strings.TrimRight(line, "\n")); n > 100 {
					t.Errorf("%s: %d columns: %s", cmd.CommandPath(), n, line)
				}
			}
			walk(cmd.Commands())
		}
	}
	walk([]*cobra.Command{c.root()})
}
