package sessions

import (
	"context"
	"strings"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/internal/surface/wireview"
	"github.com/chela-ai/chela/wire"
)

// resolve finds a session by its key, id, label, short id or reference.
func (m methods) resolve(ctx context.Context, _ rpc.Peer, in wire.SessionsResolve) (wire.SessionResolved, error) {
	named := 0
	for _, s := range [...]string{in.Key, in.SessionID, in.Label, in.ShortID} {
		if s != "" {
			named++
		}
	}
	if in.Reference != nil {
		named++
	}
	if named != 1 {
		return wire.SessionResolved{}, rpc.Invalid("one of key, sessionId, label, shortId and reference must be set")
	}
	found, err := store.Get(ctx, m.o.Store,
		func(r store.Reader) ([]session.Meta, error) { return m.find(r.Sessions(), in) })
	switch {
	case err != nil:
		return wire.SessionResolved{}, err
	case len(found) == 1:
		f := found[0]
		return wire.SessionResolved{OK: true, Key: string(f.Key), AgentID: string(f.Key.Agent()), Name: f.Label}, nil
	case len(found) == 0 && !in.Missing:
		return wire.SessionResolved{}, wireview.NoSession("no such session: not found")
	}
	var out wire.SessionResolved
	for _, f := range found[:min(len(found), wire.MaxCandidates)] {
		out.Candidates = append(out.Candidates, wire.SessionCandidate{Key: string(f.Key), AgentID: string(f.Key.Agent()),
			Name: f.Label})
	}
	return out, nil
}

// find returns the matching sessions.
func (m methods) find(r session.Reader, in wire.SessionsResolve) ([]session.Meta, error) {
	agent := chela.AgentID(in.AgentID)
	switch {
	case in.Key != "":
		return m.byKey(r, in.Key, in.AgentID)
	case in.Reference != nil:
		found, err := m.byKey(r, in.Reference.Key, in.AgentID)
		if err != nil || len(found) > 0 || in.Reference.Slug == "" {
			return found, err
		}
		return bySlug(r, agent, in.Reference.Slug)
	case in.ShortID != "":
		return wireview.ByShortID(r, agent, in.ShortID)
	case in.Label != "":
		list, _, err := r.List(session.Query{Agent: agent, Label: in.Label, Archived: session.ArchivedToo, Limit: 1})
		return list, err
	}
	list, _, err := r.List(session.Query{Agent: agent, ID: in.SessionID, Archived: session.ArchivedToo, Limit: 1})
	return list, err
}

func (m methods) byKey(r session.Reader, name, agent string) ([]session.Meta, error) {
	key, err := m.key(name, agent)
	if err != nil {
		return nil, err
	}
	meta, err := session.Lookup(r, key)
	if err != nil || meta.ID == "" {
		return nil, err
	}
	return []session.Meta{meta}, nil
}

// bySlug returns the sessions whose label has the slug.
func bySlug(r session.Reader, agent chela.AgentID, want string) ([]session.Meta, error) {
	list, _, err := r.List(session.Query{Agent: agent, Archived: session.ArchivedToo, Limit: maxList})
	var out []session.Meta
	for _, meta := range list {
		if meta.Label != "" && slug(meta.Label) == want {
			out = append(out, meta)
		}
	}
	return out, err
}

// slug returns the words of a label in lower case, joined by hyphens.
func slug(label string) string {
	words := strings.FieldsFunc(strings.ToLower(label),
		func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	return strings.Join(words, "-")
}
