package chelatest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/kit/needtest"
	"github.com/chela-ai/chela/wire"
)

// TestEverydayInside checks what commands of a working day say and ask in the sandbox, in a
// project with private files that Git tracks, one of which the person has changed.
func TestEverydayInside(t *testing.T) {
	t.Parallel()
	needtest.Program(t, "git")
	home := t.TempDir()
	ws := filepath.Join(home, "workspace")
	setup := filepath.Join(home, "setup.sh")
	if err := os.WriteFile(setup, []byte(`set -e
cd "$1"; mkdir src; echo needle > src/x.txt; echo a > a.txt; echo SECRET=hidden-value > .env; echo hidden-value > server.pem
git init -q -b main .; git add -f .; git -c user.name=a -c user.email=a@example.com commit -qm one
echo needle >> a.txt; echo OTHER=hidden-value >> .env
`), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(ws, 0o700); err != nil {
		t.Fatal(err)
	}
	prepare(t, setup, ws, "HOME="+home)
	g := Start(t, Options{Dir: home, Model: executes(), Dial: noHosts, Environ: []string{"PATH=" + os.Getenv("PATH"),
		"GOTOOLCHAIN=local"}})
	c := g.Client()
	const as = "git -c user.name=a -c user.email=a@example.com "
	const without = " -- . ':(exclude).env' ':(exclude)*.pem' ':(exclude)*.key'"
	const gone = "are not kept"
	for _, tt := range []struct{ id, program, command, want, not string }{
		{"KEPT-01", "git", "git config --global user.name x", gone, ""},
		{"KEPT-01", "go", "go env -w GOFLAGS=-x", gone, ""},
		{"KEPT-01", "git", "touch /tmp/x", "gone with it", ""},
		{"KEPT-01", "git", "git config --global --list", "", gone},
		{"KEPT-02", "git", "git diff", without, "hidden-value"},
		{"KEPT-02", "git", "git diff" + without, "+needle", "hidden-value"},
		{"KEPT-02", "git", "echo more >> src/x.txt; " + as + "stash push" + without,
			"Saved working directory", "hidden-value"},
		{"KEPT-02", "git", "git stash pop", "Dropped", "hidden-value"},
		{"KEPT-02", "git", "git add -A" + without + " && " + as + "commit -m two", "files changed", "hidden-value"},
		{"KEPT-03", "grep", "grep -rn needle .", "left out private files", "hidden-value"},
		{"KEPT-03", "grep", "grep -rn needle . --exclude=.env --exclude=server.pem", "src/x.txt:1:needle", "exit code"},
		{"KEPT-03", "find", "find . -path ./.git -prune -o -type f -print0 | xargs -0 grep -n needle",
			"src/x.txt:1:needle", "hidden-value"},
		{"KEPT-08", "git", "git remote add origin https://git.example/r", "Chela protects .git/config: ", ""},
		{"KEPT-08", "git", "git config core.abbrev 9; true", "Chela protects .git/config: ", ""},
		{"KEPT-08", "git", "git init -q clone", "", "protects"},
		{"KEPT-08", "git", "git -C clone config core.abbrev 9; echo $?", "0", "protects"},
		{"KEPT-08", "git", "rm -r clone; echo $?", "0", "protects"},
		{"KEPT-08", "git", "git worktree add -q tree", "", "protects"},
		{"KEPT-08", "git", "git worktree remove --force tree", "Chela protects tree: ", ""}, // it has private files
		{"KEPT-04", "sh", "echo $HOME", home, ""},
		{"KEPT-04", "ssh", "ssh -V", "OpenSSH", ""},
		{"KEPT-04", "gpg", "gpg --version", "GnuPG", ""},
		{"KEPT-04", "dpkg", "dpkg -s dpkg", "Status: install ok installed", ""},
		{"KEPT-04", "dpkg", "dpkg -l dpkg", "ii  dpkg", ""},
		{"KEPT-04", "apt", "apt list --installed", "dpkg/", ""},
	} {
		t.Run(tt.id+" "+tt.command, func(t *testing.T) {
			needtest.Program(t, tt.program)
			c.t = t
			asked, answer := c.execute("main", tt.command, wire.Deny)
			if len(asked) > 0 {
				t.Errorf("it asks: %s", asked[0].Request.Reason)
			}
			if !strings.Contains(answer, tt.want) || tt.not != "" && strings.Contains(answer, tt.not) {
				t.Errorf("the answer: %s", answer)
			}
		})
	}
	for _, command := range []string{"cat .env", "echo x > ~/x", "ssh host", "gpg --export-secret-keys", "dpkg -i x.deb",
		"apt install x", "ls $HOME", "git diff --no-index .env a.txt"} {
		t.Run("KEPT-05 "+command+" still asks", func(t *testing.T) {
			c.t = t
			if asked, answer := c.execute("main", command, wire.Deny); len(asked) == 0 {
				t.Errorf("it does not ask: %s", answer)
			}
		})
	}
}

// TestEverydayTracked checks that Git works as always beside private files that it tracks, and
// that nobody has changed.
func TestEverydayTracked(t *testing.T) {
	t.Parallel()
	needtest.Program(t, "git")
	home := t.TempDir()
	ws := filepath.Join(home, "workspace")
	setup := filepath.Join(home, "setup.sh")
	if err := os.WriteFile(setup, []byte(`set -e
cd "$1"; mkdir one; cd one; echo a > a.txt; echo SECRET=hidden-value > .env; echo hidden-value > server.pem
git init -q -b main .; git add -f .; git -c user.name=a -c user.email=a@example.com commit -qm one
git branch other; echo needle >> a.txt
`), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(ws, 0o700); err != nil {
		t.Fatal(err)
	}
	prepare(t, setup, ws, "HOME="+home)
	g := Start(t, Options{Dir: home, Model: executes(), Dial: noHosts, Environ: []string{"PATH=" + os.Getenv("PATH")}})
	c := g.Client()
	const as = "git -c user.name=a -c user.email=a@example.com "
	for _, tt := range []struct{ command, want string }{
		{"git status --short", " M a.txt"},
		{"git diff --stat", "a.txt | 1 +\n 1 file changed, 1 insertion"},
		{as + "stash && git stash pop", "Dropped"},
		{"git add -A && git status --short", "M  a.txt"},
		{as + "commit -am two", "1 file changed, 1 insertion"},
		{"git checkout -q other && git status", "nothing to commit, working tree clean"},
		{"git clone -q . ../copy", "succeeded, no output"},
		{"git -C ../copy status", "nothing to commit, working tree clean"},
		{"cd ../copy && echo b > a.txt && " + as + "commit -am two", "1 file changed, 1 insertion"},
		{"cat .env", ""}, // it asks
	} {
		t.Run("KEPT-06 "+tt.command, func(t *testing.T) {
			c.t = t
			asked, answer := c.execute("main", "cd "+filepath.Join(ws, "one")+" && "+tt.command, wire.Deny)
			if len(asked) > 0 && tt.want != "" {
				t.Errorf("it asks: %s", asked[0].Request.Reason)
			}
			if !strings.Contains(answer, tt.want) || strings.Contains(answer, "hidden-value") ||
				strings.Contains(answer, "M .env") || strings.Contains(answer, "private file") {
				t.Errorf("the answer: %s", answer)
			}
		})
	}
}

// TestRepositoryOutside checks what commands say in a workspace whose repository is outside.
func TestRepositoryOutside(t *testing.T) {
	t.Parallel()
	needtest.Program(t, "git")
	home := t.TempDir()
	ws, other := filepath.Join(home, "workspace"), t.TempDir()
	setup := filepath.Join(home, "setup.sh")
	if err := os.WriteFile(setup, []byte(`set -e
git init -q "$OTHER"; git -C "$OTHER" -c user.name=a -c user.email=a@example.com commit -q --allow-empty -m one
git init -q ..; git -C "$OTHER" worktree add -q "$1/linked"
`), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(ws, 0o700); err != nil {
		t.Fatal(err)
	}
	prepare(t, setup, ws, "HOME="+home, "OTHER="+other)
	c := Start(t, Options{Dir: home, Model: executes(), Dial: noHosts,
		Environ: []string{"PATH=" + os.Getenv("PATH")}}).Client()
	for command, want := range map[string]string{
		"git status":           "the workspace is a folder of the repository " + home,
		"cd linked && git log": "the repository of this working tree is " + other,
	} {
		t.Run("KEPT-07 "+command, func(t *testing.T) {
			c.t = t
			if asked, answer := c.execute("main", command, wire.Deny); len(asked) > 0 || !strings.Contains(answer, want) {
				t.Errorf("asked %d times, the answer: %s", len(asked), answer)
			}
		})
	}
}
