package native_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/kit/needtest"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/internal/plugin/sandbox/native"
)

// TestPlanted renames what a command makes that makes other programs run
// something, where there was nothing before.
func TestPlanted(t *testing.T) {
	deep := strings.Join(strings.Fields(fmt.Sprint(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20)),
		"/")
	const repo = "mkdir -p .git/objects .git/refs; echo 'ref: refs/heads/main' > .git/HEAD; printf '[core]\\n\\tbare = false\\n' > .git/config; "
	for _, c := range []struct {
		name, before, script string
		blocked              []string
	}{
		{"folders of editors and assistants", "",
			"mkdir .vscode .idea .claude .cursor .devcontainer .husky; echo '{}' > .vscode/tasks.json",
			[]string{".claude", ".cursor", ".devcontainer", ".husky", ".idea", ".vscode"}},
		{"files", "", "for f in .mcp.json .gitmodules .gitlab-ci.yml .pre-commit-config.yaml .envrc; do echo x > $f; done",
			[]string{".envrc", ".gitlab-ci.yml", ".gitmodules", ".mcp.json", ".pre-commit-config.yaml"}},
		{"files of other editors and assistants", "", "mkdir a .zed .gemini .codex; for f in a/.exrc a/.nvim.lua opencode.json lefthook.yml; do echo x > $f; done; echo '{}' > .zed/settings.json", []string{".codex", ".gemini", ".zed", "a/.exrc", "a/.nvim.lua", "lefthook.yml", "opencode.json"}},
		{"a symlink", "", "mkdir x; ln -s x .vscode", []string{".vscode"}},
		{"moved in", "mkdir -p x", "mv x .vscode", []string{".vscode"}},
		{"workflows", "", "mkdir -p .github/workflows; echo x > .github/workflows/ci.yml", []string{".github/workflows"}},
		{"hooks", repo, "mkdir .git/hooks; echo x > .git/hooks/pre-commit; echo x > .git/hooks/x.sample",
			[]string{".git/hooks/pre-commit", ".git/hooks/x.sample"}},
		{"hooks in a folder that was blocked before", "mkdir x.blocked; cd x.blocked; " + repo,
			"mkdir x.blocked/.git/hooks; echo x > x.blocked/.git/hooks/pre-commit", []string{"x.blocked/.git/hooks/pre-commit"}},
		{"hooks that are a symlink", repo, "mkdir h; ln -s ../h .git/hooks", []string{".git/hooks"}},
		{"commondir", repo, "mkdir evil; echo ../evil > .git/commondir", []string{".git/commondir"}},
		{"attributes", repo, "mkdir .git/info; echo x > .git/info/attributes", []string{".git/info/attributes"}},
		{"configuration of a worktree", repo, "printf '[core]\\n\\tfsmonitor = ./evil\\n' > .git/config.worktree",
			[]string{".git/config.worktree"}},
		{"submodules", repo,
			"mkdir -p .git/modules/a/b/hooks; echo x > .git/modules/a/b/HEAD; echo x > .git/modules/a/b/hooks/post-checkout",
			[]string{".git/modules/a/b/hooks/post-checkout"}},
		{"a new repository", "", "mkdir new; cd new; " + repo + "mkdir .git/hooks; echo x > .git/hooks/pre-commit; printf '[core]\\n\\tfsmonitor = ./evil\\n[alias]\\n\\tst = !evil\\n' >> .git/config", []string{"new/.git/config", "new/.git/hooks/pre-commit"}},
		{"a file .git", "", "mkdir evil new; echo 'gitdir: ../evil' > new/.git", []string{"new/.git"}},
		{"a symlink .git", "", "mkdir evil new; ln -s ../evil new/.git", []string{"new/.git"}},
		{"a worktree with another configuration", repo, "mkdir -p .git/worktrees/w w evil; echo ../../../evil > .git/worktrees/w/commondir; echo \"gitdir: $PWD/.git/worktrees/w\" > w/.git", []string{".git/worktrees/w/commondir"}},
		{"in a closed folder", "", "mkdir -p new; cd new; " + repo +
			"mkdir .git/hooks; echo x > .git/hooks/pre-commit; chmod 500 .git/hooks", []string{"new/.git/hooks/pre-commit"}},
		{"in an unreadable folder", "", "mkdir -p new; cd new; " + repo +
			"mkdir .git/hooks; echo x > .git/hooks/pre-commit; chmod 0 .git/hooks", []string{"new/.git/hooks/pre-commit"}},
		{"in a subfolder", "",
			"mkdir -p packages/a/.vscode; echo x > packages/a/.vscode/tasks.json; echo x > packages/a/.mcp.json",
			[]string{"packages/a/.mcp.json", "packages/a/.vscode"}},
		{"in place of what was renamed with its folder", "mkdir -p a/.vscode", "mv a b; mkdir -p a/.vscode",
			[]string{"a/.vscode"}},
		{"after many folders that sort before it", "", "mkdir -p z; cd z; " + repo + "mkdir .git/hooks; echo x > .git/hooks/pre-commit; cd ..; i=0; while [ $i -lt 300 ]; do mkdir a$i; i=$((i+1)); done; n=$(printf %0250d 0); cd a0; for i in $(seq 20); do mkdir -p $n && cd -P ./$n || break; done", []string{"z/.git/hooks/pre-commit"}},
		{"a hook with the end of a sample", repo,
			"mkdir .git/hooks; echo x > .git/hooks/evil.sample; echo x > .git/hooks/a.blocked.b",
			[]string{".git/hooks/a.blocked.b", ".git/hooks/evil.sample"}},
		{"a repository without a working tree", "", "mkdir -p b/objects b/refs; echo 'ref: refs/heads/main' > b/HEAD; printf '[core]\n\tbare = true\n\tfsmonitor = ./evil\n' > b/config", []string{"b/config"}},
		{"the workspace as a repository without a working tree", "", "mkdir -p objects refs hooks; echo 'ref: refs/heads/main' > HEAD; printf '[core]\\n\\tbare = true\\n\\tfsmonitor = ./evil\\n' > config; echo x > hooks/post-update", []string{"HEAD"}},
		{"the workspace as a repository, with files of the person", "mkdir refs hooks; echo x > HEAD; echo mine > config",
			"mkdir objects", []string{"objects"}},
		{"a hook of the workspace, which is a repository without a working tree",
			"mkdir -p objects refs; echo 'ref: refs/heads/main' > HEAD; printf '[core]\\n\\tbare = true\\n' > config",
			"mkdir hooks; echo x > hooks/post-update; printf '\\tfsmonitor = ./evil\\n' >> config",
			[]string{"hooks/post-update"}},
		{"a hook of a repository without a working tree", "mkdir -p b/objects b/refs; echo 'ref: refs/heads/main' > b/HEAD",
			"mkdir b/hooks; echo x > b/hooks/post-update", []string{"b/hooks/post-update"}},
		{"a folder of hooks that a person configured",
			repo + "printf '\thooksPath = tools/hooks\n' >> .git/config; mkdir tools",
			"mkdir tools/hooks; echo x > tools/hooks/pre-commit", []string{"tools/hooks"}},
		{"an interrupted rebase", repo,
			"mkdir .git/rebase-merge; printf 'pick 1 a\nexec evil\n' > .git/rebase-merge/git-rebase-todo",
			[]string{".git/rebase-merge"}},
		{"an interrupted rebase that cannot be read", repo,
			"mkdir .git/rebase-merge; mkfifo .git/rebase-merge/git-rebase-todo", []string{".git/rebase-merge"}},
		{"deep submodules", repo,
			"d=.git/modules/$(seq -s/ 20); mkdir -p $d/hooks; echo x > $d/HEAD; echo x > $d/hooks/post-checkout",
			[]string{".git/modules/" + deep + "/hooks/post-checkout"}},
		{"pipes", "", "mkfifo .git .vscode; mkdir b c; mkfifo b/.git; mkdir -p c/.git/worktrees/w; mkfifo c/.git/config c/.git/worktrees/w/commondir", []string{".git", ".vscode", "b/.git", "c/.git/config", "c/.git/worktrees/w/commondir"}},
		{"twice", "mkdir .idea.blocked", "mkdir .idea", []string{".idea"}},
	} {
		t.Run("E1 "+c.name, func(t *testing.T) {
			w := newWork(t, native.Options{})
			outside(t, w.rights.Workspace, c.before)
			t.Cleanup(func() { _ = exec.Command("chmod", "-R", "u+rwx", w.rights.Workspace).Run() }) // for its removal
			_, e := w.run(c.script)
			if !slices.Equal(e.Blocked, c.blocked) {
				t.Errorf("blocked %q, want %q", e.Blocked, c.blocked)
			}
			for _, name := range c.blocked {
				name = filepath.Join(w.rights.Workspace, name)
				if info, err := os.Lstat(name); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
					t.Errorf("%s is there", name)
				} else if filepath.Base(name) == "config" || filepath.Base(name) == "config.worktree" {
					if b, _ := os.ReadFile(name); strings.Contains(string(b), "evil") {
						t.Errorf("%s: %q", name, b)
					}
				} else if _, err := os.Lstat(name); err == nil {
					t.Errorf("%s is there", name)
				}
				if _, err := os.Lstat(name + ".blocked"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	t.Run("E1 as nobody", func(t *testing.T) { asNobody(t, "^TestPlanted$/^E1_[^a]") })
}

// TestPlantedClosed looks into folders that a command has closed to their owner.
func TestPlantedClosed(t *testing.T) {
	const repo = "mkdir -p %[1]s/.git/objects %[1]s/.git/refs %[1]s/.git/hooks; echo 'ref: refs/heads/main' > %[1]s/.git/HEAD; echo x > %[1]s/.git/hooks/pre-commit; printf '[core]\\n\\tfsmonitor = ./evil\\n' > %[1]s/.git/config; mkdir %[1]s/.vscode; "
	plant := func(dir string) string { return fmt.Sprintf(repo, dir) }
	for _, c := range []struct {
		name, before, script string
		blocked              []string
		opened               []string
		then                 string // checks it
	}{
		{"311", "", plant("a") + "chmod 311 a", []string{"a/.git/config", "a/.git/hooks/pre-commit", "a/.vscode"},
			[]string{"a"}, "ls a"},
		{"111 in 0", "", plant("a/b") + "chmod 111 a/b; chmod 0 a",
			[]string{"a/b/.git/config", "a/b/.git/hooks/pre-commit", "a/b/.vscode"}, []string{"a", "a/b"}, "ls a/b"},
		{"readable only", "", plant("a/b") + "chmod 400 a",
			[]string{"a/b/.git/config", "a/b/.git/hooks/pre-commit", "a/b/.vscode"}, []string{"a"}, "ls a/b"},
		{"a folder that was there, below one that was closed", "mkdir -p a/b/c", plant("a/b/c") + "chmod 0 a/b a",
			[]string{"a/b/c/.git/config", "a/b/c/.git/hooks/pre-commit", "a/b/c/.vscode"}, []string{"a", "a/b"}, "ls a/b/c"},
		{"where changes are not reported", "mkdir -p a/b/c z; chmod 0 z", plant("a/b/c") + "chmod 0 a/b a",
			[]string{"a/b/c/.git/config", "a/b/c/.git/hooks/pre-commit", "a/b/c/.vscode"}, []string{"a", "a/b"}, "ls a/b/c"},
		{"in place of another", "mkdir -p a/b", "mv a c; mkdir a; " + plant("a") + "chmod 311 a",
			[]string{"a/.git/config", "a/.git/hooks/pre-commit", "a/.vscode"}, []string{"a"}, "ls a c"},
		{"the workspace", "chmod 755 .", plant("a") + "chmod 0 .",
			[]string{"a/.git/config", "a/.git/hooks/pre-commit", "a/.vscode"}, []string{"."}, `[ "$(stat -c %a .)" = 755 ]`},
		{"before the command", "mkdir a; chmod 311 a", "mkdir b; chmod 0 a", nil, nil, `[ "$(stat -c %a a)" = 311 ]`},
		{"a folder without rights to write", "mkdir a", "echo x > a/x; chmod 555 a", nil, nil, `[ "$(stat -c %a a)" = 555 ]`},
	} {
		t.Run("E4 "+c.name, func(t *testing.T) {
			if os.Getuid() == 0 {
				t.Skip("not run: root can look into all folders")
			}
			for _, again := range []bool{false, true} { // in a new cage, and in one that is ready
				w := newWork(t, native.Options{})
				t.Cleanup(func() { _ = exec.Command("chmod", "-R", "u+rwx", w.rights.Workspace).Run() }) // for its removal
				if again {
					w.run("true")
					w.broker.Settle()
				}
				outside(t, w.rights.Workspace, c.before)
				_, e := w.run(c.script)
				if !slices.Equal(e.Blocked, c.blocked) || !slices.Equal(e.Opened, c.opened) || e.Unchecked != "" {
					t.Errorf("again %t: %+v, want %q blocked, %q opened", again, e, c.blocked, c.opened)
				}
				outside(t, w.rights.Workspace, c.then)
			}
		})
	}
	t.Run("E4 before a command that may read all", func(t *testing.T) {
		if os.Getuid() == 0 {
			t.Skip("not run: root can look into all folders")
		}
		w := newWork(t, native.Options{})
		t.Cleanup(func() { _ = exec.Command("chmod", "-R", "u+rwx", w.rights.Workspace).Run() })
		outside(t, w.rights.Workspace, "mkdir a; chmod 311 a")
		w.rights.Read = []string{w.rights.Workspace}
		if _, e := w.run("mkdir a/.vscode; echo x > x"); !strings.HasSuffix(e.Unchecked, ": a") {
			t.Errorf("%+v", e)
		}
	})
	t.Run("as nobody", func(t *testing.T) { asNobody(t, "^TestPlantedClosed$/^E4") })
}

// TestNotPlanted leaves what Git makes by itself, and what was there before.
func TestNotPlanted(t *testing.T) {
	needtest.Program(t, "git")
	const git = "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b; "
	const origin = git + "git init -q origin; cd origin; echo a > a; git add a; git commit -qm a; cd ..; "
	for _, c := range []struct{ name, before, script, then string }{
		{"init", "", git + "git init -q .; echo a > a; git add a; git commit -qm a",
			"git status --short; git log --oneline | wc -l"},
		{"samples of hooks", "git init -q .; rm -r .git/hooks", "mkdir .git/hooks; echo x > .git/hooks/update.sample",
			"[ -f .git/hooks/update.sample ]"},
		{"clone", origin, "git clone -q origin c", "cd c; git fetch; git branch -vv"},
		{"clone into the workspace", "cd ..; rm -rf o; " + strings.ReplaceAll(origin, "origin", "o") + "mv o ws/.o",
			"git clone -q .o x && cd x && git status --short", "cd x; git fetch"},
		{"sparse clone", origin, "git clone -q --sparse origin c", "cd c; git sparse-checkout list; git status --short"},
		{"worktree", origin, "cd origin; git worktree add -q ../w", "cd w; git status --short; git worktree list"},
		{"clone with a submodule", origin +
			"git init -q top; cd top; git -c protocol.file.allow=always submodule --quiet add ../origin sub; git commit -qm s",
			"git -c protocol.file.allow=always clone -q --recurse-submodules top c", "cd c/sub; git log --oneline | wc -l"},
		{"renamed repository", origin + "cd origin; git config core.editor mine; echo x > .git/hooks/pre-push",
			"mv origin moved", "cd moved; [ $(git config core.editor) = mine ] && [ -f .git/hooks/pre-push ]"},
		{"worktree that a person configured", origin + "cd origin; git worktree add -q ../w; git config extensions.worktreeConfig true; cd ../w; git config --worktree core.editor mine", "git -C w status --short", "cd w; [ $(git config core.editor) = mine ]"},
		{"clone without a working tree", origin, "git clone -q --bare origin b.git; git -C b.git worktree add -q ../w",
			"cd w; git status --short; cd ../b.git; git log --oneline | wc -l"},
		{"rebase", origin +
			"cd origin; git checkout -q -b x; echo b > a; git commit -qam b; git checkout -q -; echo c > a; git commit -qam c",
			git + "cd origin; git rebase x >/dev/null 2>&1; [ -d .git/rebase-merge ]",
			"cd origin; [ -f .git/rebase-merge/git-rebase-todo ]"},
		{"rebase with commands of a person",
			origin + "cd origin; mkdir .git/rebase-merge; printf 'exec make\nexec true\n' > .git/rebase-merge/git-rebase-todo",
			"echo 'exec make' > origin/.git/rebase-merge/git-rebase-todo", "[ -f origin/.git/rebase-merge/git-rebase-todo ]"},
		{"renamed subfolder", "mkdir -p a/.vscode; echo x > a/.vscode/tasks.json", "mv a b", "[ -f b/.vscode/tasks.json ]"},
		{"folders that a person made", "mkdir -p .vscode .git/hooks; echo x > .git/hooks/pre-commit; echo x > .mcp.json",
			"true", "[ -d .vscode ] && [ -f .git/hooks/pre-commit ] && [ -f .mcp.json ]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWork(t, native.Options{})
			w.rights.Workspace = filepath.Join(w.rights.Workspace, "ws")
			if err := os.Mkdir(w.rights.Workspace, 0o755); err != nil {
				t.Fatal(err)
			}
			outside(t, w.rights.Workspace, c.before)
			if out, e := w.run(c.script); e.Code != 0 || e.Blocked != nil {
				t.Errorf("%q, %+v", out, e)
			}
			outside(t, w.rights.Workspace, "export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'; "+
				c.then)
		})
	}
	t.Run("made by a person while a cage was ready", func(t *testing.T) {
		w := newWork(t, native.Options{})
		w.run("true")
		w.broker.Settle()
		outside(t, w.rights.Workspace,
			"mkdir -p .vscode .github/workflows lib/.git/hooks; echo x > lib/.git/hooks/pre-commit")
		w.fails("echo evil > .vscode/tasks.json")
		if _, e := w.run("true"); e.Blocked != nil {
			t.Errorf("blocked %q", e.Blocked)
		}
		outside(t, w.rights.Workspace, "[ -d .vscode ] && [ -d .github/workflows ] && [ -f lib/.git/hooks/pre-commit ]")
	})
}

// TestPlantedOwner keeps the owner of a file that is written again.
func TestPlantedOwner(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("not run: only root works in the folders of others")
	}
	w := newWork(t, native.Options{})
	w.write(w.home, "go/bin/tool", "tool\n") // root's, which the owner of the workspace need not see
	if err := os.Chown(w.rights.Workspace, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	if out, e := w.run(
		"mkdir -p new/.git/objects; printf '[core]\\n\\tbare = false\\n\\tfsmonitor = x\\n' > new/.git/config"); !slices.Equal(e.Blocked, []string{"new/.git/config"}) {
		t.Errorf("%q, %+v", out, e)
	}
	outside(t, w.rights.Workspace, `[ "$(stat -c %u new/.git/config)" = 65534 ]`)
}

// TestPlantedTogether runs two commands in a workspace that make the same names.
func TestPlantedTogether(t *testing.T) {
	w := newWork(t, native.Options{})
	outside(t, w.rights.Workspace, "mkdir -p .git/objects; echo x > .git/HEAD")
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			w.run("for i in 1 2 3 4 5; do mkdir -p .vscode .git/hooks; echo x > .git/hooks/pre-commit; done 2>/dev/null")
		})
	}
	wg.Wait()
	outside(t, w.rights.Workspace, "[ ! -e .vscode ] && [ ! -e .git/hooks/pre-commit ]")
	if held, _ := filepath.Glob(filepath.Join(w.layers, "*", "before-*")); held != nil {
		t.Errorf("left: %q", held)
	}
}

// TestPlantedLong renames what a command made that still runs.
func TestPlantedLong(t *testing.T) {
	w := newWork(t, native.Options{})
	w.broker.SetWatchTime(20 * time.Millisecond)
	_, e := w.run("mkdir .vscode; while [ -e .vscode ]; do sleep 0.02; done")
	if e.Code != 0 || !slices.Equal(e.Blocked, []string{".vscode"}) {
		t.Errorf("%+v", e)
	}
}

// TestPlantedBeforeKill undoes what a command made when the gateway was killed,
// and leaves what was there before.
func TestPlantedBeforeKill(t *testing.T) {
	w := newWork(t, native.Options{})
	if dir := os.Getenv("CHELA_TEST_PLANT"); dir != "" {
		w.broker = native.New(native.Options{Home: w.home, Layers: filepath.Join(dir, "layers")})
		w.rights.Workspace = filepath.Join(dir, "ws")
		w.run("mkdir .vscode .git/hooks; echo x > .git/hooks/pre-commit; mkdir -p new/.git/hooks; echo x > new/.git/hooks/pre-commit; echo x > made; sleep 9999")
		return
	}
	dir := t.TempDir()
	outside(t, dir,
		"mkdir -p ws/.git ws/.idea ws/lib/.git/hooks; echo x > ws/.git/HEAD; echo x > ws/lib/.git/hooks/pre-commit")
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestPlantedBeforeKill$")
	cmd.Env = append(os.Environ(), "CHELA_TEST_PLANT="+dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, filepath.Join(dir, "ws", "made"))
	layers := filepath.Join(dir, "layers")
	native.New(native.Options{Layers: layers}).Close() // of a process beside it
	outside(t, dir, "[ -e ws/.vscode ] && ls layers/*/before-*")
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	native.New(native.Options{Layers: layers}).Close()
	outside(t, dir, "[ ! -e ws/.vscode ] && [ ! -e ws/.git/hooks/pre-commit ] && [ ! -e new/.git/hooks/pre-commit ] && [ -d ws/.idea ] && [ -e ws/lib/.git/hooks/pre-commit ] && ! ls layers/*/before-* 2>/dev/null")
}

// waitFor waits until another process has made a file.
func waitFor(t *testing.T, file string) {
	t.Helper()
	waittest.Until(t, file+" is made", func() bool {
		_, err := os.Stat(file)
		return err == nil
	})
}

// TestPlantedSoon renames what a command makes while the command still runs, also in a new
// folder.
func TestPlantedSoon(t *testing.T) {
	w := newWork(t, native.Options{})
	w.broker.SetWatchTime(10 * time.Millisecond)
	t.Run("E2 while it runs", func(t *testing.T) {
		_, e := w.run("mkdir -p new/deep/.vscode; while [ -e new/deep/.vscode ]; do sleep 0.01; done")
		if !slices.Equal(e.Blocked, []string{"new/deep/.vscode"}) {
			t.Errorf("%+v", e)
		}
	})
}

// TestLater tells which scripts of the project were changed.
func TestLater(t *testing.T) {
	w := newWork(t, native.Options{})
	outside(t, w.rights.Workspace, "mkdir sub; echo x > Makefile; echo x > sub/package.json; sleep 0.1")
	t.Run("E3 changed and made", func(t *testing.T) {
		_, e := w.run("echo y > sub/package.json; echo a > a.txt; mkdir new; echo x > new/build.sh")
		if want := []string{"new/build.sh", "sub/package.json"}; !slices.Equal(e.Later, want) ||
			e.Blocked != nil || e.Unchecked != "" {
			t.Errorf("%+v, want %q", e, want)
		}
	})
	t.Run("E3 settings of what a person runs", func(t *testing.T) {
		w := newWork(t, native.Options{})
		_, e := w.run(
			"mkdir -p a/.cargo .circleci; echo x > a/.cargo/config.toml; echo x > .circleci/config.yml; echo x > .gdbinit")
		if want := []string{".circleci/config.yml", ".gdbinit", "a/.cargo/config.toml"}; !slices.Equal(e.Later, want) ||
			e.Blocked != nil {
			t.Errorf("%+v, want %q", e, want)
		}
	})
	t.Run("E3 moved with its folder", func(t *testing.T) {
		w := newWork(t, native.Options{})
		outside(t, w.rights.Workspace,
			"mkdir -p a/x b c; echo a > a/x/Makefile; echo b > b/Makefile; echo c > c/Makefile; sleep 0.1")
		_, e := w.run("mv a/x new; mv b old; mv c b; ls old/Makefile")
		if want := []string{"b/Makefile", "new/Makefile", "old/Makefile"}; !slices.Equal(e.Later, want) {
			t.Errorf("%+v, want %q", e, want)
		}
	})
	t.Run("E3 a link", func(t *testing.T) {
		w := newWork(t, native.Options{})
		outside(t, w.rights.Workspace, "echo a > rules; ln -s rules GNUmakefile; echo a > Makefile; echo b > b; mkdir sub; ln -s ../b sub/Makefile; sleep 0.1")
		_, e := w.run("echo x >> rules; ln -sf b Makefile")
		if want := []string{"GNUmakefile", "Makefile"}; !slices.Equal(e.Later, want) {
			t.Errorf("%+v, want %q", e, want)
		}
	})
	t.Run("E3 nothing", func(t *testing.T) {
		time.Sleep(100 * time.Millisecond) // more than the steps of the file system's clock
		if _, e := w.run("cat Makefile; echo b > b.txt"); e.Later != nil {
			t.Errorf("%+v", e)
		}
	})
}

// TestHang runs commands in workspaces with files that would make a reader wait.
func TestHang(t *testing.T) {
	const dir = "mkdir -p .git/hooks .git/worktrees/w .git/modules/m lib; mkfifo lib/.git .git/config.worktree .git/worktrees/w/commondir .vscode Makefile .env .gitmodules; "
	for _, c := range []struct{ name, make string }{
		{"pipes", dir + "mkfifo .git/config .git/HEAD"},
		{"a pipe that leads nowhere", dir + "ln -s ../lib/.git .git/config; echo x > .git/HEAD"},
		{"a large configuration", dir + "echo x > .git/HEAD; truncate -s 3G .git/config"},
	} {
		t.Run("A1 "+c.name, func(t *testing.T) {
			w := newWork(t, native.Options{})
			outside(t, w.rights.Workspace, c.make)
			w.expect("echo a > a; cat a", "a\n")
			w.rights.Write = false
			w.expect("cat a", "a\n")
		})
	}
	t.Run("A1 made by a command", func(t *testing.T) {
		w := newWork(t, native.Options{})
		w.run(dir + "mkfifo .git/config; exit 0")
		w.expect("echo a > a; cat a", "a\n")
	})
	t.Run("A1 as nobody", func(t *testing.T) { asNobody(t, "^TestHang$/^A1_[^a]") })
}

// TestPlantedDeep renames folders that a command made whose paths are too long to look into
// them, and hides them from later commands.
func TestPlantedDeep(t *testing.T) {
	deep := func(n int) string {
		return fmt.Sprintf("n=$(printf %%0250d 0); d=$PWD; for i in $(seq %d); do mkdir $n && cd -P ./$n || break; done; mkdir .vscode; mkdir -p .git/hooks; echo x > .git/hooks/pre-commit; echo canary > .env; cd $d", n)
	}
	for _, n := range []int{12, 17} { // below 4096 characters, and beyond
		t.Run(fmt.Sprintf("E5 %d folders", n), func(t *testing.T) {
			w := newWork(t, native.Options{})
			t.Cleanup(func() { _ = exec.Command("rm", "-rf", w.rights.Workspace).Run() })
			_, e := w.run("mkdir a; cd a; " + deep(n))
			if e.Blocked != nil || !strings.HasPrefix(e.Unchecked, "renamed to NAME.blocked, because") ||
				!strings.Contains(e.Unchecked, ": a/0000") || len(e.Unchecked) > 1000 {
				t.Errorf("%+v", e)
			}
			const find = "cd a; while cd -P ./0* 2>/dev/null; do [ -e .vscode ] && [ -e .env ] && exit 0; done; exit 1"
			outside(t, w.rights.Workspace, find)
			outside(t, w.rights.Workspace,
				`cd a; while cd -P ./0* 2>/dev/null; do case "$PWD" in *.blocked) exit 0;; esac; done; exit 1`)
			for range 2 {
				if out, e := w.run(find); e.Code != 1 || e.Unchecked != "" || e.Blocked != nil {
					t.Errorf("%q, %+v", out, e)
				}
				w.broker.Forget()
			}
		})
	}
	t.Run("E5 while it runs", func(t *testing.T) {
		w := newWork(t, native.Options{})
		w.broker.SetWatchTime(10 * time.Millisecond)
		t.Cleanup(func() { _ = exec.Command("rm", "-rf", w.rights.Workspace).Run() })
		_, e := w.run(deep(15) + "; i=0; until find . -name '*.blocked' | grep -q .; do sleep 0.02; i=$((i+1)); [ $i -lt 500 ] || exit 1; done; sleep 0.1")
		if e.Code != 0 || strings.Count(e.Unchecked, "0000.blocked") > 0 || strings.Count(e.Unchecked, "…") != 1 {
			t.Errorf("%+v", e)
		}
	})
	t.Run("E5 as nobody", func(t *testing.T) { asNobody(t, "^TestPlantedDeep$/^E5_[^a]") })
}

// TestUnsearched asks about a workspace that is too large to be searched.
func TestUnsearched(t *testing.T) {
	w := newWork(t, native.Options{})
	w.broker.SetMaxFolders(20)
	outside(t, w.rights.Workspace, "echo x > .env; mkdir $(seq 20)")
	for _, write := range []bool{true, false} {
		w.rights.Write, w.rights.Read = write, nil
		_, err := w.broker.Start(t.Context(), sandbox.Plan{Path: "/bin/ls", Argv: []string{"ls"}, Dir: w.rights.Workspace,
			Rights: &w.rights}, &bytes.Buffer{})
		u, ok := errors.AsType[*sandbox.UnsearchedError](err)
		if !ok || u.Right != "read:"+w.rights.Workspace {
			t.Fatalf("A2 write %t: %v", write, err)
		}
		w.rights.Read = []string{w.rights.Workspace}
		w.expect("cat .env", "x\n")
		if out, e := w.run("echo y > y"); (e.Code == 0) != write {
			t.Errorf("A2 write %t: %q, %+v", write, out, e)
		}
	}
}

// TestHomeWorkspace keeps what a login runs if the workspace is the home folder.
func TestHomeWorkspace(t *testing.T) {
	for _, above := range []bool{false, true} {
		t.Run(fmt.Sprintf("J1 the workspace is above it: %t", above), func(t *testing.T) {
			w := newWork(t, native.Options{})
			dir := ""
			if w.rights.Workspace = w.home; above {
				w.rights.Workspace, dir = filepath.Dir(w.home), filepath.Base(w.home)+"/"
			}
			w.write(w.home, ".bashrc", "mine\n")
			w.write(w.home, ".config/autostart/x.desktop", "mine\n")
			w.write(w.home, ".ssh/id", "key\n")
			w.fails("echo x >> " + dir + ".bashrc")
			w.fails("rm " + dir + ".bashrc")
			w.fails("echo x > " + dir + ".config/autostart/y.desktop")
			w.fails("cat " + dir + ".ssh/id")
			_, e := w.run("cd ./" + dir + "; echo x > .profile; mkdir bin; echo x > a.txt; mkdir -p .cache; echo x > .cache/x")
			if want := []string{dir + ".profile", dir + "bin"}; !slices.Equal(e.Blocked, want) {
				t.Errorf("%+v, want %q", e, want)
			}
			outside(t, w.home,
				"[ ! -e .profile ] && [ -e .profile.blocked ] && [ -e a.txt ] && [ -e .cache/x ] && [ $(cat .bashrc) = mine ]")
		})
	}
}
