package session

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// Limits of a search.
const (
	MaxSearched = 200    // sessions
	MaxQuery    = 4096   // bytes
	perSession  = 2000   // newest entries per session
	allSearched = 20_000 // entries in total
	lead        = 60     // characters of a snippet before the match
	trail       = 140    // and from its start
)

// Search is a search for the messages that contain all words of a query.
type Search struct {
	Query string
	Limit int // of hits
	// Redact removes secrets from a text. A message is found only if it contains the
	// words without them too. nil: nothing is removed.
	Redact func(string) string
}

// Hit is a message that was found.
type Hit struct {
	Key        chela.SessionKey
	Transcript string
	Entry      string
	Role       llm.Role
	Time       time.Time
	Score      int    // 2: it contains the words as a phrase; 1: it contains all words
	Snippet    string // the text around the match
}

// Said returns the text of a user's or the assistant's message; "" for other entries
// and for silent answers.
func Said(e Entry) string {
	if e.Kind != KindMessage || e.Message == nil || e.Message.Role == llm.RoleTool {
		return ""
	}
	text := strings.TrimSpace(e.Message.PlainText())
	if run.AnswerTo(chela.Origin{Kind: chela.OriginAgent}).Silent(text) {
		return ""
	}
	return text
}

// In searches the current transcripts of sessions, which are ordered by preference.
// Hits of the whole phrase come first, then newer ones. It reports whether there may be
// more.
func (s Search) In(ctx context.Context, r Reader, metas []Meta) (hits []Hit, truncated bool, err error) {
	w := newWords(s.Query)
	left := allSearched
	for _, m := range metas {
		n := min(left, perSession)
		if truncated = truncated || n == 0; n == 0 || ctx.Err() != nil {
			err = ctx.Err()
			break
		}
		entries, err := r.Last(m.ID, n)
		if err != nil {
			return nil, false, err
		}
		left -= len(entries)
		truncated = truncated || len(entries) == n
		for _, e := range entries {
			if h, ok := s.hit(w, e); ok {
				h.Key, h.Transcript = m.Key, m.ID
				hits = append(hits, h)
			}
		}
	}
	slices.SortStableFunc(hits, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), b.Time.Compare(a.Time))
	})
	if len(hits) > s.Limit {
		hits, truncated = hits[:s.Limit], true
	}
	return hits, truncated, err
}

// hit reports whether an entry contains all words.
func (s Search) hit(w words, e Entry) (Hit, bool) {
	text := Said(e)
	if !w.in(lower(oneLine(text))) {
		return Hit{}, false
	}
	if s.Redact != nil {
		text = s.Redact(text)
	}
	text = oneLine(text)
	low := lower(text)
	if !w.in(low) {
		return Hit{}, false
	}
	h := Hit{Entry: e.ID, Role: e.Message.Role, Time: e.Time, Score: 1}
	at := strings.Index(low, w.phrase)
	if at >= 0 {
		h.Score = 2
	} else {
		at = strings.Index(low, w.each[0])
	}
	h.Snippet = around(text, utf8.RuneCountInString(low[:at]))
	return h, true
}

// words is a search query.
type words struct {
	phrase string // all words, in lower case
	each   []string
}

func newWords(query string) words {
	w := words{each: strings.Fields(lower(query))}
	w.phrase = strings.Join(w.each, " ")
	return w
}

// oneLine returns a text with single blanks between its words.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// lower returns s in lower case with the same number of characters.
func lower(s string) string { return strings.Map(unicode.ToLower, s) }

// in reports whether a text contains all words.
func (w words) in(text string) bool {
	return text != "" && len(w.each) > 0 &&
		!slices.ContainsFunc(w.each, func(word string) bool { return !strings.Contains(text, word) })
}

// around returns a snippet around a character of a text.
func around(text string, at int) string {
	begin := max(0, at-lead)
	s := humanize.Truncate(string([]rune(text)[begin:]), at+trail-begin)
	if begin > 0 {
		s = "…" + s
	}
	return s
}
