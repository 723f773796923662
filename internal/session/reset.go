package session

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/llm"
)

// defaultResetHour is the hour of the day at which a daily session ends.
const defaultResetHour = 4

// ResetPolicy says when a session is too old to go on.
type ResetPolicy struct {
	Mode        string `json:"mode,omitempty"`        // none (also ""), daily, idle
	AtHour      *int   `json:"atHour,omitempty"`      // of daily, local time; nil: 4
	IdleMinutes int    `json:"idleMinutes,omitempty"` // of idle, and of daily when it is set
}

// Expired returns why the session is over at now: "daily", "idle", or "" when
// it is not. Only what a person does keeps a session from being idle, and
// nothing postpones the daily end. The zone of now decides what a day is.
func Expired(p ResetPolicy, m Meta, now time.Time) string {
	if m.Started.IsZero() || p.Mode != "daily" && p.Mode != "idle" {
		return ""
	}
	hour := defaultResetHour
	if p.AtHour != nil {
		hour = *p.AtHour
	}
	y, mo, d := now.Date()
	end := time.Date(y, mo, d, hour, 0, 0, 0, now.Location())
	if end.After(now) {
		end = time.Date(y, mo, d-1, hour, 0, 0, 0, now.Location())
	}
	active := m.Active
	if active.Before(m.Started) {
		active = m.Started
	}
	switch {
	case p.Mode == "daily" && m.Started.Before(end):
		return "daily"
	case p.IdleMinutes > 0 && now.Sub(active) > time.Duration(p.IdleMinutes)*time.Minute:
		return "idle"
	}
	return ""
}

// Reset gives the session a new transcript and returns it. The old one stays,
// listed by Past with the reason. Settings that a person pinned stay too; the
// counters begin again.
func Reset(t Table, key chela.SessionKey, reason string, now time.Time) (Meta, error) {
	m, err := t.Get(key)
	if err != nil {
		return m, fmt.Errorf("reset session %s: %w", key, err)
	}
	n, err := t.Count(m.ID)
	if err != nil {
		return m, fmt.Errorf("reset session %s: %w", key, err)
	}
	if n > 0 {
		if err := t.Archive(key, Past{ID: m.ID, Started: m.Started, Ended: now, Reason: reason, Entries: n}); err != nil {
			return m, fmt.Errorf("reset session %s: %w", key, err)
		}
		m.Previous = m.ID
	}
	m.ID, m.Started, m.Updated, m.Active = uuid.NewString(), now, now, now
	m.Title, m.Tokens, m.Context, m.NanoUSD = "", llm.Usage{}, 0, 0
	m.Priced, m.Calls, m.Aborted = false, 0, false
	if err := t.Put(m); err != nil {
		return m, fmt.Errorf("reset session %s: %w", key, err)
	}
	return m, nil
}
