package humanize_test

import (
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/kit/humanize"
)

func TestMany(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		n          int
		noun, want string
	}{{0, "session", "0 sessions"}, {1, "session", "1 session"}, {2, "delivery", "2 deliveries"}, {1, "entry", "1 entry"},
		{3, "key", "3 keys"}} {
		if got := humanize.Many(c.n, c.noun); got != c.want {
			t.Errorf("Many(%d, %q) = %q, want %q", c.n, c.noun, got, c.want)
		}
	}
}

func TestCount(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{
		0: "0", 999: "999", 1000: "1k", 1049: "1k", 1250: "1.3k", 9949: "9.9k", 9950: "10k", 12_345: "12k",
		999_499: "999k", 999_500: "1M", 1_250_000: "1.3M", 25_000_000: "25M",
	} {
		if got := humanize.Count(n); got != want {
			t.Errorf("Count(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestBytes(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{
		0:           "0 bytes",
		1:           "1 byte",
		1023:        "1023 bytes",
		1024:        "1 KB",
		1500:        "1.5 KB",
		412 << 10:   "412 KB",
		1<<20 - 513: "1023 KB",
		1<<20 - 512: "1 MB",
		6 << 20:     "6 MB",
		32 << 20:    "32 MB",
		1<<30 - 1:   "1 GB",
		5 << 29:     "2.5 GB",
		1 << 62:     "4294967296 GB",
	} {
		if got := humanize.Bytes(n); got != want {
			t.Errorf("Bytes(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestSpan(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0:                            "0s",
		123456 * time.Microsecond:    "100ms",
		9950 * time.Millisecond:      "10s",
		61 * time.Second:             "1m1s",
		10 * time.Minute:             "10m",
		time.Hour - time.Millisecond: "1h",
		2 * time.Hour:                "2h",
		2*time.Hour + time.Second:    "2h",
		90 * time.Minute:             "1h30m",

		72*time.Hour + 5*time.Minute: "72h5m",
	} {
		if got := humanize.Span(d); got != want {
			t.Errorf("Span(%v) = %q, want %q", d, got, want)
		}
	}
}
