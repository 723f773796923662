//go:build unix

package exec

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/core/tool"
)

// ended returns the result of a command in the sandbox of a house.
func (h *house) ended(t *testing.T, command string, s scene) string {
	t.Helper()
	s.cell = *h.cage
	o, c := h.options, tool.Call{Update: func(string) {}}
	o.Cage = &s
	p, _, err := h.plan(o, c, `{"command":"`+command+`","pty":true}`)
	if err != nil || p.Deny != "" || p.Ask {
		t.Fatalf("%+v, %v", p, err)
	}
	x, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	c.Plan = &p
	r, err := x.Run(t.Context(), c)
	if err != nil || len(r.Content) == 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	return r.Content[0].Text
}

// TestProtected checks what a result says of files that Chela keeps from being changed.
func TestProtected(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	if err := os.MkdirAll(filepath.Join(h.ws, "wt"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, command string
		code          int
		output        string
		want          string // the names; "": there is no note
	}{
		{"git config", "git remote add origin x", 128, "error: could not write config file .git/config: Device or resource busy\nfatal: could not set 'remote.origin.url' to 'x'", ".git/config"},
		{"git push, which succeeds", "git push -u up main", 0, "To ./up\nerror: could not write config file .git/config: Device or resource busy\nbranch 'main' set up to track 'up/main'.", ".git/config"},
		{"a clone that is removed", "rm -rf c", 1, "rm: cannot remove 'c/.git/config': Device or resource busy\nrm: cannot remove 'c/.git/hooks/a.sample': Read-only file system\nrm: cannot remove 'c/.git/hooks/b.sample': Read-only file system", "c/.git/config, c/.git/hooks"},
		{"a private file that git tracks", "git reset --hard x", 128,
			"error: unable to unlink old '.env': Device or resource busy", ".env"},
		{"a working tree", "git worktree remove wt", 255, "error: failed to delete '" + h.ws +
			"/wt': Device or resource busy\nerror: failed to delete '.git/worktrees/wt': Device or resource busy",
			"wt, .git/worktrees"},
		{"a shell", "./deploy", 2, "sh: 1: cannot create .env: Read-only file system", ".env"},
		{"Python", "python3 x.py", 1, "OSError: [Errno 16] Device or resource busy: 'sub/.vscode/a'", "sub/.vscode"},
		{"Node", "node x.js", 1, "Error: EBUSY: resource busy or locked, unlink '.env'", ".env"},
		{"BusyBox", "rm -r c", 1, "rm: can't remove '.env': Device or resource busy", ".env"},
		{"a private folder that cannot be looked into", "rm -r c", 1,
			"rm: cannot remove 'c/.ssh': Permission denied", "c/.ssh"},
		{"another folder that cannot be looked into", "rm -r wt", 1, "rm: cannot remove 'wt': Permission denied", ""},
		{"in another folder", "cd sub; rm -r c", 1, "rm: cannot remove 'c/.git/config': Device or resource busy",
			"c/.git/config"},
		{"another file in another folder", "cd sub; rm -r wt", 1, "rm: cannot remove 'wt': Device or resource busy", ""},
		{"a file that is not there", "rm -r c", 1, "rm: cannot remove 'nothing': Device or resource busy", ""},
		{"a file outside", "./deploy", 1, "rm: cannot remove '/nosuch/.git/config': Read-only file system", ""},
		{"another failure", "rm -r c", 1, "rm: cannot remove '.env': No such file or directory", ""},
		{"a command that reads", "git status", 1, "error: could not write config file .git/config: Read-only file system",
			""},
	} {
		t.Run("E3 "+tt.name, func(t *testing.T) {
			t.Parallel()
			got := h.ended(t, tt.command, scene{exit: sandbox.Exit{Code: tt.code}, output: tt.output})
			_, note, ok := strings.Cut(got, "Chela protects ")
			names, rest, _ := strings.Cut(note, ": ")
			if ok != (tt.want != "") || names != tt.want || ok && !strings.Contains(rest, "host gateway asks the person") ||
				strings.Count(got, "host gateway") > 1 {
				t.Errorf("%q", got)
			}
		})
	}
}

// TestProtectedReason checks that a result says why Chela keeps a file.
func TestProtectedReason(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		names []string
		want  string
	}{
		{[]string{"d/.env"}, "Chela protects d/.env: passwords or keys may be in it; "},
		{[]string{".git/config", ".husky"}, "Chela protects .git/config, .husky: other programs run what is in them; "},
		{[]string{"wt"}, "Chela protects wt: such a file, or one that folders outside of the workspace share, is in it; "},
		{[]string{".env", ".git/config"}, "Chela protects .env, .git/config: passwords or keys may be in .env, and other programs run what is in .git/config; "},
		{nil, ""},
	} {
		if got := protectedNote(tt.names); !strings.HasPrefix(got, tt.want) || (got == "") != (tt.want == "") {
			t.Errorf("E3 %q: got %q, want %q", tt.names, got, tt.want)
		}
	}
}

// TestNoRepository checks what a result says if the repository is outside of the workspace.
func TestNoRepository(t *testing.T) {
	t.Parallel()
	h, top, own := newHouse(t), newHouse(t), newHouse(t)
	for _, dir := range []string{filepath.Join(top.root, ".git"), filepath.Join(own.root, ".git"),
		filepath.Join(own.ws, ".git")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	const none = "fatal: not a git repository (or any parent up to mount point /)\nStopping at filesystem boundary"
	for _, tt := range []struct {
		name   string
		house  *house
		output string
		want   string // "": there is no note
	}{
		{"a folder of a repository", top, none, "the workspace is a folder of the repository " + top.root},
		{"a working tree of another repository", h, "fatal: not a git repository: " + h.outside,
			"the repository of this working tree is " + h.outside},
		{"no repository", h, none, ""},
		{"a repository of its own", own, none, ""},
		{"a working tree whose repository is gone", h, "fatal: not a git repository: " + h.outside + "/gone", ""},
	} {
		t.Run("E3 "+tt.name, func(t *testing.T) {
			t.Parallel()
			got := tt.house.ended(t, "git status", scene{exit: sandbox.Exit{Code: 128}, output: tt.output})
			if strings.Contains(got, "not in the sandbox; host gateway") != (tt.want != "") || !strings.Contains(got, tt.want) ||
				strings.Count(got, "host gateway") > 1 {
				t.Errorf("%q", got)
			}
		})
	}
}
