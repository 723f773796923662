package exec

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/kit/escape"
)

func TestPlain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want string }{
		{"plain\ttext\n", "plain\ttext\n"},
		{"\x1b[31mred\x1b[0m \x1b[1;38;5;200mbold\x1b[m", "red bold"},
		{"10%\r50%\r100%\n", "100%\n"},
		{"long line\rshort\x1b[K\n", "short\n"},
		{"abc\b\bX\n", "aXc\n"},
		{"a\r\nb\r\n", "a\nb\n"},
		{"\x1b]0;title\x07text\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "textlink"},
		{"one\x1b[2J\x1b[Htwo\x1b[10;5Hthree", "one\ntwo\nthree"},
		{"ab\x1b[3Cc", "ab   c"},
		{"abcd\x1b[3DX\x1b[1GY", "YXcd"},
		{"\x1b(B\x1b=\x1b>\x1b7text\x1b8\x1b[?25l", "text"},
		{"\x1bPq#0;2;0;0;0#0~~@@\x1b\\after", "after"},
		{"cut \x1b[3", "cut "},
		{"odd \x1b\x01 \x1b[1\ntwo", "odd  \ntwo"},
		{"你好\r再", "再好"},
		{"bell\a nul\x00 \x7f\u009b", "bell nul "},
		{"bad \xff\xfe", "bad \ufffd\ufffd"},
		{"a \u202eb\u2066 c\U000e0041 \u200d🏳", "a \\u{202e}b\\u{2066} c\\u{e0041} \u200d🏳"},
		{"x\x1b[999999999Cy\x1b[999999999D", "x" + strings.Repeat(" ", maxMove-1) + "y"},
	} {
		if got := plain([]byte(c.in)); got != c.want {
			t.Errorf("plain(%q) = %q, want %q", c.in, got, c.want)
		}
	}
}

func FuzzPlain(f *testing.F) {
	for _, s := range []string{"a\x1b[31mb\x1b[0m\r\n", "\x1b]0;t\x07x", "\x1b[2K\rx\b\b", "\x1bP\x1b\\", "\xff\x1b",
		"\x1b[1;2;3", "\x1b(B\u009b", "a\x1b[200Cb\n\x1b[5P\x1b[1K", "\u202e\r\U000e0041\b\u2067",
		"\x1b]" + strings.Repeat("x", 5000)} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s := plain(b)
		for _, r := range s {
			if unicode.IsControl(r) && r != '\n' && r != '\t' {
				t.Fatalf("%q remains of %q", r, b)
			}
		}
		if !utf8.ValidString(s) {
			t.Fatalf("invalid UTF-8: %q", s)
		}
		if again := plain([]byte(s)); again != s {
			t.Fatalf("plain is not idempotent: %q becomes %q", s, again)
		}
		if len(s) > 4*len(b)+maxMove*(1+bytes.Count(b, []byte("\x1b"))) {
			t.Fatalf("%d bytes of %d", len(s), len(b))
		}
		if n := unfinished(b); n < 0 || n > len(b) || n >= escape.MaxControl {
			t.Fatalf("unfinished(%q) = %d", b, n)
		}
		var m modes
		m.scan(b)
		if len(m.tail) > 8 {
			t.Fatalf("%d bytes are retained", len(m.tail))
		}
	})
}

func TestKeys(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		key, want, arrows string
	}{
		{"Enter", "\r", ""}, {"return", "\r", ""}, {"Tab", "\t", ""}, {"S-Tab", "\x1b[Z", ""}, {"BTab", "\x1b[Z", ""},
		{"Escape", "\x1b", ""}, {"Space", " ", ""}, {"BSpace", "\x7f", ""},
		{"C-c", "\x03", ""}, {"c-C", "\x03", ""}, {"^C", "\x03", ""}, {"C-[", "\x1b", ""}, {"C-Space", "\x00", ""},
		{"C-?", "\x7f", ""}, {"M-x", "\x1bx", ""}, {"C-M-x", "\x1b\x18", ""}, {"M-Enter", "\x1b\r", ""}, {"S-a", "A", ""},
		{"Up", "\x1b[A", "\x1bOA"}, {"Left", "\x1b[D", "\x1bOD"}, {"C-Right", "\x1b[1;5C", "\x1b[1;5C"},
		{"S-Up", "\x1b[1;2A", ""}, {"Home", "\x1b[H", "\x1bOH"},
		{"F1", "\x1bOP", "\x1bOP"}, {"F5", "\x1b[15~", ""}, {"S-F5", "\x1b[15;2~", ""}, {"PgUp", "\x1b[5~", ""},
		{"NPage", "\x1b[6~", ""}, {"DC", "\x1b[3~", ""}, {"C-S-F1", "\x1b[1;6P", ""},
		{"hello", "hello", ""}, {"x", "x", ""}, {"-", "-", ""}, {"a-b", "a-b", ""}, {"你", "你", ""}, {"M-é", "\x1bé", ""},
	} {
		got, err := key(c.key, false)
		if err != nil || got != c.want {
			t.Errorf("key(%q) = %q, %v, want %q", c.key, got, err, c.want)
		}
		if c.arrows == "" {
			continue
		}
		if got, err := key(c.key, true); err != nil || got != c.arrows {
			t.Errorf("key(%q) in application mode = %q, %v, want %q", c.key, got, err, c.arrows)
		}
	}
	for _, k := range []string{"C-é", "C-xy", "M-Nowhere", "C-1"} {
		if got, err := key(k, false); err == nil {
			t.Errorf("key(%q) = %q: no error", k, got)
		}
	}
	if b, err := keyInput([]string{"a", "Enter"}, []string{"1b 5b", "0x41"}, "é", false); err != nil ||
		string(b) != "a\r\x1b[Aé" {
		t.Errorf("typing = %q, %v", b, err)
	}
	for _, raw := range [][]string{{"xyz"}, {"1"}, {}} {
		if _, err := keyInput(nil, raw, "", false); err == nil {
			t.Errorf("hex %q: no error", raw)
		}
	}
	if got := string(pasteInput("a\x1b[201~b\x1b[20\x1b[201~1~c", true)); strings.Count(got, "\x1b[201~") != 1 ||
		got != "\x1b[200~abc\x1b[201~" {
		t.Errorf("pasted = %q", got)
	}
}

func FuzzKeys(f *testing.F) {
	for _, s := range []string{"Enter", "C-c", "M-x", "C-M-S-Up", "^C", "F12", "C--", "C-", "-", "S-",
		"你", "\x00", "C-\xff"} {
		f.Add(s, true)
		f.Add(s, false)
	}
	f.Fuzz(func(t *testing.T, name string, arrows bool) {
		s, err := key(name, arrows)
		if err == nil && (s == "") != (name == "") || len(s) > len(name)+8 {
			t.Errorf("key(%q) = %q, %v", name, s, err)
		}
		if p := pasteInput(name, true); bytes.Count(p, []byte("\x1b[201~")) != 1 {
			t.Errorf("pasted(%q) = %q", name, p)
		}
	})
}

// A spool retains the most recent bytes, in memory and in a file.
func TestSpool(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"", filepath.Join(t.TempDir(), "new", "folder")} {
		var all []byte
		s := spool{dir: dir}
		for n := 1; len(all) < 3*fileCapacity; n = n*3 + 7 {
			if n > 5_000_000 {
				n = 17
			}
			p := make([]byte, n)
			for i := range p {
				p[i] = byte((len(all) + i) * 31 >> 3)
			}
			s.write(p)
			all = append(all, p...)
			if s.size != int64(len(all)) || s.start() > s.size || s.size-s.start() > s.capacity() {
				t.Fatalf("%d of %d bytes from %d", s.size, len(all), s.start())
			}
			got, err := io.ReadAll(io.NewSectionReader(readerAt{&s}, s.start(), s.size-s.start()))
			if err != nil || !bytes.Equal(got, all[s.start():]) {
				t.Fatalf("dir %q, after %d bytes: %d are retained, %v", dir, len(all), len(got), err)
			}
		}
		if retained := s.size - s.start(); retained != s.capacity() {
			t.Errorf("dir %q: %d bytes are retained, want %d", dir, retained, s.capacity())
		}
		s.close()
		if s.size != s.start() {
			t.Error("bytes are retained after close")
		}
	}
	t.Run("file cannot be created", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		s := spool{dir: file}
		s.write(bytes.Repeat([]byte("x"), memCapacity+5))
		if s.size-s.start() != memCapacity || s.file != nil {
			t.Errorf("%d bytes are retained", s.size-s.start())
		}
	})
	t.Run("file fails", func(t *testing.T) {
		s := spool{dir: t.TempDir()}
		s.write(bytes.Repeat([]byte("x"), memCapacity+5))
		s.file.Close()
		s.write([]byte("after"))
		s.write([]byte(" that"))
		b := make([]byte, 20)
		if n, err := s.readAt(b, s.start()); err != nil && !errors.Is(err, io.EOF) || string(b[:n]) != "after that"[:n] {
			t.Errorf("%q, %v", b[:n], err)
		}
	})
}

type readerAt struct{ s *spool }

func (r readerAt) ReadAt(p []byte, off int64) (n int, err error) {
	for n < len(p) && err == nil {
		var k int
		k, err = r.s.readAt(p[n:], off+int64(n))
		n += k
	}
	return n, err
}

// No output is lost or returned twice, however it is split into writes.
func FuzzRecord(f *testing.F) {
	f.Add([]byte("a你\x1b[31mb\xffé\n"), uint8(3))
	f.Add([]byte("\x1b[1"), uint8(1))
	f.Add([]byte("one\ntwo\r\nthree"), uint8(200))
	f.Add([]byte("你好\u202e\tthree\n"), uint8(2))
	f.Fuzz(func(t *testing.T, b []byte, step uint8) {
		r := &record{}
		var got strings.Builder
		n := max(1, int(step))
		for rest := b; len(rest) > 0; rest = rest[min(n, len(rest)):] {
			r.write([]stream{stdout, stderr}[len(rest)%2], rest[:min(n, len(rest))])
			text, dropped, err := r.unread(false)
			if err != nil || dropped != 0 {
				t.Fatalf("%d characters are dropped, %v", dropped, err)
			}
			got.WriteString(text)
		}
		text, dropped, err := r.unread(true)
		got.WriteString(text)
		if want := string(b); plain(b) == want && got.String() != want || err != nil || dropped != 0 {
			t.Fatalf("%q, want %q; %d dropped, %v", got.String(), want, dropped, err)
		}
		p, err := r.lines(both, 0, 0)
		if err != nil || p.total != len(p.lines) || len(b) > 0 && p.total != bytes.Count(b, []byte("\n"))+
			btoi(b[len(b)-1] != '\n') {
			t.Fatalf("%d lines of %q, %v", p.total, b, err)
		}
		var total int
		for _, of := range []stream{stdout, stderr} {
			x, err := io.ReadAll(&reader{r: r, of: of})
			if err != nil {
				t.Fatal(err)
			}
			total += len(x)
		}
		if total != len(b) && len(b)/n < maxMarks { // with more changes the first marks are dropped
			t.Fatalf("%d bytes of %d in both streams", total, len(b))
		}
	})
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestMarks(t *testing.T) {
	t.Parallel()
	r := &record{}
	for i := range 3 * maxMarks {
		of := stdout
		if i%2 == 1 {
			of = stderr
		}
		r.write(of, fmt.Appendf(nil, "%s %d\n", of, i))
	}
	if len(r.marks) > maxMarks {
		t.Errorf("%d marks", len(r.marks))
	}
	p, err := r.lines(stderr, -maxMarks/4, 0)
	if err != nil || len(p.lines) != maxMarks/4 {
		t.Fatalf("%d lines, %v", len(p.lines), err)
	}
	for _, l := range p.lines {
		if !strings.HasPrefix(l, "stderr ") {
			t.Fatalf("%q is in the stderr lines", l)
		}
	}
}
