package approvals

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/approval"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/wire"
)

// ask requests an approval for something the client will do itself, and answers
// with the decision.
func (m methods) ask(ctx context.Context, p rpc.Peer, in wire.ApprovalAsk) (wire.ApprovalDecided, error) {
	if in.TimeoutMs < 0 {
		return wire.ApprovalDecided{}, rpc.Invalid("at /timeoutMs: must be >= 1")
	}
	agent := cmp.Or(chela.AgentID(in.AgentID), m.o.Default)
	if !m.o.Agent(agent) {
		return wire.ApprovalDecided{}, rpc.UnknownAgent(agent)
	}
	key, err := rpc.SessionKey(cmp.Or(in.SessionKey, chela.MainKey), "", agent)
	if err != nil {
		return wire.ApprovalDecided{}, err
	}
	now := time.Now()
	r := approval.Request{ID: strings.TrimSpace(in.ID), Session: key, Text: m.o.Redact(plan(in)),
		Reason: m.o.Redact(cmp.Or(in.Warning, "requested by a client"))}
	if len(r.ID) > maxID || strings.ContainsFunc(r.ID, func(c rune) bool { return c <= ' ' || c == 0x7f }) {
		return wire.ApprovalDecided{}, rpc.Invalid("at /id: must be 1 to %d bytes without spaces", maxID)
	}
	if in.TimeoutMs > 0 {
		r.Expires = now.Add(time.Duration(min(in.TimeoutMs, approval.Lifetime.Milliseconds())) * time.Millisecond)
	}
	decided, stop := m.decisions()
	defer stop()
	who := chela.PrincipalFrom(ctx)
	err = m.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
		asked, err := approval.Ask(tx.Approvals(), who, r, now)
		if err == nil {
			r = asked
		}
		return err
	})
	if err != nil {
		return wire.ApprovalDecided{}, err
	}
	m.o.Publish(chela.Event{Session: key, Stream: chela.StreamApproval, Phase: chela.PhaseRequested, Data: r})
	if in.TwoPhase {
		p.Accept(wire.ApprovalAsked{Status: "accepted", ID: r.ID, Created: wire.At(r.Created), Expires: wire.At(r.Expires)})
	} else {
		p.Yield()
	}
	return m.await(ctx, r, decided)
}

// maxID limits an id chosen by a client, in bytes.
const maxID = 128

// plan returns the complete plan as shown.
func plan(in wire.ApprovalAsk) string {
	text := strings.TrimSpace(in.Command)
	if text == "" {
		quoted := make([]string, len(in.Argv))
		for i, a := range in.Argv {
			if quoted[i] = a; a == "" || strings.ContainsAny(a, " \t\n\"'\\$`|&;<>()*?[]#~") {
				quoted[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
			}
		}
		text = strings.Join(quoted, " ")
	}
	if text == "" {
		return ""
	}
	if in.Dir != "" {
		text += "\nin " + in.Dir
	}
	if in.Host != "" {
		text += "\non " + in.Host
	}
	if in.Node != "" {
		text += "\non node " + in.Node
	}
	for _, k := range slices.Sorted(maps.Keys(in.Env)) {
		text += fmt.Sprintf("\nwith %s=%s", k, in.Env[k])
	}
	return text
}

// wait answers with the decision on an approval once there is one.
func (m methods) wait(ctx context.Context, p rpc.Peer, in wire.ApprovalID) (wire.ApprovalDecided, error) {
	decided, stop := m.decisions()
	defer stop()
	r, err := m.request(ctx, in.ID)
	if err != nil {
		if errors.Is(err, chela.ErrNotFound) {
			err = wire.Errorf(wire.InvalidRequest, "approval expired or not found")
		}
		return wire.ApprovalDecided{}, err
	}
	p.Yield()
	return m.await(ctx, r, decided)
}

// decisions returns a channel that receives a value after each decision.
func (m methods) decisions() (<-chan struct{}, func()) {
	c := make(chan struct{}, 1)
	stop := m.o.Subscribe(func(e chela.Event) {
		if e.Stream != chela.StreamApproval || e.Phase != chela.PhaseResolved {
			return
		}
		select {
		case c <- struct{}{}:
		default:
		}
	})
	return c, stop
}

// await waits until a stored approval is resolved or has expired.
func (m methods) await(ctx context.Context, r approval.Request, decided <-chan struct{}) (wire.ApprovalDecided, error) {
	for {
		now, err := m.request(ctx, r.ID)
		if errors.Is(err, chela.ErrNotFound) {
			return outcome(r), nil // deleted along with its session: nobody can decide any more
		}
		if err != nil {
			return wire.ApprovalDecided{}, err
		}
		r = now
		left := time.Until(r.Expires)
		if r.Decision != approval.Pending || left <= 0 {
			return outcome(r), nil
		}
		select {
		case <-decided:
		case <-time.After(left):
		case <-ctx.Done():
			return wire.ApprovalDecided{}, ctx.Err()
		}
	}
}

func outcome(r approval.Request) wire.ApprovalDecided {
	out := wire.ApprovalDecided{ID: r.ID, Created: wire.At(r.Created), Expires: wire.At(r.Expires)}
	if r.Decision.Allows() || r.Decision == approval.Deny {
		word := string(r.Decision)
		out.Decision = &word
	}
	return out
}

func (m methods) request(ctx context.Context, id string) (approval.Request, error) {
	return store.Get(ctx, m.o.Store, func(r store.Reader) (approval.Request, error) { return r.Approvals().Get(id) })
}
