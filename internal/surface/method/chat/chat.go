// Package chat implements the methods of a conversation: sending, reading, aborting, and the
// agent methods.
//
// A message that is sent passes the gate like one of a channel. Its idempotency key is its id and
// that of the run that it starts; a repeated key gets the state of the first message. When
// chat.send answers, the message is on disk; the answer of the assistant comes in events. A
// message may also be taken by a run in progress: then the run with its id has no events except
// its end, and agent.wait tells which run took it.
//
// Reading has two forms: pages, by position or around a message, and what is new since a cursor,
// which names a transcript and a position in it. Both contain the text of the run in progress, so
// that a client that subscribes first and then reads misses nothing.
package chat

import (
	"context"
	"crypto/rand"
	"errors"

	"github.com/chela-ai/chela/internal/core/bus"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/engine/dispatch"
	"github.com/chela-ai/chela/internal/engine/inbound"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/internal/surface/wireview"
	"github.com/chela-ai/chela/wire"
)

// Options configures the methods. All fields are required.
type Options struct {
	Store      store.Store
	Bus        *bus.Bus
	Gate       *inbound.Gate
	Dispatcher *dispatch.Dispatcher
	Rows       wireview.Rows
	Metadata   func() wire.ChatMetadata // choices for chat.metadata
	Default    chela.AgentID            // agent of the session "main"
	Agent      func(chela.AgentID) bool // reports whether the agent exists
	Redact     func(string) string      // removes known secrets from notes; nil: they are not changed
}

// Methods returns the methods.
func Methods(o Options) []rpc.Method {
	m := methods{o}
	const op = wire.RoleOperator
	return []rpc.Method{
		rpc.New(wire.MethodChatSend, op, chela.ScopeWrite, m.send).StartsWork().
			Ignoring(resumeMark, "deliver", "timeoutMs", "mentions", "workContext", "originatingChannel", "originatingTo",
				"originatingAccountId", "originatingThreadId", "replyToId", "fastAutoOnSeconds").
			Refusing("intent", "suppressCommandInterpretation", "systemInputProvenance",
				"systemProvenanceReceipt", "toolBindings",
				"expectedSessionRoutingContract", "expectedPermissionMode", "expectedToolOverrides"),
		rpc.New(wire.MethodChatAbort, op, chela.ScopeWrite, m.abort).Ignoring("preserveSideRuns"),
		rpc.New(wire.MethodChatHistory, op, chela.ScopeRead, m.history),
		rpc.New(wire.MethodSessionsGet, op, chela.ScopeRead, m.get),
		rpc.New(wire.MethodChatStartup, op, chela.ScopeRead, m.startup),
		rpc.New(wire.MethodChatMetadata, op, chela.ScopeRead, m.metadata),
		rpc.New(wire.MethodChatMessageGet, op, chela.ScopeRead, m.message),
		rpc.New(wire.MethodChatInject, op, chela.ScopeAdmin, m.inject),
		rpc.New(wire.MethodSessionsSend, op, chela.ScopeWrite, m.sendTo("")).StartsWork().Ignoring("timeoutMs", "mentions"),
		rpc.New(wire.MethodSessionsSteer, op, chela.ScopeWrite, m.sendTo(string(queue.Steer))).StartsWork().
			Ignoring("timeoutMs", "mentions"),
		rpc.New(wire.MethodSessionsAbort, op, chela.ScopeWrite, m.abortKey),
		rpc.New(wire.MethodAgent, op, chela.ScopeWrite, m.agent).StartsWork().
			Ignoring( // the answer goes to the client only
				"deliver", "bestEffortDeliver", "channel", "accountId", "threadId", "groupId", "groupChannel", "groupSpace",
				"replyTo", "replyChannel",
				"replyAccountId", "lane", "label", "voiceWakeTrigger", "bootstrapContextRunKind", "cleanupBundleMcpOnRunEnd").
			Refusing("acpTurnSource", "cwd", "disableMessageTool", "execApprovalFollowupExpectedSessionId",
				"extraSystemPrompt", "forceCodeModeTools",
				"forceRestartSafeTools", "inputProvenance", "internalEvents", "internalExecutionIdentityRecoveryAttempt",
				"internalExecutionIdentityRetry", "internalRuntimeHandoffId", "modelRun", "sessionEffects",
				"sourceReplyDeliveryMode",
				"suppressPromptPersistence", "swarmCollector", "swarmOutputSchema"),
		rpc.New(wire.MethodProgressGet, op, chela.ScopeRead, m.progress),
		rpc.New(wire.MethodProgressPut, op, chela.ScopeWrite, m.putProgress).Refusing("markdown"),
		rpc.New(wire.MethodProgressRefresh, op, chela.ScopeWrite, m.refreshProgress).StartsWork(),
		rpc.New(wire.MethodAgentWait, op, chela.ScopeWrite, m.wait).Reads(),
	}
}

// resumeMark is set by OpenClaw's Control UI in the first message after a reconnect. With
// OpenClaw, this message does not make the session expire. Here it is a message like any
// other.
const resumeMark = "__controlUiReconnectResume"

type methods struct{ o Options }

// key returns the session named in a request.
func (m methods) key(key, agent string) (chela.SessionKey, error) {
	k, err := rpc.SessionKey(key, agent, m.o.Default)
	if err != nil {
		return "", err
	}
	if !m.o.Agent(k.Agent()) {
		return "", rpc.Invalid("unknown agent id %q", k.Agent())
	}
	return k, nil
}

func (m methods) send(ctx context.Context, p rpc.Peer, in wire.ChatSend) (wire.ChatSent, error) {
	rec, err := m.admit(ctx, p, in, chela.Inbound{})
	if err != nil {
		return wire.ChatSent{}, err
	}
	status, err := m.status(ctx, rec)
	return wire.ChatSent{RunID: in.IdempotencyKey, Status: status}, err
}

// sendTo returns the function of a method that sends with the parameters of
// sessions.send.
func (m methods) sendTo(mode string) func(context.Context, rpc.Peer, wire.SessionsSend) (wire.ChatSent, error) {
	return func(ctx context.Context, p rpc.Peer, in wire.SessionsSend) (wire.ChatSent, error) {
		if in.IdempotencyKey == "" {
			in.IdempotencyKey = rand.Text()
		}
		return m.send(ctx, p, wire.ChatSend{
			SessionKey: in.Key, Message: in.Message, IdempotencyKey: in.IdempotencyKey, AgentID: in.AgentID,
			Thinking: in.Thinking, QueueMode: mode, Attachments: in.Attachments,
		})
	}
}

// admit queues a message. as has the fields that only some methods set.
func (m methods) admit(ctx context.Context, p rpc.Peer, in wire.ChatSend, as chela.Inbound) (inbound.Receipt, error) {
	if in.IdempotencyKey == "" {
		return inbound.Receipt{}, rpc.Invalid("at /idempotencyKey: must NOT have fewer than 1 characters")
	}
	key, err := m.key(in.SessionKey, in.AgentID)
	if err != nil {
		return inbound.Receipt{}, err
	}
	run := chela.RunID(in.IdempotencyKey)
	p.TrackRun(run) // before the run can start: it would miss the first events
	as.ID, as.Address, as.Session = in.IdempotencyKey, chela.Address{Channel: chela.LocalChannel}, key
	as.Sender, as.Text, as.Media = chela.Sender{ID: chela.PrincipalFrom(ctx).ID}, in.Message,
		wireview.Media(in.Attachments)
	fast, err := llm.ParseFast(in.Fast)
	if err != nil {
		return inbound.Receipt{}, rpc.Invalid("at /fastMode: must be true, false or auto")
	}
	as.Fast = string(fast)
	as.Mode, as.Seen = in.QueueMode, seen(in)
	if as.Think, err = m.thinking(ctx, key, in.Thinking); err != nil {
		return inbound.Receipt{}, err
	}
	rec, err := m.o.Gate.Admit(ctx, as)
	if errors.Is(err, session.ErrChanged) {
		return rec, errTranscriptChanged
	}
	return rec, err
}

// thinking returns the thinking level that a request names. It must be one of the model of
// the session.
func (m methods) thinking(ctx context.Context, key chela.SessionKey, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	meta, err := store.Get(ctx, m.o.Store,
		func(r store.Reader) (session.Meta, error) { return session.Lookup(r.Sessions(), key) })
	if err != nil {
		return "", err
	}
	model := m.o.Rows.Model(meta)
	level, err := llm.FindLevel(name, model.Provider+"/"+model.Model, model.Options)
	if err != nil {
		return "", rpc.Invalid("at /thinking: %v", err)
	}
	return string(level), nil
}

// errTranscriptChanged is the error for a message written for another state of
// the transcript.
var errTranscriptChanged = wire.Errorf(wire.InvalidRequest, "active branch changed; review and retry").
	With(map[string]any{"reason": "active-leaf-changed"})

// seen returns the state of the conversation when the message was written. It
// is ignored for messages that steer the active run.
func seen(in wire.ChatSend) chela.Seen {
	s := chela.Seen{Transcript: in.SessionID}
	if in.Leaf.Set && in.QueueMode != string(queue.Steer) {
		s.Last, s.Earlier = &in.Leaf.Value, in.SessionID != ""
	}
	return s
}

// status returns the status of a message, which may have been accepted earlier. A client that
// repeats a message, because the answer was lost, learns what became of it.
func (m methods) status(ctx context.Context, rec inbound.Receipt) (string, error) {
	switch {
	case rec.New:
		return wire.StatusStarted, nil
	case rec.State == queue.Waiting || rec.State == queue.Taken:
		return wire.StatusInFlight, nil
	}
	status := wire.StatusOK
	err := m.o.Store.View(ctx, func(r store.Reader) error {
		ended, err := r.Runs().Get(rec.Run)
		if errors.Is(err, chela.ErrNotFound) {
			return nil // a command, or part of another run
		}
		if err == nil && (ended.State == run.Failed || ended.State == run.TimedOut) {
			status = wire.StatusError
		}
		return err
	})
	return status, err
}

func (m methods) abort(ctx context.Context, _ rpc.Peer, in wire.ChatAbort) (wire.ChatAborted, error) {
	key, err := m.storedKey(ctx, in.SessionKey, in.AgentID)
	if err != nil {
		return wire.ChatAborted{}, err
	}
	return aborted(m.o.Dispatcher.Abort(ctx, key, chela.RunID(in.RunID)))
}

// aborted returns the result of an abort that stopped the work with the ids.
func aborted(ids []chela.RunID, err error) (wire.ChatAborted, error) {
	out := wire.ChatAborted{OK: err == nil, Aborted: len(ids) > 0, RunIDs: []string{}}
	for _, id := range ids {
		out.RunIDs = append(out.RunIDs, string(id))
	}
	return out, err
}

// abortKey aborts the runs of a session named by its key or by one of its runs. Without
// clearQueued, messages that wait stay, and the next one begins a run.
func (m methods) abortKey(ctx context.Context, p rpc.Peer, in wire.SessionsAbort) (wire.ChatAborted, error) {
	switch {
	case in.Key == "" && in.RunID == "":
		return wire.ChatAborted{}, rpc.Invalid("key or runId must be set")
	case in.RunID == "" && !in.ClearQueued:
		key, err := m.storedKey(ctx, in.Key, in.AgentID)
		if err != nil {
			return wire.ChatAborted{}, err
		}
		return aborted(m.o.Dispatcher.AbortRuns(ctx, key))
	}
	if in.Key == "" {
		err := m.o.Store.View(ctx, func(r store.Reader) error {
			it, err := r.Queue().Get(in.RunID)
			in.Key = string(it.Session)
			return err
		})
		if errors.Is(err, chela.ErrNotFound) {
			return wire.ChatAborted{OK: true, RunIDs: []string{}}, nil
		}
		if err != nil {
			return wire.ChatAborted{}, err
		}
	}
	return m.abort(ctx, p, wire.ChatAbort{SessionKey: in.Key, RunID: in.RunID, AgentID: in.AgentID})
}
