package sessions

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/compact"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/wire"
)

// compact replaces the older part of a conversation by a summary in what is sent to
// the model, or with maxLines by nothing. The transcript retains it.
func (m methods) compact(ctx context.Context, _ rpc.Peer, in wire.SessionsCompact) (wire.SessionCompacted, error) {
	key, err := m.key(in.Key, in.AgentID)
	if err != nil {
		return wire.SessionCompacted{}, err
	}
	out := wire.SessionCompacted{OK: true, Key: string(key)}
	if in.MaxLines > 0 {
		err = m.keepLast(ctx, key, in.MaxLines, &out)
	} else {
		err = m.summarize(ctx, key, &out)
	}
	if err != nil {
		return wire.SessionCompacted{}, fmt.Errorf("compact session %s: %w", key, err)
	}
	return out, nil
}

// summarize queues a compaction, and waits for its end. The compaction is an item of the queue
// like a message, so that it has the lane, the model and the budget of a run, and is finished
// after a kill. Only the wait is lost with the connection.
func (m methods) summarize(ctx context.Context, key chela.SessionKey, out *wire.SessionCompacted) error {
	who := chela.PrincipalFrom(ctx)
	id := uuid.NewString()
	it := queue.Item{
		ID: id, Key: "sessions.compact:" + id, Session: key, Kind: queue.Compact, State: queue.Waiting, Created: time.Now(),
		Principal: who, Origin: chela.Origin{Kind: chela.OriginPerson, ID: who.ID},
	}
	it.Overrides.Deliver.Mode = run.DeliverNowhere
	var transcript string
	err := m.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
		meta, err := find(tx.Sessions(), key)
		if err != nil {
			return err
		}
		transcript, out.Reason = meta.ID, ""
		active, err := tx.Runs().Active(key)
		if err != nil {
			return err
		}
		for _, r := range active {
			if r.State == run.Running {
				out.Reason = "a run is in progress"
				return nil
			}
		}
		return store.Enqueue(tx, it)
	})
	if err != nil || out.Reason != "" {
		return err
	}
	row, err := m.o.Dispatcher.Wait(ctx, chela.RunID(id))
	if err != nil {
		return err
	}
	if row.State != run.OK {
		out.Reason = row.Error
		return nil
	}
	entry, made, err := m.compactionOf(ctx, transcript, row.ID)
	if err != nil || !made {
		out.Reason = strings.TrimSuffix(strings.TrimPrefix(row.Text, "Nothing was compacted: "), ".")
		return err
	}
	out.Compacted, out.Result = true, &entry
	return nil
}

// compactionOf returns what a run stored of a compaction.
func (m methods) compactionOf(ctx context.Context, transcript string,
	id chela.RunID) (out wire.CompactionResult, ok bool, err error) {
	err = m.o.Store.View(ctx, func(r store.Reader) error {
		e, found, err := session.LastCompaction(r.Sessions(), transcript)
		c := session.CompactionOf(e)
		if ok = found && c.Run == id; err != nil || !ok {
			return err
		}
		first, err := r.Sessions().Entries(transcript, e.First-1, 1)
		if err != nil {
			return err
		}
		out = wire.CompactionResult{Summary: e.Text, TokensBefore: c.TokensBefore, TokensAfter: c.TokensAfter}
		if len(first) > 0 {
			out.FirstKept = first[0].ID
		}
		return nil
	})
	return out, ok, err
}

// keepLast excludes all but the newest lines of the transcript, of which the first says what
// it is, as in OpenClaw's files.
func (m methods) keepLast(ctx context.Context, key chela.SessionKey, lines int, out *wire.SessionCompacted) error {
	err := m.o.Store.Update(ctx, store.Synced, func(tx store.Tx) (err error) {
		out.Kept, out.Compacted, err = keepLastTx(tx, key, lines-1, time.Now())
		return err
	})
	if err == nil && out.Compacted {
		m.notify(key, chela.PhaseCompacted)
	}
	return err
}

// leftOut stands for the beginning of a turn of which only the end is kept.
const leftOut = "The messages before were left out at the request of the person."

// keepLastTx stores a cut before the newest n messages without a summary. It returns the
// number of lines that stay.
func keepLastTx(tx store.Tx, key chela.SessionKey, n int, now time.Time) (kept int, compacted bool, err error) {
	meta, err := find(tx.Sessions(), key)
	if err != nil {
		return 0, false, err
	}
	if err := idle(tx, key); err != nil {
		return 0, false, err
	}
	entries, err := tx.Sessions().Entries(meta.ID, 0, 0)
	if err != nil {
		return 0, false, err
	}
	p, ok := compact.KeepLast(entries, n)
	if !ok {
		_, sent := session.SentEntries(entries)
		return len(sent) + 1, false, nil
	}
	c := session.Compaction{Reason: session.CompactManual, TokensBefore: p.Before, TokensAfter: p.Stays,
		Compacted: p.Replaced()}
	summary := p.Previous
	if summary == "" && p.Prefix != nil { // a conversation begins with a message of a person
		summary = leftOut
	}
	text := fmt.Sprintf("the oldest %d messages are left out from now on (they stay in the history)", p.Replaced())
	if err := tx.Sessions().Append(meta.ID,
		session.NewCompaction(p.First, summary, "", c, now),
		&session.Entry{ID: uuid.NewString(), Kind: session.KindNotice, Time: now, Text: text, NanoUSD: -1},
	); err != nil {
		return 0, false, err
	}
	meta.Updated = now
	meta.Compactions++
	meta.Context = max(meta.Context-int64(p.Before-p.Stays), 0)
	meta.EndFork()
	return len(p.Kept) + 1, true, tx.Sessions().Put(meta)
}

// idle returns an error if a session has a run, or messages that wait.
func idle(tx store.Tx, key chela.SessionKey) error {
	waiting, err := tx.Queue().Waiting(key)
	if err != nil {
		return err
	}
	active, err := tx.Runs().Active(key)
	switch {
	case err != nil:
		return err
	case slices.ContainsFunc(waiting, func(it queue.Item) bool { return it.Kind == queue.Message }):
		return chela.Errorf(chela.CodeConflict, "it has queued work; retry after it finishes")
	case len(active) > 0:
		return chela.Errorf(chela.CodeConflict, "it has an active run; retry after it finishes")
	}
	return nil
}
