//go:build unix

package fs_test

import (
	"os"
	"path/filepath"
	"testing"
)

// TestRuns keeps the tools from writing unasked what other programs run.
func TestRuns(t *testing.T) {
	names := []string{".vscode/tasks.json", "packages/a/.VSCODE/tasks.json", ".github/workflows/ci.yml",
		".husky/pre-commit", ".mcp.json", "sub/.claude/settings.json", ".gitmodules"}
	t.Run("E4 nobody can be asked", func(t *testing.T) {
		b := newFixture(t)
		for _, name := range names {
			b.fails("write", m{"path": name, "content": "x"}, "other programs run")
			b.fails("apply_patch", m{"input": "*** Begin Patch\n*** Add File: " + name + "\n+x\n*** End Patch"},
				"other programs run")
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
	t.Run("E4 a repository made file by file", func(t *testing.T) {
		b := newFixture(t)
		b.text("write", m{"path": "b/objects/k", "content": "x"})
		b.text("write", m{"path": "b/refs/k", "content": "x"})
		b.text("write", m{"path": "b/config", "content": "[core]\n\tfsmonitor = ./run\n"})
		b.fails("write", m{"path": "b/HEAD", "content": "ref: refs/heads/main\n"}, "use git")
		b.fails("write", m{"path": "b/head", "content": "ref: refs/heads/main\n"}, "use git")
		b.fails("apply_patch", m{"input": "*** Begin Patch\n*** Add File: b/HEAD\n+x\n*** End Patch"}, "use git")
		b.fails("apply_patch", m{"input": "*** Begin Patch\n*** Add File: p/objects/k\n+x\n*** Add File: p/refs/k\n+x\n*** Add File: p/HEAD\n+x\n*** End Patch"}, "use git")
		b.write("c/HEAD", "ref: refs/heads/main\n")
		b.fails("write", m{"path": "c/commondir", "content": "../b"}, "use git")
		b.write("c/refs/k", "x")
		b.fails("write", m{"path": "c/objects/k", "content": "x"}, "use git")
		b.text("write", m{"path": "HEAD", "content": "ref: refs/heads/main\n"})
		b.text("write", m{"path": "objects/k", "content": "x"})
		b.fails("write", m{"path": "refs/k", "content": "x"}, "use git")
		for _, name := range []string{"b/HEAD", "b/head", "p/HEAD", "c/commondir", "c/objects", "refs"} {
			if _, err := os.Lstat(filepath.Join(b.dir, name)); err == nil {
				t.Errorf("%s was made", name)
			}
		}
	})
}
