//go:build unix

package fs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/core/tool/tooltest"
	"github.com/chela-ai/chela/internal/kit/needtest"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/internal/plugin/tool/fs"
)

// fixture is a workspace with the tools.
type fixture struct {
	t   *testing.T
	dir string
	set tool.Set
}

func newFixture(t *testing.T) *fixture {
	return &fixture{t, t.TempDir(), tool.NewSet(fs.New(fs.Options{})...)}
}

func (b *fixture) call(name string, args map[string]any) (tool.Result, error) {
	b.t.Helper()
	tl, ok := b.set.Get(name)
	if !ok {
		b.t.Fatalf("no tool %s", name)
	}
	raw, err := json.Marshal(args)
	if err != nil {
		b.t.Fatal(err)
	}
	return tl.Run(b.t.Context(), tool.Call{Args: raw, Dir: b.dir, Update: func(string) {}})
}

// text calls a tool, which must succeed.
func (b *fixture) text(name string, args map[string]any) string {
	b.t.Helper()
	r, err := b.call(name, args)
	if err != nil {
		b.t.Fatalf("%s %v: %v", name, args, err)
	}
	if !utf8.ValidString(r.Content[0].Text) || strings.ContainsRune(r.Content[0].Text, 0) {
		b.t.Errorf("%s %v: the text has invalid UTF-8 or NUL bytes", name, args)
	}
	return r.Content[0].Text
}

// fails calls a tool, which must fail with an error that contains want.
func (b *fixture) fails(name string, args map[string]any, want string) {
	b.t.Helper()
	_, err := b.call(name, args)
	if err == nil || !strings.Contains(err.Error(), want) {
		b.t.Errorf("%s %v: error %v, want %q", name, args, err, want)
	}
}

func (b *fixture) write(name, content string) {
	b.t.Helper()
	path := filepath.Join(b.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

func (b *fixture) content(name string) string {
	b.t.Helper()
	data, err := os.ReadFile(filepath.Join(b.dir, name))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(data)
}

func (b *fixture) symlink(target, name string) {
	b.t.Helper()
	if err := os.Symlink(target, filepath.Join(b.dir, name)); err != nil {
		b.t.Fatal(err)
	}
}

type m = map[string]any

func numbered(n int) string {
	var s strings.Builder
	for i := range n {
		fmt.Fprintf(&s, "line %d of the file\n", i+1)
	}
	return s.String()
}

func TestConformance(t *testing.T) {
	setup := func(t *testing.T, dir string) {
		b := &fixture{t: t, dir: dir}
		b.write("a.txt", "one\ntwo\nthree\n")
		b.write("sub/b.go", "package b // two\n")
		b.write("bin", "\x7fELF\x00\x01\x02\x03")
	}
	args := map[string][]string{
		"read":        {`{"path":"a.txt"}`, `{"path":"a.txt","offset":2,"limit":1}`, `{"path":"bin"}`},
		"write":       {`{"path":"new/c.txt","content":"x"}`, `{"path":"a.txt","content":""}`},
		"edit":        {`{"path":"a.txt","oldText":"two","newText":"zwei"}`},
		"apply_patch": {`{"input":"*** Begin Patch\n*** Add File: d/e\n+x\n*** Update File: a.txt\n@@\n-two\n+2\n*** Delete File: sub/b.go\n*** End Patch"}`},
		"ls":          {`{}`, `{"path":"sub"}`},
		"find":        {`{"pattern":"*.go"}`, `{"pattern":"**/*","path":"sub","limit":5}`, `{"pattern":"nothing"}`},
		"grep": {`{"pattern":"t[wh]"}`,
			`{"pattern":"TWO","ignoreCase":true,"literal":true,"glob":"*.go","context":1}`},
	}
	for _, tl := range append(fs.New(fs.Options{}),
		fs.New(fs.Options{Paths: pathpolicy.Rule{Outside: true}, PatchOutside: true})...) {
		name := tl.Spec().Name
		t.Run(name, func(t *testing.T) { tooltest.Run(t, tl, tooltest.Options{Args: args[name], Setup: setup}) })
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	t.Run("FS-01 2000 lines and a hint", func(t *testing.T) {
		b := newFixture(t)
		b.write("f", numbered(3000))
		got := b.text("read", m{"path": "f"})
		lines := strings.Split(got, "\n")
		if lines[0] != "     1\tline 1 of the file" || lines[1999] != "  2000\tline 2000 of the file" {
			t.Errorf("first %q, last %q", lines[0], lines[1999])
		}
		if !strings.Contains(got, "use offset 2001") || strings.Contains(got, "line 2001 of") {
			t.Errorf("the end: %q", lines[2000:])
		}
		rest := b.text("read", m{"path": "f", "offset": 2001})
		if n := strings.Count(rest, "\n"); n != 1000 || !strings.HasPrefix(rest, "  2001\t") ||
			strings.Contains(rest, "offset") {
			t.Errorf("the rest has %d lines: %.50q … %q", n, rest, rest[len(rest)-50:])
		}
	})
	for _, id := range []string{"FS-12", "SEED-07"} {
		t.Run(id+" two lines, numbered to six places", func(t *testing.T) {
			b := newFixture(t)
			b.write("f", numbered(50))
			got := b.text("read", m{"path": "f", "offset": 11, "limit": 2})
			want := "    11\tline 11 of the file\n    12\tline 12 of the file\n\n[Lines 11-12. More lines follow: use offset 13.]"
			if got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
	t.Run("contents", func(t *testing.T) {
		for _, tt := range []struct{ name, content, want string }{
			{"empty", "", "f is empty."},
			{"no last newline", "a\nb", "     1\ta\n     2\tb\n"},
			{"blank lines", "\n\n", "     1\t\n     2\t\n"},
			{"CR LF", "a\r\nb\r\n", "     1\ta\n     2\tb\n\n[Lines end with CR LF.]"},
			{"NUL in text", "a\x00b text goes on here\n", "     1\ta\u2400b text goes on here\n"},
			{"invalid UTF-8", "caf\xe9 and more text here\n",
				"     1\tcafé and more text here\n\n[The file is in windows-1252, which write, edit and apply_patch keep.]"},
			{"damaged UTF-8", "你好\xff世界\n", "     1\t你好\ufffd世界\n"},
			{"Chinese", "你好\n世界\n", "     1\t你好\n     2\t世界\n"},
			{"escape sequences", "\x1b[31mred\x1b[0m text, text, text\n", "     1\t\u241b[31mred\u241b[0m text, text, text\n"},
			{"long line", strings.Repeat("é", 1500) + "\nnext\n", "     1\t" + strings.Repeat("é", 1000) +
				" … [line cut]\n     2\tnext\n"},
			{"binary", "\x7fELF\x02\x01\x00\x00\x01\x02",
				"f is a binary file (application/octet-stream, 10 bytes); it is not shown."},
			{"past the end", "a\n", "[f has 1 lines; offset 5 is past its end.]"},
		} {
			t.Run(tt.name, func(t *testing.T) {
				b := newFixture(t)
				b.write("f", tt.content)
				args := m{"path": "f"}
				if tt.name == "past the end" {
					args["offset"] = 5
				}
				if got := b.text("read", args); got != tt.want {
					t.Errorf("got %q, want %q", got, tt.want)
				}
			})
		}
	})
	t.Run("long text in parts", func(t *testing.T) {
		b := newFixture(t)
		b.write("f", strings.Repeat(strings.Repeat("y", 1000)+"\n", 300))
		lines, offset := 0, 1
		for range 10 {
			got := b.text("read", m{"path": "f", "offset": offset})
			if len(got) > 110_000 {
				t.Errorf("%d bytes in one result", len(got))
			}
			lines += strings.Count(got, "y\n")
			if _, err := fmt.Sscanf(got[strings.LastIndex(got, "\n")+1:], "[Lines %d", new(int)); err != nil {
				break
			}
			fmt.Sscanf(got[strings.LastIndex(got, "offset "):], "offset %d", &offset)
		}
		if lines != 300 {
			t.Errorf("%d lines in total, want 300", lines)
		}
	})
}

// Not parallel: it measures what the process allocates.
func TestHugeFiles(t *testing.T) {
	t.Run("FS-13 a sparse file of 10 GB in less than 16 MB", func(t *testing.T) {
		b := newFixture(t)
		b.write("f", numbered(10))
		if err := os.Truncate(filepath.Join(b.dir, "f"), 10<<30); err != nil {
			needtest.Missing(t, "sparse files")
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got := b.text("read", m{"path": "f"})
		runtime.ReadMemStats(&after)
		if !strings.HasPrefix(got, "     1\tline 1 of") || !strings.Contains(got, "[Lines 1-11. Line 11 is longer") {
			t.Errorf("got %q … %q", got[:50], got[len(got)-200:])
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 16<<20 {
			t.Errorf("%d bytes were allocated", n)
		}
	})
	t.Run("a file of 50 MB", func(t *testing.T) {
		b := newFixture(t)
		b.write("f", strings.Repeat(strings.Repeat("x", 99)+"\n", 500_000))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got := b.text("read", m{"path": "f", "offset": 499_999})
		runtime.ReadMemStats(&after)
		if n := strings.Count(got, "x\n"); n != 2 {
			t.Errorf("%d lines", n)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 16<<20 {
			t.Errorf("%d bytes were allocated", n)
		}
	})
}

// Sizes around that of the head that is read first.
func TestSizes(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	for _, size := range []int{1, 511, 8191, 8192, 8193, 14_000} {
		b.write("f", strings.Repeat("0123456789abcd\n", size/15)+strings.Repeat("x", size%15))
		want := fmt.Sprintf("%6d\t", (size+14)/15)
		if s := b.text("read", map[string]any{"path": "f", "offset": (size + 14) / 15}); !strings.HasPrefix(s, want) ||
			strings.Contains(s, "\n"+want) {
			t.Errorf("%d bytes: the last line is %q, want number %q", size, s, want)
		}
		if s := b.text("grep", map[string]any{"pattern": "x+$|d$", "path": "f", "limit": 1000}); !strings.Contains(s,
			fmt.Sprintf(":%d:", (size+14)/15)) {
			t.Errorf("%d bytes: the last line is not found: …%s", size, s[max(0, len(s)-200):])
		}
	}
}

func TestImage(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	var buf bytes.Buffer
	if err := png.Encode(&buf, image.NewGray(image.Rect(0, 0, 40, 40))); err != nil {
		t.Fatal(err)
	}
	b.write("i.dat", buf.String())
	r, err := b.call("read", m{"path": "i.dat"})
	if err != nil || len(r.Content) != 2 || r.Content[1].Kind != llm.PartImage || r.Content[1].MIME != "image/png" ||
		!bytes.Equal(r.Content[1].Data, buf.Bytes()) {
		t.Fatalf("got %+v, %v", r, err)
	}
	for size, shown := range map[int64]bool{3_750_000: true, 3_750_001: false} {
		if err := os.Truncate(filepath.Join(b.dir, "i.dat"), size); err != nil {
			t.Fatal(err)
		}
		if r, err := b.call("read", m{"path": "i.dat"}); err != nil || (len(r.Content) == 2) != shown {
			t.Errorf("%d bytes: %d parts, %v", size, len(r.Content), err)
		}
	}
	b.set = tool.NewSet(fs.New(fs.Options{MaxImage: 50})...)
	if got := b.text("read", m{"path": "i.dat"}); !strings.Contains(got, "not shown") {
		t.Errorf("an image above the limit: %q", got)
	}
}

func TestSecrets(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.write(".env", "# comment\nAPI_KEY=hunter2\nexport TOKEN = \"multi\nhunter2 line\nend\"\nDEBUG=true\nPORT=8080\nEMPTY=\nhunter2 alone\n")
	b.write(".env.example", "API_KEY=fill-me\n")
	b.symlink(".env", "innocent")
	for _, path := range []string{".env", "innocent"} {
		got := b.text("read", m{"path": path})
		if strings.Contains(got, "hunter2") || strings.Contains(got, "multi") {
			t.Errorf("%s shows a secret: %s", path, got)
		}
		if !strings.Contains(got, "API_KEY=***") || !strings.Contains(got, "DEBUG=true") ||
			!strings.Contains(got, "PORT=8080") || !strings.Contains(got, "masked") {
			t.Errorf("%s: %s", path, got)
		}
	}
	// A secret of several lines, of which each looks harmless alone.
	lines := []string{
		"# A=hunter2", "KEY='-----BEGIN KEY-----", "hunter2==", "#hunter2 4", "B=1", "yes", "'", "export C=`hunter2",
		"#hunter2", "`", "D=\"", "E=3", "#hunter2", "\"",
		"PIN=7272727", "F: hunter2", "G='hunter2'", "#open", "H=on",
	}
	b.write("x/.env", strings.Join(lines, "\n")+"\n")
	for offset := range len(lines) {
		for _, limit := range []int{1, len(lines)} {
			got := b.text("read", m{"path": "x/.env", "offset": offset + 1, "limit": limit})
			if strings.Contains(got, "hunter2") || strings.Contains(got, "7272727") || strings.Contains(got, "B=1") ||
				strings.Contains(got, "yes") || strings.Contains(got, "E=3") {
				t.Errorf("from line %d, %d lines: a secret is shown: %s", offset+1, limit, got)
			}
			if limit > 1 && (!strings.Contains(got, "\tH=on\n") ||
				offset < len(lines)-1 && !strings.Contains(got, "\t#open\n")) {
				t.Errorf("from line %d: %s", offset+1, got)
			}
		}
	}
	if got := b.text("grep", m{"pattern": "."}); strings.Contains(got, "hunter2") {
		t.Errorf("grep shows a secret: %s", got)
	}
	if got := b.text("read", m{"path": ".env.example"}); !strings.Contains(got, "fill-me") {
		t.Errorf("an example is masked: %s", got)
	}
}

func TestWrite(t *testing.T) {
	t.Parallel()
	t.Run("FS-02 creates folders and writes the exact content", func(t *testing.T) {
		b := newFixture(t)
		content := "x\r\n\x00\xff你 $& \\1"
		if raw, _ := json.Marshal(content); !bytes.Contains(raw, []byte("ufffd")) {
			t.Log("JSON keeps invalid UTF-8")
		}
		content = strings.ToValidUTF8(content, "")
		if got := b.text("write", m{"path": "a/b/c.txt", "content": content}); got != "Created a/b/c.txt (13 bytes)." {
			t.Errorf("got %q", got)
		}
		for name, widest := range map[string]os.FileMode{"a/b/c.txt": 0o644, "a/b": 0o755, "a": 0o755} {
			if info, err := os.Stat(filepath.Join(b.dir, name)); err != nil || info.Mode().Perm()&^widest != 0 {
				t.Errorf("%s: %v, %v", name, info.Mode(), err)
			}
		}
		if got := b.content("a/b/c.txt"); got != content {
			t.Errorf("got %q, want %q", got, content)
		}
	})
	t.Run("replaces, keeps the mode, leaves no temporary file", func(t *testing.T) {
		b := newFixture(t)
		b.write("run.sh", "old")
		os.Chmod(filepath.Join(b.dir, "run.sh"), 0o751)
		if got := b.text("write", m{"path": filepath.Join(b.dir, "run.sh"), "content": "new"}); !strings.HasPrefix(got,
			"Replaced ") {
			t.Errorf("got %q", got)
		}
		info, err := os.Stat(filepath.Join(b.dir, "run.sh"))
		if err != nil || info.Mode().Perm() != 0o751 || b.content("run.sh") != "new" {
			t.Errorf("%v %v", info, err)
		}
		if es, _ := os.ReadDir(b.dir); len(es) != 1 {
			t.Errorf("the folder has %v", es)
		}
	})
	t.Run("replaces the target of a link, not the link", func(t *testing.T) {
		b := newFixture(t)
		b.write("real/f", "old")
		b.symlink("real", "dir")
		b.symlink("dir/f", "link")
		b.text("write", m{"path": "link", "content": "new"})
		if b.content("real/f") != "new" {
			t.Error("the file was not replaced")
		}
		if target, err := os.Readlink(filepath.Join(b.dir, "link")); err != nil || target != "dir/f" {
			t.Errorf("the link is %q, %v", target, err)
		}
	})
	t.Run("refusals", func(t *testing.T) {
		b := newFixture(t)
		b.write("f", "x")
		b.write(".git/config", "x")
		b.symlink(".git", "g")
		b.fails("write", m{"path": ".", "content": ""}, "folder")
		b.fails("write", m{"path": "f/x", "content": ""}, "f/x")
		for _, p := range []string{".git/config", ".git/hooks/pre-commit", ".GIT/config", "sub/.git/config", "g/config",
			".git", ".g\u200cit/config", "GIT~1/config"} {
			b.fails("write", m{"path": p, "content": "evil"}, ".git")
		}
		if b.content(".git/config") != "x" {
			t.Error(".git/config was written")
		}
	})
	t.Run("a folder that cannot be written", func(t *testing.T) {
		if os.Getuid() == 0 {
			t.Skip("root may write everywhere")
		}
		b := newFixture(t)
		os.Chmod(b.dir, 0o555)
		defer os.Chmod(b.dir, 0o755)
		b.fails("write", m{"path": "f", "content": ""}, "permission denied")
	})
}

func TestEdit(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"FS-03", "SEED-02"} {
		t.Run(id+" twice is refused with the count", func(t *testing.T) {
			b := newFixture(t)
			b.write("f", "a b a")
			b.fails("edit", m{"path": "f", "oldText": "a", "newText": "c"}, "2 times")
			if b.content("f") != "a b a" {
				t.Error("the file changed")
			}
		})
	}
	for _, id := range []string{"FS-04", "SEED-02"} {
		t.Run(id+" no occurrence names the path", func(t *testing.T) {
			b := newFixture(t)
			b.write("f.txt", "abc")
			b.fails("edit", m{"path": "f.txt", "oldText": "x", "newText": "c"}, "f.txt")
		})
	}
	for _, id := range []string{"FS-14", "SEED-02"} {
		t.Run(id+" the new text is literal", func(t *testing.T) {
			b := newFixture(t)
			b.write("f", "one two three")
			b.text("edit", m{"path": "f", "oldText": "two", "newText": `$& $1 \1 \n ${x}`})
			if got := b.content("f"); got != `one $& $1 \1 \n ${x} three` {
				t.Errorf("got %q", got)
			}
		})
	}
	t.Run("contents", func(t *testing.T) {
		for _, tt := range []struct{ name, content, old, new, want string }{
			{"CR LF is kept", "a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", "x\r\ny\r\nz\r\nc\r\n"},
			{"CR LF given", "a\r\nb\r\n", "a\r\nb", "x\r\ny", "x\r\ny\r\n"},
			{"CR LF in the new text only", "a\r\nb\r\n", "a", "x\r\ny", "x\r\ny\r\nb\r\n"},
			{"one line without a newline", "a b", "b", "c\nd", "a c\nd"},
			{"mixed line ends", "a\r\nb\n", "b", "x\ny", "a\r\nx\ny\n"},
			{"no last newline", "a\nb", "b", "c", "a\nc"},
			{"byte order mark", "\ufeffa\n", "a", "b", "\ufeffb\n"},
			{"to nothing", "a b", " b", "", "a"},
			{"invalid UTF-8 around", "\xff a \xfe", "a", "b", "\xff b \xfe"},
		} {
			b := newFixture(t)
			b.write("f", tt.content)
			b.text("edit", m{"path": "f", "oldText": tt.old, "newText": tt.new})
			if got := b.content("f"); got != tt.want {
				t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
			}
		}
	})
	t.Run("the result says where and how much", func(t *testing.T) {
		b := newFixture(t)
		b.write("f", "a\nb\nc\n")
		for _, c := range []struct{ old, new, want string }{
			{"b\nc\n", "x", "Edited f at line 2 (2 lines removed, 1 added)."},
			{"x", "", "Edited f at line 2 (1 line removed, 0 added)."},
		} {
			if got := b.text("edit", m{"path": "f", "oldText": c.old, "newText": c.new}); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		}
	})
	t.Run("a file above the limit of 32 MB", func(t *testing.T) {
		b := newFixture(t)
		for size, says := range map[int64]string{32 << 20: "does not occur", 32<<20 + 1: "too large to edit"} {
			b.write("f", "")
			if err := os.Truncate(filepath.Join(b.dir, "f"), size); err != nil {
				needtest.Missing(t, "sparse files")
			}
			b.fails("edit", m{"path": "f", "oldText": "a", "newText": "b"}, says)
		}
	})
	t.Run("overlapping occurrences count", func(t *testing.T) {
		b := newFixture(t)
		b.write("f", "aaa")
		b.fails("edit", m{"path": "f", "oldText": "aa", "newText": "b"}, "2 times")
	})
	t.Run("refusals", func(t *testing.T) {
		b := newFixture(t)
		b.write("f", "abc")
		b.fails("edit", m{"path": "f", "oldText": "", "newText": "x"}, "empty")
		b.fails("edit", m{"path": "f", "oldText": "a", "newText": "a"}, "same")
		b.fails("edit", m{"path": "missing", "oldText": "a", "newText": "b"}, "missing does not exist")
	})
}

func TestLs(t *testing.T) {
	t.Run("FS-11 folders, files and a dangling link", func(t *testing.T) {
		b := newFixture(t)
		b.write("sub/x", "")
		b.write("f.txt", "12345")
		b.write("new\nline", "")
		b.symlink("nowhere", "dangling")
		b.symlink("sub", "to-sub")
		b.symlink("/etc", "out")
		want := strings.Join([]string{
			"[link] dangling -> nowhere (dangling)", "[file] f.txt (5 bytes)", `[file] "new\nline" (0 bytes)`,
			"[link] out -> /etc (leads out of the workspace)", "[folder] sub", "[folder] to-sub -> sub",
		}, "\n")
		if got := b.text("ls", m{}); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		if got := b.text("ls", m{"path": "to-sub"}); got != "[file] x (0 bytes)" {
			t.Errorf("through a link: %q", got)
		}
		b.fails("ls", m{"path": "f.txt"}, "not a folder")
		b.fails("ls", m{"path": "out"}, "outside the workspace")
	})
	t.Run("other kinds of entries", func(t *testing.T) {
		b := newFixture(t)
		if got := b.text("ls", m{}); got != "The folder is empty." {
			t.Errorf("empty: %q", got)
		}
		t.Chdir(b.dir) // the path of a socket must be short
		l, err := net.Listen("unix", "s")
		if err != nil {
			needtest.Missing(t, "unix sockets")
		}
		defer l.Close()
		if got := b.text("ls", m{}); got != "[socket] s" {
			t.Errorf("socket: %q", got)
		}
	})
	t.Run("many entries", func(t *testing.T) {
		b := newFixture(t)
		for i := range 1000 {
			b.write(fmt.Sprintf("f%04d", i), "")
		}
		if got := b.text("ls", m{}); !strings.HasSuffix(got, "f0999 (0 bytes)") {
			t.Errorf("1000 entries: …%q", got[len(got)-200:])
		}
		for i := range 200 {
			b.write(fmt.Sprintf("f%04d", 1000+i), "")
		}
		got := b.text("ls", m{})
		if !strings.Contains(got, "f0999") || strings.Contains(got, "f1000") || !strings.Contains(got, "1000 of 1200") {
			t.Errorf("…%q", got[len(got)-200:])
		}
	})
}

func TestFind(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	for _, f := range []string{"a.go", "sub/b.go", "sub/deep/c.go", "sub/d.txt", ".git/x.go", "node/e.ts"} {
		b.write(f, "")
	}
	b.symlink("..", "sub/up")
	for _, tt := range []struct{ pattern, path, want string }{
		{"*.go", "", "a.go\nsub/b.go\nsub/deep/c.go"},
		{"sub/*.go", "", "sub/b.go"},
		{"sub/**/*.go", "", "sub/b.go\nsub/deep/c.go"},
		{"**/*.{ts,txt}", "", "node/e.ts\nsub/d.txt"},
		{"./sub/*.go", "", "sub/b.go"},
		{"*.go", "sub", "sub/b.go\nsub/deep/c.go"},
		{"*.go", "sub/b.go", "sub/b.go"},
		{"*.go", "sub/d.txt", "Nothing matches *.go."},
		{"deep/*.go", "sub", "sub/deep/c.go"},
		{"dee?", "", "sub/deep/"},
		{"*.rs", "", "Nothing matches *.rs."},
	} {
		if got := b.text("find", m{"pattern": tt.pattern, "path": tt.path}); got != tt.want {
			t.Errorf("find %q in %q: got %q, want %q", tt.pattern, tt.path, got, tt.want)
		}
	}
	if got := b.text("find", m{"pattern": "*.go", "limit": 2}); got !=
		"a.go\nsub/b.go\n\n[The first 2; there are more. Use a narrower pattern or a higher limit.]" {
		t.Errorf("the limit: %q", got)
	}
	if got := b.text("find", m{"pattern": "*.go", "limit": 3}); strings.Contains(got, "more") {
		t.Errorf("as many as the limit: %q", got)
	}
	for i := range 2100 {
		b.write(fmt.Sprintf("many/%d", i), "")
	}
	for limit, want := range map[int]string{0: "[The first 200;", 5000: "[The first 2000;"} {
		if got := b.text("find", m{"pattern": "*", "path": "many", "limit": limit}); !strings.Contains(got, want) {
			t.Errorf("limit %d: …%q", limit, got[len(got)-100:])
		}
	}
	b.fails("find", m{"pattern": "[a"}, "not a glob")
	b.fails("find", m{"pattern": "*", "path": "/etc"}, "outside the workspace")
	b.fails("find", m{"pattern": "*", "path": "nowhere"}, "does not exist")
}

func TestGrep(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.write("a.go", "one\ntwo\nthree\nfour\nfive\nsix two\n")
	b.write("sub/b.txt", "TWO (x)\r\nlast")
	b.write("bin", "two\x00\x01\x02\x03\x04")
	b.write(".git/c", "two")
	b.write("long", strings.Repeat("z", 3000)+"two\n")
	for _, tt := range []struct {
		args m
		want string
	}{
		{m{"pattern": "two"}, "a.go:2: two\na.go:6: six two\nlong:1: " + strings.Repeat("z", 500) + " … [line cut]"},
		{m{"pattern": "^TWO", "ignoreCase": true, "glob": "*.txt"}, "sub/b.txt:1: TWO (x)"},
		{m{"pattern": "(x)", "literal": true}, "sub/b.txt:1: TWO (x)"},
		{m{"pattern": "two", "path": "a.go", "context": 1},
			"a.go-1- one\na.go:2: two\na.go-3- three\n--\na.go-5- five\na.go:6: six two"},
		{m{"pattern": "three", "context": 2, "path": "a.go"},
			"a.go-1- one\na.go-2- two\na.go:3: three\na.go-4- four\na.go-5- five"},
		{m{"pattern": "last", "path": "sub"}, "sub/b.txt:2: last"},
		{m{"pattern": `\)$`, "path": "sub/b.txt"}, "sub/b.txt:1: TWO (x)"},
		{m{"pattern": "one", "path": "a.go", "context": 9, "limit": 1},
			"a.go:1: one\na.go-2- two\na.go-3- three\na.go-4- four\na.go-5- five\na.go-6- six two"},
		{m{"pattern": "nothing"}, "No match."},
		{m{"pattern": "o", "limit": 1, "path": "a.go"},
			"a.go:1: one\n\nStopped after 1 matches; there are more. Narrow the search."},
	} {
		if got := b.text("grep", tt.args); got != tt.want {
			t.Errorf("grep %v: got %q, want %q", tt.args, got, tt.want)
		}
	}
	b.write("many", strings.Repeat("match\n", 1100))
	b.write("wide", strings.Repeat(strings.Repeat("w", 490)+"\n", 200))
	for _, tt := range []struct {
		args m
		want int
	}{
		{m{"pattern": "match", "path": "many"}, 100},
		{m{"pattern": "match", "path": "many", "limit": 5000}, 1000},
		{m{"pattern": "w", "path": "wide", "limit": 1000}, 120}, // about 60,000 bytes
	} {
		got := b.text("grep", tt.args)
		if n := strings.Count(got, ": "); n != tt.want ||
			!strings.Contains(got, fmt.Sprintf("Stopped after %d matches", tt.want)) {
			t.Errorf("grep %v: %d matches, want %d", tt.args, n, tt.want)
		}
	}
	b.write("middle", strings.Repeat("x\n", 30)+"hit\n"+strings.Repeat("x\n", 30))
	if got := b.text("grep", m{"pattern": "hit", "path": "middle", "context": 100}); strings.Count(got, "\n") != 40 {
		t.Errorf("a context above the limit: %d lines", 1+strings.Count(got, "\n"))
	}
	b.fails("grep", m{"pattern": "("}, "literal")
	b.fails("grep", m{"pattern": "x", "path": "../"}, "outside the workspace")
}

// No path leads out of the workspace or makes a tool block.
func TestEscape(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	outside := t.TempDir()
	secret := filepath.Join(outside, "secret")
	if err := os.WriteFile(secret, []byte("hunter2"), 0o644); err != nil {
		t.Fatal(err)
	}
	b.write("sub/f", "x")
	b.symlink(secret, "abs")
	b.symlink(outside, "absdir")
	rel, err := filepath.Rel(b.dir, secret)
	if err != nil {
		t.Fatal(err)
	}
	b.symlink(rel, "rel")
	b.symlink("../"+rel, "sub/rel")
	b.symlink("loop", "loop")
	before := tooltest.Tree(t, outside)
	for _, p := range []string{
		secret, "../" + filepath.Base(outside) + "/secret", rel, "sub/../../x", "abs", "absdir/secret", "rel", "sub/rel",
		"/etc/passwd", "~/.bashrc", "/proc/self/environ", "/dev/zero",
		b.dir + "/../x", b.dir + "x",
	} {
		for _, c := range []struct {
			tool string
			args m
		}{
			{"read", m{"path": p}}, {"write", m{"path": p, "content": "evil"}},
			{"edit", m{"path": p, "oldText": "hunter2", "newText": "evil"}},
			{"grep", m{"pattern": "hunter2", "path": p}}, {"find", m{"pattern": "*", "path": p}}, {"ls", m{"path": p}},
		} {
			b.fails(c.tool, c.args, "outside the workspace")
		}
	}
	b.fails("read", m{"path": "loop"}, "loop")
	b.fails("read", m{"path": "a\x00b"}, "NUL")
	if got := b.text("grep", m{"pattern": "hunter2"}); got != "No match." {
		t.Errorf("grep follows links: %q", got)
	}
	if after := tooltest.Tree(t, outside); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("files outside changed: %v", after)
	}
	t.Run("hard links", func(t *testing.T) {
		if err := os.Link(secret, filepath.Join(b.dir, "hard")); err != nil {
			needtest.Missing(t, "hard links")
		}
		b.fails("read", m{"path": "hard"}, "hard link")
		b.fails("write", m{"path": "hard", "content": "evil"}, "hard link")
		b.fails("edit", m{"path": "hard", "oldText": "hunter2", "newText": "evil"}, "hard link")
		if got := b.text("grep", m{"pattern": "hunter2"}); !strings.Contains(got, "hard links were not searched") ||
			strings.Contains(got, "hunter2") {
			t.Errorf("grep: %q", got)
		}
	})
	t.Run("workspace path with a link", func(t *testing.T) {
		link := filepath.Join(t.TempDir(), "ws")
		if err := os.Symlink(b.dir, link); err != nil {
			t.Fatal(err)
		}
		l := &fixture{t, link, b.set}
		for _, p := range []string{"sub/f", link + "/sub/f", b.dir + "/sub/f"} {
			if got := l.text("read", m{"path": p}); got != "     1\tx\n" {
				t.Errorf("read %s: %q", p, got)
			}
		}
	})
}

func TestOddFiles(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	if err := syscall.Mkfifo(filepath.Join(b.dir, "pipe"), 0o644); err != nil {
		needtest.Missing(t, "named pipes")
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.fails("read", m{"path": "pipe"}, "named pipe")
		b.fails("write", m{"path": "pipe", "content": "x"}, "named pipe")
		b.fails("edit", m{"path": "pipe", "oldText": "x", "newText": "y"}, "named pipe")
		b.fails("read", m{"path": "."}, "folder")
		if got := b.text("grep", m{"pattern": "x"}); got != "No match." {
			t.Errorf("grep: %q", got)
		}
		if got := b.text("ls", m{}); got != "[pipe] pipe" {
			t.Errorf("ls: %q", got)
		}
	}()
	waittest.For(t, "the tools, which do not open a pipe", done)
}

// Readers see the old or the new content, never a mix.
func TestChangingFile(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	a, c := strings.Repeat("a\n", 1500), strings.Repeat("c\n", 1800)
	b.write("f", a)
	stop := make(chan struct{})
	go func() {
		defer close(stop)
		for i := range 60 {
			b.text("write", m{"path": "f", "content": []string{a, c}[i%2]})
		}
	}()
	for {
		got := b.text("read", m{"path": "f"})
		if n, k := strings.Count(got, "\ta\n"), strings.Count(got, "\tc\n"); !(n == 1500 && k == 0 || n == 0 && k == 1800) {
			t.Fatalf("mixed content: %d and %d lines", n, k)
		}
		select {
		case <-stop:
			return
		default:
		}
	}
}

// endingContext is canceled after its error was asked for once.
type endingContext struct {
	context.Context
	asked int
}

func (c *endingContext) Err() error {
	if c.asked++; c.asked == 1 {
		return nil
	}
	return context.Canceled
}

func TestCanceled(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.write("f", "x\n")
	for name, args := range map[string]string{"ls": `{}`, "find": `{"pattern":"*"}`, "grep": `{"pattern":"x"}`} {
		tl, _ := b.set.Get(name)
		if r, err := tl.Run(&endingContext{Context: t.Context()},
			tool.Call{Args: json.RawMessage(args), Dir: b.dir}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

func TestConfigured(t *testing.T) {
	for raw, want := range map[string]string{
		"":                        "inside",
		`{}`:                      "inside",
		`{"enabled":true}`:        "inside",
		`{"enabled":false}`:       "none",
		`{"workspaceOnly":true}`:  "inside",
		`{"workspaceOnly":false}`: "outside",
		`{"enabled":1}`:           "error",
	} {
		var section json.RawMessage
		if raw != "" {
			section = json.RawMessage(raw)
		}
		tools, err := fs.Configured(section, pathpolicy.Rule{}, nil, nil, nil, nil)
		got := "none"
		if err != nil {
			got = "error"
		}
		set := tool.NewSet(tools...)
		for _, name := range set.Names() {
			tl, _ := set.Get(name)
			_, outside := tl.(tool.Planner)
			switch patch := tl.Spec().Name == "apply_patch"; {
			case outside && !patch:
				t.Errorf("%s: %s may leave the workspace", raw, tl.Spec().Name)
			case patch:
				got = map[bool]string{true: "outside", false: "inside"}[outside]
			}
		}
		if got != want {
			t.Errorf("%s: apply_patch: %s, want %s", raw, got, want)
		}
	}
}

func TestAbort(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	b.write("f", "x\n")
	if err := os.Truncate(filepath.Join(b.dir, "f"), 50<<30); err != nil {
		needtest.Missing(t, "sparse files")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	tl, _ := b.set.Get("read")
	// To the end of 50 GB it would take longer than the test may.
	_, err := tl.Run(ctx, tool.Call{Args: json.RawMessage(`{"path":"f","offset":1000}`), Dir: b.dir,
		Update: func(string) {}})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}
