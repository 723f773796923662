package prompt

import (
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/llm"
)

func TestZone(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 25, 9, 30, 0, 0, time.UTC)
	for _, tc := range []struct {
		zone   *time.Location
		name   string
		offset int
	}{
		{berlin, "Europe/Berlin", 3600},
		{time.UTC, "UTC", 0},
		{time.FixedZone("", -5*3600-1800), "", -5*3600 - 1800},
	} {
		var b Builder
		in := Input{Dir: "/w", Files: []File{{Name: "A.md", Text: "## Date and time\n\nTime zone: Asia/Tokyo\n"}},
			Now: now, Zone: tc.zone}
		if got := Dir(b.Build(in)); got != "/w" {
			t.Errorf("the workspace is %q", got)
		}
		loc, name, ok := Zone(b.Build(in), now)
		if !ok || name != tc.name {
			t.Errorf("%v: got %v, %q, %v; want the name %q", tc.zone, loc, name, ok, tc.name)
			continue
		}
		if _, got := now.In(loc).Zone(); got != tc.offset {
			t.Errorf("%v: the offset is %d, want %d", tc.zone, got, tc.offset)
		}
	}
	for _, text := range []string{"", "Time zone: Europe/Berlin", "## Date and time\n\nTime zone: Nowhere/Else\n",
		"## Date and time\n\nToday is Monday.\n\n## Context\n\nTime zone: UTC"} {
		if loc, name, ok := Zone([]llm.Block{{Text: text}}, now); ok {
			t.Errorf("%q names the zone %v, %q", text, loc, name)
		}
	}
}
