package native_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/kit/needtest"
	"github.com/chela-ai/chela/internal/plugin/sandbox/native"
)

// TestMade lets a command configure and remove what an earlier one made, until a person
// touches it.
func TestMade(t *testing.T) {
	needtest.Program(t, "git")
	const (
		mine  = gitNames + "git init -q mine; cd mine; echo a > a; git add a; git commit -qm a; cd ..; "
		clone = gitNames + "git clone -q mine c"
		there = "[ -e c/.git/config ]"
		gone  = "[ ! -e c ]"
		sub   = mine + "git init -q top; cd top; git -c protocol.file.allow=always submodule --quiet add ../mine sub; git commit -qm s; cd ..; "
	)
	for _, c := range []struct {
		name, before, first, person, second string
		fails                               bool
		blocked                             []string
		then                                string
	}{
		{"a clone is removed", mine, clone, "", "rm -rf c", false, nil, gone},
		{"a clone without a working tree is removed", mine, "git clone -q --bare mine c", "", "rm -rf c", false, nil, gone},
		{"a clone with a submodule is removed", sub, "git -c protocol.file.allow=always clone -q --recurse-submodules top c",
			"", "rm -rf c", false, nil, gone},
		{"a clone is renamed", mine, clone, "", "mv c d; mv d/.git x; rm -rf x d", false, nil, gone},
		{"a working tree is removed", mine, "git -C mine worktree add -q ../c", "", "git -C mine worktree remove ../c", false,
			nil, gone + " && [ ! -e mine/.git/worktrees/c ]"},
		{"a clone is configured", mine, clone, "", "cd c; git config user.name x; git remote add other ../mine; git fetch -q other; git push -qu other HEAD:refs/heads/b", false, nil, "cd c; [ $(git config user.name) = x ] && git remote | grep -q other"},
		{"a file of the person in it", mine, clone, "echo x > c/x", "rm -rf c", false, nil, gone},
		{"programs in the configuration", mine, clone, "",
			"cd c; git config core.fsmonitor ./evil; echo x > .git/hooks/pre-commit", false,
			[]string{"c/.git/config", "c/.git/hooks/pre-commit"}, "! grep -q evil c/.git/config"},
		{"a person configured it", mine, clone, "git -C c config core.editor vim", "rm -rf c", true, nil,
			there + " && [ $(git config -f c/.git/config core.editor) = vim ]"},
		{"a person configured it in place", mine, clone, "printf '[core]\\n\\teditor = vim\\n' >> c/.git/config",
			"echo x > c/.git/config", true, nil, "[ $(git -C c config core.editor) = vim ]"},
		{"a person made a hook", mine, clone, "echo x > c/.git/hooks/pre-commit", "echo y >> c/.git/config", true, nil,
			"[ -e c/.git/hooks/pre-commit ]"},
		{"a person configured a submodule", sub, "git -c protocol.file.allow=always clone -q --recurse-submodules top c",
			"git -C c/sub config core.editor vim", "rm -rf c", true, nil,
			"[ $(git config -f c/.git/modules/sub/config core.editor) = vim ]"},
		{"a person configured a working tree", mine, "git -C mine worktree add -q ../c",
			"printf '[core]\\n\\teditor = vim\\n' > mine/.git/worktrees/c/config.worktree",
			"rm mine/.git/worktrees/c/config.worktree", true, nil, "[ -e mine/.git/worktrees/c/config.worktree ]"},
		{"a person's, in place of it", mine, clone, "rm -rf c; mv mine c", "rm -rf c", true, nil, there},
		{"a person's", mine, "true", "", "rm -rf mine", true, nil, "[ -e mine/.git/config ]"},
		{"a person's, renamed", mine, "mv mine c", "", "rm -rf c", true, nil, there},
		{"a person's working tree", mine + "git -C mine worktree add -q ../c; ", "true", "", "rm -rf c",
			true, nil, "[ -e c/.git ]"},
	} {
		for _, start := range []bool{false, true}[:min(2, 1+strings.Count(c.name, "clone"))] {
			t.Run(fmt.Sprintf("E6 %s, after a start %t", c.name, start), func(t *testing.T) {
				t.Parallel()
				w := newWork(t, native.Options{})
				outside(t, w.rights.Workspace, c.before+"true")
				w.expect(c.first, "")
				w.broker.Settle()
				if start {
					w.broker.Close()
					w.broker = native.New(native.Options{Home: w.home, Layers: w.layers})
					t.Cleanup(w.broker.Close)
				}
				const safe = "export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'; "
				outside(t, w.rights.Workspace, safe+c.person)
				if out, e := w.run(c.second); (e.Code != 0) != c.fails || !slices.Equal(e.Blocked, c.blocked) {
					t.Errorf("%q, %+v", out, e)
				}
				outside(t, w.rights.Workspace, safe+c.then)
			})
		}
	}
	t.Run("E6 as nobody", func(t *testing.T) { asNobody(t, "^TestMade$/^E6_([^a]|a_)") })
}
