package usage

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
)

// Limits are the budgets that the model calls of a run count against, in billionths of a
// dollar. A limit that is not positive is none.
type Limits struct {
	Day   int64 // of all agents on a day
	Agent int64 // of the agent on a day
	Task  int64 // of a run with all runs that it causes
	Run   int64 // of a single run

	Warn float64        // share of a limit at which people are told, once; 0: they are not
	Zone *time.Location // of the days; nil: UTC
}

// Any reports whether there is a limit.
func (l Limits) Any() bool { return l.Day > 0 || l.Agent > 0 || l.Task > 0 || l.Run > 0 }

// In returns t in the time zone of the days.
func (l Limits) In(t time.Time) time.Time {
	if l.Zone == nil {
		return t.UTC()
	}
	return t.In(l.Zone)
}

// Scopes returns the scopes that a call at t counts against. The limits of today replace
// those of the configuration.
func (l Limits) Scopes(agent chela.AgentID, run, root chela.RunID, today Today, t time.Time) []Scope {
	t = l.In(t)
	var out []Scope
	add := func(name string, limit int64) {
		if set := today.Limits[name]; limit > 0 && set > 0 {
			limit = set
		}
		if limit > 0 {
			out = append(out, Scope{Name: name, Limit: limit})
		}
	}
	add(DayScope(t), l.Day)
	add(AgentScope(agent, t), l.Agent)
	add(TreeScope(root), l.Task)
	add(RunScope(run), l.Run)
	return out
}

// ZoneName returns the name of the time zone of t for people.
func ZoneName(t time.Time) string {
	if name := t.Location().String(); name != time.Local.String() {
		return name
	}
	name, _ := t.Zone()
	return name
}

// DayStart returns the beginning of the day of t in the time zone of t.
func DayStart(t time.Time) time.Time { return midnight(t, 0) }

// NextDay returns the beginning of the day after t in the time zone of t.
func NextDay(t time.Time) time.Time { return midnight(t, 1) }

// midnight returns the first instant of the day that follows the day of t after a number
// of days. A day does not begin at 00:00 if the clock is put forward then.
func midnight(t time.Time, days int) time.Time {
	y, m, d := t.Date()
	first := time.Date(y, m, d+days, 0, 0, 0, 0, t.Location())
	if want := time.Date(y, m, d+days, 12, 0, 0, 0, t.Location()).Day(); first.Day() != want {
		first = first.Add(time.Hour)
	}
	return first
}

// Today is what is remembered about the budgets until the day ends.
type Today struct {
	Day    string           `json:"day"`              // YYYY-MM-DD
	Limits map[string]int64 `json:"limits,omitempty"` // of scopes, set for this day
	Told   []string         `json:"told,omitempty"`   // what people were told, at most maxTold, oldest first
}

const (
	todayKey = "budget" // of the setting
	maxTold  = 512
)

// Settings is the table of settings of the store.
type Settings interface {
	Setting(name string) (string, error)
	SetSetting(name, value string) error
}

// ReadToday reads what is remembered about the day of t, in the time zone of t.
func ReadToday(s interface {
	Setting(name string) (string, error)
}, t time.Time,
) (Today, error) {
	now := Today{Day: t.Format(time.DateOnly)}
	text, err := s.Setting(todayKey)
	if err != nil || text == "" {
		return now, err
	}
	var had Today
	if err := json.Unmarshal([]byte(text), &had); err != nil {
		return now, fmt.Errorf("setting %s: %w", todayKey, err)
	}
	if had.Day != now.Day {
		return now, nil
	}
	return had, nil
}

// Write stores what is to be remembered until the day ends.
func (d Today) Write(s Settings) error {
	b, err := json.Marshal(d)
	if err != nil {
		return err
	}
	return s.SetSetting(todayKey, string(b))
}

// Tell notes that people are told something, and reports whether they were not before.
func (d *Today) Tell(what string) bool {
	if slices.Contains(d.Told, what) {
		return false
	}
	d.Told = append(slices.Clone(d.Told), what)
	d.Told = d.Told[max(0, len(d.Told)-maxTold):]
	return true
}
