package sessions

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/wire"
)

// Limits of a search and its answer.
const (
	defaultHits = 10
	maxHits     = 25
)

// search finds messages that contain all words, in the recently changed
// sessions. Matches of the whole phrase come first, then newer messages.
func (m methods) search(ctx context.Context, p rpc.Peer, in wire.SessionsSearch) (wire.SessionHits, error) {
	out := wire.SessionHits{Results: []wire.SessionHit{}}
	q, err := m.searchQuery(in)
	if err != nil {
		return out, err
	}
	p.Yield() // it may read many transcripts
	find := session.Search{Query: in.Query, Limit: cmp.Or(in.Limit, defaultHits)}
	err = m.o.Store.View(ctx, func(r store.Reader) error {
		metas, err := m.candidates(r.Sessions(), in, q)
		if err != nil {
			return err
		}
		hits, more, err := find.In(ctx, r.Sessions(), metas)
		out.Results, out.Truncated = out.Results[:0], more
		for _, h := range hits {
			out.Results = append(out.Results, wire.SessionHit{
				Key:       string(h.Key),
				SessionID: h.Transcript,
				MessageID: h.Entry,
				Role:      string(h.Role),
				Time:      wire.At(h.Time),
				Score:     float64(h.Score),
				Snippet:   h.Snippet,
			})
		}
		return err
	})
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
	case len(in.Query) > session.MaxQuery:
		return session.Query{}, rpc.Invalid("at /query: must NOT have more than %d characters", session.MaxQuery)
	case in.Limit < 0 || in.Limit > maxHits:
		return session.Query{}, rpc.Invalid("at /limit: must be <= %d", maxHits)
	case len(in.Keys) > session.MaxSearched:
		return session.Query{}, rpc.Invalid("at /sessionKeys: must NOT have more than %d items", session.MaxSearched)
	}
	scope := wire.SessionsList{}
	if in.Scope != nil {
		scope = *in.Scope
	}
	q, err := query(scope, time.Now())
	q.Agent, q.Limit = cmp.Or(chela.AgentID(in.AgentID), q.Agent), session.MaxSearched
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
