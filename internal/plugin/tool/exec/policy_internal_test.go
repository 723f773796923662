package exec

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/allowlist"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/core/shell"
	"github.com/chela-ai/chela/internal/core/tool"
)

// TestConfined checks what is decided about commands where there is a
// sandbox.
func TestConfined(t *testing.T) {
	t.Parallel()
	bin, home := t.TempDir(), "/home/anna"
	for _, name := range []string{"tool", "other", "ls"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	d, err := allowlist.Parse(
		[]byte(`{"version": 1, "agents": {"*": {"allowlist": [{"pattern": "tool", "host": true}, {"pattern": "other"}]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	const look, work, outside, asks, denied = "looks", "works", "runs outside", "asks", "is denied"
	for _, tt := range []struct{ mode, command, want string }{
		{"auto", "ls -la | head", look},
		{"auto", "cat notes.md && wc -l < notes.md", look},
		{"auto", "make && rm -rf build", work},
		{"auto", "git status", work},
		{"auto", "X=/; rm -rf $X", work},
		{"auto", "rm -rf /", denied},
		{"auto", "cat .env", asks},
		{"auto", "cat ../other/x", asks},
		{"auto", "grep -f.env x", asks},
		{"auto", "cat < .env", asks},
		{"auto", "cat /proc/1/environ", asks},
		{"auto", "sudo ls", asks},
		{"ask", "ls -la | head", look},
		{"ask", "cat $X", look},
		{"ask", "cd sub && cat ../notes.md", look},
		{"ask", "cd sub && cat ../../notes.md", asks},
		{"ask", "cat > \"/var/x y\"", asks},
		{"auto", "awk '/ERROR/ {n++} END {print n+0 \" of \" NR}' x.log", work},
		{"auto", "sed -n '/^# a/,/^# b/p' x.md", work},
		{"auto", "sed -n '/a/p' /var/x.md", asks},
		{"auto", "sleep 9 & kill $!; sleep 9 & kill -9 %1", work},
		{"auto", "kill 4711", asks},
		{"auto", "kill $X 1", asks},
		{"auto", "echo x > \"$HOME/x\"", asks},
		{"auto", "cd $X && cat ../notes.md", look},
		{"ask", "make", asks},
		{"ask", "tool x", outside},
		{"ask", "tool x ../y", outside},
		{"ask", "other x", work},
		{"ask", "other ../y", asks},
		{"ask", "tool x | other", work},
		{"ask", "tool x | ls", work},
		{"ask", "tool x | cat .env", asks},
		{"allowlist", "other x", work},
		{"allowlist", "other ../y", denied},
		{"allowlist", "make", denied},
		{"always", "ls", asks},
		{"full", "make", outside},
		{"full", "ls $X", outside},
		{"full", "X=/; rm -rf $X", work},
		{"full", "echo / | xargs rm -rf", work},
		{"full", "base64 -d x | sh", work},
		{"full", "alias r=rm; r -rf ~", work},
		{"full", "rm -rf /", denied},
	} {
		p, err := allowlist.ParseMode(tt.mode)
		if err != nil {
			t.Fatal(err)
		}
		rules, err := allowlist.Config{}.Rules(p, d, "main", home)
		if err != nil {
			t.Fatal(err)
		}
		x := execTool{Options: Options{Interactive: true}}
		got := x.judge(request{
			shell:    shell.Judge{Dir: "/work", Home: home}.Parse(tt.command),
			home:     home,
			rules:    rules,
			policy:   rules.Policy,
			inside:   true,
			confined: true,
			programs: allowlist.Env{Path: []string{bin, "/bin", "/usr/bin"}, Workspace: "/work", Home: home},
		})
		is := outside
		switch {
		case got.Deny != "":
			is = denied
		case got.Ask:
			is = asks
		case got.confine && got.Effect == tool.Reads:
			is = look
		case got.confine:
			is = work
		}
		if is != tt.want {
			t.Errorf("mode %s, %s: %s (%s %s), want %s", tt.mode, tt.command, is, got.Reason, got.Deny, tt.want)
		}
	}
}

// TestRefusedPaths reads the messages of programs that were refused a path.
func TestRefusedPaths(t *testing.T) {
	t.Parallel()
	root, err := os.MkdirTemp("/var/tmp", "refused") // each sandbox has a /tmp of its own
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	if root, err = filepath.EvalSymlinks(root); err != nil {
		t.Fatal(err)
	}
	ws := filepath.Join(root, "ws")
	for _, name := range []string{"ws/sub/x", "ws/.env", "ws/.git/config", "out/x", "my", "my file", "a/b",
		"own/db", "change", "read"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		text, want string
		moves      bool
	}{
		{"cat: R/out/x: No such file or directory", "read:R/out/x", false},
		{"bash: line 1: R/out/x: Read-only file system", "write:R/out/x", false},
		{"sh: 1: cannot create R/out/new: Read-only file system", "write:R/out", false},
		{"sh: 1: cannot create R/none/deep/new: Read-only file system", "", false},
		{"touch: cannot touch 'R/my file': Permission denied", "write:R/my file", false},
		{"mkdir: cannot create directory ‘R/out/d’: Permission denied", "write:R/out", false},
		{"bash: line 1: R/my file: Read-only file system", "", false}, // not R/my
		{"cp: copying R/a/b to R/out/x: Permission denied", "write:R/out/x", false},
		{"tar: R/out/x: Cannot open: Read-only file system", "write:R/out/x", false},
		{`rsync: mkdir "R/out/x" failed: Read-only file system (30)`, "write:R/out/x", false},
		{"PermissionError: [Errno 13] Permission denied: 'R/my file'", "write:R/my file", false},
		{"FileNotFoundError: [Errno 2] No such file or directory: 'R/out/x'", "read:R/out/x", false},
		{"Error: EACCES: permission denied, open 'R/out/x'", "write:R/out/x", false},
		{"open R/out/x: permission denied", "write:R/out/x", false},
		{"EROFS: read-only file system, mkdir R/out/x", "write:R/out/x", false},
		{"bash: ../out/x: Read-only file system", "write:R/out/x", false},
		{"bash: ../out/x: Read-only file system", "", true},
		{"bash: sub/x: Permission denied", "write:R/ws/sub/x", false},
		{"cat: ./.env: Permission denied", "read:R/ws/.env", false},
		{"cat: ./.env: Permission denied", "", true},
		{"error: could not write config file .git/config: Read-only file system", "write:R/ws/.git/config", false},
		{"R/out/x was written; Permission denied", "", false},
		{"cat: R/out/x: No such file or directory\ncat: R/out/x: No such file or directory", "read:R/out/x", false}, // once
		{"cat: R/out/x: No such file or directory\nsh: R/out/x: Permission denied\nsh: R/my: Permission denied\nsh: R/a/b: Permission denied\nsh: R/a/c: Permission denied",
			"read:R/out/x write:R/out/x write:R/my write:R/a/b", false}, // the first four
		{"ENOENT: no such file or directory, open 'R/out/x'", "read:R/out/x", false},
		{"cat: R/out/none: No such file or directory", "", false},
		{"ls: /: Permission denied", "", false},
		{"sh: R/own/db: Permission denied", "", false},
		{"sh: /tmp: Read-only file system", "", false},
		{"cat: /tmp: No such file or directory", "read:/tmp", false},
		{"sh: /proc/version: Permission denied", "", false},
		{"sh: /sys: Permission denied", "", false},
		{"sh: /dev/null: Permission denied", "", false},
		{"sh: R/change: Permission denied", "", false},        // it has the right
		{"cat: R/read: No such file or directory", "", false}, // it has the right
		{"sh: R/read: Permission denied", "write:R/read", false},
		{"cat: sub/x: No such file or directory", "", false},
	} {
		text := strings.ReplaceAll(tt.text, "R/", root+"/")
		j := job{plan: sandbox.Plan{Dir: ws, Rights: &sandbox.Rights{Workspace: ws, Write: true,
			Change: []string{root + "/change"}, Read: []string{root + "/read"}}}, moves: tt.moves}
		x := &execTool{Options: Options{Never: func() []string { return []string{root + "/own"} }}}
		got := strings.ReplaceAll(strings.Join(x.refusedPaths(text, j), " "), root, "R")
		if got != tt.want {
			t.Errorf("%s (moves %v): %q, want %q", tt.text, tt.moves, got, tt.want)
		}
	}
	j := job{plan: sandbox.Plan{Dir: ws, Rights: &sandbox.Rights{Workspace: ws}}}
	if got := (&execTool{}).refusedPaths("sh: sub/x: Permission denied", j); got != nil {
		t.Errorf("of a command that is not to change the workspace: %q", got)
	}
}
