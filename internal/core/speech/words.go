package speech

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/chela-ai/chela/internal/kit/humanize"
)

// minWords is the number of characters below which an answer is not said of itself.
const minWords = 10

var (
	fence = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile("(?ms)^[ \t]*(```|~~~).*?(^[ \t]*(```|~~~)[ \t]*$|\\z)")
	})
	link = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`!?\[([^\]\n]*)\]\([^)\n]*\)`) })
	bare = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`<?\bhttps?://[^\s<>)]+>?`) })
	lead = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?m)^[ \t]*(#{1,6}[ \t]+|>[ \t]?|[-*+][ \t]+(\[[ xX]\][ \t]+)?)`)
	})
	rule = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?m)^[ \t]*([-*_][ \t]*){3,}$|^[ \t]*\|?[ \t:|-]*-{3,}[ \t:|-]*$`)
	})
	stars = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile("[*~]{1,3}([^\\s*~](?:[^*~\n]*[^\\s*~])?)[*~]{1,3}|`([^`\n]*)`")
	})
	unders = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?m)(^|[\s(])_{1,3}([^\s_](?:[^_\n]*[^\s_])?)_{1,3}`)
	})
	cells  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^[ \t]*\|(.*)\|[ \t]*$`) })
	blanks = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\n{3,}`) })
)

// Words returns what is said of a text in Markdown, of at most limit characters: without
// code, addresses and marks.
func Words(md string, limit int) string {
	text := fence().ReplaceAllString(md, "")
	text = link().ReplaceAllString(text, "$1")
	text = bare().ReplaceAllString(text, "")
	text = rule().ReplaceAllString(text, "")
	text = cells().ReplaceAllStringFunc(text, func(row string) string {
		var out []string
		for _, c := range strings.Split(strings.Trim(strings.TrimSpace(row), "|"), "|") {
			if c = strings.TrimSpace(c); c != "" {
				out = append(out, c)
			}
		}
		return strings.Join(out, ", ") + "."
	})
	text = lead().ReplaceAllString(text, "")
	text = unders().ReplaceAllString(stars().ReplaceAllString(text, "$1$2"), "$1$2")
	text = strings.TrimSpace(blanks().ReplaceAllString(strings.Map(sayable, text), "\n\n"))
	return shorten(text, limit)
}

// sayable leaves out what no voice says: control characters and pictures.
func sayable(r rune) rune {
	if r != '\n' && r != '\t' && unicode.IsControl(r) || unicode.Is(unicode.So, r) || r == '\uFE0F' || r == '\u200D' {
		return -1
	}
	return r
}

// shorten cuts a text after a sentence, if there is one in the second half of what fits.
func shorten(text string, limit int) string {
	runes := []rune(text)
	if len(runes) <= limit {
		return text
	}
	runes = runes[:limit]
	for i := len(runes) - 1; i > limit/2; i-- {
		switch runes[i] {
		case '\n', '。', '！', '？':
			return strings.TrimSpace(string(runes[:i+1]))
		case '.', '!', '?':
			if i+1 == len(runes) || unicode.IsSpace(runes[i+1]) {
				return string(runes[:i+1])
			}
		}
	}
	return humanize.Truncate(text, limit-1)
}

// OfItself reports whether a text is worth saying when nobody asked for it: it is neither
// very short, nor mostly code.
func OfItself(md string) bool {
	words, code := len([]rune(Words(md, len(md)))), 0
	for _, block := range fence().FindAllString(md, -1) {
		code += len([]rune(block))
	}
	return words >= minWords && words >= code
}

// tag matches [[tts]], [[tts:…]], and the two that surround a text: [[tts:text]] and
// [[/tts:text]].
var tag = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`[ \t]*\[\[[ \t]*(/?tts:text|/?tts(?::[^\[\]\n]{0,300})?)[ \t]*\]\][ \t]?`)
})

// Tags removes the tags with which an answer asks to be said. say is what it wants to be
// said instead of its text; "": its text. found reports whether there is a tag.
func Tags(text string) (clean, say string, found bool) {
	if !strings.Contains(text, "tts") {
		return text, "", false
	}
	all := tag().FindAllStringSubmatchIndex(text, -1)
	if len(all) == 0 {
		return text, "", false
	}
	last := -1 // the last tag that ends a text
	for i, m := range all {
		if text[m[2]:m[3]] == "/tts:text" {
			last = i
		}
	}
	var b strings.Builder
	var parts []string
	begin, inside := 0, false
	for i, m := range all {
		if piece := text[begin:m[0]]; inside {
			parts = append(parts, strings.TrimSpace(piece))
		} else {
			b.WriteString(piece)
		}
		begin = m[1]
		inside = text[m[2]:m[3]] == "tts:text" && i < last
	}
	b.WriteString(text[begin:])
	return strings.TrimSpace(b.String()),
		strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "\n"), true
}
