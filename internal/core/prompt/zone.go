package prompt

import (
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/llm"
)

const (
	clockTitle = "Date and time"
	zoneLabel  = "Time zone: "
	dirTitle   = "Workspace"
	dirLabel   = "Your working directory is: "
)

// Dir returns the folder of the workspace that a system prompt names, or "".
func Dir(system []llm.Block) string {
	for _, b := range system {
		if _, text, ok := strings.Cut(b.Text, "\n## "+dirTitle+"\n\n"+dirLabel); ok {
			dir, _, _ := strings.Cut(text, "\n")
			return dir
		}
	}
	return ""
}

// Zone returns the person's time zone that a system prompt names. The name is empty if
// the zone has none but its offset; then the zone is that of the host if it has this
// offset now. It reports false if the prompt names no zone.
func Zone(system []llm.Block, now time.Time) (loc *time.Location, name string, ok bool) {
	for _, b := range system {
		text, found := strings.CutPrefix(b.Text, "## "+clockTitle+"\n\n") // the first section of its block
		if !found {
			continue
		}
		text, _, _ = strings.Cut(text, "\n\n")
		for line := range strings.Lines(text) {
			if name, found = strings.CutPrefix(strings.TrimSpace(line), zoneLabel); !found {
				continue
			}
			if offset, err := time.Parse("UTC-07:00", name); err == nil {
				_, want := offset.Zone()
				if _, have := now.In(time.Local).Zone(); have == want {
					return time.Local, "", true
				}
				return time.FixedZone(name, want), "", true
			}
			if loc, err := time.LoadLocation(name); err == nil {
				return loc, name, true
			}
		}
	}
	return nil, "", false
}
