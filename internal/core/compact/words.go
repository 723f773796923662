package compact

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/core/llm"
)

// sentences returns the sentences and lines of a text.
func sentences(s string) iter.Seq[string] {
	return func(yield func(string) bool) {
		start := 0
		for i, r := range s {
			end := i + utf8.RuneLen(r)
			switch r {
			case '\n', '。', '！', '？', '；':
			case '.', '!', '?', ';':
				if end < len(s) && s[end] != ' ' && s[end] != '\n' || abbreviation(s[start:i]) {
					continue
				}
			default:
				continue
			}
			if i < start { // an invalid byte counts as one
				continue
			}
			if t := strings.TrimSpace(s[start:min(end, len(s))]); t != "" && !yield(t) {
				return
			}
			start = min(end, len(s))
		}
		if t := strings.TrimSpace(s[start:]); t != "" {
			yield(t)
		}
	}
}

// abbreviation reports whether the last word of s is one that a period follows within a
// sentence.
func abbreviation(s string) bool {
	switch s[strings.LastIndexAny(s, " \t(")+1:] {
	case "Dr", "Mr", "Mrs", "Ms", "Prof", "St", "No", "Nr", "vs", "e.g", "i.e", "approx", "ca":
		return true
	}
	return false
}

// marked returns the score of a sentence that is an instruction, a decision or a wish
// of the person, or a promise of the assistant; 0: it is none.
func marked(s string, from llm.Role) int {
	low := " " + strings.ToLower(s) + " "
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(low, w) {
				return true
			}
		}
		return false
	}
	switch from {
	case llm.RoleUser, fromSummary:
		switch {
		case has(" always ", " never ", "from now on", " remember", "don't forget", "dont forget", "do not ", "don't ",
			"important", " i prefer", "correction", "todo", "to do:",
			"decided", "we agreed", "go with ", "deadline", " must ", "make sure", "allergic", "call me ", "my name is",
			"no longer", "instead of", "hand in "):
			return scoreMarked
		case has("以后", "从现在", "记住", "记得", "别忘", "不要", "千万", "务必", "必须", "一定要", "总是", "永远", "禁止", "喜欢", "偏好", "重要", "决定", "约定",
			"说好", "改为", "改成", "更正", "待办", "截止", "过敏", "我叫", "叫我"):
			return scoreMarked
		case has(" i want", " i need", " i like", " i hate", " i'm ", " i am ", " my ", "please use", " use ", "we need",
			"let's", " only ", " please ", "我希望", "我想", "我要", "我的", "每天", "每周", "每月", "请"):
			return scoreWish
		}
	case llm.RoleAssistant:
		if has(" i will ", " i'll ", " i won't ", " i’ll ", "i'm going to", "i am going to", " i promise", " i shall ",
			"we decided", "we agreed", "我会", "我将", "我来", "我稍后", "我明天", "我保证") {
			return scoreMarked
		}
	}
	return 0
}

// token is a literal in a sentence.
type token struct {
	text  string
	score int
}

// tokens returns the ids, links, paths, dates, amounts, numbers and names of a sentence.
func tokens(s string) (out []token) {
	words := split(s)
	for i := 0; i < len(words); i++ {
		w := words[i]
		next := func(n int) string {
			if i+n < len(words) && words[i+n].space {
				return words[i+n].text
			}
			return ""
		}
		switch kind := w.kind(); kind {
		case 0:
		case scoreNumber:
			// A number with what it counts, or a part of a date.
			if j := numbers(words, i); j > i {
				out = append(out, token{s[w.start:words[j].end], scoreID})
				i = j
				continue
			}
			unit := next(1)
			switch {
			case isMonth(unit) || i > 0 && isMonth(words[i-1].text):
				from, to := w.start, w.end
				if isMonth(unit) {
					to = words[i+1].end
				} else {
					from = words[i-1].start
				}
				out = append(out, token{s[from:to], scoreDate})
			case isUnit(unit):
				out = append(out, token{s[w.start:words[i+1].end], scoreAmount})
				i++
			case i > 0 && w.space && isUnit(words[i-1].text) || strings.ContainsAny(w.text, "$€£¥%") || len(w.text) > 2:
				out = append(out, token{w.text, scoreAmount})
			default:
				out = append(out, token{w.text, scoreNumber})
			}
		case scoreName:
			j := i
			for j+1 < len(words) && words[j+1].space && words[j+1].kind() == scoreName && words[j].end+1 == words[j+1].start {
				j++
			}
			if i > 0 || j > i { // the first word of a sentence has a capital letter anyway
				out = append(out, token{s[w.start:words[j].end], scoreName})
			}
			i = j
		default:
			out = append(out, token{w.text, kind})
		}
	}
	return out
}

// numbers returns the index of the last word of a telephone number that begins at i.
func numbers(words []word, i int) int {
	if words[i].text[0] != '+' {
		return i
	}
	j := i
	for j+1 < len(words) && words[j+1].space && words[j+1].kind() == scoreNumber {
		j++
	}
	return j
}

// word is a part of a sentence without spaces.
type word struct {
	text       string
	start, end int
	space      bool // a space precedes it
}

// split returns the words of a sentence. Chinese text is divided from what is within
// it; numbers keep the Chinese units that follow them.
func split(s string) (out []word) {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == '《' || r == '“' || r == '「' {
			if end := strings.IndexAny(s[i:], "》”」"); end > n && end < 120 {
				_, m := utf8.DecodeRuneInString(s[i+end:])
				out = append(out, word{text: s[i : i+end+m], start: i, end: i + end + m, space: true})
				i += end + m
				continue
			}
		}
		if !inWord(r) {
			i += n
			continue
		}
		start, path := i, false
		han := isHan(r)
		digits := r >= '0' && r <= '9'
		for i < len(s) {
			r, n := utf8.DecodeRuneInString(s[i:])
			if !inWord(r) {
				break
			}
			if !han && (r == '/' || r == '\\') && (i == start || s[i-1] == '~' || s[i-1] == ':' || path) {
				path = true
			}
			if h := isHan(r); h != han && !path {
				if !(h && digits && isHanUnit(r)) && !(!h && digits) {
					break
				}
			} else if h && digits && !isHanUnit(r) {
				break
			}
			i += n
			if digits {
				han = isHan(r)
			}
		}
		end := start + len(trimPunct(s[start:i]))
		if end > start {
			out = append(out, word{text: s[start:end], start: start, end: end, space: start == 0 || s[start-1] == ' ' ||
				s[start-1] == '\t' || s[start-1] >= 0x80 || s[start-1] == '('})
		}
	}
	return out
}

// inWord reports whether a character belongs to a word.
func inWord(r rune) bool {
	if r < 0x80 {
		return r > ' ' && !strings.ContainsRune("\"'`()<>[]{}|", r) && r != 0x7f
	}
	return unicode.IsLetter(r) || unicode.IsNumber(r) || r == '°' || r == '€' || r == '£' || r == '¥' || r == '％'
}

func isHan(r rune) bool { return r >= 0x2e80 && unicode.Is(unicode.Han, r) }

func isHanUnit(r rune) bool {
	return strings.ContainsRune("年月日号点分秒时元块万亿千百条个人天周米克斤吨度岁次页层楼", r)
}

// trimPunct removes punctuation from the end of a word.
func trimPunct(s string) string { return strings.TrimRight(s, ".,;:!?=&") }

// kind returns the score of a word, or 0.
func (w word) kind() int {
	s := w.text
	first, _ := utf8.DecodeRuneInString(s)
	letters, numerals, upper, under, other, hans := 0, 0, 0, 0, 0, 0
	for _, r := range s {
		switch {
		case r >= '0' && r <= '9':
			numerals++
		case r >= 'A' && r <= 'Z':
			upper, letters = upper+1, letters+1
		case r == '_':
			under++
		case isHan(r):
			hans++
		case unicode.IsLetter(r):
			letters++
		default:
			other++
		}
	}
	switch {
	case first == '《' || first == '“' || first == '「':
		return scoreID
	case strings.Contains(s, "://") && len(s) > 6:
		return scoreID
	case strings.Contains(s, "@") && letters > 2:
		return scoreID
	case isPath(s):
		return scoreID
	case numerals > 0 && hans > 0:
		return scoreDate
	case hans > 0:
		return 0
	case first == '#' && numerals > 0:
		return scoreID
	case numerals > 0 && letters > 0:
		if strings.Contains(s, "=") || len(s) > 2 {
			return scoreID
		}
		return scoreNumber
	case numerals > 0 && strings.Count(s, "-")+strings.Count(s, "/")+strings.Count(s, ":") > 0:
		return scoreDate
	case numerals > 0 && strings.Count(s, ".") > 1 || numerals > 0 && strings.ContainsAny(s, "#*"):
		return scoreID
	case numerals > 0:
		return scoreNumber
	case under > 0 && letters > 2 || upper > 1 && strings.Contains(s, "-"):
		return scoreID
	case letters > 3 && strings.Contains(strings.Trim(s, "."), ".") && !strings.Contains(s, "..") && other < 5:
		return scoreID // a file or a host
	case unicode.IsUpper(first) && letters > 1 && other == 0 && !stopword(strings.ToLower(s)):
		return scoreName
	}
	return 0
}

// isPath reports whether a word is the path of a file.
func isPath(s string) bool {
	if len(s) < 4 {
		return false
	}
	return s[0] == '/' && s[1] != '/' || strings.HasPrefix(s, "~/") || strings.HasPrefix(s, "./") ||
		strings.HasPrefix(s, "../") ||
		s[1] == ':' && s[2] == '\\' || strings.HasPrefix(s, `\\`)
}

// isMonth reports whether a word is the English name of a month.
func isMonth(s string) bool {
	if len(s) < 3 || s[0] < 'A' || s[0] > 'Z' {
		return false
	}
	switch strings.ToLower(s[:3]) {
	case "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec":
		return len(s) == 3 ||
			strings.Contains(" january february march april may june july august september october november december ",
				" "+strings.ToLower(s)+" ")
	}
	return false
}

// isUnit reports whether a word may be what a number counts.
func isUnit(s string) bool {
	if s == "" || len(s) > 12 || stopword(strings.ToLower(s)) {
		return false
	}
	for _, r := range s {
		if r >= '0' && r <= '9' || isHan(r) {
			return false
		}
	}
	return true
}

// stopword reports whether a word carries no meaning of its own.
func stopword(s string) bool {
	switch s {
	case "the", "and", "for", "are", "was", "were", "with", "that", "this", "have", "has", "from", "you", "your", "its",
		"not", "but", "can", "all", "any",
		"will", "would", "should", "could", "please", "about", "into", "then", "than", "them", "they", "there", "here",
		"what", "when", "where", "which", "who", "how",
		"why", "yes", "now", "just", "also", "let", "ok", "okay", "i", "a", "an", "to", "of", "in", "on", "at", "by", "is",
		"it", "be", "as", "or", "if", "so", "we", "my",
		"me", "do", "did", "does", "done", "per", "that's", "it's", "i'm", "i'll", "don't", "no", "up", "out", "use",
		"before", "after", "he", "she", "his", "her":
		return true
	}
	return false
}

// keywords returns the words of a lower-case text that carry its meaning: words without
// stopwords, and pairs of Chinese characters.
func keywords(s string) iter.Seq[string] {
	return func(yield func(string) bool) {
		start := -1
		var before rune
		var at int
		word := func(end int) bool {
			if start < 0 {
				return true
			}
			w := s[start:end]
			start = -1
			return len(w) < 3 && (w[0] < '0' || w[0] > '9') || stopword(w) || yield(w)
		}
		for i, r := range s {
			switch {
			case isHan(r):
				if !word(i) {
					return
				}
				if before != 0 && !yield(s[at:i+utf8.RuneLen(r)]) {
					return
				}
				before, at = r, i
				continue
			case unicode.IsLetter(r) || unicode.IsNumber(r) || r == '_':
				if start < 0 {
					start = i
				}
			default:
				if !word(i) {
					return
				}
			}
			before = 0
		}
		word(len(s))
	}
}
