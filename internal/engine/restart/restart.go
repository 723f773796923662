// Package restart lets work continue after a restart of the gateway that the work asked
// for.
//
// A request is a deferred event of the session ([queue.Deferred]), owned by the process
// that is to end. It is on disk before the restart begins. The next process answers it at
// its start, in one commit: the chat is told the result in one message, and the event
// becomes a waiting one, whose run continues the work. A process that is killed leaves
// the same request behind.
package restart

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/outbox"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/kit/chunk"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// Options are the dependencies of Requests. All are required.
type Options struct {
	Store  store.Store
	Owner  string                                 // this process; see queue.Item.Owner
	Sends  func(session.Meta, chela.Address) bool // whether what a session says is sent to a chat
	Chunks func(chela.Address) chunk.Options
}

// Requests records who waits for a restart.
type Requests struct{ o Options }

// New returns the Requests of this process.
func New(o Options) Requests { return Requests{o} }

const (
	prefix    = "restart:" // of the ids of items
	maxReason = 300        // characters of a reason
)

// Record notes that the run of a call waits for a restart, and why it wants one. A
// session waits once: its first reason counts. It reports false, and notes nothing, for
// a call outside of a run.
func (r Requests) Record(ctx context.Context, c tool.Call, reason string) (bool, error) {
	id := prefix + r.o.Owner + ":" + string(c.Session)
	it := queue.Item{
		ID:      id,
		Key:     id,
		Session: c.Session,
		Kind:    queue.Event,
		Call:    c.ID,
		Parent:  c.Run,
		Origin:  chela.Origin{Kind: chela.OriginProcess, ID: c.ID},
		State:   queue.Deferred,
		Owner:   r.o.Owner,
		Created: time.Now(),
		Inbound: chela.Inbound{Text: humanize.Truncate(strings.Join(strings.Fields(reason), " "), maxReason),
			Mode: string(queue.Steer)},
	}
	err := r.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
		row, err := tx.Runs().Get(c.Run)
		if err != nil {
			return err
		}
		it.Principal, it.Inbound.Address, it.Root = row.Principal, row.Address, row.Tree()
		_, err = tx.Queue().Put(it)
		return err
	})
	if errors.Is(err, chela.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("record the restart: %w", err)
	}
	return true, nil
}

// Answer tells those who waited for this start of the gateway. failure is why it runs
// with another configuration than that of its files; "": it does not. Answer is called
// before the sessions are served. It returns how many waited.
func (r Requests) Answer(ctx context.Context, failure string) (n int, err error) {
	deferred, err := store.Get(ctx, r.o.Store, func(r store.Reader) ([]queue.Item, error) { return r.Queue().Deferred() })
	if err != nil {
		return 0, err
	}
	for _, it := range deferred {
		if !strings.HasPrefix(it.ID, prefix) || it.Owner == r.o.Owner {
			continue
		}
		n++
		err = errors.Join(err, r.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
			alive, err := tx.Leases().Alive(it.Owner)
			if err != nil || alive {
				return err
			}
			return r.answer(tx, it.ID, failure)
		}))
	}
	return n, err
}

// answer tells one session, unless that was done already.
func (r Requests) answer(tx store.Tx, id, failure string) error {
	it, err := tx.Queue().Get(id)
	if err != nil || it.State != queue.Deferred {
		return err
	}
	now := time.Now()
	notice, outcome := "🔄 The gateway has restarted", chela.OutcomeOK
	if it.Inbound.Text != "" {
		notice += ": " + strings.TrimSuffix(it.Inbound.Text, ".")
	}
	notice += "."
	if failure != "" {
		outcome = chela.OutcomeError
		notice += " ⚠️ It could not start with the new configuration, and runs with the last good one: " + failure
	}
	m, err := tx.Sessions().Get(it.Session)
	if err != nil {
		if errors.Is(err, chela.ErrNotFound) {
			return tx.Queue().Set(queue.Cancelled, it)
		}
		return err
	}
	if err := tx.Sessions().Append(m.ID, &session.Entry{
		ID:      uuid.NewString(),
		Kind:    session.KindNotice,
		Time:    now,
		Run:     it.Parent,
		Text:    notice,
		NanoUSD: -1,
	}); err != nil {
		return err
	}
	if to := it.Inbound.Address; !to.Local() && r.o.Sends(m, to) {
		row := outbox.Row{
			Key:     id,
			Run:     it.Parent,
			Session: it.Session,
			Address: to,
			Created: now,
			Origin:  chela.Origin{Kind: chela.OriginSystem},
		}
		if err := tx.Outbox().Put(outbox.Rows(row, notice, r.o.Chunks(to))...); err != nil {
			return err
		}
		tx.Wake(store.Topic{Kind: store.TopicOutbox})
	}
	text := notice + "\nThe person was told so. Go on with what you were doing before the restart; if nothing is left to do, answer with NO_REPLY only."
	if failure != "" {
		text += " Do not repeat the change as it was."
	}
	_, err = queue.Resolve(tx.Queue(), id, text, queue.Result{Outcome: outcome, Ended: now, Text: notice})
	tx.Wake(store.Topic{Kind: store.TopicQueue, Session: it.Session})
	return err
}
