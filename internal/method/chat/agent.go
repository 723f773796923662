package chat

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/inbound"
	"github.com/chela-ai/chela/internal/queue"
	"github.com/chela-ai/chela/internal/rpc"
	"github.com/chela-ai/chela/internal/run"
	"github.com/chela-ai/chela/internal/shape"
	"github.com/chela-ai/chela/internal/store"
	"github.com/chela-ai/chela/internal/usage"
	"github.com/chela-ai/chela/wire"
)

// defaultWait is how long agent.wait waits.
const defaultWait = 30 * time.Second

// agent takes a message, says so, and answers again when its run has ended.
func (m methods) agent(ctx context.Context, p rpc.Peer, in wire.AgentRun) (any, error) {
	rec, err := m.admit(ctx, p, wire.MethodAgent, wire.ChatSend{
		SessionKey: in.SessionKey, Message: in.Message, IdempotencyKey: in.IdempotencyKey, AgentID: in.AgentID,
		Thinking: in.Thinking, Attachments: in.Attachments,
	})
	if err != nil {
		return nil, err
	}
	if rec.Command {
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
	r, err := m.o.Conductor.Wait(wctx, rec.Run)
	if err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return wire.AgentResult{RunID: string(rec.Run), Status: wire.StatusTimeout, Summary: "the run goes on"}, nil
	}
	if err != nil {
		return nil, err
	}
	return m.result(ctx, rec.Run, r)
}

func commandResult(rec inbound.Receipt) wire.AgentResult {
	return wire.AgentResult{
		RunID: string(rec.Run), Status: wire.StatusOK, Summary: "completed",
		Result: &wire.AgentOutput{Payloads: payloads(rec.Reply)},
	}
}

// result is the last answer for a message that r answered.
func (m methods) result(ctx context.Context, id chela.RunID, r run.Run) (any, error) {
	status := shape.Status(string(r.State))
	if status != wire.StatusOK {
		why := r.Error
		if why == "" {
			why = "the run was " + string(r.State)
		}
		return nil, &rpc.Failed{
			Payload: wire.AgentResult{RunID: string(id), Status: status, Summary: why},
			Err:     wire.Errorf(wire.Unavailable, "%s", why),
		}
	}
	var sum usage.Sum
	err := m.o.Store.View(ctx, func(rd store.Reader) error {
		var err error
		sum, err = rd.Usage().OfRun(r.ID)
		return err
	})
	if err != nil {
		return nil, err
	}
	u := shape.Usage(sum.Tokens)
	if sum.Unpriced == 0 && sum.Calls > 0 {
		u.Cost = &wire.Cost{Total: shape.Dollars(sum.NanoUSD)}
	}
	provider, model, _ := strings.Cut(r.Model, "/")
	return wire.AgentResult{
		RunID: string(id), Status: status, Summary: "completed",
		Result: &wire.AgentOutput{
			Payloads: payloads(r.Text),
			Meta: wire.RunMeta{
				DurationMs: r.Ended.Sub(r.Started).Milliseconds(), Stop: "stop",
				Agent: wire.AgentMeta{SessionID: r.SessionID, Provider: provider, Model: model, Usage: &u},
			},
		},
	}, nil
}

// payloads returns an answer as messages; none when it says nothing.
func payloads(text string) []wire.Payload {
	if text == "" {
		return []wire.Payload{}
	}
	return []wire.Payload{{Text: text}}
}

func (m methods) wait(ctx context.Context, p rpc.Peer, in wire.AgentWait) (wire.Waited, error) {
	p.Yield()
	d := defaultWait
	if in.TimeoutMs > 0 {
		d = time.Duration(in.TimeoutMs) * time.Millisecond
	}
	wctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	r, err := m.o.Conductor.Wait(wctx, chela.RunID(in.RunID))
	out := wire.Waited{RunID: in.RunID, Status: wire.StatusTimeout, StartedAt: wire.At(r.Started)}
	if errors.Is(err, chela.ErrNotFound) || err != nil && wctx.Err() != nil && ctx.Err() == nil {
		return out, nil
	}
	if err != nil {
		return out, err
	}
	out.Status, out.EndedAt, out.Error = shape.Status(string(r.State)), wire.At(r.Ended), r.Error
	switch r.State {
	case run.OK:
		out.Stop, out.Reply = "stop", shape.Reply(r.Text, r.Silent)
	case run.Aborted, run.Superseded:
		out.Stop = "rpc"
	}
	return out, nil
}
