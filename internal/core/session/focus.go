package session

import (
	"slices"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
)

// MaxFocus is the maximum number of chats of one session that are focused.
const MaxFocus = 32

// Focus is a chat whose messages go to another session than its own, that of a
// subagent.
type Focus struct {
	Address chela.Address    `json:"address"`
	Session chela.SessionKey `json:"sessionKey"`
	Since   time.Time        `json:"since"`
	// Idle and MaxAge replace the limits of the FocusPolicy. nil: they do not, 0: no limit.
	Idle   *time.Duration `json:"idle,omitempty"`
	MaxAge *time.Duration `json:"maxAge,omitempty"`
}

// FocusPolicy is session.threadBindings: whether chats may be focused, and for how long.
type FocusPolicy struct {
	Enabled     *bool    `json:"enabled"`     // nil: yes
	IdleHours   *float64 `json:"idleHours"`   // without a message; nil: 24, 0: any time
	MaxAgeHours float64  `json:"maxAgeHours"` // 0: any age
	// SpawnSessions says whether threads are created for subagents; nil: yes.
	SpawnSessions *bool `json:"spawnSessions"`
}

// defaultFocusIdle is the default of FocusPolicy.IdleHours.
const defaultFocusIdle = 24

// On reports whether chats may be focused.
func (p FocusPolicy) On() bool { return p.Enabled == nil || *p.Enabled }

// Spawns reports whether threads are created for subagents.
func (p FocusPolicy) Spawns() bool { return p.SpawnSessions == nil || *p.SpawnSessions }

// Limits returns how long a focus lasts without a message, and in all. 0: any time.
func (p FocusPolicy) Limits(f Focus) (idle, maxAge time.Duration) {
	hours := func(n float64) time.Duration { return time.Duration(n * float64(time.Hour)) }
	idle, maxAge = hours(defaultFocusIdle), hours(p.MaxAgeHours)
	if p.IdleHours != nil {
		idle = hours(*p.IdleHours)
	}
	if f.Idle != nil {
		idle = *f.Idle
	}
	if f.MaxAge != nil {
		maxAge = *f.MaxAge
	}
	return idle, maxAge
}

// Ended reports whether a focus has ended at now. to is the session that it names.
func (p FocusPolicy) Ended(f Focus, to Meta, now time.Time) bool {
	idle, maxAge := p.Limits(f)
	used := f.Since
	if to.Active.After(used) {
		used = to.Active
	}
	over := func(t time.Time, limit time.Duration) bool { return limit > 0 && now.Sub(t) >= limit }
	return !p.On() || over(used, idle) || over(f.Since, maxAge)
}

// Focused returns the focus of a chat; the zero Focus if it has none.
func (m Meta) Focused(a chela.Address) Focus {
	if i := slices.IndexFunc(m.Focus, func(f Focus) bool { return f.Address == a }); i >= 0 {
		return m.Focus[i]
	}
	return Focus{}
}

// SetFocus focuses a chat, or ends its focus if f names no session. The oldest focus
// ends if there are more than [MaxFocus].
func (m *Meta) SetFocus(f Focus) {
	m.Focus = slices.DeleteFunc(slices.Clone(m.Focus), func(o Focus) bool { return o.Address == f.Address })
	if f.Session == "" {
		return
	}
	m.Focus = append(m.Focus, f)
	m.Focus = m.Focus[max(0, len(m.Focus)-MaxFocus):]
}
