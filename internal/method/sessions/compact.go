package sessions

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/compact"
	"github.com/chela-ai/chela/internal/rpc"
	"github.com/chela-ai/chela/internal/session"
	"github.com/chela-ai/chela/internal/store"
	"github.com/chela-ai/chela/wire"
)

// compact leaves the older half of a conversation out of what is sent from now
// on. The transcript keeps it.
func (m methods) compact(ctx context.Context, _ rpc.Peer, in wire.SessionKey) (wire.SessionCompacted, error) {
	key, err := m.key(wire.MethodSessionsCompact, in.Key, in.AgentID)
	if err != nil {
		return wire.SessionCompacted{}, err
	}
	op := wire.SessionOperation{ID: uuid.NewString(), Operation: "compact"}
	m.operation(key, chela.PhaseStart, op)
	out := wire.SessionCompacted{OK: true, Key: string(key)}
	var stored []*session.Entry
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
	for _, e := range stored {
		m.o.Publish(chela.Event{Session: key, Stream: chela.StreamMessage, Phase: wire.RoleSystem, Data: *e})
	}
	if out.Compacted {
		m.tell(key, "compacted")
	}
	return out, nil
}

// cutTx writes the cut, or says why there is none.
func cutTx(tx store.Tx, key chela.SessionKey, now time.Time) ([]*session.Entry, string, error) {
	meta, err := find(tx.Sessions(), key)
	if err != nil {
		return nil, "", err
	}
	active, err := tx.Runs().Active(key)
	if err != nil || len(active) > 0 {
		return nil, "a run is in progress", err
	}
	entries, err := tx.Sessions().Entries(meta.ID, 0, 0)
	if err != nil {
		return nil, "", err
	}
	from, turns, ok := compact.Cut(entries)
	if !ok {
		return nil, "there is only one turn", nil
	}
	text := fmt.Sprintf("the oldest %d turns are left out from now on (they stay in the history)", turns)
	cut := []*session.Entry{
		{ID: uuid.NewString(), Kind: session.KindCut, Time: now, First: from, NanoUSD: -1},
		{ID: uuid.NewString(), Kind: session.KindNotice, Time: now, Text: text, NanoUSD: -1},
	}
	meta.Updated = now
	if err := tx.Sessions().Append(meta.ID, cut...); err != nil {
		return nil, "", err
	}
	return cut, "", tx.Sessions().Put(meta)
}

func (m methods) operation(key chela.SessionKey, phase string, op wire.SessionOperation) {
	m.o.Publish(chela.Event{Session: key, Stream: chela.StreamOperation, Phase: phase, Data: op})
}
