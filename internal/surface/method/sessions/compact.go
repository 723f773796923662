package sessions

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/compact"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/wire"
)

// compact excludes the older half of a conversation from what is sent to the
// model. The transcript retains it.
func (m methods) compact(ctx context.Context, _ rpc.Peer, in wire.SessionKey) (wire.SessionCompacted, error) {
	key, err := m.key(in.Key, in.AgentID)
	if err != nil {
		return wire.SessionCompacted{}, err
	}
	op := chela.Operation{ID: uuid.NewString(), Name: "compact"}
	m.operation(key, chela.PhaseStart, op)
	out := wire.SessionCompacted{OK: true, Key: string(key)}
	var stored cut
	err = m.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
		var err error
		stored, out.Reason, err = cutTx(tx, key, time.Now())
		return err
	})
	out.Compacted = err == nil && out.Reason == ""
	op.Completed, op.Reason = out.Compacted, out.Reason
	m.operation(key, chela.PhaseEnd, op)
	if err != nil {
		return wire.SessionCompacted{}, fmt.Errorf("compact session %s: %w", key, err)
	}
	for _, e := range stored.entries {
		m.o.Bus.Publish(chela.Event{
			Session: key, Stream: chela.StreamMessage, Transcript: stored.transcript, Data: *e,
		})
	}
	if out.Compacted {
		m.notify(key, chela.PhaseCompacted)
	}
	return out, nil
}

// cut is the result of a compaction.
type cut struct {
	transcript string
	entries    []*session.Entry
}

// cutTx stores the compaction, or returns why there is none.
func cutTx(tx store.Tx, key chela.SessionKey, now time.Time) (cut, string, error) {
	meta, err := find(tx.Sessions(), key)
	if err != nil {
		return cut{}, "", err
	}
	active, err := tx.Runs().Active(key)
	if err != nil || len(active) > 0 {
		return cut{}, "a run is in progress", err
	}
	entries, err := tx.Sessions().Entries(meta.ID, 0, 0)
	if err != nil {
		return cut{}, "", err
	}
	from, turns, ok := compact.Cut(entries)
	if !ok {
		return cut{}, "there is only one turn", nil
	}
	text := fmt.Sprintf("the oldest %d turns are left out from now on (they stay in the history)", turns)
	c := cut{meta.ID, []*session.Entry{
		{ID: uuid.NewString(), Kind: session.KindCut, Time: now, First: from, NanoUSD: -1},
		{ID: uuid.NewString(), Kind: session.KindNotice, Time: now, Text: text, NanoUSD: -1},
	}}
	meta.Updated = now
	meta.EndFork()
	if err := tx.Sessions().Append(meta.ID, c.entries...); err != nil {
		return cut{}, "", err
	}
	return c, "", tx.Sessions().Put(meta)
}

func (m methods) operation(key chela.SessionKey, phase chela.Phase, op chela.Operation) {
	m.o.Bus.Publish(chela.Event{Session: key, Stream: chela.StreamOperation, Phase: phase, Data: op})
}
