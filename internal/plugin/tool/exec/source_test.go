//go:build unix

package exec_test

import (
	"fmt"
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
		{"AP-11 the script of a shell was edited", m{"command": "sh -x s.sh"},
			func() m { write("s.sh", "echo three\n"); return m{"command": "sh -x s.sh"} }, false},
		{"AP-11 the script in a folder that it changes to was edited", m{"command": "cd one && ./s.sh"},
			func() m { write("one/s.sh", "echo!\n"); return m{"command": "cd one && ./s.sh"} }, false},
		{"AP-11 the script was removed", m{"command": "sh two/s.sh"}, func() m {
			os.Rename(filepath.Join(b.dir, "two", "s.sh"), filepath.Join(b.dir, "two", "t.sh"))
			return m{"command": "sh two/s.sh"}
		}, false},
		{"another argument", script, func() m { return m{"command": "./s.sh later"} }, false},
		{"another folder", m{"command": "touch x"}, func() m { return m{"command": "touch x", "workdir": "one"} }, false},
		{"the folder was replaced", m{"command": "touch x", "workdir": "link"},
			func() m { point("two"); return m{"command": "touch x", "workdir": "link"} }, false},
		{"another variable", script, func() m { return m{"command": "./s.sh now", "env": m{"A": "1"}} }, false},
		{"a file that it does not execute was edited", m{"command": "touch s.sh"},
			func() m { write("s.sh", "again"); return m{"command": "touch s.sh"} }, true},
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
		if want := "with the current content of " + filepath.Join(b.dir, "s.sh") + " (sha256 "; err != nil ||
			!strings.Contains(p.Text, want) {
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

// TestHeld checks that the files of an approved command are the ones that run.
func TestHeld(t *testing.T) {
	t.Parallel()
	write := func(b *fixture, name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct{ name, command, file, before, after string }{
		{"HELD-01 a script", "./s.sh", "s.sh", "echo good\n", "echo evil\n"},
		{"HELD-01 a script of a shell", "sh ./s.sh", "s.sh", "echo good\n", "echo evil\n"},
		{"HELD-02 an argument of a script", "./s.sh list", "list", "a\n", "b\n"},
		{"HELD-02 the value of an option", "./s.sh --in=list", "list", "a\n", "b\n"},
		{"HELD-03 a makefile", "make all", "Makefile", "all:\n\techo good\n", "all:\n\techo evil\n"},
		{"HELD-03 a package", "npm test", "package.json", `{"scripts":{"test":"good"}}`, `{"scripts":{"test":"evil"}}`},
		{"HELD-04 a large file with its time", "./s.sh large", "large", strings.Repeat("x", 65<<20),
			strings.Repeat("y", 65<<20)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newFixture(t, exec.Options{Rules: mode("ask"), Interactive: true})
			write(b, "s.sh", "#!/bin/sh\ntouch ran\n")
			write(b, tt.file, tt.before)
			info, err := os.Stat(filepath.Join(b.dir, tt.file))
			if err != nil {
				t.Fatal(err)
			}
			args := m{"command": tt.command}
			p, c, err := b.plan(args)
			if err != nil || !p.Ask {
				t.Fatalf("%+v, %v", p, err)
			}
			write(b, tt.file, tt.after)
			if err := os.Chtimes(filepath.Join(b.dir, tt.file), info.ModTime(), info.ModTime()); err != nil {
				t.Fatal(err)
			}
			if again, _, err := b.plan(args); err != nil || again.Hash == p.Hash {
				t.Errorf("an approval of what it was holds for what it is now (%v)", err)
			}
			if _, err := b.tool.Run(t.Context(), c); err == nil ||
				!strings.Contains(err.Error(), "has changed since it was approved") {
				t.Errorf("it ran: %v", err)
			}
			if _, err := os.Stat(filepath.Join(b.dir, "ran")); err == nil {
				t.Error("the script has run")
			}
		})
	}
	for _, tt := range []struct{ name, command, script, file string }{
		{"HELD-07 what a script reads in", "./s.sh", "#!/bin/sh\n. ./lib.env; touch ran\n", "lib.env"},
		{"HELD-07 what a script reads in from its folder", "./s.sh",
			"#!/bin/sh\nsource \"$(dirname \"$0\")/lib.env\"\ntouch ran\n", "lib.env"},
		{"HELD-07 a script that a script runs", "sh s.sh", "touch ran; python3 tools/helper.py --all\n", "tools/helper.py"},
		{"HELD-07 a script without a known name", "sh s.sh", "touch ran; ./tool\n", "tool"},
		{"HELD-07 what make runs", "sh s.sh", "touch ran; make -s all\n", "Makefile"},
		{"HELD-07 what Python imports", "python3 s.sh", "import helper.deep\nopen('ran', 'w')\n", "helper/deep.py"},
		{"HELD-07 what Node requires", "node s.sh", "require('./helper'); require('fs').writeFileSync('ran', '')\n",
			"helper.js"},
		{"HELD-07 what a script of a script names", "sh s.sh", "sh second.sh; touch ran\n", "third.sh"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newFixture(t, exec.Options{Rules: mode("ask"), Interactive: true})
			write(b, "s.sh", tt.script)
			write(b, "second.sh", "sh third.sh\n")
			write(b, "notes.md", "s.sh is a script\n")
			if err := os.MkdirAll(filepath.Dir(filepath.Join(b.dir, tt.file)), 0o700); err != nil {
				t.Fatal(err)
			}
			write(b, tt.file, "#!/bin/sh\n: good\n")
			args := m{"command": tt.command}
			p, c, err := b.plan(args)
			if err != nil || !p.Ask || !strings.Contains(p.Text, "\nand of the scripts that these name: ") ||
				!strings.Contains(p.Text, tt.file) || strings.Contains(p.Text, "notes.md") {
				t.Fatalf("%+v, %v", p, err)
			}
			write(b, "notes.md", "changed\n")
			if again, _, err := b.plan(args); err != nil || again.Hash != p.Hash {
				t.Errorf("an approval depends on what is not run (%v)", err)
			}
			write(b, tt.file, "#!/bin/sh\n: evil\n")
			if again, _, err := b.plan(args); err != nil || again.Hash == p.Hash {
				t.Errorf("an approval of what it was holds for what it is now (%v)", err)
			}
			if _, err := b.tool.Run(t.Context(), c); err == nil ||
				!strings.Contains(err.Error(), "has changed since it was approved") {
				t.Errorf("it ran: %v", err)
			}
			if _, err := os.Stat(filepath.Join(b.dir, "ran")); err == nil {
				t.Error("the script has run")
			}
		})
	}
	t.Run("HELD-08 more scripts than are held", func(t *testing.T) {
		t.Parallel()
		b := newFixture(t, exec.Options{Rules: mode("ask"), Interactive: true})
		var text strings.Builder
		for i := range 40 {
			name := fmt.Sprintf("x%d.sh", i)
			write(b, name, ":\n")
			text.WriteString("sh " + name + "\n")
		}
		write(b, "s.sh", text.String())
		p, _, err := b.plan(m{"command": "sh s.sh"})
		if err != nil || !strings.Contains(p.Text, "x31.sh (there are more, which can change until it runs)") {
			t.Errorf("%s, %v", p.Text, err)
		}
	})
	t.Run("HELD-05 a script that was changed while it ran is named", func(t *testing.T) {
		t.Parallel()
		b := newFixture(t, exec.Options{Rules: mode("ask"), Interactive: true})
		write(b, "s.sh", "#!/bin/sh\ncp s.sh t.sh; echo : >> t.sh; mv t.sh s.sh\n")
		if text, _ := b.text(m{"command": "./s.sh"}); !strings.Contains(text, "s.sh was changed while it ran") {
			t.Errorf("answer %q", text)
		}
	})
	t.Run("HELD-06 the question shows what make and npm will run", func(t *testing.T) {
		t.Parallel()
		b := newFixture(t, exec.Options{Rules: mode("ask"), Interactive: true})
		write(b, "Makefile", "GO = go\n.PHONY: all test\nall: test\ntest: build # checks\n\t$(GO) test ./...\n\n\t@echo done\nbuild:; $(GO) build\nother:\n\techo other\n")
		write(b, "package.json", `{"scripts":{"pretest":"tsc","test":"node --test","start":"node ."}}`)
		for command, want := range map[string]string{
			"make":            "\nmake will run:\n  $(GO) build\n  $(GO) test ./...\n  @echo done",
			"make -j 4 other": "\nmake will run:\n  echo other",
			"npm test":        "\nnpm will run:\n  pretest: tsc\n  test: node --test",
			"npm run start":   "\nnpm will run:\n  start: node .",
			"yarn start":      "\nyarn will run:\n  start: node .",
		} {
			p, _, err := b.plan(m{"command": command})
			if err != nil || !strings.Contains(p.Text, want+"\n") {
				t.Errorf("%s: %v, the text is\n%s\nwant%s", command, err, p.Text, want)
			}
		}
		if p, _, err := b.plan(m{"command": "make missing; npm run nothing"}); err != nil ||
			strings.Contains(p.Text, "will run") {
			t.Errorf("%v, the text is\n%s", err, p.Text)
		}
	})
}
