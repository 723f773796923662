package humanize

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ParseDuration parses a duration in Go's format, also with the units d for days
// and w for weeks, or a number of seconds.
func ParseDuration(s string) (time.Duration, error) {
	t := strings.ToLower(strings.TrimSpace(s))
	if f, err := strconv.ParseFloat(t, 64); err == nil {
		t = strconv.FormatFloat(f, 'f', -1, 64) + "s"
	}
	for suffix, hours := range map[string]float64{"d": 24, "w": 168} {
		if n, ok := strings.CutSuffix(t, suffix); ok {
			f, err := strconv.ParseFloat(n, 64)
			if err != nil {
				return 0, fmt.Errorf("duration %q: want a number and a unit, for example 5m", s)
			}
			t = strconv.FormatFloat(f*hours, 'f', -1, 64) + "h"
		}
	}
	d, err := time.ParseDuration(t)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("duration %q: want a number and a unit, for example 5m", s)
	}
	return d, nil
}
