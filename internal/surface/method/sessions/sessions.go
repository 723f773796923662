// Package sessions implements the methods that list, describe, change, reset,
// import, export and delete sessions, and subscribe to them.
package sessions

import (
	"context"
	"fmt"
	"io"

	"github.com/chela-ai/chela/internal/core/bus"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/engine/dispatch"
	"github.com/chela-ai/chela/internal/engine/export"
	"github.com/chela-ai/chela/internal/engine/inbound"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/internal/surface/wireview"
	"github.com/chela-ai/chela/wire"
)

// Options configures the methods. All fields but Path are required.
type Options struct {
	Store      store.Store
	Path       string // display path of the store
	Bus        *bus.Bus
	Gate       *inbound.Gate
	Dispatcher *dispatch.Dispatcher
	Rows       wireview.Rows
	Default    chela.AgentID
	Agent      func(chela.AgentID) bool // reports whether the agent exists

	// Model returns the full name of a model; the error for an unknown one
	// lists the models.
	Model func(name string) (string, error)
	// Export is [export.Exporter.Write].
	Export func(context.Context, io.Writer, export.Format, export.Target) error
	// StorePart stores the content of a picture and returns a part that
	// refers to it.
	StorePart func(llm.Part) llm.Part
}

// Methods returns the methods.
func Methods(o Options) []rpc.Method {
	m := methods{o}
	const op = wire.RoleOperator
	return []rpc.Method{
		rpc.New(wire.MethodSessionsList, op, chela.ScopeRead, m.list),
		rpc.New(wire.MethodSessionsDescribe, op, chela.ScopeRead, m.describe),
		rpc.New(wire.MethodSessionsResolve, op, chela.ScopeRead, m.resolve),
		rpc.New(wire.MethodSessionsPreview, op, chela.ScopeRead, m.preview),
		rpc.New(wire.MethodSessionsSearch, op, chela.ScopeRead, m.search),
		rpc.New(wire.MethodSessionsExport, op, chela.ScopeRead, m.export),
		rpc.New(wire.MethodSessionsImport, op, chela.ScopeAdmin, m.importTranscript),
		rpc.New(wire.MethodSessionsCreate, op, chela.ScopeWrite, m.create).StartsWork().
			Ignoring("titleSource", "emitCommandHooks", "succeedsParent", "spawnDepth", "mentions", "timeoutMs").
			Refusing("forkFrom", "agentRuntime", "catalogId", "contextWindow", "cwd", "execNode", "incognito",
				"permissionMode", "projectGitUrl",
				"projectId", "repository", "toolOverrides", "visibility", "worktree", "worktreeBaseRef",
				"worktreeName", "worktreeSource"),
		rpc.New(wire.MethodSessionsPatch, op, chela.ScopeWrite, m.patch).
			Ignoring("attention", "autoLabel", "boardFace", "boardPresentation", "statusNote").
			Refusing("agentRuntime", "completionOwnerSessionKey", "contextWindow", "elevatedLevel", "execNode",
				"expectedLifecycleRevision",
				"expectedNativeRuntimeConsent", "expectedPermissionMode", "expectedSandboxMode",
				"expectedToolOverrides", "groupActivation",
				"inheritedToolAllow", "inheritedToolDeny", "inheritedToolPolicyVersion", "nativeRuntimeConsent", "permissionMode",
				"reasoningLevel", "sandboxMode", "toolOverrides", "traceLevel", "ttlMinutes"),
		rpc.New(wire.MethodSessionsPatchMany, op, chela.ScopeWrite, m.patchMany),
		rpc.New(wire.MethodSessionsReset, op, chela.ScopeAdmin, m.reset),
		rpc.New(wire.MethodSessionsDelete, op, chela.ScopeWrite, m.delete).
			Ignoring("emitLifecycleHooks").Refusing("expectedLifecycleRevision"),
		rpc.New(wire.MethodSessionsCompact, op, chela.ScopeAdmin, m.compact).StartsWork(),
		rpc.New(wire.MethodSessionsSubscribe, op, chela.ScopeRead, m.subscribe(true)),
		rpc.New(wire.MethodSessionsUnsubscribe, op, chela.ScopeRead, m.subscribe(false)),
		rpc.New(wire.MethodSessionsMessagesSubscribe, op, chela.ScopeRead, m.follow(true)),
		rpc.New(wire.MethodSessionsMessagesUnsubscribe, op, chela.ScopeRead, m.follow(false)),
	}
}

type methods struct{ o Options }

// key returns the session named in a request.
func (m methods) key(key, agent string) (chela.SessionKey, error) {
	return rpc.SessionKey(key, agent, m.o.Default)
}

// subscribe returns the function that starts or ends the subscription to all
// sessions.
func (m methods) subscribe(on bool) func(context.Context, rpc.Peer, wire.None) (wire.Subscribed, error) {
	return func(_ context.Context, p rpc.Peer, _ wire.None) (wire.Subscribed, error) {
		p.Subscribe("", on)
		return wire.Subscribed{Subscribed: on}, nil
	}
}

// follow returns the function that starts or ends the subscription to one
// session.
func (m methods) follow(on bool) func(context.Context, rpc.Peer, wire.SessionKey) (wire.Subscribed, error) {
	return func(_ context.Context, p rpc.Peer, in wire.SessionKey) (wire.Subscribed, error) {
		key, err := m.key(in.Key, in.AgentID)
		if err != nil {
			return wire.Subscribed{}, err
		}
		p.Subscribe(key, on)
		return wire.Subscribed{Subscribed: on, Key: string(key)}, nil
	}
}

// find reads a session; the error for a missing one is answerable.
func find(r session.Reader, key chela.SessionKey) (session.Meta, error) {
	return wireview.FindSession(r, key, missingFormat, key)
}

const missingFormat = "no session %s: not found"

func missing(key chela.SessionKey) error {
	return wireview.NoSession(missingFormat, key)
}

// maxExport limits an export, which is sent in one frame.
const maxExport = wire.MaxPayload - 1<<20

func (m methods) export(ctx context.Context, _ rpc.Peer, in wire.SessionsExport) (wire.SessionExported, error) {
	key, err := m.key(in.Key, in.AgentID)
	if err != nil {
		return wire.SessionExported{}, err
	}
	f, err := export.ParseFormat(in.Format)
	if err != nil {
		return wire.SessionExported{}, err
	}
	meta, err := store.Get(ctx, m.o.Store, func(r store.Reader) (session.Meta, error) { return find(r.Sessions(), key) })
	if err != nil {
		return wire.SessionExported{}, err
	}
	w := &bounded{most: maxExport}
	if err := m.o.Export(ctx, w, f, export.Target{Key: key, Who: chela.PrincipalFrom(ctx)}); err != nil {
		return wire.SessionExported{}, fmt.Errorf("export session %s: %w", key, err)
	}
	out := wire.SessionExported{Key: string(key), SessionID: meta.ID, FileName: meta.ID + f.Extension()}
	switch f {
	case export.HTML:
		out.HTML = string(w.b)
	case export.Trajectory:
		out.FileName = "trajectory-" + out.FileName
		fallthrough
	default:
		out.JSONL = string(w.b)
	}
	return out, nil
}

// bounded is a buffer with a maximum size.
type bounded struct {
	b    []byte
	most int
}

// Write appends p.
func (w *bounded) Write(p []byte) (int, error) {
	if len(w.b)+len(p) > w.most {
		return 0, chela.Errorf(chela.CodeInvalid,
			"the export is larger than %d MiB; /export-session and /export-trajectory write files of any size", w.most>>20)
	}
	w.b = append(w.b, p...)
	return len(p), nil
}
