//go:build unix

package fs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/tool/tooltest"
)

func patchOf(lines ...string) m {
	return m{"input": "*** Begin Patch\n" + strings.Join(lines, "\n") + "\n*** End Patch"}
}

func TestPatch(t *testing.T) {
	t.Parallel()
	t.Run("FS-05 adds, updates and deletes", func(t *testing.T) {
		b := newFixture(t)
		b.write("u.txt", "one\ntwo\nthree\n")
		b.write("d.txt", "x")
		s := b.text("apply_patch", patchOf(
			"*** Add File: new/a.txt", "+hello", "+", "*** Update File: u.txt", "@@", " one", "-two", "+2", " three",
			"*** Delete File: d.txt"))
		if s != "Done:\nA new/a.txt\nM u.txt\nD d.txt" {
			t.Errorf("got %q", s)
		}
		if b.content("new/a.txt") != "hello\n\n" || b.content("u.txt") != "one\n2\nthree\n" {
			t.Errorf("%q, %q", b.content("new/a.txt"), b.content("u.txt"))
		}
		if _, err := os.Stat(filepath.Join(b.dir, "d.txt")); !os.IsNotExist(err) {
			t.Errorf("d.txt is there: %v", err)
		}
	})
	t.Run("FS-06 does not add an existing file", func(t *testing.T) {
		b := newFixture(t)
		b.write("a.txt", "old")
		b.unchanged(patchOf("*** Add File: b.txt", "+x", "*** Add File: a.txt", "+new"), "a.txt already exists")
	})
	t.Run("FS-08 moves", func(t *testing.T) {
		b := newFixture(t)
		b.write("old.sh", "a\nb\n")
		if err := os.Chmod(filepath.Join(b.dir, "old.sh"), 0o755); err != nil {
			t.Fatal(err)
		}
		if s := b.text("apply_patch", patchOf("*** Update File: old.sh", "*** Move to: deep/new.sh", "@@", " a", "-b",
			"+c")); s != "Done:\nA deep/new.sh (from old.sh)\nD old.sh" {
			t.Errorf("got %q", s)
		}
		info, err := os.Stat(filepath.Join(b.dir, "deep/new.sh"))
		if err != nil || b.content("deep/new.sh") != "a\nc\n" || info.Mode().Perm() != 0o755 {
			t.Errorf("%v, %q", err, b.content("deep/new.sh"))
		}
		b.text("apply_patch", patchOf("*** Update File: deep/new.sh", "*** Move to: plain.sh"))
		if b.content("plain.sh") != "a\nc\n" {
			t.Errorf("%q", b.content("plain.sh"))
		}
		b.write("taken", "x")
		b.unchanged(patchOf("*** Update File: plain.sh", "*** Move to: taken"), "taken already exists")
	})
	t.Run("FS-09 a patch that does not fit changes nothing", func(t *testing.T) {
		b := newFixture(t)
		b.write("a.txt", "one\ntwo\n")
		b.write("b.txt", "one\n")
		b.unchanged(patchOf("*** Update File: b.txt", "@@", "-one", "+1", "*** Update File: a.txt", "@@", " one", "-three",
			"+3"), "a.txt: change 1 (line 7 of the patch): these lines were not found:\none\nthree")
		b.unchanged(patchOf("*** Update File: a.txt", "@@ func x()", "-one"), `the line "func x()" was not found`)
		b.unchanged(patchOf("*** Update File: none.txt", "@@", "-one"), "none.txt does not exist")
		b.unchanged(patchOf("*** Delete File: none.txt"), "none.txt does not exist")
	})
	for _, c := range []struct {
		name, before string
		patch        []string
		after        string
	}{
		{"CR LF is kept", "one\r\ntwo\r\nthree\r\n", []string{"@@", " one", "-two", "+2", "+2b", " three"},
			"one\r\n2\r\n2b\r\nthree\r\n"},
		{"lines with other line breaks are kept", "one\r\ntwo\nthree\r\n", []string{"@@", " one", " two", "-three", "+3"},
			"one\r\ntwo\n3\r\n"},
		{"a missing final line break is kept", "one\ntwo", []string{"@@", " one", "-two", "+2"}, "one\n2"},
		{"no @@ for the first", "one\ntwo\n", []string{"-one", "+1"}, "1\ntwo\n"},
		{"position given by the context line", "f()\n  x\ng()\n  x\n", []string{"@@ g()", "-  x", "+  y"},
			"f()\n  x\ng()\n  y\n"},
		{"several changes in order", "a\nb\nc\nd\ne\n", []string{"@@", "-b", "+B", "@@", "-d", "+D"}, "a\nB\nc\nD\ne\n"},
		{"the same lines twice", "x\ny\nx\ny\n", []string{"@@", " x", "-y", "+1", "@@", " x", "-y", "+2"}, "x\n1\nx\n2\n"},
		{"only added lines, at the end", "a\n", []string{"@@", "+b"}, "a\nb\n"},
		{"only added lines, after a context line", "a\nb\n", []string{"@@ a", "+x"}, "a\nx\nb\n"},
		{"the end of the file", "x\ny\nx\n", []string{"@@", "-x", "+z", "*** End of File"}, "x\ny\nz\n"},
		{"trailing blanks", "a  \nb\n", []string{"@@", " a", "-b", "+c"}, "a  \nc\n"},
		{"surrounding blanks", "\t\ta\n\tb\n", []string{"@@", " a", "-b", "+\tc"}, "\t\ta\n\tc\n"},
		{"other dashes and quotation marks", "a – “b”\nc\n", []string{"@@", " a - \"b\"", "-c", "+d"}, "a – “b”\nd\n"},
		{"an empty context line without the leading blank", "a\n\nb\n", []string{"@@", " a", "", "-b", "+c"}, "a\n\nc\n"},
		{"an extra empty line", "a\nb\n", []string{"@@", "-a", "+c", " "}, "c\nb\n"},
		{"into an empty file", "", []string{"@@", "+a"}, "a\n"},
		{"all lines removed", "a\nb\n", []string{"@@", "-a", "-b"}, ""},
		{"$ and backslashes are literal", "a\n", []string{"@@", "-a", `+$& $1 \n \\`}, "$& $1 \\n \\\\\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newFixture(t)
			b.write("f", c.before)
			b.text("apply_patch", patchOf(append([]string{"*** Update File: f"}, c.patch...)...))
			if got := b.content("f"); got != c.after {
				t.Errorf("got %q, want %q", got, c.after)
			}
		})
	}
	t.Run("fences and here-documents around a patch", func(t *testing.T) {
		p := "*** Begin Patch\n*** Add File: f\n+x\n*** End Patch"
		for _, s := range []string{"\n" + p + "\n\n", "```\n" + p + "\n```", "```diff\n" + p + "\n```",
			"apply_patch <<'EOF'\n" + p + "\nEOF", "<<EOF\n" + p + "\nEOF\n", strings.ReplaceAll(p, "\n", "\r\n")} {
			b := newFixture(t)
			b.text("apply_patch", m{"input": s})
			if b.content("f") != "x\n" {
				t.Errorf("%q: %q", s, b.content("f"))
			}
		}
	})
	t.Run("one file in several sections", func(t *testing.T) {
		b := newFixture(t)
		b.write("f", "a\nb\n")
		b.text("apply_patch", patchOf("*** Update File: f", "@@", "-b", "+c", "*** Update File: ./f", "@@", "-a", "+z"))
		if b.content("f") != "z\nc\n" {
			t.Errorf("%q", b.content("f"))
		}
		if s := b.text("apply_patch", patchOf("*** Delete File: f", "*** Add File: f", "+new")); s != "Done:\nM f" ||
			b.content("f") != "new\n" {
			t.Errorf("%q, %q", s, b.content("f"))
		}
		if s := b.text("apply_patch", patchOf("*** Update File: f", "@@", " new")); s != "The patch changes nothing." {
			t.Errorf("%q", s)
		}
	})
	for _, c := range []struct{ input, says string }{
		{"", "first line"},
		{"x", "first line"},
		{"*** Begin Patch", "last line"},
		{"*** Begin Patch\n*** End Patch", "empty"},
		{"*** Begin Patch\n*** Add File: x\n+a", "last line"},
		{"*** Begin Patch\n*** Add File: x\na\n*** End Patch", "line 3: the lines of a new file must begin with +"},
		{"*** Begin Patch\n*** Rename File: x\n*** End Patch", "want \"*** Add File:\""},
		{"*** Begin Patch\n*** Add File:\n+a\n*** End Patch", "path is missing"},
		{"*** Begin Patch\n*** Update File: x\n*** End Patch", "no changes for"},
		{"*** Begin Patch\n*** Update File: x\n@@\n*** End Patch", "change is empty"},
		{"*** Begin Patch\n*** Update File: x\n@@\nabc\n*** End Patch", "line 4"},
		{"*** Begin Patch\n*** Update File: x\n*** Move to:\n@@\n-a\n*** End Patch", "path is missing"},
		{"*** Begin Patch\n*** Delete File: x\n*** End Patch\nmore", "unexpected text after"},
		{strings.Repeat("x", 9<<20), "too long"},
	} {
		t.Run("refused: "+c.says, func(t *testing.T) {
			newFixture(t).fails("apply_patch", m{"input": c.input}, c.says)
		})
	}
	t.Run("a failing write reports the changes made before, and deletes nothing", func(t *testing.T) {
		b := newFixture(t)
		b.write("old", "x\n")
		b.fails("apply_patch", patchOf("*** Delete File: old", "*** Add File: a", "+x", "*** Add File: a/b", "+y"),
			"these changes were made before:\nA a")
		if b.content("old") != "x\n" || b.content("a") != "x\n" {
			t.Errorf("%q, %q", b.content("old"), b.content("a"))
		}
	})
}

// unchanged calls apply_patch, which must fail and change nothing.
func (b *fixture) unchanged(args m, says string) {
	b.t.Helper()
	before := tooltest.Tree(b.t, b.dir)
	b.fails("apply_patch", args, says)
	if diff := cmp.Diff(before, tooltest.Tree(b.t, b.dir)); diff != "" {
		b.t.Errorf("files changed: %s", diff)
	}
}

func FuzzPatch(f *testing.F) {
	for _, s := range []string{
		"*** Begin Patch\n*** Update File: f\n@@ a\n-b\n+c\n*** End of File\n*** End Patch",
		"*** Begin Patch\n*** Add File: g\n+x\n*** Update File: f\n*** Move to: h\n a\n\n*** Delete File: h\n*** End Patch",
		"<<EOF\n*** Begin Patch\n*** Update File: f\n@@\n \n*** End Patch\nEOF",
		"*** Begin Patch\n*** Add File: ../x\n+x\n*** Add File: /etc/x\n+x\n*** Add File: .git/x\n+x\n*** End Patch",
	} {
		f.Add(s, "a\nb\n")
		f.Add(s, "a\r\n\r\nb")
	}
	f.Fuzz(func(t *testing.T, input, data string) {
		parent := t.TempDir()
		b := &fixture{t, filepath.Join(parent, "w"), newFixture(t).set}
		b.write("f", data)
		before := tooltest.Tree(t, b.dir)
		_, err := b.call("apply_patch", m{"input": input})
		if err != nil && strings.Contains(err.Error(), "nothing was changed") {
			if diff := cmp.Diff(before, tooltest.Tree(t, b.dir)); diff != "" {
				t.Errorf("files changed: %s", diff)
			}
		}
		if err != nil && err.Error() == "" {
			t.Error("the error has no text")
		}
		entries, _ := os.ReadDir(parent)
		if len(entries) != 1 {
			t.Errorf("beside the workspace: %v", entries)
		}
		if _, err := os.Lstat(filepath.Join(b.dir, ".git")); err == nil {
			t.Error("a file in .git was written")
		}
	})
}
