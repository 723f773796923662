package offline

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// lang is the language of a request and its reply.
type lang int

const (
	english lang = iota
	chinese
)

// langOf tells the language of a text.
func langOf(s string) lang {
	for _, r := range s {
		if unicode.Is(unicode.Han, r) {
			return chinese
		}
	}
	return english
}

// Things that are named in a request stand in its normal form as one
// character each, so that patterns see words only.
const (
	pathMark  = 0xe000 // a path
	quoteMark = 0xe100 // a quoted text
	urlMark   = 0xe200 // an address
	codeMark  = 0xe300 // a text in backticks
	markRange = 0x100
)

// clause is a piece of a request in normal form.
type clause struct {
	text   string   // with marks
	things []string // what the marks stand for
	quoted []string // the same with the quotation marks
}

// with returns a clause of another text with the same things.
func (c clause) with(text string) clause {
	c.text = text
	return c
}

// normal returns a text in normal form.
func normal(text string) clause {
	c := clause{text: strings.Map(func(r rune) rune {
		if r >= pathMark && r < codeMark+markRange {
			return ' '
		}
		return r
	}, text)}
	c.text = forms().quotient.ReplaceAllString(c.text, "$1 ÷ $2") // no path
	c.mark(forms().codeForm, codeMark, nil)
	c.mark(forms().urlForm, urlMark, nil)
	c.mark(forms().quoteForm, quoteMark, nil)
	c.markSingle()
	c.mark(forms().hanForm, pathMark, func(s string) (string, string) {
		v := forms().hanVerbs.FindString(s)
		if strings.HasPrefix(s[len(v):], ".") {
			return s, ""
		}
		return v, s[len(v):]
	})
	c.mark(forms().tokenForm, pathMark, func(s string) (string, string) {
		t := s
		if !strings.HasSuffix(s, "/...") && s != "." && s != ".." {
			t = strings.TrimRight(s, ".")
		}
		if !isPath(t) {
			return s, ""
		}
		return "", t
	})
	return c
}

// mark replaces what the form matches by marks. keep splits a match into what
// stays and what the mark stands for, "": all stays.
func (c *clause) mark(form *regexp.Regexp, base rune, keep func(string) (stay, thing string)) {
	var b strings.Builder
	at := 0
	for _, m := range form.FindAllStringSubmatchIndex(c.text, -1) {
		b.WriteString(c.text[at:m[0]])
		whole := c.text[m[0]:m[1]]
		at = m[1]
		thing := whole
		for g := 2; g < len(m); g += 2 {
			if m[g] >= 0 {
				thing = c.text[m[g]:m[g+1]]
			}
		}
		if keep != nil {
			var stay string
			if stay, thing = keep(whole); thing == "" {
				b.WriteString(whole)
				continue
			}
			b.WriteString(stay)
			at, whole = m[0]+len(stay)+len(thing), thing
		}
		kind := base
		if base == quoteMark && isQuotedPath(thing) {
			kind = pathMark
		}
		if base == urlMark {
			t := strings.TrimRight(thing, ".,;:!?)")
			at -= len(thing) - len(t)
			thing, whole = t, t
		}
		b.WriteString(c.put(kind, c.expand(thing), c.expand(whole)))
	}
	c.text = b.String() + c.text[at:]
}

// markSingle replaces texts in single quotes, which are no apostrophes.
func (c *clause) markSingle() {
	for {
		m := forms().singleForm.FindStringSubmatchIndex(c.text)
		if m == nil {
			return
		}
		thing := c.expand(c.text[m[4]:m[5]])
		kind := rune(quoteMark)
		if isQuotedPath(thing) {
			kind = pathMark
		}
		c.text = c.text[:m[3]] + c.put(kind, thing, "'"+thing+"'") + c.text[m[6]:]
	}
}

// put keeps a thing and returns its mark.
func (c *clause) put(kind rune, thing, quoted string) string {
	if len(c.things) >= markRange {
		return quoted
	}
	c.things, c.quoted = append(c.things, thing), append(c.quoted, quoted)
	return string(kind + rune(len(c.things)-1))
}

// expand returns s with the things in place of their marks. A mark that stands
// alone is the thing itself; within a text it keeps its quotation marks.
func (c *clause) expand(s string) string {
	if rs := []rune(strings.TrimSpace(s)); len(rs) == 1 && rs[0] >= pathMark && rs[0] < codeMark+markRange {
		if i := int(rs[0]-pathMark) & (markRange - 1); i < len(c.things) {
			return c.things[i]
		}
	}
	var b strings.Builder
	for _, r := range s {
		if i := int(r-pathMark) & (markRange - 1); r >= pathMark && r < codeMark+markRange && i < len(c.things) {
			b.WriteString(c.quoted[i])
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// all returns the things of a kind, in order.
func (c *clause) all(kind rune) []string {
	var out []string
	for _, r := range c.text {
		if r >= kind && r < kind+markRange && int(r-kind) < len(c.things) {
			out = append(out, c.things[r-kind])
		}
	}
	return out
}

// isQuotedPath reports whether a text in quotes looks like a path.
func isQuotedPath(s string) bool { return isPath(s) || forms().spacedPath.MatchString(s) }

// isPath reports whether a token looks like the path of a file.
func isPath(s string) bool {
	if s == "" || utf8.RuneCountInString(s) > 200 || strings.ContainsAny(s, " \t\n@") || forms().noPaths.MatchString(s) {
		return false
	}
	if strings.IndexFunc(s, unicode.IsLetter) < 0 {
		return s == "." || s == ".." || s == "./..." || s == "/" || s == "~" || s == "~/"
	}
	if langOf(s) == chinese {
		return forms().hanForm.FindString(s) == s || strings.Contains(s, "/")
	}
	return strings.Contains(s, "/") && !strings.HasPrefix(s, "//") || forms().extForm.MatchString(s) || forms().wordPaths.MatchString(s)
}

// polite matches what is said around a request.

// polish returns a clause without politeness.
func (c clause) polish() clause {
	c.text = strings.TrimSpace(c.text)
	for range 8 {
		before := c.text
		if m := forms().politeHead.FindString(c.text); m != "" && len(m) < len(c.text) && wordEnds(c.text, len(m)) {
			c.text = c.text[len(m):]
		}
		if m := forms().tellMe.FindStringSubmatch(c.text); m != nil {
			c.text = m[1]
		}
		if loc := forms().politeTail.FindStringIndex(c.text); loc != nil && loc[0] > 0 {
			c.text = c.text[:loc[0]]
		}
		if c.text == before {
			break
		}
	}
	return c
}

// wordEnds reports whether text may be cut at n: not within a word.
func wordEnds(text string, n int) bool {
	a, _ := utf8.DecodeLastRuneInString(text[:n])
	b, _ := utf8.DecodeRuneInString(text[n:])
	latin := func(r rune) bool { return r < 0x250 && (unicode.IsLetter(r) || unicode.IsDigit(r) || r == '\'') }
	return !latin(a) || !latin(b)
}
