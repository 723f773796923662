//go:build unix

package exec_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/chela-ai/chela/internal/plugin/tool/exec"
)

// TestBound checks what an approval is bound to: the command, its directory
// and variables, and the content of the files that it executes.
func TestBound(t *testing.T) {
	t.Parallel()
	b := newFixture(t, exec.Options{Rules: mode("ask"), Interactive: true})
	write := func(name, text string) {
		t.Helper()
		name = filepath.Join(b.dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	point := func(to string) {
		t.Helper()
		link := filepath.Join(b.dir, "link")
		os.Remove(link)
		if err := os.Symlink(filepath.Join(b.dir, to), link); err != nil {
			t.Fatal(err)
		}
	}
	hash := func(args m) string {
		t.Helper()
		p, _, err := b.plan(args)
		if err != nil || !p.Ask || p.Hash == "" {
			t.Fatalf("%v: %+v, %v", args, p, err)
		}
		return p.Hash
	}
	write("s.sh", "echo one\n")
	write("one/s.sh", "echo one\n")
	write("two/s.sh", "echo two\n")
	point("one")
	script := m{"command": "./s.sh now"}
	for _, tt := range []struct {
		name   string
		args   m
		change func() m // returns the arguments after the change
		same   bool
	}{
		{"AP-11 nothing changed", script, func() m { return script }, true},
		{"AP-11 the script was edited", script, func() m { write("s.sh", "rm -rf ~\n"); return script }, false},
		{"AP-11 the script of a shell was edited", m{"command": "sh -x s.sh"}, func() m { write("s.sh", "echo three\n"); return m{"command": "sh -x s.sh"} }, false},
		{"AP-11 the script in a folder that it changes to was edited", m{"command": "cd one && ./s.sh"}, func() m { write("one/s.sh", "echo!\n"); return m{"command": "cd one && ./s.sh"} }, false},
		{"AP-11 the script was removed", m{"command": "sh two/s.sh"}, func() m {
			os.Rename(filepath.Join(b.dir, "two", "s.sh"), filepath.Join(b.dir, "two", "t.sh"))
			return m{"command": "sh two/s.sh"}
		}, false},
		{"another argument", script, func() m { return m{"command": "./s.sh later"} }, false},
		{"another folder", m{"command": "touch x"}, func() m { return m{"command": "touch x", "workdir": "one"} }, false},
		{"the folder was replaced", m{"command": "touch x", "workdir": "link"}, func() m { point("two"); return m{"command": "touch x", "workdir": "link"} }, false},
		{"another variable", script, func() m { return m{"command": "./s.sh now", "env": m{"A": "1"}} }, false},
		{"a file that it does not execute was edited", m{"command": "touch s.sh"}, func() m { write("s.sh", "again"); return m{"command": "touch s.sh"} }, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := hash(tt.args)
			if after := hash(tt.change()); (before == after) != tt.same {
				t.Errorf("hash before %s, after %s", before, after)
			}
		})
	}
	t.Run("approval text", func(t *testing.T) {
		p, _, err := b.plan(script)
		if want := "with the current content of " + filepath.Join(b.dir, "s.sh") + " (sha256 "; err != nil || !strings.Contains(p.Text, want) {
			t.Errorf("the text is %q, want %q in it", p.Text, want)
		}
	})
	t.Run("pipes and large files are not read", func(t *testing.T) {
		write("big", strings.Repeat("x", 5<<20))
		if before := hash(m{"command": "./big"}); before != hash(m{"command": "./big"}) {
			t.Error("the hash of a large file is not stable")
		}
		if err := syscall.Mkfifo(filepath.Join(b.dir, "pipe"), 0o600); err != nil {
			t.Skip(err)
		}
		hash(m{"command": "sh pipe"})
	})
}
