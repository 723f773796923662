package native_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/kit/needtest"
	"github.com/chela-ai/chela/internal/plugin/sandbox/native"
)

// TestCommitted tells what a command put into Git under names that other programs run.
func TestCommitted(t *testing.T) {
	needtest.Program(t, "git")
	const (
		mine   = gitNames + "git init -q -b main .; echo a > a; mkdir -p .github/workflows; echo ci > .github/workflows/ci.yml; git add .; git commit -qm a; git branch other; "
		stage  = "o=$(echo evil | git hash-object -w --stdin); git update-index --add --cacheinfo 100644,$o,.vscode/tasks.json"
		tree   = stage + "; t=$(git write-tree); git read-tree HEAD; c=$(git commit-tree -p HEAD -m x $t)"
		stream = `printf 'commit refs/heads/x\ncommitter a <a@b> 1 +0000\ndata 1\nx\nM 100644 inline sub/.envrc\ndata 5\nevil\n\n'`
	)
	for _, c := range []struct {
		name, before, script string
		want                 []string
	}{
		{"in the index", mine, stage, []string{".vscode"}},
		{"committed", mine, stage + "; git commit -qm x", []string{".vscode"}},
		{"on another branch", mine, tree + "; git branch x $c", []string{".vscode"}},
		{"under a tag", mine, tree + "; git tag -am x x $c", []string{".vscode"}},
		{"under a ref of its own", mine, tree + "; git update-ref refs/x/y $c", []string{".vscode"}},
		{"in packed refs", mine, tree + "; git branch x $c; git pack-refs --all", []string{".vscode"}},
		{"below a commit that removes it", mine, tree + "; d=$(git commit-tree -p $c -m y HEAD^{tree}); git branch x $d",
			[]string{".vscode"}},
		{"a detached HEAD", mine, tree + "; echo $c > .git/HEAD", []string{".vscode"}},
		{"a file that Git takes for a ref", mine, tree + "; mkdir .git/remotes; echo $c > .git/remotes/other",
			[]string{".vscode"}},
		{"a rebase to continue", mine, tree + "; mkdir .git/rebase-merge; echo pick $c x > .git/rebase-merge/git-rebase-todo",
			[]string{".vscode"}},
		{"a merge to continue", mine, tree + "; echo $c > .git/MERGE_HEAD", []string{".vscode"}},
		{"in place of another tree", mine, tree + "; git replace $(git rev-parse HEAD^{tree}) $t",
			[]string{".git/refs/replace/TREE"}},
		{"in a merge only", mine + "git switch -qc b; echo b > b; git add b; git commit -qm b; git switch -q main; ",
			tree + "; m=$(git commit-tree -p HEAD -p b -m m $t); git branch x $m", []string{".vscode"}},
		{"stashed", mine, "mkdir .vscode; echo evil > .vscode/tasks.json; git add -f .vscode; git stash -q",
			[]string{".vscode"}},
		{"imported", mine, stream + " | git fast-import --quiet", []string{"sub/.envrc"}},
		{"by am", mine + tree + "; git format-patch -1 $c --stdout > a.patch; git reset -q; ",
			"git am -q a.patch || true", []string{".vscode"}},
		{"a file of the person replaced", mine, "o=$(echo evil | git hash-object -w --stdin); git update-index --cacheinfo 100644,$o,.github/workflows/ci.yml; git commit -qm x", []string{".github/workflows"}},
		{"a link", mine, "o=$(printf evil | git hash-object -w --stdin); git update-index --add --cacheinfo 120000,$o,.idea; git commit -qm x", []string{".idea"}},
		{"a repository without a working tree", mine, "o=$(echo x | git hash-object -w --stdin); for f in HEAD refs/x objects/x config; do git update-index --add --cacheinfo 100644,$o,b/$f; done; git commit -qm x", []string{"b/HEAD"}},
		{"in a further working tree", mine + "git worktree add -q w; ", "cd w; " + stage, []string{".vscode"}},
		{"in a repository below", "git init -q r; cd r; " + mine, "cd r; " + stage, []string{"r/.vscode"}},
		{"in a repository without a working tree", mine + "git clone -q --bare . b.git; ",
			tree + "; git push -q b.git $c:refs/heads/x", []string{"b.git/.vscode"}},
		{"a commit that was there", mine + tree + "; ", "git branch x $(git rev-parse HEAD)", nil},
		{"a commit whose objects were there", mine + tree + "; echo $c > c; ", "git branch x $(cat c)", []string{".vscode"}},
		{"more commits than are looked at", mine, tree + `; git branch x $c; { echo 'from refs/heads/x^0'; } >/dev/null; for i in $(seq 2100); do printf 'commit refs/heads/y\ncommitter a <a@b> 1 +0000\ndata 1\nx\n'; [ $i != 1 ] || echo "from $c"; echo; done | git fast-import --quiet`, []string{".vscode"}},
		{"what a person made", mine + "mkdir .vscode; echo mine > .vscode/tasks.json; ",
			"git add .vscode; git commit -qm x", nil},
		{"nothing of the kind", mine,
			"echo b > b; git add b; git commit -qm b; git switch -q other; git merge -q main; git stash list; git tag v1", nil},
		{"a clone", "git init -q r; cd r; " + mine + stage + "; git commit -qm x; ", "git clone -q r c", nil},
		{"a clone, without a checkout", "git init -q r; cd r; " + mine + stage + "; git commit -qm x; ", "git clone -qn r c",
			[]string{"c/.vscode"}},
	} {
		t.Run("E9 "+c.name, func(t *testing.T) {
			t.Parallel()
			w := newWork(t, native.Options{})
			outside(t, w.rights.Workspace, c.before+"true")
			out, e := w.run("(" + strings.ReplaceAll(gitNames+c.script, "; true", "") + ") 2>/dev/null")
			for i, name := range e.Committed { // another one in each run
				if dir, ok := strings.CutSuffix(name, "/"+filepath.Base(name)); ok && strings.HasSuffix(dir, "refs/replace") {
					e.Committed[i] = dir + "/TREE"
				}
			}
			if !slices.Equal(e.Committed, c.want) || e.Unchecked != "" {
				t.Errorf("%q, %+v, want %q", out, e, c.want)
			}
			if _, e := w.run("true"); e.Committed != nil {
				t.Errorf("again: %+v", e)
			}
		})
	}
	t.Run("E9 what cannot be looked at", func(t *testing.T) {
		w := newWork(t, native.Options{})
		outside(t, w.rights.Workspace, mine)
		_, e := w.run("echo 1234567890123456789012345678901234567890 > .git/refs/heads/x; rm -r .git/objects")
		if want := "not all new commits in .git could be looked at"; e.Committed != nil || e.Unchecked != want {
			t.Errorf("%+v", e)
		}
	})
	t.Run("E9 as nobody", func(t *testing.T) { asNobody(t, "^TestCommitted$/^E9_([^a]|a_)") })
}
