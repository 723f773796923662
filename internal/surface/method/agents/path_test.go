package agents

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/prompt"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/wire"
)

// FuzzWorkspacePath checks that no path leads to a file outside of the
// workspace.
func FuzzWorkspacePath(f *testing.F) {
	dir := f.TempDir()
	inside := filepath.Join(dir, "inside")
	if err := os.Mkdir(inside, 0o700); err != nil {
		f.Fatal(err)
	}
	for name, text := range map[string]string{"secret": "hidden", "inside/a": "open"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			f.Fatal(err)
		}
	}
	if err := os.Symlink("..", filepath.Join(inside, "up")); err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{"a", "../secret", "up/secret", "./up/../secret", "/a", "//..//secret", "a/../up/secret",
		"..", "\x00", "up/inside/a", dir + "/secret"} {
		f.Add(s)
	}
	m := methods{Options{Default: chela.DefaultAgent, Agents: func() []Agent {
		return []Agent{{ID: chela.DefaultAgent, Files: prompt.Open(inside, nil)}}
	}}}
	f.Fuzz(func(t *testing.T, p string) {
		var peer rpc.Peer
		got, err := m.content(t.Context(), peer, wire.WorkspaceGet{AgentID: "main", Path: p})
		if err == nil && got.File.Content != "open" {
			t.Errorf("%q is %q", p, got.File.Content)
		}
		list, err := m.entries(t.Context(), peer, wire.WorkspaceList{AgentID: "main", Path: p})
		for _, e := range list.Entries {
			if err == nil && strings.Contains(e.Name, "secret") {
				t.Errorf("%q lists %q", p, e.Path)
			}
		}
	})
}
