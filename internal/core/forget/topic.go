package forget

import (
	"errors"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/chela-ai/chela/internal/kit/humanize"
)

// Removed replaces lines that were removed where their place must not be empty: in
// transcripts and other records.
const Removed = "[removed on request]"

const (
	maxTopic = 200 // characters
	maxWords = 12
	// near is the number of lines of one statement within which all words must occur if no
	// line contains all of them.
	near = 3
)

// Topic is what is to be forgotten. The zero value finds nothing.
type Topic struct {
	text  string
	words []word
}

// word is a word or phrase that a text must contain.
type word struct {
	text  string
	whole bool // it must begin a word and may have an ending of endings
}

// endings are the ends that a word may have in addition. They are those of regular
// plurals, possessives and verbs in the languages of western Europe.
var endings = []string{"", "s", "es", "'s", "’s", "d", "ed", "ing", "e", "n", "en", "er", "em"}

// common are words that say nothing about a topic.
var common = strings.Fields(
	`a an the my your his her its our their of to in on at for with about and or is are was were be
i you he she it we they me him us them this that these those what who how when where all everything anything
der die das ein eine mein dein sein ihr unser von zu im in am an für mit über und oder ist sind war`)

// Parse reads a topic as a person writes it.
func Parse(text string) (Topic, error) {
	text = strings.Join(strings.Fields(norm.NFC.String(text)), " ")
	t := Topic{text: text}
	switch n := utf8.RuneCountInString(text); {
	case text == "":
		return t, errors.New("the topic is empty")
	case n > maxTopic:
		return t, errors.New("the topic is too long: use at most 200 characters")
	}
	if phrase, ok := quoted(text); ok {
		t.words = []word{{text: fold(phrase)}}
	} else {
		for _, w := range strings.FieldsFunc(fold(text), separates) {
			if !slices.ContainsFunc(t.words, func(have word) bool { return have.text == w }) {
				t.words = append(t.words, word{text: w, whole: !spaceless(w)})
			}
		}
		if rest := slices.DeleteFunc(slices.Clone(t.words),
			func(w word) bool { return slices.Contains(common, w.text) }); len(rest) > 0 {
			t.words = rest
		}
	}
	n := 0
	for _, w := range t.words {
		n += utf8.RuneCountInString(w.text)
	}
	switch {
	case n < 2:
		return t, errors.New("the topic is too short: it would find almost everything")
	case len(t.words) > maxWords:
		return t, errors.New("the topic has too many words: use at most 12, or a phrase in quotation marks")
	}
	return t, nil
}

// fold returns a text in the form in which texts are compared: without differences of case,
// and of how accents are written.
func fold(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return strings.ToLower(text)
	}
	return cases.Fold().String(norm.NFC.String(text))
}

// quoted returns the text between quotation marks.
func quoted(text string) (string, bool) {
	for _, q := range []string{`""`, "“”", "''", "「」", "«»", "„“"} {
		open, size := utf8.DecodeRuneInString(q)
		if rest, ok := strings.CutPrefix(text, string(open)); ok {
			if phrase, ok := strings.CutSuffix(rest, q[size:]); ok {
				return strings.TrimSpace(phrase), true
			}
		}
	}
	return "", false
}

func separates(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) && r != '\'' && r != '’'
}

// spaceless reports whether a word is of a language that writes no spaces between words.
func spaceless(w string) bool {
	return strings.ContainsFunc(w, func(r rune) bool {
		return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao,
			unicode.Khmer, unicode.Myanmar)
	})
}

// String returns the topic as it was written.
func (t Topic) String() string { return t.text }

// In reports whether a text is about the topic.
func (t Topic) In(text string) bool {
	_, removed := t.Cut(text, "")
	return len(removed) > 0
}

// Cut returns a text without the lines that are about the topic, and these lines. instead
// replaces each group of adjacent lines; "": nothing does.
func (t Topic) Cut(text, instead string) (rest string, removed []string) {
	if len(t.words) == 0 || !t.all(fold(text)) {
		return text, nil
	}
	lines := strings.SplitAfter(text, "\n")
	cut := t.lines(lines)
	var b strings.Builder
	for i, line := range lines {
		if !cut[i] {
			b.WriteString(line)
			continue
		}
		removed = append(removed, strings.TrimSpace(line))
		if instead != "" && (i == 0 || !cut[i-1]) {
			b.WriteString(instead)
			if strings.HasSuffix(line, "\n") {
				b.WriteByte('\n')
			}
		}
	}
	if len(removed) == 0 {
		return text, nil
	}
	return b.String(), removed
}

// all reports whether a folded text contains the beginnings of all words, which
// is quickly decided.
func (t Topic) all(lower string) bool {
	for _, w := range t.words {
		if !strings.Contains(lower, w.text) {
			return false
		}
	}
	return true
}

// lines returns which lines are about the topic.
func (t Topic) lines(lines []string) []bool {
	all := uint(1)<<len(t.words) - 1
	has := make([]uint, len(lines)) // the words of each line, as bits
	cut := make([]bool, len(lines))
	found := false
	for i, line := range lines {
		if strings.TrimSpace(line) == Removed {
			continue
		}
		lower := fold(line)
		for n, w := range t.words {
			if w.in(lower) {
				has[i] |= 1 << n
			}
		}
		cut[i] = has[i] == all
		found = found || cut[i]
	}
	if found {
		return cut
	}
	for i := range lines {
		end := i + 1
		for end < min(i+near, len(lines)) && !separate(lines[end-1], lines[end]) {
			end++
		}
		together := uint(0)
		for _, h := range has[i:end] {
			together |= h
		}
		if together != all {
			continue
		}
		for n := i; n < end; n++ {
			cut[n] = cut[n] || has[n] != 0
		}
	}
	return cut
}

// separate reports whether two adjacent lines say different things: the first one is a
// complete sentence, or both are entries of a list.
func separate(line, next string) bool {
	line, next = strings.TrimSpace(line), strings.TrimSpace(next)
	last, _ := utf8.DecodeLastRuneInString(line)
	return strings.ContainsRune(".!?…。！？", last) || isEntry(line) && isEntry(next)
}

// isEntry reports whether a line without spaces around it begins an entry of a list.
func isEntry(line string) bool {
	mark, _, ok := strings.Cut(line, " ")
	switch mark {
	case "-", "*", "+", "•":
		return ok
	}
	number := strings.TrimRight(mark, ".)")
	return ok && number != "" && number != mark && strings.Trim(number, "0123456789") == ""
}

// in reports whether a folded line contains the word.
func (w word) in(line string) bool {
	for at := 0; ; {
		i := strings.Index(line[at:], w.text)
		if i < 0 {
			return false
		}
		start, end := at+i, at+i+len(w.text)
		if !w.whole || begins(line, start) && ends(line[end:]) {
			return true
		}
		_, size := utf8.DecodeRuneInString(line[start:])
		at = start + size
	}
}

// begins reports whether a word begins at an index of a line.
func begins(line string, at int) bool {
	r, _ := utf8.DecodeLastRuneInString(line[:at])
	return at == 0 || !unicode.IsLetter(r) && !unicode.IsDigit(r)
}

// ends reports whether a word ends at the begin of a text, or after one of endings.
func ends(rest string) bool {
	for _, e := range endings {
		if after, ok := strings.CutPrefix(rest, e); ok {
			if r, _ := utf8.DecodeRuneInString(after); after == "" || !unicode.IsLetter(r) && !unicode.IsDigit(r) {
				return true
			}
		}
	}
	return false
}

// Sample returns the first of some removed lines, shortened for a list.
func Sample(removed []string) string {
	for _, line := range removed {
		if line != "" {
			return humanize.Truncate(line, 100)
		}
	}
	return ""
}
