package sqlite

import (
	"errors"
	"fmt"
	"time"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/outbox"
)

// outgoing is the table of the outbox.
type outgoing struct{ c *conn }

var _ outbox.Table = outgoing{}

const outboxColumns = `key, run, session, address, reply_to, part, text, media, state, attempts, not_before, platform,
error, created`

func (t outgoing) list(where string, args ...any) ([]outbox.Row, error) {
	var list []outbox.Row
	err := t.c.query(func(r *row) error {
		v := outbox.Row{Seq: r.int(), Key: r.text(), Run: chela.RunID(r.text()), Session: chela.SessionKey(r.text())}
		err := decode(r.text(), &v.Address)
		v.ReplyTo, v.Part, v.Text = r.text(), int(r.int()), r.text()
		if media := r.text(); media != "" {
			err = errors.Join(err, decode(media, &v.Media))
		}
		v.State, v.Attempts, v.NotBefore = outbox.State(r.text()), int(r.int()), r.time()
		v.PlatformID, v.Error, v.Created = r.text(), r.text(), r.time()
		list = append(list, v)
		return err
	}, "SELECT seq, "+outboxColumns+" FROM outbox WHERE "+where, args...)
	return list, err
}

// Get returns a row.
func (t outgoing) Get(key string) (outbox.Row, error) {
	list, err := t.list("key = ?", key)
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("outbox row %s: %w", key, chela.ErrNotFound)
	}
	if err != nil {
		return outbox.Row{}, err
	}
	return list[0], nil
}

// Open returns rows that are not final, by Seq, at most limit (0: all).
func (t outgoing) Open(limit int) ([]outbox.Row, error) {
	if limit == 0 {
		limit = -1 // none, to SQLite
	}
	return t.list("state IN ('draft', 'pending', 'attempted') ORDER BY seq LIMIT ?", limit)
}

// OfRun returns the rows of a run, by Part.
func (t outgoing) OfRun(id chela.RunID) ([]outbox.Row, error) {
	return t.list("run = ? ORDER BY part, seq", str(id))
}

// Put stores rows by their keys, new or changed.
func (t outgoing) Put(rows ...outbox.Row) error {
	for _, v := range rows {
		if err := t.put(v); err != nil {
			return fmt.Errorf("outbox row %s: %w", v.Key, err)
		}
	}
	return nil
}

func (t outgoing) put(v outbox.Row) error {
	address, err := encode(v.Address)
	if err != nil {
		return err
	}
	media := ""
	if len(v.Media) > 0 {
		if media, err = encode(v.Media); err != nil {
			return err
		}
	}
	_, err = t.c.exec("INSERT INTO outbox ("+outboxColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (key) DO UPDATE SET run = excluded.run, session = excluded.session, address = excluded.address,
reply_to = excluded.reply_to, part = excluded.part, text = excluded.text, media = excluded.media, state = excluded.state,
attempts = excluded.attempts, not_before = excluded.not_before, platform = excluded.platform, error = excluded.error,
created = excluded.created`,
		v.Key, str(v.Run), str(v.Session), address, v.ReplyTo, v.Part, v.Text, media, str(v.State), v.Attempts, v.NotBefore,
		v.PlatformID, v.Error, v.Created)
	return err
}

// Delete removes rows.
func (t outgoing) Delete(keys ...string) error {
	for _, key := range keys {
		if _, err := t.c.exec("DELETE FROM outbox WHERE key = ?", key); err != nil {
			return err
		}
	}
	return nil
}

// Prune deletes final rows created before tm and returns how many.
func (t outgoing) Prune(tm time.Time) (int, error) {
	return t.c.exec("DELETE FROM outbox WHERE state IN ('sent', 'failed', 'ambiguous') AND created < ?", tm)
}
