package session

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/plan"
)

// defaultResetHour is the hour of the day at which sessions are reset daily.
const defaultResetHour = 4

// ResetPolicy determines when a session expires.
type ResetPolicy struct {
	Mode        string `json:"mode,omitempty"`        // none (also ""), daily, idle
	AtHour      *int   `json:"atHour,omitempty"`      // of daily, local time; nil: 4
	IdleMinutes int    `json:"idleMinutes,omitempty"` // of idle; of daily, if set
}

// Expired returns why the session has expired at now: "daily", "idle", or "" if it
// has not. Only messages of persons count as activity. Activity does not postpone the
// daily reset. Days are days in the time zone of now.
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

// Soft is the reason of a reset that keeps the transcript.
const Soft = "soft"

// Refresh makes the next run of a person begin like the first one of a transcript: with
// the daily notes. The transcript is kept.
func (m *Meta) Refresh() {
	if m.Opened == "" {
		m.Opened = Soft
	}
}

// Reset starts a new transcript of the session and returns the session. The old
// transcript is archived with the reason. Settings are kept; counters and the
// plan are cleared.
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
	m.Priced, m.Calls, m.Aborted, m.Children = false, 0, false, Spent{}
	m.Compactions, m.Flushed, m.FlushCount = 0, time.Time{}, 0
	m.Plan, m.Opened = plan.Plan{}, reason
	m.EndFork()
	if m.External != nil { // its conversation begins anew, too
		x := *m.External
		x.Remote = ""
		m.External = &x
	}
	if err := t.Put(m); err != nil {
		return m, fmt.Errorf("reset session %s: %w", key, err)
	}
	return m, nil
}
