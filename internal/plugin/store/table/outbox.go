package table

import (
	"errors"
	"fmt"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/outbox"
)

// outboxTable is the table of the outbox.
type outboxTable struct{ c *Tables }

var _ outbox.Table = outboxTable{}

const (
	outboxColumns = "key, run, session, address, reply_to, part, text, media, state, attempts, not_before, platform, error, created, origin, buttons, poll"
	outboxIntact  = "intact(seq, " + outboxColumns + ", crc)"
)

func (t outboxTable) list(where string, args ...any) ([]outbox.Row, error) {
	return Collect(t.c, scanOutbox, "SELECT seq, "+outboxColumns+", "+outboxIntact+" FROM outbox WHERE "+where, args...)
}

func scanOutbox(r *Row) (outbox.Row, error) {
	v := outbox.Row{Seq: r.Int(), Key: r.Text(), Run: chela.RunID(r.Text()), Session: chela.SessionKey(r.Text())}
	err := decode(r.Text(), &v.Address)
	v.ReplyTo, v.Part, v.Text = r.Text(), int(r.Int()), r.Text()
	err = errors.Join(err, decodeSet(r.Text(), &v.Media))
	v.State, v.Attempts, v.NotBefore = outbox.State(r.Text()), int(r.Int()), r.Time()
	v.PlatformID, v.Error, v.Created = r.Text(), r.Text(), r.Time()
	err = errors.Join(err, decodeSet(r.Text(), &v.Origin), decodeSet(r.Text(), &v.Buttons), decodeSet(r.Text(), &v.Poll))
	return v, err
}

// Get returns a row.
func (t outboxTable) Get(key string) (outbox.Row, error) {
	return get(t.list, "outbox row", "key = ?", key)
}

// Open returns rows that are not final, by Seq, at most limit (0: all).
func (t outboxTable) Open(limit int) ([]outbox.Row, error) {
	if limit == 0 {
		limit = noLimit
	}
	return t.list("state IN ('draft', 'pending', 'attempted') ORDER BY seq LIMIT ?", limit)
}

// Undelivered returns the newest n rows that are failed or ambiguous, newest first.
func (t outboxTable) Undelivered(n int) ([]outbox.Row, error) {
	return t.list("state IN ('failed', 'ambiguous') ORDER BY seq DESC LIMIT ?", n)
}

// SentAs returns the row that became a message in a chat.
func (t outboxTable) SentAs(a chela.Address, id string) (outbox.Row, error) {
	rows, err := t.list("platform = ? AND state = 'sent' ORDER BY seq DESC", id)
	if err != nil {
		return outbox.Row{}, err
	}
	for _, r := range rows {
		if a.Thread = r.Address.Thread; r.Address == a {
			return r, nil
		}
	}
	return outbox.Row{}, fmt.Errorf("message %s in the outbox: %w", id, chela.ErrNotFound)
}

// OfRun returns the rows of a run, by Part.
func (t outboxTable) OfRun(id chela.RunID) ([]outbox.Row, error) {
	return t.list("run = ? ORDER BY part, seq", str(id))
}

// Put inserts or updates rows by their keys.
func (t outboxTable) Put(rows ...outbox.Row) error {
	for _, v := range rows {
		if err := t.put(v); err != nil {
			return fmt.Errorf("outbox row %s: %w", v.Key, err)
		}
	}
	return nil
}

func (t outboxTable) put(v outbox.Row) error {
	address, err1 := encode(v.Address)
	origin, err2 := encodeSet(v.Origin, v.Origin == chela.Origin{})
	media, err3 := encodeSet(v.Media, len(v.Media) == 0)
	buttons, err4 := encodeSet(v.Buttons, len(v.Buttons) == 0)
	poll, err5 := encodeSet(v.Poll, v.Poll == nil)
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		return err
	}
	_, err := t.c.Exec("INSERT INTO outbox ("+outboxColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (key) DO UPDATE SET run = excluded.run, session = excluded.session, address = excluded.address,
reply_to = excluded.reply_to, part = excluded.part, text = excluded.text, media = excluded.media, state = excluded.state,
attempts = excluded.attempts, not_before = excluded.not_before, platform = excluded.platform, error = excluded.error,
created = excluded.created, origin = excluded.origin, buttons = excluded.buttons, poll = excluded.poll`,
		v.Key, str(v.Run), str(v.Session), address, v.ReplyTo, v.Part, v.Text, media, str(v.State), v.Attempts, v.NotBefore,
		v.PlatformID, v.Error, v.Created, origin, buttons, poll)
	return err
}

// Delete removes rows.
func (t outboxTable) Delete(keys ...string) error {
	for _, key := range keys {
		if _, err := t.c.Exec("DELETE FROM outbox WHERE key = ?", key); err != nil {
			return err
		}
	}
	return nil
}

// Prune deletes final rows created before tm and returns how many.
func (t outboxTable) Prune(tm time.Time) (int, error) {
	return t.c.Exec("DELETE FROM outbox WHERE state IN ('sent', 'failed', 'ambiguous', 'dismissed') AND created < ?", tm)
}
