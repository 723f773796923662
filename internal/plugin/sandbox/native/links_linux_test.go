package native_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/chela-ai/chela/internal/plugin/sandbox/native"
)

// TestLinks keeps files outside of the workspace that have a name in it.
func TestLinks(t *testing.T) {
	for _, c := range []struct{ name, make, script string }{
		{"a file", "ln ../store/0 a", "echo x >> a"},
		{"a file that is renamed", "mkdir d; ln ../store/0 d/a", "mv d e; echo x > e/a"},
		{"a mode", "ln ../store/0 a", "chmod 777 a"},
		{"removed", "ln ../store/0 a", "rm a"},
		{"a package of pnpm",
			"mkdir -p node_modules/.pnpm/x/node_modules/x; ln ../store/0 node_modules/.pnpm/x/node_modules/x/index.js",
			"echo x > node_modules/.pnpm/x/node_modules/x/index.js"},
		{"a package of bun", "mkdir -p node_modules/x; ln ../store/0 node_modules/x/index.js",
			"echo x > node_modules/x/index.js"},
		{"many files", "mkdir -p .venv/lib; i=0; while [ $i -lt 600 ]; do ln ../store/$i .venv/lib/$i; i=$((i+1)); done",
			"echo x > .venv/lib/0"},
	} {
		t.Run("B1 "+c.name, func(t *testing.T) {
			w := newWork(t, native.Options{})
			dir := w.rights.Workspace
			w.rights.Workspace = filepath.Join(dir, "ws")
			outside(t, dir,
				"mkdir ws store; i=0; while [ $i -lt 600 ]; do echo kept > store/$i; i=$((i+1)); done; chmod 666 store/*")
			outside(t, w.rights.Workspace, c.make)
			w.fails(c.script)
			outside(t, dir, `[ "$(cat store/0)" = kept ] && [ "$(stat -c %a store/0)" = 666 ]`)
			w.expect("echo x > other; cat other", "x\n")
		})
	}
	t.Run("B2 names in the workspace only", func(t *testing.T) {
		w := newWork(t, native.Options{})
		outside(t, w.rights.Workspace, "mkdir d; echo a > a; ln a d/b")
		w.expect("echo x > a; cat d/b; ln a c; rm d/b", "x\n")
	})
	t.Run("B2 what a package manager caches", func(t *testing.T) {
		w := newWork(t, native.Options{})
		outside(t, w.rights.Workspace,
			"mkdir ../store1 -p; echo x > ../store1/a; mkdir -p node_modules/.pnpm/x; ln ../store1/a node_modules/.pnpm/x/a")
		t.Cleanup(func() { _ = exec.Command("rm", "-rf", filepath.Join(filepath.Dir(w.rights.Workspace), "store1")).Run() })
		w.expect("mkdir node_modules/.cache; echo x > node_modules/.cache/x; cat node_modules/.pnpm/x/a", "x\n")
	})
	t.Run("B1 as nobody", func(t *testing.T) { asNobody(t, "^TestLinks$/^B1_([^a]|a_)") })
}
