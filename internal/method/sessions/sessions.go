// Package sessions is the methods about conversations: listing, describing,
// changing, leaving and deleting them, and being told of them.
package sessions

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/inbound"
	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/internal/rpc"
	"github.com/chela-ai/chela/internal/run"
	"github.com/chela-ai/chela/internal/session"
	"github.com/chela-ai/chela/internal/shape"
	"github.com/chela-ai/chela/internal/store"
	"github.com/chela-ai/chela/wire"
)

// Conductor carries out what was admitted.
type Conductor interface {
	// Abort stops all of a session for the empty id.
	Abort(ctx context.Context, key chela.SessionKey, id chela.RunID) ([]chela.RunID, error)
	// Wait returns the run when it is final.
	Wait(ctx context.Context, id chela.RunID) (run.Run, error)
}

// Options is what the methods work with. All fields but Path are required.
type Options struct {
	Store     store.Store
	Path      string // of the store, as it is shown
	Conductor Conductor
	Publish   func(chela.Event)
	Admit     func(context.Context, chela.Inbound) (inbound.Receipt, error)
	Rows      shape.Rows
	Default   chela.AgentID
	Agent     func(chela.AgentID) bool // reports whether the agent exists

	// Model returns the full name of a model that a person named, or an error
	// that says which there are.
	Model func(name string) (string, error)
	// Export writes a transcript as JSON lines.
	Export func(w io.Writer, m session.Meta, entries []session.Entry) error
	// Keep keeps the content of a picture and returns a part that refers to it.
	Keep func(llm.Part) llm.Part
}

// Methods returns the methods.
func Methods(o Options) []rpc.Method {
	m := methods{o}
	const op = wire.RoleOperator
	return []rpc.Method{
		rpc.New(wire.MethodSessionsList, op, chela.ScopeRead, m.list).Accepting( // what concerns people, projects and boards, which there are not
			"includeGlobal", "includeUnknown", "includeDerivedTitles", "includeActivitySummary", "configuredAgentsOnly", "excludeSystem",
			"includePeople", "creatorId", "ownerId", "ownerFirst", "involvingMe", "involvingProfileId", "projectId", "workspaceDir"),
		rpc.New(wire.MethodSessionsDescribe, op, chela.ScopeRead, m.describe).Accepting("includeDerivedTitles"),
		rpc.New(wire.MethodSessionsResolve, op, chela.ScopeRead, m.resolve).
			Accepting("includeGlobal", "includeUnknown", "slugHint", "spawnedBy"),
		rpc.New(wire.MethodSessionsPreview, op, chela.ScopeRead, m.preview),
		rpc.New(wire.MethodSessionsSearch, op, chela.ScopeRead, m.search),
		rpc.New(wire.MethodSessionsExport, op, chela.ScopeRead, m.export),
		rpc.New(wire.MethodSessionsImport, op, chela.ScopeAdmin, m.take),
		rpc.New(wire.MethodSessionsCreate, op, chela.ScopeWrite, m.create).Works().
			Accepting("titleSource", "emitCommandHooks", "succeedsParent", "spawnDepth", "forkFrom"),
		rpc.New(wire.MethodSessionsPatch, op, chela.ScopeWrite, m.patch).
			Accepting("expectedLifecycleRevision", "expectedPermissionMode", "expectedMarkedUnreadAt", "expectedToolOverrides"),
		rpc.New(wire.MethodSessionsPatchMany, op, chela.ScopeWrite, m.patchMany),
		rpc.New(wire.MethodSessionsReset, op, chela.ScopeAdmin, m.reset),
		rpc.New(wire.MethodSessionsDelete, op, chela.ScopeWrite, m.delete).
			Accepting("deleteTranscript", "emitLifecycleHooks", "expectedLifecycleRevision", "expectedSessionUpdatedAt"),
		rpc.New(wire.MethodSessionsCompact, op, chela.ScopeAdmin, m.compact).Works().Accepting("maxLines"),
		rpc.New(wire.MethodSessionsSubscribe, op, chela.ScopeRead, m.subscribe(true)),
		rpc.New(wire.MethodSessionsUnsubscribe, op, chela.ScopeRead, m.subscribe(false)),
		rpc.New(wire.MethodSessionsMessagesSubscribe, op, chela.ScopeRead, m.follow(wire.MethodSessionsMessagesSubscribe, true)).
			Accepting("includeApprovals"),
		rpc.New(wire.MethodSessionsMessagesUnsubscribe, op, chela.ScopeRead, m.follow(wire.MethodSessionsMessagesUnsubscribe, false)),
	}
}

type methods struct{ o Options }

// key returns the session that a client named.
func (m methods) key(method, key, agent string) (chela.SessionKey, error) {
	id := m.o.Default
	if agent != "" {
		id = chela.AgentID(agent)
	}
	k, err := chela.ParseSessionKey(key, id)
	if err != nil {
		return "", rpc.Invalid(method, "%v", err)
	}
	return k, nil
}

// subscribe tells the connection of all sessions, or no longer.
func (m methods) subscribe(on bool) func(context.Context, rpc.Peer, wire.None) (wire.Subscribed, error) {
	return func(_ context.Context, p rpc.Peer, _ wire.None) (wire.Subscribed, error) {
		p.Watch("", on)
		return wire.Subscribed{Subscribed: on}, nil
	}
}

// follow tells the connection of one session, or no longer.
func (m methods) follow(method string, on bool) func(context.Context, rpc.Peer, wire.SessionKey) (wire.Subscribed, error) {
	return func(_ context.Context, p rpc.Peer, in wire.SessionKey) (wire.Subscribed, error) {
		key, err := m.key(method, in.Key, in.AgentID)
		if err != nil {
			return wire.Subscribed{}, err
		}
		p.Watch(key, on)
		return wire.Subscribed{Subscribed: on, Key: string(key)}, nil
	}
}

// find reads a session, or says that there is none.
func find(r session.Reader, key chela.SessionKey) (session.Meta, error) {
	meta, err := r.Get(key)
	if errors.Is(err, chela.ErrNotFound) {
		return meta, missing(key)
	}
	return meta, err
}

func missing(key chela.SessionKey) error {
	return shape.NoSession("no session %s: not found", key)
}

// maxExport bounds an export: it is one frame.
const maxExport = wire.MaxPayload - 1<<20

func (m methods) export(ctx context.Context, _ rpc.Peer, in wire.SessionKey) (wire.SessionExported, error) {
	key, err := m.key(wire.MethodSessionsExport, in.Key, in.AgentID)
	if err != nil {
		return wire.SessionExported{}, err
	}
	var meta session.Meta
	var entries []session.Entry
	err = m.o.Store.View(ctx, func(r store.Reader) error {
		var err error
		if meta, err = find(r.Sessions(), key); err != nil {
			return err
		}
		entries, err = r.Sessions().Entries(meta.ID, 0, 0)
		return err
	})
	if err != nil {
		return wire.SessionExported{}, err
	}
	w := &bounded{most: maxExport}
	if err := m.o.Export(w, meta, entries); err != nil {
		return wire.SessionExported{}, fmt.Errorf("export session %s: %w", key, err)
	}
	return wire.SessionExported{Key: string(key), SessionID: meta.ID, FileName: meta.ID + ".jsonl", JSONL: string(w.b)}, nil
}

// bounded is a buffer that takes only so much.
type bounded struct {
	b    []byte
	most int
}

// Write appends p.
func (w *bounded) Write(p []byte) (int, error) {
	if len(w.b)+len(p) > w.most {
		return 0, chela.Errorf(chela.CodeInvalid, "the transcript is larger than %d MiB", w.most>>20)
	}
	w.b = append(w.b, p...)
	return len(p), nil
}
