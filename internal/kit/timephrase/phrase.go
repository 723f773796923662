package timephrase

import (
	"cmp"
	"errors"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode"
)

// Reasons why a phrase has no time.
var (
	ErrPast       = errors.New("the time has passed")
	ErrImpossible = errors.New("there is no such time")
	ErrUnclear    = errors.New("the time is not clear")
)

// WeekdayError is the reason if a date is on another day of the week than the one that is
// named with it.
type WeekdayError struct{ Date time.Time }

func (e WeekdayError) Error() string { return e.Date.Format("2 January 2006 is a Monday") }

// Phrase is a time or a recurrence that a text names.
type Phrase struct {
	From, To int           // position in the text
	At       time.Time     // the instant; with Every, the first one, zero: after the interval
	Every    time.Duration // an interval
	Cron     string        // a cron expression of five fields, in the zone of now
	Timed    bool          // it says at what time of the day, or after how long
	OnlyTime bool          // it says nothing but the time of the day
	Err      error         // why there is no time: one of the errors of this package, or a WeekdayError
}

// Repeats reports whether the phrase is a recurrence.
func (p Phrase) Repeats() bool { return p.Every > 0 || p.Cron != "" }

// Fold returns the text with ordinary digits, colons and spaces for full-width ones.
// [Finder.Find] needs them.
func Fold(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= '０' && r <= '９':
			return r - '０' + '0'
		case r == '\u3000':
			return ' '
		}
		return r
	}, text)
}

// Finder finds phrases. Times are resolved at Now, in its zone.
type Finder struct {
	Now     time.Time
	Morning int // the first hour that is in the morning if nothing else is said; 0: 7
}

// Find returns the phrases of a text, in order. An instant is always later than Now, by
// less than a century.
func (f Finder) Find(text string) []Phrase {
	if strings.ContainsFunc(text, func(r rune) bool { return unicode.Is(unicode.Han, r) }) {
		if list := chinese.find(text, f); list != nil {
			return list
		}
	}
	return english.find(text, f)
}

// grammar is how a language names times.
type grammar struct {
	parts []part
	gap   func() *regexp.Regexp // what may stand between two parts
	words bool                  // parts begin at the beginnings of words
	// accept reports whether a part may stand there; it may shorten it.
	accept func(p *part, before, match, after string) (string, bool)
}

// part is a piece of a phrase.
type part struct {
	form func() *regexp.Regexp
	read func(groups map[string]string, s *spec)
	kind kind
	next bool // it only follows another part
	lead bool // it only precedes another part
}

// kind is the kind of a part. A phrase has one time of the day, and a day after it
// begins another phrase if it has one already.
type kind int

const (
	otherKind kind = iota
	dayKind
	clockKind
)

// lazy returns a function that replaces the names in the expression and compiles it on
// first use.
func lazy(expr string, names ...*strings.Replacer) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp {
		for _, r := range names {
			expr = r.Replace(expr)
		}
		return regexp.MustCompile(expr)
	})
}

// find returns the phrases of a text.
func (g *grammar) find(text string, f Finder) []Phrase {
	var out []Phrase
	last := ' '
	for i, r := range text {
		starts := !g.words || !isWord(last)
		last = r
		if n := len(out); !starts || unicode.IsSpace(r) || n > 0 && i < out[n-1].To {
			continue
		}
		s := spec{now: f.Now, morning: cmp.Or(f.Morning, 7)}
		if to := g.phrase(text, i, &s); to > i {
			p := s.resolve()
			p.From, p.To = i, to
			out = append(out, p)
		}
	}
	return out
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' || r == '\'' }

// phrase reads the longest sequence of parts at a position and returns its end.
func (g *grammar) phrase(text string, from int, s *spec) (end int) {
	end = from
	led, whole, before := false, from, *s // what was read until the parts that precede others
	defer func() {
		if led {
			end, *s = whole, before
		}
	}()
	for at := from; ; {
		best, groups := "", []string(nil)
		var chosen *part
		for i := range g.parts {
			p := &g.parts[i]
			if p.next && end == from {
				continue
			}
			m := p.form().FindStringSubmatch(text[at:])
			if m == nil || len(m[0]) <= len(best) {
				continue
			}
			if cut, ok := g.accept(p, text[:at], m[0], text[at+len(m[0]):]); ok && len(cut) > len(best) {
				if cut != m[0] {
					if m = p.form().FindStringSubmatch(cut); m == nil {
						continue
					}
				}
				best, groups, chosen = cut, m, p
			}
		}
		if chosen == nil || s.clock && (chosen.kind == clockKind || chosen.kind == dayKind && s.hasDay()) {
			return end
		}
		values := map[string]string{"": best}
		for i, name := range chosen.form().SubexpNames() {
			if name != "" && groups[i] != "" {
				values[name] = groups[i]
			}
		}
		if chosen.lead && !led {
			whole, before = end, *s
		}
		led = chosen.lead
		chosen.read(values, s)
		end = at + len(best)
		at = end + len(g.gap().FindString(text[end:]))
	}
}
