package native_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/kit/needtest"
	"github.com/chela-ai/chela/internal/plugin/sandbox/native"
)

// gitNames are the variables of who commits in a test.
const gitNames = "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b; "

// tracked makes a repository with private files that Git tracks, in which only a is changed.
const tracked = gitNames + "git init -q -b main .; mkdir -p .ssh/keys; echo canary > .env; echo canary > k.pem; chmod +x k.pem; echo canary > .ssh/config; echo canary > .ssh/keys/b; " +
	"echo one > a; touch -d '1 hour ago' .env k.pem .ssh/config .ssh/keys/b a; git add .; git commit -qm first; git branch other; echo two > a; "

// TestTracked has Git take private files that it tracks, and cannot read, for unchanged.
func TestTracked(t *testing.T) {
	needtest.Program(t, "git")
	const quiet = " 2>/dev/null"
	for _, c := range []struct{ name, before, script, want, status string }{
		{"E1 status", "", "git status --short" + quiet, " M a\n", " M a\n"},
		{"E1 diff", "", "git diff --stat | cat", " a | 2 +-\n 1 file changed, 1 insertion(+), 1 deletion(-)\n", " M a\n"},
		{"E1 diff to HEAD", "", "git diff --name-status HEAD", "M\ta\n", " M a\n"},
		{"E1 add", "", "git add -A" + quiet, "", "M  a\n"},
		{"E1 commit", "", "git commit -qam second; git show --format= --name-status", "M\ta\n", ""},
		{"E1 stash", "", "git stash -q; cat a; git stash pop -q; cat a", "one\ntwo\n", " M a\n"},
		{"E1 stash with new files", "", "echo new > n; git stash -qu" + quiet + "; ls n" + quiet + "; git stash pop -q" +
			quiet + "; cat n", "new\n", " M a\n?? n\n"},
		{"E1 reset", "", "git reset -q --hard; cat a", "one\n", ""},
		{"E1 switch", "", "git switch -q other; git branch --show-current", "other\n", " M a\n"},
		{"E1 rebase", "git commit -qam second; git switch -q other; echo b > b; git add b; git commit -qm b; ",
			"git rebase -q main; git log --format=%s", "b\nsecond\nfirst\n", ""},
		{"E1 in a folder below", "mkdir -p sub/deep; git mv -k a sub/deep/; git commit -qam moved; ",
			"cd sub/deep; echo three > a; git add -A" + quiet + "; git commit -qm third; git show --format= --name-status",
			"M\tsub/deep/a\n", ""},
		{"E1 written with the index",
			"touch .env .ssh/config; sleep 0.01; git add .; git commit -qm second; touch -r .env .git/index; echo three > a; ",
			"git commit -qam third; git show --format= --name-status", "M\ta\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWork(t, native.Options{})
			outside(t, w.rights.Workspace, tracked+c.before)
			w.expect(gitNames+c.script, c.want)
			w.checkTracked(c.status)
		})
	}
	t.Run("E1 nothing is readable", func(t *testing.T) {
		w := newWork(t, native.Options{})
		outside(t, w.rights.Workspace, tracked)
		for _, script := range []string{"cat .env", "chmod 600 .env", "echo x > .env", "touch .env", "dd if=k.pem", "./k.pem",
			"cat .ssh/config", "ls .ssh", "echo x > .ssh/new", "chmod 700 .ssh", "ls /.none.s",
			"cat /.none.s/0", "git hash-object .env", "git add --renormalize .env", "tar cf - .env | tar xOf - | grep ."} {
			w.fails(script)
		}
		if out, _ := w.run("cat .env k.pem .ssh/* .ssh/keys/*; git diff; git grep '^canary'; grep -r ^canary . --exclude-dir=.git; git archive --add-file=.env HEAD a | grep -a canary"); strings.Contains(out, "canary\n") {
			t.Errorf("%q", out)
		}
	})
	// What the person changed is not recorded, and not lost.
	for name, script := range map[string]string{
		"E1 changed, status": "! git status --short | grep 'M .env'",
		"E1 changed, diff":   "git diff",
		"E1 changed, add":    "git add -A",
		"E1 changed, commit": "git commit -qam x",
		"E1 changed, stash":  "git stash",
		"E1 changed, reset":  "git reset --hard",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWork(t, native.Options{})
			outside(t, w.rights.Workspace, tracked)
			w.run("true")
			w.broker.Settle()
			outside(t, w.rights.Workspace, "echo changed > .env")
			w.fails(gitNames + script)
			if b, err := os.ReadFile(filepath.Join(w.rights.Workspace, ".env")); err != nil || string(b) != "changed\n" {
				t.Errorf("%q, %v", b, err)
			}
			if got := w.git("diff", "--name-status", "HEAD", "--", ".env") + w.git("log", "--format=%s") +
				w.git("stash", "list"); got != "M\t.env\nfirst\n" {
				t.Errorf("%q", got)
			}
		})
	}
	t.Run("E1 one guess at what is hidden", func(t *testing.T) {
		w := newWork(t, native.Options{})
		outside(t, w.rights.Workspace,
			tracked+"git rm -rq --cached .ssh k.pem; git commit -qam second; touch -d '3 seconds ago' .env")
		guess := func(content string) bool { // that the index says that .env has
			outside(t, w.rights.Workspace, "cp -p .env .git/saved; echo "+content+
				" > .env; touch -r .git/saved .env; git add .env; cat .git/saved > .env; touch -r .git/saved .env .git/index")
			return w.settles()
		}
		if guess("wrong1") || guess("canary") {
			t.Error("a second guess was answered")
		}
		outside(t, w.rights.Workspace, "touch -d '2 seconds ago' .env")
		if !guess("canary") {
			t.Error("a file as the index says it was not recognized")
		}
	})
	t.Run("E1 a file that changed with the index", func(t *testing.T) {
		w := newWork(t, native.Options{})
		outside(t, w.rights.Workspace, tracked+"git commit -qam second; touch -d '3 seconds ago' .env a; git update-index -q --refresh; echo own > a; touch -r .env a .git/index")
		w.expect("git status --short a", " M a\n") // of the same size and time
	})
	t.Run("E1 as nobody", func(t *testing.T) { asNobody(t, "^TestTracked$/^E1_([^a]|a_)") })
}

// git runs Git outside of the sandbox.
func (w *work) git(args ...string) string {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), "git", append([]string{"-c", "safe.directory=*"}, args...)...)
	cmd.Dir = w.rights.Workspace
	cmd.Env = append(os.Environ(), "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*")
	out, err := cmd.Output()
	if err != nil {
		w.t.Fatalf("git %s: %v", args, err)
	}
	return string(out)
}

// checkTracked checks that the private files of tracked are as they were, on the disk and in
// what is committed, and the status of the others.
func (w *work) checkTracked(status string) {
	w.t.Helper()
	for _, name := range []string{".env", "k.pem", ".ssh/config", ".ssh/keys/b"} {
		if b, err := os.ReadFile(filepath.Join(w.rights.Workspace, name)); err != nil || string(b) != "canary\n" {
			w.t.Errorf("%s: %q, %v", name, b, err)
		}
		if got := w.git("show", "HEAD:"+name); got != "canary\n" {
			w.t.Errorf("%s is committed as %q", name, got)
		}
	}
	if got := w.git("status", "--short"); got != status {
		w.t.Errorf("status outside: %q, want %q", got, status)
	}
	if got := w.git("stash", "list"); got != "" {
		w.t.Errorf("stash: %q", got)
	}
}

// settles reports whether the time of the index changes before a command.
func (w *work) settles() bool {
	w.t.Helper()
	w.broker.Forget()
	index := filepath.Join(w.rights.Workspace, ".git", "index")
	before, err := os.Stat(index)
	if err != nil {
		w.t.Fatal(err)
	}
	w.run("true")
	after, err := os.Stat(index)
	if err != nil {
		w.t.Fatal(err)
	}
	return !after.ModTime().Equal(before.ModTime())
}
