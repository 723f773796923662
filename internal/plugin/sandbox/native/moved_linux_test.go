package native_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/chela-ai/chela/internal/plugin/sandbox/native"
)

// TestPrivateLater hides private files that come or move while a cage is ready.
func TestPrivateLater(t *testing.T) {
	for _, c := range []struct{ name, first, then, read string }{
		{"E1 created", "true", "echo canary > .env", "cat .env"},
		{"E1 replaced", "true", "echo canary > new && mv new sub/.env", "cat sub/.env"},
		{"E1 in a new folder", "true", "mkdir -p a/b && echo canary > a/b/.env", "cat a/b/.env"},
		{"E1 with another name", "true", "ln sub/.env plain", "cat plain"},
		{"E1 with another name among the dependencies", "true", "mkdir -p node_modules/a && ln sub/.env node_modules/a/b",
			"cat node_modules/a/b"},
		{"E1 created with another name", "true", "echo canary > plain && ln plain .env", "cat plain"},
		{"E1 moved to dependencies", "mv sub node_modules", "", "cat node_modules/.env"},
		{"E1 moved to objects of Git", "mkdir -p .git/objects; mv sub .git/objects/sub", "", "cat .git/objects/sub/.env"},
		{"E1 in a closed folder", "chmod 0 sub", "", "chmod 700 sub; cat sub/.env"},
		{"E1 in another workspace", "true", "echo canary > notes && mv ../ws ../old && mkdir ../ws", "cat notes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWork(t, native.Options{})
			w.rights.Workspace = filepath.Join(w.rights.Workspace, "ws")
			w.write(w.rights.Workspace, "sub/.env", "canary")
			t.Cleanup(func() { _ = os.Chmod(filepath.Join(w.rights.Workspace, "sub"), 0o700) }) // it may have moved
			w.run(c.first)
			w.broker.Settle()
			if c.then == "" {
				w.broker.Forget() // the next command waits for its cage
			}
			outside(t, w.rights.Workspace, c.then)
			if out, _ := w.run(c.read); strings.Contains(out, "canary") {
				t.Errorf("%s printed %q", c.read, out)
			}
		})
	}
	t.Run("E1 as nobody", func(t *testing.T) { asNobody(t, "^TestPrivateLater$/^E1_[^a]") })
}

// TestFrozenLater protects the configuration of a repository that came or was
// replaced while a cage is ready.
func TestFrozenLater(t *testing.T) {
	for name, then := range map[string]string{
		"E1 replaced": "echo '[core]' > .git/c && mv .git/c .git/config",
		"E1 created":  "mkdir -p lib/.git/hooks && echo '[core]' > lib/.git/config",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWork(t, native.Options{})
			w.write(w.rights.Workspace, ".git/config", "[core]\n")
			w.run("true")
			w.broker.Settle()
			outside(t, w.rights.Workspace, then)
			w.run("for f in .git/config lib/.git/config; do echo evil >> $f; done; echo evil > lib/.git/hooks/pre-commit")
			for _, f := range []string{".git/config", "lib/.git/config", "lib/.git/hooks/pre-commit"} {
				if b, _ := os.ReadFile(filepath.Join(w.rights.Workspace, f)); strings.Contains(string(b), "evil") {
					t.Errorf("%s was changed", f)
				}
			}
		})
	}
}

// TestGroups takes the groups of root from a cage, which would be able to read
// the files of root's group.
func TestGroups(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("not run: only root can drop its groups")
	}
	if groups, _ := os.Getgroups(); len(groups) == 0 {
		cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestGroups$")
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Groups: []uint32{0, 4}}}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	w := newWork(t, native.Options{})
	if out, _ := w.run("grep ^Groups: /proc/self/status"); strings.TrimSpace(strings.TrimPrefix(out, "Groups:")) != "" {
		t.Errorf("the cage has the groups %q", out)
	}
}

// outside runs a shell script on the host.
func outside(t *testing.T, dir, script string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", script)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", script, err, out)
	}
}
