package humanize

import (
	"testing"
	"time"
)

func TestParseDuration(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]time.Duration{
		"5m":   5 * time.Minute,
		"1.5s": 1500 * time.Millisecond,
		"2d":   48 * time.Hour,
		"1w":   168 * time.Hour,
		"90":   90 * time.Second,
		" 1H ": time.Hour,
	} {
		if got, err := ParseDuration(in); err != nil || got != want {
			t.Errorf("ParseDuration(%q) = %v, %v; want %v", in, got, err, want)
		}
	}
	for _, in := range []string{"", "x", "-5", "5 parsecs", "NaN", "1e99"} {
		if got, err := ParseDuration(in); err == nil {
			t.Errorf("ParseDuration(%q) = %v, want an error", in, got)
		}
	}
}
