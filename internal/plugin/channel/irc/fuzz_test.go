package irc

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzLine parses lines of the protocol and divides texts.
func FuzzLine(f *testing.F) {
	for _, s := range []string{
		"@time=2026-01-02T03:04:05.000Z;account=a\\:b :nick!u@h PRIVMSG #c :hello world", "PING :x", ":s 001 me :hi", "@",
		":", " ", "PRIVMSG", "a  b   :", "\x0304,05x\x03,\x031",
		strings.Repeat("汉", 400), "chela: x", "\x01ACTION \x01",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		l := parseLine(s)
		_ = l.nick() + l.arg(99)
		_ = clip(s)
		if u := unformatted(s); len(u) > len(s) {
			t.Errorf("unformatted(%q) = %q", s, u)
		}
		if text, _ := mention(s, "chela"); len(text) > len(s) {
			t.Errorf("mention(%q) = %q", s, text)
		}
		if o := oneLine(s); len(o) > maxWrite+2 || strings.ContainsAny(o, "\r\n\x00") {
			t.Errorf("oneLine(%q) = %q", s, o)
		}
		for _, part := range split(s) {
			if part == "" || len(part) > maxText || !utf8.ValidString(part) || strings.ContainsAny(part, "\r\n\x00") {
				t.Errorf("split(%q) has %q", s, part)
			}
		}
	})
}
