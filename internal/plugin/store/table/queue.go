package table

import (
	"errors"
	"fmt"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/queue"
)

// items is the table of the queue.
type items struct{ c *Tables }

var _ queue.Table = items{}

const (
	itemColumns = "seq, id, key, session, kind, principal, inbound, call, state, run, note, created, origin, overrides, next, skipped, owner, parent, root, result"
	itemIntact  = "intact(" + itemColumns + ", crc)"
)

func scanItem(r *Row) (queue.Item, error) {
	it := queue.Item{
		Seq:     r.Int(),
		ID:      r.Text(),
		Key:     r.Text(),
		Session: chela.SessionKey(r.Text()),
		Kind:    queue.Kind(r.Text()),
	}
	err := errors.Join(decode(r.Text(), &it.Principal), decode(r.Text(), &it.Inbound))
	it.Call, it.State, it.Run = r.Text(), queue.State(r.Text()), chela.RunID(r.Text())
	it.Note, it.Created = r.Text(), r.Time()
	err = errors.Join(err, decodeSet(r.Text(), &it.Origin), decodeSet(r.Text(), &it.Overrides))
	it.Next, it.Skipped, it.Owner = r.Bool(), int(r.Int()), r.Text()
	it.Parent, it.Root = chela.RunID(r.Text()), chela.RunID(r.Text())
	return it, errors.Join(err, decodeSet(r.Text(), &it.Result))
}

func (t items) list(where string, args ...any) ([]queue.Item, error) {
	return Collect(t.c, scanItem, "SELECT "+itemColumns+", "+itemIntact+" FROM item WHERE "+where, args...)
}

func encodeResult(r queue.Result) (string, error) { return encodeSet(r, r == queue.Result{}) }

// Waiting returns the items of the session in state Waiting, by Seq.
func (t items) Waiting(key chela.SessionKey) ([]queue.Item, error) {
	return t.list("session = ? AND state = 'waiting' ORDER BY seq", str(key))
}

// Get returns an item by its id.
func (t items) Get(id string) (queue.Item, error) { return get(t.list, "queue item", "id = ?", id) }

// ByKey returns an item by its dedupe key.
func (t items) ByKey(key string) (queue.Item, error) {
	return get(t.list, "queue item", "key = ?", key)
}

// Deferred returns the items of all sessions in state Deferred, by Seq.
func (t items) Deferred() ([]queue.Item, error) { return t.list("state = 'owed' ORDER BY seq") }

// Background returns the newest n items of work in the background, newest first.
func (t items) Background(n int) ([]queue.Item, error) {
	return t.list(`(owner <> '' OR instr(inbound, '"task":true')) ORDER BY seq DESC LIMIT ?`, n)
}

// OfRun returns the items that joined a run, by Seq.
func (t items) OfRun(id chela.RunID) ([]queue.Item, error) {
	return t.list("run = ? AND run <> '' AND run <> id ORDER BY seq", str(id))
}

// Sessions returns the keys of the sessions with waiting items.
func (t items) Sessions() ([]chela.SessionKey, error) {
	return Collect(t.c, ScanText[chela.SessionKey],
		"SELECT DISTINCT session FROM item WHERE state = 'waiting' ORDER BY session")
}

// WaitingOf returns the number of items in state Waiting with an origin of the kind.
func (t items) WaitingOf(k chela.OriginKind) (int, error) {
	n, err := Collect(t.c, func(r *Row) (int, error) { return int(r.Int()), nil },
		"SELECT count(*) FROM item WHERE state = 'waiting' AND instr(origin, ?) = 1", `{"kind":"`+str(k)+`"`)
	if err != nil || len(n) == 0 {
		return 0, err
	}
	return n[0], nil
}

// Unfinished returns the first n waiting messages with Inbound.Unread set and commands,
// by Seq.
func (t items) Unfinished(n int) ([]queue.Item, error) {
	return t.list(`state = 'waiting' AND (kind = 'command' OR instr(inbound, '"unread":true') > 0) ORDER BY seq LIMIT ?`,
		n)
}

// Replace stores the Kind, Inbound, Overrides, State, Note and Result of a waiting item. It
// reports whether the item was waiting.
func (t items) Replace(it queue.Item) (bool, error) {
	inbound, err1 := encode(it.Inbound)
	overrides, err2 := encodeSet(it.Overrides, it.Overrides.IsZero())
	result, err3 := encodeResult(it.Result)
	if err := errors.Join(err1, err2, err3); err != nil {
		return false, fmt.Errorf("queue item %s: %w", it.ID, err)
	}
	n, err := t.c.Exec("UPDATE item SET kind = ?, inbound = ?, overrides = ?, state = ?, note = ?, result = ? WHERE id = ? AND state = 'waiting' AND "+itemIntact,
		str(it.Kind), inbound, overrides, str(it.State), it.Note, result, it.ID)
	return n > 0, err
}

// Put stores a new item. If the key exists already, it returns the receipt of the
// existing item. An item without a key is always new.
func (t items) Put(it queue.Item) (queue.Receipt, error) {
	principal, err1 := encode(it.Principal)
	inbound, err2 := encode(it.Inbound)
	origin, err3 := encodeSet(it.Origin, it.Origin == chela.Origin{})
	overrides, err4 := encodeSet(it.Overrides, it.Overrides.IsZero())
	result, err5 := encodeResult(it.Result)
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		return queue.Receipt{}, fmt.Errorf("queue item %s: %w", it.ID, err)
	}
	if it.State == "" {
		it.State = queue.Waiting
	}
	isNew, err := t.c.One(func(r *Row) error { it.Seq = r.Int(); return nil },
		`INSERT INTO item (id, key, session, kind, principal, inbound, call, state, run, note, created,
origin, overrides, next, skipped, owner, parent, root, result) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING seq`,
		it.ID, Optional(it.Key), str(it.Session), str(it.Kind), principal, inbound, it.Call, str(it.State),
		str(it.Run), it.Note, it.Created,
		origin, overrides, it.Next, it.Skipped, it.Owner, str(it.Parent), str(it.Root), result)
	if err != nil {
		return queue.Receipt{}, err
	}
	if isNew {
		return queue.Receipt{Item: it, New: true}, nil
	}
	known, err := t.ByKey(it.Key)
	if errors.Is(err, chela.ErrNotFound) {
		err = chela.Errorf(chela.CodeConflict, "queue item %s: the id exists already", it.ID)
	}
	return queue.Receipt{Item: known}, err
}

// Set moves items to a state and stores their Run, Note, Result and Skipped.
func (t items) Set(s queue.State, list ...queue.Item) error {
	for _, it := range list {
		result, err := encodeResult(it.Result)
		if err != nil {
			return fmt.Errorf("queue item %s: %w", it.ID, err)
		}
		n, err := t.c.Exec("UPDATE item SET state = ?, run = ?, note = ?, result = ?, skipped = ? WHERE id = ? AND "+
			itemIntact, str(s), str(it.Run), it.Note, result, it.Skipped, it.ID)
		if err != nil {
			return err
		}
		if n == 0 {
			return fmt.Errorf("queue item %s: %w", it.ID, chela.ErrNotFound)
		}
	}
	return nil
}

// Take moves waiting items to a state and stores their Run and Note. It reports whether all of them were waiting.
func (t items) Take(s queue.State, list ...queue.Item) (bool, error) {
	for _, it := range list {
		n, err := t.c.Exec("UPDATE item SET state = ?, run = ?, note = ? WHERE id = ? AND state = 'waiting' AND "+itemIntact,
			str(s), str(it.Run), it.Note, it.ID)
		if err != nil || n == 0 {
			return false, err
		}
	}
	return true, nil
}

// Finish moves the items that a run took to Done: the item whose id equals the
// run's, and others, which an index finds.
func (t items) Finish(id chela.RunID) error {
	if _, err := t.c.Exec("UPDATE item SET state = 'done' WHERE id = ?1 AND run = ?1 AND state = 'taken' AND "+
		itemIntact, str(id)); err != nil {
		return err
	}
	others, err := t.c.Number("SELECT count(*) FROM item WHERE run = ? AND run <> '' AND run <> id AND state = 'taken'",
		str(id))
	if err == nil && others > 0 {
		_, err = t.c.Exec("UPDATE item SET state = 'done' WHERE run = ? AND run <> '' AND run <> id AND state = 'taken' AND "+
			itemIntact, str(id))
	}
	return err
}

// Prune deletes final items created before tm and returns their number.
func (t items) Prune(tm time.Time) (int, error) {
	return t.c.Exec("DELETE FROM item WHERE state IN ('done', 'dropped', 'cancelled') AND created < ?", tm)
}
