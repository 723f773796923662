package sessions

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/rpc"
	"github.com/chela-ai/chela/internal/session"
	"github.com/chela-ai/chela/internal/store"
	"github.com/chela-ai/chela/wire"
)

// How much is looked at for an answer, and how much of it is told.
const (
	someHits    = 10
	maxHits     = 25
	maxQuery    = 4096   // bytes
	maxNamed    = 200    // sessions that a client may name, and that are looked at
	perSession  = 2000   // newest entries of each
	allSearched = 20_000 // entries in all
	lead        = 60     // characters of a snippet before what was found
	trail       = 140    // and from there on
)

// search finds messages with all of the words, in the sessions that changed
// last. What has them as they were written goes first, and then what is newer.
func (m methods) search(ctx context.Context, p rpc.Peer, in wire.SessionsSearch) (wire.SessionHits, error) {
	out := wire.SessionHits{Results: []wire.SessionHit{}}
	q, err := m.searched(in)
	if err != nil {
		return out, err
	}
	p.Yield()
	words := newWords(in.Query)
	err = m.o.Store.View(ctx, func(r store.Reader) error {
		out.Results, out.Truncated = out.Results[:0], false
		metas, err := m.named(r.Sessions(), in, q)
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
	if limit := cmp.Or(in.Limit, someHits); len(out.Results) > limit {
		out.Results, out.Truncated = out.Results[:limit], true
	}
	if err == nil && in.Scope != nil {
		out.Sessions, err = m.rowsOf(ctx, out.Results)
	}
	return out, err
}

// searched returns which sessions are looked at.
func (m methods) searched(in wire.SessionsSearch) (session.Query, error) {
	const method = wire.MethodSessionsSearch
	switch {
	case strings.TrimSpace(in.Query) == "":
		return session.Query{}, rpc.Invalid(method, "at /query: must NOT have fewer than 1 characters")
	case len(in.Query) > maxQuery:
		return session.Query{}, rpc.Invalid(method, "at /query: must NOT have more than %d characters", maxQuery)
	case in.Limit < 0 || in.Limit > maxHits:
		return session.Query{}, rpc.Invalid(method, "at /limit: must be <= %d", maxHits)
	case len(in.Keys) > maxNamed:
		return session.Query{}, rpc.Invalid(method, "at /sessionKeys: must NOT have more than %d items", maxNamed)
	}
	scope := wire.SessionsList{}
	if in.Scope != nil {
		scope = *in.Scope
	}
	q, err := query(scope, time.Now())
	q.Agent, q.Limit = cmp.Or(chela.AgentID(in.AgentID), q.Agent), maxNamed
	return q, err
}

// named returns the sessions that the client named, or those that the query
// finds.
func (m methods) named(r session.Reader, in wire.SessionsSearch, q session.Query) ([]session.Meta, error) {
	if len(in.Keys) == 0 {
		metas, _, err := r.List(q)
		return metas, err
	}
	var out []session.Meta
	for _, name := range in.Keys {
		key, err := m.key(wire.MethodSessionsSearch, name, in.AgentID)
		if err != nil {
			return nil, err
		}
		meta, err := r.Get(key)
		if errors.Is(err, chela.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, meta)
	}
	return out, nil
}

// rowsOf returns the sessions of the results, each once.
func (m methods) rowsOf(ctx context.Context, hits []wire.SessionHit) ([]wire.Session, error) {
	out := []wire.Session{}
	err := m.o.Store.View(ctx, func(r store.Reader) error {
		out = out[:0]
		for _, h := range hits {
			if slices.ContainsFunc(out, func(s wire.Session) bool { return s.Key == h.Key }) {
				continue
			}
			meta, err := r.Sessions().Get(chela.SessionKey(h.Key))
			if errors.Is(err, chela.ErrNotFound) {
				continue // it was deleted meanwhile
			}
			if err != nil {
				return err
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

// words is what is looked for.
type words struct {
	phrase string // all of them, as they were written but for their case
	each   []string
}

func newWords(query string) words {
	w := words{each: strings.Fields(lower(query))}
	w.phrase = strings.Join(w.each, " ")
	return w
}

// lower returns s in lower case, with as many characters as s.
func lower(s string) string { return strings.Map(unicode.ToLower, s) }

// hits are the messages of a session that have all of the words.
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

// in reports whether a text has all of the words.
func (w words) in(text string) bool {
	return text != "" && !slices.ContainsFunc(w.each, func(word string) bool { return !strings.Contains(text, word) })
}

// around returns what stands around a character of a text.
func around(text string, at int) string {
	runes := []rune(text)
	begin, end := max(0, at-lead), min(len(runes), at+trail)
	s := string(runes[begin:end])
	if begin > 0 {
		s = "…" + s
	}
	if end < len(runes) {
		s += "…"
	}
	return s
}
