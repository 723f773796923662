// Package backoff computes how long to wait before a retry: exponential delays
// with jitter, and the delay that a server requested.
package backoff

import (
	"context"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Policy configures the delays. Zero fields have the defaults that are listed.
type Policy struct {
	First  time.Duration // first delay; 500 ms
	Max    time.Duration // longest delay; 30 s
	Factor float64       // growth from one delay to the next; 2
	Jitter float64       // random share of a delay, 0 to 1; 0: none
}

// Delay returns the delay before a retry. attempt is 1 for the first retry. rnd is
// a random number in [0, 1) that selects a delay between 1-Jitter and 1 times the
// full one, so that clients that failed together do not retry together.
func (p Policy) Delay(attempt int, rnd float64) time.Duration {
	if p.First <= 0 {
		p.First = 500 * time.Millisecond
	}
	if p.Max <= 0 {
		p.Max = 30 * time.Second
	}
	if p.Factor < 1 {
		p.Factor = 2
	}
	// A high attempt overflows to +Inf, which min corrects.
	full := float64(p.First) * math.Pow(p.Factor, float64(max(attempt, 1)-1))
	full = min(full, float64(p.Max))
	jitter := min(max(p.Jitter, 0), 1)
	return time.Duration(full * (1 - jitter*(1-min(max(rnd, 0), 1))))
}

// Sleep waits for d, or returns the error of ctx when it ends before.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// longest is the longest delay accepted from a server.
const longest = 30 * 24 * time.Hour

// RetryAfter returns the delay requested by the headers of a response, given in
// seconds (with an optional fraction), milliseconds or as a date. It returns 0 if
// none is given, it cannot be parsed, or it has passed.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(strings.TrimSpace(h.Get("Retry-After-Ms")), 64); err == nil {
		return seconds(ms / 1000)
	}
	return ParseRetryAfter(h.Get("Retry-After"), now)
}

// ParseRetryAfter is [RetryAfter] for the value of the Retry-After header.
func ParseRetryAfter(header string, now time.Time) time.Duration {
	header = strings.TrimSpace(header)
	if s, err := strconv.ParseFloat(header, 64); err == nil {
		return seconds(s)
	}
	if at, err := http.ParseTime(header); err == nil {
		return min(max(at.Sub(now), 0), longest)
	}
	return 0
}

func seconds(s float64) time.Duration {
	if !(s > 0) { // also NaN
		return 0
	}
	return time.Duration(min(s, longest.Seconds()) * float64(time.Second))
}
