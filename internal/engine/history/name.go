package history

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/journal"
	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// Name returns the path of a file for people: relative to the workspace of an agent if it
// is in it.
func (h *History) Name(agent chela.AgentID, path string) string {
	dir := h.o.Workspaces()[agent]
	if dir == "" {
		return path
	}
	if rel, err := filepath.Rel(pathpolicy.Real(dir), path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// NameOf returns the name of the target of a change for people.
func (h *History) NameOf(c journal.Change) string {
	switch c.Kind {
	case journal.Job:
		for _, v := range [...]journal.Version{c.Before, c.After} {
			var j struct{ Name string }
			if json.Unmarshal([]byte(v.Text), &j) == nil && j.Name != "" {
				return "job " + j.Name
			}
		}
		return "job " + c.Target
	case journal.Config:
		return filepath.Base(c.Target)
	}
	return h.Name(c.Agent, c.Target)
}

// IsAt reports whether a change is one of the file at a path, which may be relative to the
// workspace of an agent.
func (h *History) IsAt(c journal.Change, agent chela.AgentID, path string) bool {
	return c.Kind == journal.File && c.Target == h.path(agent, path)
}

// ParseTime parses a time of a person: 14:00 (today, or yesterday if that is later than
// now), a duration before now such as 2h, or a date with or without a time.
func ParseTime(s string, now time.Time) (time.Time, error) {
	s = strings.TrimSpace(s)
	for _, form := range [...]string{"15:04", "3:04pm", "3pm"} {
		if t, err := time.ParseInLocation(form, strings.ToLower(s), now.Location()); err == nil {
			at := time.Date(now.Year(), now.Month(), now.Day(), t.Hour(), t.Minute(), 0, 0, now.Location())
			if at.After(now) {
				at = time.Date(now.Year(), now.Month(), now.Day()-1, t.Hour(), t.Minute(), 0, 0, now.Location())
			}
			return at, nil
		}
	}
	for _, form := range [...]string{time.RFC3339, "2006-01-02 15:04", "2006-01-02T15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(form, s, now.Location()); err == nil {
			return t, nil
		}
	}
	if d, err := time.ParseDuration(s); err == nil && d > 0 {
		return now.Add(-d), nil
	}
	return time.Time{}, fmt.Errorf("%q is not a time; use 14:00, 2h or 2026-11-24 09:30", humanize.Truncate(s, 40))
}
