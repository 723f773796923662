package tui

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// arrives returns what a keyboard returns, joined by "|" where it waited for more, if the
// terminal sends parts with a pause after each.
func arrives(t *testing.T, pause time.Duration, parts ...string) (got []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		in, terminal := io.Pipe()
		k, err := newKeyboard(in)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for _, p := range parts {
				_, _ = io.WriteString(terminal, p)
				time.Sleep(pause)
			}
			time.Sleep(time.Hour)
			terminal.Close()
		}()
		for {
			b := make([]byte, 1<<16)
			n, err := k.Read(b)
			if n > 0 {
				got = append(got, string(b[:n]))
			}
			if err != nil {
				break
			}
		}
		k.Close()
	})
	return got
}

func TestKeyboard(t *testing.T) {
	const a, b = pasteStart, pasteEnd
	long := strings.Repeat("a line of text\r", 2000)
	for _, tt := range []struct {
		name  string
		pause time.Duration
		parts []string
		want  string
	}{
		{"lines that arrive at once are a paste", 0, []string{"one\rtwo"}, a + "one\rtwo" + b},
		{"three lines", 0, []string{"one\rtwo\rthree"}, a + "one\rtwo\rthree" + b},
		{"the last line break does not send them", 0, []string{"one\rtwo\r"}, a + "one\rtwo\r" + b},
		{"in parts", time.Millisecond, []string{"one\r", "two\r", "three"}, a + "one\rtwo\rthree" + b},
		{"more than a buffer", 0, []string{long}, a + long + b},
		{"line feeds", 0, []string{"one\ntwo"}, a + "one\ntwo" + b},
		{"with a tab", 0, []string{"a\tyes"}, a + "a\tyes" + b},
		{"with a sequence within", 0, []string{"one\r\x1b[31mtwo"}, a + "one\r\x1b[31mtwo" + b},
		{"a line and Enter at once are sent", 0, []string{"hello\r"}, a + "hello" + b + "\r"},
		{"Enter alone", 0, []string{"\r"}, "\r"},
		{"a person types", time.Second, []string{"o", "n", "e", "\r", "t", "w", "o", "\r"}, "o|n|e|\r|t|w|o|\r"},
		{"a character and Enter", 0, []string{"y\r"}, "y\r"},
		{"tab and an answer", 0, []string{"\ty"}, "\ty"},
		{"a character of several bytes", 0, []string{"你"}, "你"},
		{"keys at once", 0, []string{"\x1b[A\x1b[A\r"}, "\x1b[A\x1b[A\r"},
		{"text at once", 0, []string{"hello"}, "hello"},
		{"a paste that the terminal marks", 0, []string{a + "one\rtwo\r" + b + "\r"}, a + "one\rtwo\r" + b + "\r"},
		{"a marked paste in parts", time.Second, []string{a + "one\rtwo", "\rthree\rfour", "\r\x1b[20", "1~", "x"},
			a + "one\rtwo|\rthree\rfour|\r|" + b + "|x"},
		{"a reply", 0, []string{"\x1b[?2026;2$y"}, "\x1b[?2026;2$y"},
		{"a reply and text", 0, []string{"\x1b[?2026;2$yone\rtwo\x1b[?1u"}, "\x1b[?2026;2$y" + a +
			"one\rtwo" + b + "\x1b[?1u"},
		{"a reply in parts", time.Minute, []string{"\x1b[?20", "26;", "2$y", "x"}, "\x1b[?2026;2$y|x"},
		{"a reply that was cut after its first character", 200 * time.Millisecond,
			[]string{"\x1b", "[?2026;2$y", "x"}, "\x1b[?2026;2$y|x"},
		{"a reply that was cut after its second character", time.Minute, []string{"\x1b[", "?1u"}, "\x1b[?1u"},
		{"text before the begin of a reply", time.Minute, []string{"x\x1b[?1", "u"}, "x|\x1b[?1u"},
		{"Escape", time.Second, []string{"\x1b", "x"}, "\x1b|x"},
		{"the rest of a reply whose begin was taken for Escape", time.Second, []string{"\x1b", "[?2026;2$y", "x"},
			"\x1b|\x1b[?2026;2$y|x"},
		{"a cursor position in parts", time.Minute, []string{"\x1b[1", "2;4", "0R", "x"}, "\x1b[12;40R|x"},
		{"the rest of a cursor position whose begin was taken for Escape", time.Second,
			[]string{"\x1b", "[12;40R", "x"}, "\x1b|\x1b[12;40R|x"},
		{"the rest of a color whose begin was taken for a key", time.Second, []string{"\x1b]", "11;rgb:00/00/00\x1b\\", "x"},
			"\x1b]|\x1b]11;rgb:00/00/00\x1b\\|x"},
		{"attributes in single characters", 200 * time.Millisecond, strings.Split("\x1b[ ? 6 2 ; 2 2 c x", " "),
			"\x1b[?62;22c|x"},
		{"Escape, then a bracket", time.Second, []string{"\x1b", "[", "1"}, "\x1b|[|1"},
		{"what may be a color but is Enter", time.Second, []string{"\x1b]1", "2", "\r"}, "\x1b]12\r"},
		{"Alt and a key", time.Second, []string{"\x1bx"}, "\x1bx"},
		{"Alt and a bracket", time.Second, []string{"\x1b]", "hello"}, "\x1b]|hello"},
		{"a color in parts", time.Second, []string{"\x1b]11;rgb:00", "00/0000/0000\a"}, "\x1b]11;rgb:0000/0000/0000\a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := strings.Join(arrives(t, tt.pause, tt.parts...), "|"); got != tt.want {
				t.Errorf("got %.200q, want %.200q", got, tt.want)
			}
		})
	}
	t.Run("it takes nothing after its end", func(t *testing.T) {
		in, terminal := io.Pipe()
		k, err := newKeyboard(in)
		if err != nil {
			t.Fatal(err)
		}
		k.Close()
		terminal.Close()
		if b, err := io.ReadAll(k); len(b) > 0 || err == nil {
			t.Errorf("read %q, %v", b, err)
		}
	})
}

func FuzzMarker(f *testing.F) {
	for _, s := range []string{"one\rtwo", "\x1b[200~a\x1b[201~", "\x1b[?1u", "\x1b", "\x1b[?",
		"\x1b[200~a", "x\x1b[?1\x1b[?2"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var m marker
		without := func(b []byte) []byte {
			return bytes.ReplaceAll(bytes.ReplaceAll(b, []byte(pasteStart), nil), []byte(pasteEnd), nil)
		}
		if bytes.Contains(b, []byte("[20")) {
			t.Skip() // removing marks could join others
		}
		if got := m.mark(b); !bytes.Equal(without(got), b) {
			t.Fatalf("%q became %q", b, got)
		}
	})
}
