package exec

import (
	"testing"
	"time"
)

func TestSpan(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0s", 123456 * time.Microsecond: "100ms", 9950 * time.Millisecond: "10s", 61 * time.Second: "1m1s", 30 * time.Minute: "30m",
		2 * time.Hour: "2h", 2*time.Hour + time.Second: "2h0m1s", 90 * time.Minute: "1h30m",
	} {
		if got := span(d); got != want {
			t.Errorf("span(%v) = %q, want %q", d, got, want)
		}
	}
}
