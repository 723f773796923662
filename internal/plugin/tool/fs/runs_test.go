//go:build unix

package fs_test

import (
	"os"
	"path/filepath"
	"testing"
)

// TestRuns keeps the tools from writing unasked what other programs run.
func TestRuns(t *testing.T) {
	names := []string{".vscode/tasks.json", "packages/a/.VSCODE/tasks.json", ".github/workflows/ci.yml", ".husky/pre-commit", ".mcp.json", "sub/.claude/settings.json", ".gitmodules"}
	t.Run("E4 nobody can be asked", func(t *testing.T) {
		b := newFixture(t)
		for _, name := range names {
			b.fails("write", m{"path": name, "content": "x"}, "other programs run")
			b.fails("apply_patch", m{"input": "*** Begin Patch\n*** Add File: " + name + "\n+x\n*** End Patch"}, "other programs run")
		}
		b.text("write", m{"path": ".github/README.md", "content": "x"})
		b.text("write", m{"path": "docs/vscode.json", "content": "x"})
	})
	t.Run("E4 a person is asked", func(t *testing.T) {
		h := newHomeFixture(t)
		for _, name := range names {
			if _, err := h.allowed("write", m{"path": name, "content": "x"}, "other programs run"); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if p, err := h.plan("write", m{"path": "a.txt", "content": "x"}); err != nil || p.Ask {
			t.Errorf("%+v, %v", p, err)
		}
		if p, err := h.plan("read", m{"path": ".mcp.json"}); err != nil || p.Ask {
			t.Errorf("%+v, %v", p, err)
		}
	})
	t.Run("E4 a repository without a working tree", func(t *testing.T) {
		b := newFixture(t)
		for _, name := range []string{"b/objects/x", "b/refs/x", "b/HEAD"} {
			b.write(name, "x")
		}
		b.fails("write", m{"path": "b/hooks/pre-commit", "content": "x"}, "use git")
		b.fails("write", m{"path": "b/config", "content": "x"}, "use git")
		if _, err := os.Lstat(filepath.Join(b.dir, "b/hooks")); err == nil {
			t.Error("a folder of hooks was made")
		}
		b.text("write", m{"path": "c/config", "content": "x"})
	})
}
