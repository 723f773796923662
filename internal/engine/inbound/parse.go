package inbound

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/sandbox"
)

// commandLine is a parsed slash command.
type commandLine struct {
	name string // lower case, without the slash
	bot  string // of "/name@bot"
	args string // the rest, trimmed
}

// parse parses a command at the beginning of s: "/name args", "/name: args",
// "/name@bot args". It does not check whether a command with the name exists. A
// path such as "/usr/bin" is not a command.
func parse(s string) (commandLine, bool) {
	s, ok := cutSlash(strings.TrimSpace(s))
	if !ok {
		return commandLine{}, false
	}
	n := wordLen(s)
	if n == 0 || !isLetter(s[0]) {
		return commandLine{}, false
	}
	w := commandLine{name: strings.ToLower(s[:n])}
	s = s[n:]
	if rest, ok := strings.CutPrefix(s, "@"); ok {
		if n = wordLen(rest); n == 0 {
			return commandLine{}, false
		}
		w.bot, s = rest[:n], rest[n:]
	}
	r, size := utf8.DecodeRuneInString(s)
	switch {
	case s == "" || unicode.IsSpace(r):
	case r == ':' || r == '：':
		s = s[size:]
	default:
		return commandLine{}, false
	}
	w.args = strings.TrimSpace(s)
	return w, true
}

// cutSlash removes a leading slash, also a wide one, which keyboards for Chinese and
// Japanese write.
func cutSlash(s string) (rest string, ok bool) {
	if rest, ok = strings.CutPrefix(s, "/"); !ok {
		rest, ok = strings.CutPrefix(s, "／")
	}
	return rest, ok
}

// almost returns the command that a text was probably meant to be although [parse] finds
// none: "/name?", "/ name" or only slashes, which name none. typed is the part that was
// mistaken, known reports whether there is a command with the name. Several lines after
// "/ name" are text.
func almost(s string, known func(name string) bool) (typed, name string, ok bool) {
	s = strings.TrimSpace(s)
	rest, ok := cutSlash(s)
	switch {
	case !ok:
		return "", "", false
	case strings.Trim(rest, "/／") == "":
		return s, "", true
	}
	word := strings.TrimLeftFunc(rest, unicode.IsSpace)
	n := wordLen(word)
	if n == 0 || !isLetter(word[0]) {
		return "", "", false
	}
	name = strings.ToLower(word[:n])
	if len(word) < len(rest) {
		return "/ " + word[:n], name, known(name) && ends(word[n:]) && !strings.Contains(s, "\n")
	}
	after := strings.TrimLeft(word[n:], "?!.,;？！。，；…")
	typed = "/" + word[:len(word)-len(after)]
	return typed, name, len(after) < len(word[n:]) && (after == "" || ends(after) && known(name))
}

// wordLen returns the length of the name at the beginning of s.
func wordLen(s string) int {
	for i := range len(s) {
		if !(isLetter(s[i]) || s[i] >= '0' && s[i] <= '9' || s[i] == '_' || s[i] == '-') {
			return i
		}
	}
	return len(s)
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// directives are the settings and commands inside a message.
type directives struct {
	text                                      string // the message without them
	think                                     llm.Level
	exec                                      run.Exec
	mode                                      queue.Mode
	fast, verbose, reasoning, elevated, model string
	names                                     []string // commands to be executed with the message
}

// directiveRules is what a sender may write inside a message.
type directiveRules struct {
	settings bool                   // directives
	elevated bool                   // the directive /elevated
	inline   func(name string) bool // commands
	model    func(name string) bool // reports whether a word names a model
}

// parseDirectives removes directives from a text, such as "/think low" and "/queue
// steer", and commands. A directive without a valid value remains in the text, and so does
// a command that the text is about.
func parseDirectives(text string, p directiveRules) directives {
	d := directives{text: text}
	if !strings.Contains(text, "/") {
		return d
	}
	lines := strings.Contains(strings.TrimSpace(text), "\n")
	var out strings.Builder
	rest, found := text, false
	start := true // rest begins with a word
	for rest != "" {
		i := slash(rest, start)
		if i < 0 {
			break
		}
		out.WriteString(rest[:i])
		rest = rest[i:]
		after := d
		after.names = slices.Clip(d.names)
		n := after.take(rest, p)
		if n == 0 || mentions(out.String(), rest[n:], lines) {
			out.WriteByte('/')
			rest, start = rest[1:], false
			continue
		}
		d, found, start = after, true, true
		rest = strings.TrimLeft(rest[n:], " \t")
	}
	if !found {
		return d
	}
	out.WriteString(rest)
	d.text = strings.TrimSpace(out.String())
	return d
}

// objects are the words before a command that a text is about.
var objects = strings.Fields("a about an as by called command commands does for from had has have is like named of on or run runs said say says than that the type typed use used uses using was with without")

// mentions reports whether a text is about the command that stands between two parts of it:
// in the middle of several lines, which were probably pasted, or where an object stands.
func mentions(before, after string, lines bool) bool {
	words := strings.Fields(before)
	if len(words) == 0 || strings.TrimSpace(after) == "" {
		return false
	}
	return lines || slices.Contains(objects, strings.ToLower(strings.Trim(words[len(words)-1], ",;:")))
}

// slash returns the position of the next slash at the beginning of a word, or -1.
// start says that s begins a word.
func slash(s string, start bool) int {
	for i := range len(s) {
		if s[i] != '/' {
			continue
		}
		if i == 0 && start || i > 0 && strings.ContainsRune(" \t\n", rune(s[i-1])) {
			return i
		}
	}
	return -1
}

// take parses the directive at the beginning of s and returns its length; 0: there
// is none.
func (d *directives) take(s string, p directiveRules) int {
	n := 1 + wordLen(s[1:])
	name, after := strings.ToLower(s[1:n]), s[n:]
	if p.inline(name) {
		if end := len(after) - len(strings.TrimLeft(after, ":：")); ends(after[end:]) {
			d.names = append(d.names, name)
			return n + end
		}
		return 0
	}
	gap := len(after) - len(strings.TrimLeft(after, ":： \t"))
	if gap == 0 || !p.settings {
		return 0
	}
	if name == "exec" {
		e, end := takeExec(after[gap:])
		if end == 0 {
			return 0
		}
		d.exec = e
		return n + gap + end
	}
	size := wordLen(after[gap:])
	if name == "model" { // names of models have other signs
		if size = strings.IndexFunc(after[gap:], unicode.IsSpace); size < 0 {
			size = len(after) - gap
		}
	}
	value := after[gap : gap+size]
	if !ends(after[gap+size:]) {
		return 0
	}
	switch name {
	case "think", "thinking", "t":
		level, ok := llm.ParseLevel(value)
		if !ok {
			return 0
		}
		d.think = level
	case "queue":
		mode, ok := queue.ParseMode(value)
		if !ok {
			return 0
		}
		d.mode = mode
	case "fast":
		return d.set(&d.fast, value, llm.FastModes[:], n+gap+size)
	case "verbose", "v":
		return d.set(&d.verbose, value, verboseLevels, n+gap+size)
	case "reasoning", "reason":
		return d.set(&d.reasoning, value, reasoningLevels, n+gap+size)
	case "elevated":
		if !p.elevated {
			return 0
		}
		return d.set(&d.elevated, value, sandbox.ElevatedLevels, n+gap+size)
	case "model":
		if !p.model(value) {
			return 0
		}
		d.model = value
	default:
		return 0
	}
	return n + gap + size
}

// set sets a directive to one of its values. It returns the length of the directive; 0:
// the value is not valid.
func (d *directives) set(to *string, value string, values []string, n int) int {
	value = strings.ToLower(value)
	if !slices.Contains(values, value) {
		return 0
	}
	*to = value
	return n
}

// ends reports whether s starts with the end of a word.
func ends(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return s == "" || unicode.IsSpace(r)
}
