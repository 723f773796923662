package chat

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/prompt"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/usage"
	"github.com/chela-ai/chela/internal/engine/inbound"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/internal/surface/wireview"
	"github.com/chela-ai/chela/wire"
)

// defaultWait is the default timeout of agent.wait.
const defaultWait = 30 * time.Second

// agent accepts a message and answers a second time when its run has ended. The first answer says
// that the message is stored; the connection is free for other requests from then on. A message
// that was answered before has only the second one.
func (m methods) agent(ctx context.Context, p rpc.Peer, in wire.AgentRun) (any, error) {
	if _, ok := prompt.ParseMode(in.PromptMode); !ok {
		return nil, rpc.Invalid("at /promptMode: must be full, minimal or none")
	}
	if in.ContextMode != "" && in.ContextMode != "full" && in.ContextMode != "lightweight" {
		return nil, rpc.Invalid("at /bootstrapContextMode: must be full or lightweight")
	}
	key, err := m.target(ctx, in)
	if err != nil {
		return nil, err
	}
	model := in.Model
	if in.Provider != "" && model != "" && !strings.HasPrefix(model, in.Provider+"/") {
		model = in.Provider + "/" + model
	}
	rec, err := m.admit(ctx, p, wire.ChatSend{
		SessionKey: key, Message: in.Message, IdempotencyKey: in.IdempotencyKey, AgentID: in.AgentID,
		Thinking: in.Thinking, Attachments: in.Attachments, SessionID: in.Expected,
	}, chela.Inbound{Task: true, Model: model, PromptMode: in.PromptMode, Light: in.ContextMode == "lightweight"})
	if err != nil {
		return nil, err
	}
	if rec.New && !rec.Command {
		m.o.Bus.Publish(chela.Event{Session: rec.Session, Stream: chela.StreamTask, Text: string(rec.Run)})
	}
	if rec.Command && rec.State != queue.Waiting {
		return commandResult(rec), nil
	}
	if rec.New || rec.State == queue.Waiting || rec.State == queue.Taken {
		p.Accept(wire.Accepted{
			RunID: string(rec.Run), SessionKey: string(rec.Session), AgentID: string(rec.Session.Agent()),
			Status: wire.StatusAccepted, AcceptedAt: wire.At(time.Now()),
		})
	}
	wctx, cancel := ctx, context.CancelFunc(func() {})
	if in.Timeout > 0 {
		wctx, cancel = context.WithTimeout(ctx, time.Duration(in.Timeout)*time.Second)
	}
	defer cancel()
	r, err := m.o.Dispatcher.Wait(wctx, rec.Run)
	if err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return wire.AgentResult{RunID: string(rec.Run), Status: wire.StatusTimeout, Summary: "run still in progress"}, nil
	}
	if err != nil {
		return nil, err
	}
	return m.result(ctx, rec.Run, r)
}

// target returns the key of the session that a request of agent names: directly or by
// the id of its transcript.
func (m methods) target(ctx context.Context, in wire.AgentRun) (string, error) {
	switch {
	case in.SessionKey != "":
		return in.SessionKey, nil
	case in.SessionID != "":
		list, err := store.Get(ctx, m.o.Store, func(r store.Reader) ([]session.Meta, error) {
			list, _, err := r.Sessions().List(session.Query{Agent: chela.AgentID(in.AgentID), ID: in.SessionID,
				Archived: session.ArchivedToo, Limit: 1})
			return list, err
		})
		if err != nil {
			return "", err
		}
		if len(list) == 0 {
			return "", wireview.NoSession("no session with the id %s: not found", in.SessionID)
		}
		return string(list[0].Key), nil
	case in.To != "":
		return "", rpc.Invalid("at /to: a recipient does not name a session; set sessionKey")
	}
	return "", nil
}

func commandResult(rec inbound.Receipt) wire.AgentResult {
	out := &wire.AgentOutput{Payloads: payloads(rec.Reply)}
	if rec.Refused {
		out.Meta.Stop = wire.StopUnable
	}
	return wire.AgentResult{RunID: string(rec.Run), Status: wire.StatusOK, Summary: "completed", Result: out}
}

// result returns the second answer for a message that run r answered.
func (m methods) result(ctx context.Context, id chela.RunID, r run.Run) (any, error) {
	status := wireview.Status(r.State.Outcome())
	if status != wire.StatusOK {
		why := r.Error
		if why == "" {
			why = "the run was " + string(r.State)
		}
		return nil, &rpc.PayloadError{
			Payload: wire.AgentResult{RunID: string(id), Status: status, Summary: why},
			Err:     wire.Errorf(wire.Unavailable, "%s", why),
		}
	}
	stop, err := m.stopReason(ctx, r)
	if err != nil {
		return nil, err
	}
	sum, err := store.Get(ctx, m.o.Store, func(rd store.Reader) (usage.Sum, error) { return rd.Usage().OfRun(r.ID) })
	if err != nil {
		return nil, err
	}
	u := wireview.Usage(sum.Tokens)
	if sum.Unpriced == 0 && sum.Calls > 0 {
		u.Cost = &wire.Cost{Total: wireview.Dollars(sum.NanoUSD)}
	}
	provider, model, _ := strings.Cut(r.Model, "/")
	return wire.AgentResult{
		RunID: string(id), Status: status, Summary: "completed",
		Result: &wire.AgentOutput{
			Payloads: payloads(r.Text),
			Meta: wire.RunMeta{
				DurationMs: r.Ended.Sub(r.Started).Milliseconds(), Stop: stop,
				Agent: wire.AgentMeta{SessionID: r.SessionID, Provider: provider, Model: model, Usage: &u},
			},
		},
	}, nil
}

// stopReason returns why the model ended the answer of a run: "stop", or the reason of the
// service if it cut the answer, or "unable" if the answer says what could not be done.
func (m methods) stopReason(ctx context.Context, r run.Run) (string, error) {
	stop, err := store.Get(ctx, m.o.Store, func(rd store.Reader) (llm.StopReason, error) {
		return session.StopOf(rd.Sessions(), r.SessionID, r.ID, r.Started)
	})
	if stop.Told() {
		return string(stop), err
	}
	return "stop", err
}

// payloads returns an answer as messages, none if it is empty.
func payloads(text string) []wire.Payload {
	if text == "" {
		return []wire.Payload{}
	}
	return []wire.Payload{{Text: text}}
}

func (m methods) wait(ctx context.Context, p rpc.Peer, in wire.AgentWait) (wire.AgentWaited, error) {
	p.Yield()
	d := defaultWait
	if in.TimeoutMs > 0 {
		d = time.Duration(in.TimeoutMs) * time.Millisecond
	}
	wctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	id := chela.RunID(in.RunID)
	r, err := m.o.Dispatcher.Find(ctx, id) // whatever the limit, which may be short
	if err == nil && !r.State.Final() {
		r, err = m.o.Dispatcher.Wait(wctx, id)
	}
	out := wire.AgentWaited{RunID: in.RunID, Status: wire.StatusTimeout, StartedAt: wire.At(r.Started)}
	if errors.Is(err, chela.ErrNotFound) || err != nil && wctx.Err() != nil && ctx.Err() == nil {
		return out, nil
	}
	if err != nil {
		return out, err
	}
	if string(r.ID) != in.RunID {
		out.TakenBy = string(r.ID)
	}
	out.Status, out.EndedAt, out.Error = wireview.Status(r.State.Outcome()), wire.At(r.Ended), r.Error
	switch r.State {
	case run.OK:
		if out.Stop, err = m.stopReason(ctx, r); err != nil {
			return out, err
		}
		out.Reply = wireview.Reply(r.Text, r.Silent)
	case run.Aborted, run.Superseded:
		out.Stop = "rpc"
	case run.Failed:
		if r.Failure == run.Limit {
			out.Stop = chela.StopLimit
		}
	}
	return out, nil
}
