package irc

import (
	"strings"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/kit/humanize"
)

const (
	maxLine  = 16 << 10 // bytes of a line that arrives, with its tags
	maxWrite = 510      // bytes of a line that is sent, without its end
	maxText  = 350      // bytes of the text in a line: the server puts the sender before it
)

// line is a line of the protocol.
type line struct {
	tags    map[string]string
	source  string // nick!user@host, or the name of a server
	command string
	params  []string
}

// arg returns a parameter; "" if it is missing.
func (l line) arg(i int) string {
	if i < len(l.params) {
		return l.params[i]
	}
	return ""
}

// nick returns the nick of the source.
func (l line) nick() string {
	nick, _, _ := strings.Cut(l.source, "!")
	return nick
}

// parseLine parses a line without its end.
func parseLine(s string) line {
	var l line
	s = strings.ToValidUTF8(s, "\uFFFD")
	if rest, ok := strings.CutPrefix(s, "@"); ok {
		tags, after, _ := strings.Cut(rest, " ")
		l.tags, s = map[string]string{}, after
		for tag := range strings.SplitSeq(tags, ";") {
			key, value, _ := strings.Cut(tag, "=")
			l.tags[key] = unescapeTag.Replace(value)
		}
	}
	s = strings.TrimLeft(s, " ")
	if rest, ok := strings.CutPrefix(s, ":"); ok {
		l.source, s, _ = strings.Cut(rest, " ")
	}
	for s = strings.TrimLeft(s, " "); s != ""; s = strings.TrimLeft(s, " ") {
		if rest, ok := strings.CutPrefix(s, ":"); ok && l.command != "" {
			l.params = append(l.params, rest)
			break
		}
		var p string
		p, s, _ = strings.Cut(s, " ")
		if l.command == "" {
			l.command = strings.ToUpper(p)
		} else {
			l.params = append(l.params, p)
		}
	}
	return l
}

var unescapeTag = strings.NewReplacer(`\:`, ";", `\s`, " ", `\\`, `\`, `\r`, "\r", `\n`, "\n")

// oneLine replaces what would end a line, and removes what is too long.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == '\r' || r == '\n' || r == 0 {
			return ' '
		}
		return r
	}, s)
	if len(s) > maxWrite {
		s = s[:end(s, maxWrite)]
	}
	return s
}

// end returns the largest end of a prefix of s of at most most bytes that has whole
// characters.
func end(s string, most int) int {
	if len(s) <= most {
		return len(s)
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return most
}

// split returns a text as lines of at most maxText bytes, divided between words if
// possible. Empty lines are left out.
func split(text string) []string {
	var out []string
	for l := range strings.SplitSeq(humanize.Breaks(text), "\n") {
		l = strings.TrimRight(strings.ReplaceAll(oneText(l), "\t", "    "), " ")
		for len(l) > maxText {
			i := end(l, maxText)
			if space := strings.LastIndexByte(l[:i], ' '); space > maxText/2 {
				i = space
			}
			out = append(out, strings.TrimRight(l[:i], " "))
			l = strings.TrimLeft(l[i:], " ")
		}
		if l != "" {
			out = append(out, l)
		}
	}
	return out
}

// oneText removes control characters, which are commands and colors in IRC.
func oneText(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

// unformatted removes colors and styles from a text.
func unformatted(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == 3: // up to two digits, and two more after a comma
			i += digits(s[i+1:], 2)
			if i+2 < len(s) && s[i+1] == ',' && digits(s[i+2:], 2) > 0 {
				i += 1 + digits(s[i+2:], 2)
			}
		case c < ' ' && c != '\t' || c == 0x7f:
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

func digits(s string, most int) int {
	n := 0
	for n < len(s) && n < most && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}
