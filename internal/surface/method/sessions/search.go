package sessions

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/wire"
)

// Limits of a search and its answer.
const (
	defaultHits = 10
	maxHits     = 25
	maxQuery    = 4096   // bytes
	maxNamed    = 200    // sessions named or searched
	perSession  = 2000   // newest entries per session
	allSearched = 20_000 // entries in total
	lead        = 60     // characters of a snippet before the match
	trail       = 140    // and from its start
)

// search finds messages that contain all words, in the recently changed
// sessions. Matches of the whole phrase come first, then newer messages.
func (m methods) search(ctx context.Context, p rpc.Peer, in wire.SessionsSearch) (wire.SessionHits, error) {
	out := wire.SessionHits{Results: []wire.SessionHit{}}
	q, err := m.searchQuery(in)
	if err != nil {
		return out, err
	}
	p.Yield()
	words := newWords(in.Query)
	err = m.o.Store.View(ctx, func(r store.Reader) error {
		out.Results, out.Truncated = out.Results[:0], false
		metas, err := m.candidates(r.Sessions(), in, q)
		if err != nil {
			return err
		}
		left := allSearched
		for _, meta := range metas {
			n := min(left, perSession)
			if out.Truncated = out.Truncated || n == 0; n == 0 || ctx.Err() != nil {
				return ctx.Err()
			}
			entries, err := r.Sessions().Last(meta.ID, n)
			if err != nil {
				return err
			}
			left -= len(entries)
			out.Truncated = out.Truncated || len(entries) == n
			out.Results = append(out.Results, words.hits(meta, entries)...)
		}
		return nil
	})
	slices.SortStableFunc(out.Results, func(a, b wire.SessionHit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(b.Time, a.Time))
	})
	if limit := cmp.Or(in.Limit, defaultHits); len(out.Results) > limit {
		out.Results, out.Truncated = out.Results[:limit], true
	}
	if err == nil && in.Scope != nil {
		out.Sessions, err = m.rowsOf(ctx, out.Results)
	}
	return out, err
}

// searchQuery returns the query for the sessions to search.
func (m methods) searchQuery(in wire.SessionsSearch) (session.Query, error) {
	switch {
	case strings.TrimSpace(in.Query) == "":
		return session.Query{}, rpc.Invalid("at /query: must NOT have fewer than 1 characters")
	case len(in.Query) > maxQuery:
		return session.Query{}, rpc.Invalid("at /query: must NOT have more than %d characters", maxQuery)
	case in.Limit < 0 || in.Limit > maxHits:
		return session.Query{}, rpc.Invalid("at /limit: must be <= %d", maxHits)
	case len(in.Keys) > maxNamed:
		return session.Query{}, rpc.Invalid("at /sessionKeys: must NOT have more than %d items", maxNamed)
	}
	scope := wire.SessionsList{}
	if in.Scope != nil {
		scope = *in.Scope
	}
	q, err := query(scope, time.Now())
	q.Agent, q.Limit = cmp.Or(chela.AgentID(in.AgentID), q.Agent), maxNamed
	return q, err
}

// candidates returns the sessions named in the request, or else those of the
// query.
func (m methods) candidates(r session.Reader, in wire.SessionsSearch, q session.Query) ([]session.Meta, error) {
	if len(in.Keys) == 0 {
		metas, _, err := r.List(q)
		return metas, err
	}
	var out []session.Meta
	for _, name := range in.Keys {
		key, err := m.key(name, in.AgentID)
		if err != nil {
			return nil, err
		}
		meta, err := session.Lookup(r, key)
		if err != nil {
			return nil, err
		}
		if meta.ID != "" {
			out = append(out, meta)
		}
	}
	return out, nil
}

// rowsOf returns the sessions of the results without duplicates.
func (m methods) rowsOf(ctx context.Context, hits []wire.SessionHit) ([]wire.Session, error) {
	out := []wire.Session{}
	err := m.o.Store.View(ctx, func(r store.Reader) error {
		out = out[:0]
		for _, h := range hits {
			if slices.ContainsFunc(out, func(s wire.Session) bool { return s.Key == h.Key }) {
				continue
			}
			meta, err := session.Lookup(r.Sessions(), chela.SessionKey(h.Key))
			if err != nil {
				return err
			}
			if meta.ID == "" {
				continue // deleted meanwhile
			}
			row, err := m.o.Rows.Session(r, meta)
			if err != nil {
				return err
			}
			out = append(out, row)
		}
		return nil
	})
	return out, err
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

// lower returns s in lower case with the same number of characters.
func lower(s string) string { return strings.Map(unicode.ToLower, s) }

// hits returns the messages of a session that contain all words.
func (w words) hits(meta session.Meta, entries []session.Entry) (out []wire.SessionHit) {
	for _, e := range entries {
		text := strings.Join(strings.Fields(said(e)), " ")
		low := lower(text)
		if !w.in(low) {
			continue
		}
		h := wire.SessionHit{
			Key: string(meta.Key), SessionID: meta.ID, MessageID: e.ID, Role: string(e.Message.Role), Time: wire.At(e.Time), Score: 1,
		}
		at := strings.Index(low, w.phrase)
		if at >= 0 {
			h.Score = 2
		} else {
			at = strings.Index(low, w.each[0])
		}
		h.Snippet = around(text, utf8.RuneCountInString(low[:at]))
		out = append(out, h)
	}
	return out
}

// in reports whether a text contains all words.
func (w words) in(text string) bool {
	return text != "" && !slices.ContainsFunc(w.each, func(word string) bool { return !strings.Contains(text, word) })
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
