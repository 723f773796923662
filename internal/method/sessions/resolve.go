package sessions

import (
	"context"
	"errors"
	"strings"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/rpc"
	"github.com/chela-ai/chela/internal/session"
	"github.com/chela-ai/chela/internal/shape"
	"github.com/chela-ai/chela/internal/store"
	"github.com/chela-ai/chela/wire"
)

// resolve finds the session that a client names in one of several ways.
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
		return wire.SessionResolved{}, rpc.Invalid(wire.MethodSessionsResolve, "one of key, sessionId, label, shortId and reference must be set")
	}
	var found []session.Meta
	err := m.o.Store.View(ctx, func(r store.Reader) error {
		var err error
		found, err = m.find(r.Sessions(), in)
		return err
	})
	switch {
	case err != nil:
		return wire.SessionResolved{}, err
	case len(found) == 1:
		f := found[0]
		return wire.SessionResolved{OK: true, Key: string(f.Key), AgentID: string(f.Key.Agent()), Name: f.Label}, nil
	case len(found) == 0 && !in.Missing:
		return wire.SessionResolved{}, shape.NoSession("no such session: not found")
	}
	var out wire.SessionResolved
	for _, f := range found[:min(len(found), wire.MaxCandidates)] {
		out.Candidates = append(out.Candidates, wire.SessionCandidate{Key: string(f.Key), AgentID: string(f.Key.Agent()), Name: f.Label})
	}
	return out, nil
}

// find returns the sessions that are meant.
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
		return shape.ByShortID(r, agent, in.ShortID)
	case in.Label != "":
		list, _, err := r.List(session.Query{Agent: agent, Label: in.Label, Archived: session.ArchivedToo, Limit: 1})
		return list, err
	}
	list, _, err := r.List(session.Query{Agent: agent, ID: in.SessionID, Archived: session.ArchivedToo, Limit: 1})
	return list, err
}

func (m methods) byKey(r session.Reader, name, agent string) ([]session.Meta, error) {
	key, err := m.key(wire.MethodSessionsResolve, name, agent)
	if err != nil {
		return nil, err
	}
	meta, err := r.Get(key)
	if errors.Is(err, chela.ErrNotFound) {
		return nil, nil
	}
	return []session.Meta{meta}, err
}

// bySlug returns the sessions whose label has the words of an address.
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

// slug returns the letters and digits of a label, in lower case, with a hyphen
// in the place of all else.
func slug(label string) string {
	words := strings.FieldsFunc(strings.ToLower(label), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	return strings.Join(words, "-")
}
