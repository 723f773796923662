package sessions

import (
	"context"
	"errors"

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
	if named != 1 {
		return wire.SessionResolved{}, rpc.Invalid(wire.MethodSessionsResolve, "one of key, sessionId, label and shortId must be set")
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
		return wire.SessionResolved{}, chela.Errorf(chela.CodeNotFound, "no such session: %w", chela.ErrNotFound)
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
		key, err := m.key(wire.MethodSessionsResolve, in.Key, in.AgentID)
		if err != nil {
			return nil, err
		}
		meta, err := r.Get(key)
		if errors.Is(err, chela.ErrNotFound) {
			return nil, nil
		}
		return []session.Meta{meta}, err
	case in.ShortID != "":
		return shape.ByShortID(r, agent, in.ShortID)
	case in.Label != "":
		list, _, err := r.List(session.Query{Agent: agent, Label: in.Label, Archived: session.ArchivedToo, Limit: 1})
		return list, err
	}
	list, _, err := r.List(session.Query{Agent: agent, ID: in.SessionID, Archived: session.ArchivedToo, Limit: 1})
	return list, err
}
