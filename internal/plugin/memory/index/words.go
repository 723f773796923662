package index

import (
	"strings"
	"unicode"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/english"
	"golang.org/x/text/unicode/norm"
)

// maxWord bounds the bytes of a term. Longer words are data rather than language.
const maxWord = 64

// A speller turns text into terms. It must be used by one goroutine at a time.
type speller struct {
	env     *snowballstem.Env
	bases   map[string]string   // of irregular words
	light   map[string]bool     // terms of lightWords; nil: not needed yet
	related map[string][]string // terms of synonyms, likewise
}

func newSpeller() *speller {
	s := &speller{env: snowballstem.NewEnv(""), bases: map[string]string{}}
	for _, pair := range irregular {
		form, base, _ := strings.Cut(pair, ":")
		s.bases[form] = base
	}
	return s
}

// A piece is a part of a text that is looked at on its own: a word, or a run of
// characters of a script that is written without spaces.
type piece struct {
	text string // in the form in which terms are compared
	han  bool   // a run of such characters
}

// pieces calls f for each piece of a text. Letters are compared without case and accents.
func pieces(text string, f func(piece)) {
	var b strings.Builder
	han := false
	end := func() {
		if b.Len() > 0 {
			f(piece{b.String(), han})
			b.Reset()
		}
	}
	for _, r := range norm.NFKD.String(text) {
		switch {
		case unicode.Is(unicode.Mn, r): // an accent
		case unicode.Is(unicode.Cf, r) && r != '\u200b': // invisible, such as a mark of the direction of writing
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai):
			if !han {
				end()
			}
			han = true
			b.WriteRune(r)
		case unicode.IsLetter(r), unicode.IsDigit(r):
			if han {
				end()
			}
			han = false
			b.WriteRune(unicode.ToLower(r))
		case r == '\'' || r == '’': // don't, Anna's
		default:
			end()
			if w := symbol(r); w != "" {
				f(piece{w, false})
			}
		}
	}
	end()
}

// symbol returns the word that a symbol is compared as; "": it is left out.
func symbol(r rune) string {
	switch {
	case r == '%':
		return "percent"
	case r == '°':
		return "degree"
	case unicode.Is(unicode.Sc, r): // a currency
		return "money"
	}
	return ""
}

// stem returns the term of a word.
func (s *speller) stem(word string) string {
	if len(word) > maxWord {
		word = strings.ToValidUTF8(word[:maxWord], "")
	}
	if base, ok := s.bases[word]; ok {
		word = base
	}
	if len(word) < 3 || word[0] < 'a' || word[0] > 'z' {
		return word
	}
	s.env.SetCurrent(word)
	english.Stem(s.env)
	return s.env.Current()
}

// terms returns the terms of a text, in order. A run of characters without spaces has a
// term for each character and for each pair.
func (s *speller) terms(text string) []string {
	var out []string
	pieces(text, func(p piece) {
		if !p.han {
			out = append(out, s.stem(p.text))
			return
		}
		for i, last := 0, 0; i < len(p.text); {
			size := runeSize(p.text[i:])
			out = append(out, p.text[i:i+size])
			if i > 0 {
				out = append(out, p.text[last:i+size])
			}
			last, i = i, i+size
		}
	})
	return out
}

func runeSize(s string) int {
	for i := range s {
		if i > 0 {
			return i
		}
	}
	return len(s)
}

// A cell is a part of a question that a note may contain: a word, or one character of a
// run. It is contained if one of its terms is.
type cell struct {
	terms []string
}

// cells returns the parts of a question that say what it is about. Words that occur in
// any question are left out.
func (s *speller) cells(question string) []cell {
	var out []cell
	seen := map[string]bool{}
	add := func(terms ...string) {
		if key := strings.Join(terms, " "); !seen[key] {
			seen[key] = true
			out = append(out, cell{terms})
		}
	}
	pieces(question, func(p piece) {
		if !p.han {
			if !isCommon(p.text) {
				add(s.stem(p.text))
			}
			return
		}
		for _, run := range withoutCommon(p.text) {
			chars := strings.Split(run, "")
			for i, c := range chars {
				terms := []string{c}
				if i > 0 {
					terms = append(terms, chars[i-1]+c)
				}
				if i+1 < len(chars) {
					terms = append(terms, c+chars[i+1])
				}
				add(terms...)
			}
		}
	})
	return out
}

// isLight reports whether a term is that of a common word.
func (s *speller) isLight(term string) bool {
	if s.light == nil {
		s.light = map[string]bool{}
		for _, w := range lightWords {
			s.light[s.stem(w)] = true
		}
	}
	return s.light[term]
}

// synonyms returns the terms of words with about the same meaning.
func (s *speller) synonyms(term string) []string {
	if s.related == nil {
		s.related = map[string][]string{}
		for line := range strings.Lines(synonyms) {
			terms := strings.Fields(line)
			for i, w := range terms {
				terms[i] = s.stem(w)
			}
			for _, t := range terms {
				s.related[t] = append(s.related[t], terms...)
			}
		}
	}
	return s.related[term]
}
