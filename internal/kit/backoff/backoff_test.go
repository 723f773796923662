package backoff

import (
	"math"
	"net/http"
	"testing"
	"time"
)

func TestDelay(t *testing.T) {
	t.Parallel()
	plain := Policy{First: time.Second, Max: 10 * time.Second, Factor: 2}
	half := Policy{First: time.Second, Max: 10 * time.Second, Factor: 2, Jitter: 0.5}
	for _, tt := range []struct {
		name    string
		p       Policy
		attempt int
		rnd     float64
		want    time.Duration
	}{
		{"first", plain, 1, 0.3, time.Second},
		{"second", plain, 2, 0.3, 2 * time.Second},
		{"capped", plain, 5, 0.3, 10 * time.Second},
		{"overflow", plain, math.MaxInt, 0.3, 10 * time.Second},
		{"attempt below one", plain, -3, 0.3, time.Second},
		{"jitter low", half, 1, 0, 500 * time.Millisecond},
		{"jitter middle", half, 2, 0.5, 1500 * time.Millisecond},
		{"jitter of the cap", half, 9, 0, 5 * time.Second},
		{"zero policy", Policy{}, 3, 0, 2 * time.Second},
		{"zero policy capped", Policy{}, 30, 0, 30 * time.Second},
	} {
		if got := tt.p.Delay(tt.attempt, tt.rnd); got != tt.want {
			t.Errorf("%s: Delay(%d, %v) = %v, want %v", tt.name, tt.attempt, tt.rnd, got, tt.want)
		}
	}
}

func TestParseRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		header string
		want   time.Duration
	}{
		{"", 0},
		{"120", 2 * time.Minute},
		{" 1.5 ", 1500 * time.Millisecond},
		{"0", 0},
		{"-4", 0},
		{"NaN", 0},
		{"1e300", longest},
		{"soon", 0},
		{"Sun, 01 Mar 2026 12:01:00 GMT", time.Minute},
		{"Sun, 01 Mar 2026 11:59:00 GMT", 0},
		{"Sun, 01 Mar 2299 11:59:00 GMT", longest},
	} {
		if got := ParseRetryAfter(tt.header, now); got != tt.want {
			t.Errorf("ParseRetryAfter(%q) = %v, want %v", tt.header, got, tt.want)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	h := http.Header{"Retry-After": {"9"}}
	if got := RetryAfter(h, time.Now()); got != 9*time.Second {
		t.Errorf("seconds: %v, want 9s", got)
	}
	h.Set("Retry-After-Ms", "250")
	if got := RetryAfter(h, time.Now()); got != 250*time.Millisecond {
		t.Errorf("milliseconds take precedence: %v, want 250ms", got)
	}
}

func FuzzParseRetryAfter(f *testing.F) {
	for _, s := range []string{"", "1", "Inf", "-Inf", "Sun, 01 Mar 2026 12:01:00 GMT"} {
		f.Add(s)
	}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, s string) {
		if d := ParseRetryAfter(s, now); d < 0 || d > longest {
			t.Errorf("ParseRetryAfter(%q) = %v, out of bounds", s, d)
		}
	})
}
