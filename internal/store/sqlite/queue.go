package sqlite

import (
	"errors"
	"fmt"
	"time"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/queue"
)

// items is the table of the queue.
type items struct{ c *conn }

var _ queue.Table = items{}

const itemColumns = "seq, id, key, session, kind, principal, inbound, call, state, run, note, created"

func scanItem(r *row) (queue.Item, error) {
	it := queue.Item{Seq: r.int(), ID: r.text(), Key: r.text(), Session: chela.SessionKey(r.text()), Kind: queue.Kind(r.text())}
	err := errors.Join(decode(r.text(), &it.Principal), decode(r.text(), &it.Inbound))
	it.Call, it.State, it.Run = r.text(), queue.State(r.text()), chela.RunID(r.text())
	it.Note, it.Created = r.text(), r.time()
	return it, err
}

func (t items) list(where string, args ...any) ([]queue.Item, error) {
	var list []queue.Item
	err := t.c.query(func(r *row) error {
		it, err := scanItem(r)
		list = append(list, it)
		return err
	}, "SELECT "+itemColumns+" FROM item WHERE "+where, args...)
	return list, err
}

func (t items) one(where, arg string) (queue.Item, error) {
	list, err := t.list(where, arg)
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("queue item %s: %w", arg, chela.ErrNotFound)
	}
	if err != nil {
		return queue.Item{}, err
	}
	return list[0], nil
}

// Waiting returns the items of the session in state Waiting, by Seq.
func (t items) Waiting(key chela.SessionKey) ([]queue.Item, error) {
	return t.list("session = ? AND state = 'waiting' ORDER BY seq", str(key))
}

// Get returns an item by id.
func (t items) Get(id string) (queue.Item, error) { return t.one("id = ?", id) }

// ByKey returns an item by dedupe key.
func (t items) ByKey(key string) (queue.Item, error) { return t.one("key = ?", key) }

// Owed returns the items of all sessions in state Owed, by Seq.
func (t items) Owed() ([]queue.Item, error) { return t.list("state = 'owed' ORDER BY seq") }

// Sessions returns the keys that have waiting items.
func (t items) Sessions() ([]chela.SessionKey, error) {
	var keys []chela.SessionKey
	err := t.c.query(func(r *row) error {
		keys = append(keys, chela.SessionKey(r.text()))
		return nil
	}, "SELECT DISTINCT session FROM item WHERE state = 'waiting' ORDER BY session")
	return keys, err
}

// Put stores a new item, or returns the receipt of its key. An item without a
// key is always new.
func (t items) Put(it queue.Item) (queue.Receipt, error) {
	principal, err1 := encode(it.Principal)
	inbound, err2 := encode(it.Inbound)
	if err := errors.Join(err1, err2); err != nil {
		return queue.Receipt{}, fmt.Errorf("queue item %s: %w", it.ID, err)
	}
	if it.State == "" {
		it.State = queue.Waiting
	}
	n, err := t.c.exec(`INSERT INTO item (id, key, session, kind, principal, inbound, call, state, run, note, created)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		it.ID, optional(it.Key), str(it.Session), str(it.Kind), principal, inbound, it.Call, str(it.State), str(it.Run), it.Note, it.Created)
	if err != nil {
		return queue.Receipt{}, err
	}
	if n > 0 {
		it.Seq = t.c.Inserted()
		return queue.Receipt{Item: it, New: true}, nil
	}
	known, err := t.ByKey(it.Key)
	if errors.Is(err, chela.ErrNotFound) {
		err = chela.Errorf(chela.CodeConflict, "queue item %s: another has this id", it.ID)
	}
	return queue.Receipt{Item: known}, err
}

// Set moves items to a state, with their Run and Note as given.
func (t items) Set(s queue.State, list ...queue.Item) error {
	for _, it := range list {
		n, err := t.c.exec("UPDATE item SET state = ?, run = ?, note = ? WHERE id = ?", str(s), str(it.Run), it.Note, it.ID)
		if err != nil {
			return err
		}
		if n == 0 {
			return fmt.Errorf("queue item %s: %w", it.ID, chela.ErrNotFound)
		}
	}
	return nil
}

// Take is Set for items that wait. It reports whether all of them did.
func (t items) Take(s queue.State, list ...queue.Item) (bool, error) {
	for _, it := range list {
		n, err := t.c.exec("UPDATE item SET state = ?, run = ?, note = ? WHERE id = ? AND state = 'waiting'", str(s), str(it.Run), it.Note, it.ID)
		if err != nil || n == 0 {
			return false, err
		}
	}
	return true, nil
}

// Finish moves the items that a run took to Done: the one whose id it has, and
// others, which an index knows.
func (t items) Finish(id chela.RunID) error {
	if _, err := t.c.exec("UPDATE item SET state = 'done' WHERE id = ?1 AND run = ?1 AND state = 'taken'", str(id)); err != nil {
		return err
	}
	others, err := t.c.number("SELECT count(*) FROM item WHERE run = ? AND run <> '' AND run <> id AND state = 'taken'", str(id))
	if err == nil && others > 0 {
		_, err = t.c.exec("UPDATE item SET state = 'done' WHERE run = ? AND run <> '' AND run <> id AND state = 'taken'", str(id))
	}
	return err
}

// Prune deletes final items created before tm and returns how many.
func (t items) Prune(tm time.Time) (int, error) {
	return t.c.exec("DELETE FROM item WHERE state IN ('done', 'dropped', 'cancelled') AND created < ?", tm)
}
