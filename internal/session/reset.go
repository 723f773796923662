package session

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/llm"
)

// Reset gives the session a new, empty transcript and returns it as it is now.
// The old transcript is kept and listed as past, with the reason ("new",
// "reset", "daily", "idle"). Counters begin at zero; what a person set (model,
// thinking, footer, queue, label) stays.
func Reset(t Table, key chela.SessionKey, reason string, now time.Time) (Meta, error) {
	m, err := t.Get(key)
	if err != nil {
		return m, fmt.Errorf("reset session %s: %w", key, err)
	}
	if err := leave(t, m, reason, now); err != nil {
		return m, err
	}
	m.Previous, m.ID = m.ID, uuid.NewString()
	m.Title = ""
	m.Started, m.Updated = now, now
	m.clear()
	return m, t.Put(m)
}

// UndoReset brings the transcript before the last reset back and returns the
// session as it is now. What was written since is kept as past too. Its
// counters begin at zero: what was spent on it before is in the usage rows.
func UndoReset(t Table, key chela.SessionKey, now time.Time) (Meta, error) {
	m, err := t.Get(key)
	if err != nil {
		return m, fmt.Errorf("undo reset of session %s: %w", key, err)
	}
	if m.Previous == "" {
		return m, chela.Errorf(chela.CodeNotFound, "nothing to undo: the session was not reset")
	}
	past, err := t.Past(key)
	if err != nil {
		return m, err
	}
	back := m.Previous
	started := now
	for _, p := range past {
		if p.ID == back {
			started = p.Started
		}
	}
	if err := t.Unarchive(key, back); err != nil {
		return m, err
	}
	if err := leave(t, m, "undo", now); err != nil {
		return m, err
	}
	m.Previous, m.ID = m.ID, back // undoing it again comes back here
	m.Started, m.Updated = started, now
	m.clear()
	return m, t.Put(m)
}

// leave records that the session's transcript was left.
func leave(t Table, m Meta, reason string, now time.Time) error {
	n, err := t.Count(m.ID)
	if err != nil {
		return err
	}
	return t.Archive(m.Key, Past{ID: m.ID, Started: m.Started, Ended: now, Reason: reason, Entries: n})
}

func (m *Meta) clear() {
	m.Tokens, m.Context, m.NanoUSD, m.Priced, m.Calls, m.Aborted = llm.Usage{}, 0, 0, false, 0, false
}
