package prompt

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// memoryDir is the folder of the daily notes in a workspace, with names that begin with
// the date.
const memoryDir = "memory"

// Startup is agents.defaults.startupContext: the daily notes that a new conversation
// begins with. Nil and zero fields are unset.
type Startup struct {
	Enabled       *bool    `json:"enabled"`         // nil: true
	ApplyOn       []string `json:"applyOn"`         // new, reset; nil: both
	Days          *int     `json:"dailyMemoryDays"` // nil: 2
	MaxFileBytes  int      `json:"maxFileBytes"`    // that are read; 0: 16384
	MaxFileChars  int      `json:"maxFileChars"`    // that are shown; 0: 1200
	MaxTotalChars int      `json:"maxTotalChars"`   // 0: 2800
}

// Defaults and limits of [Startup].
const (
	defaultDays      = 2
	maxDays          = 14
	defaultFileBytes = 16 << 10
	defaultFileChars = 1200
	defaultTotal     = 2800
	maxDaily         = 8 // files of one day
)

// Applies reports whether a conversation that began for a reason begins with notes. soft
// is a reset that keeps the conversation.
func (s Startup) Applies(reason string) bool {
	if s.Enabled != nil && !*s.Enabled {
		return false
	}
	if reason == "soft" {
		reason = "reset"
	}
	if s.ApplyOn == nil {
		return reason == "new" || reason == "reset"
	}
	return reason != "" && slices.Contains(s.ApplyOn, reason)
}

// Daily returns the notes of the last days up to today, the newest first, within the
// limits; "": there are none. It reads the files at each call.
func (w *Workspace) Daily(s Startup, today time.Time) string {
	d, err := w.open()
	if err != nil {
		return ""
	}
	defer d.Close()
	days := defaultDays
	if s.Days != nil {
		days = min(max(*s.Days, 0), maxDays)
	}
	left := positive(s.MaxTotalChars, defaultTotal)
	var b strings.Builder
	for i := range days {
		for _, name := range dailyNames(d.Root.FS(), today.AddDate(0, 0, -i).Format(time.DateOnly)) {
			_, target, f := check(d, name)
			if f.Missing || f.Problem != "" {
				continue
			}
			if f = read(d, name, target, min(positive(s.MaxFileBytes, defaultFileBytes), maxRead)); f.Text == "" {
				continue
			}
			text := shorten(name, f.Text, min(positive(s.MaxFileChars, defaultFileChars), left))
			if text == "" {
				return b.String()
			}
			left -= utf8.RuneCountInString(text)
			fmt.Fprintf(&b, "\n### %s\n\n%s\n", Name(name), text)
		}
	}
	return b.String()
}

// positive returns n, or def if n is not positive.
func positive(n, def int) int {
	if n <= 0 {
		return def
	}
	return n
}

// dailyNames returns the names of the notes of a day: that with the date alone as its
// name first.
func dailyNames(root fs.FS, day string) []string {
	entries, err := fs.ReadDir(root, memoryDir)
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries { // sorted by name
		base, ok := strings.CutSuffix(e.Name(), ".md")
		if ok && (base == day || strings.HasPrefix(base, day+"-")) && len(names) < maxDaily {
			names = append(names, path.Join(memoryDir, e.Name()))
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return len(a) - len(b) })
	return names
}
