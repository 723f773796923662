// Package backoff says how long to wait before the next try: delays that grow
// and are spread by chance, and the wait that a server asked for.
package backoff

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Policy is how delays grow. Fields that are zero take the value named.
type Policy struct {
	First  time.Duration // the first delay; 500 ms
	Max    time.Duration // no delay is longer; 30 s
	Factor float64       // from one delay to the next; 2
	Jitter float64       // the part of a delay that chance decides, 0 to 1; 0: none
}

// Delay returns the wait before try number attempt, counted from 1 for the
// first repetition. rnd is a random number in [0, 1): with it, the delay lies
// between 1-Jitter and 1 times the full one, so that those who failed together
// do not come back together.
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
	// A high attempt overflows to +Inf here, which min brings back.
	full := float64(p.First) * math.Pow(p.Factor, float64(max(attempt, 1)-1))
	full = min(full, float64(p.Max))
	jitter := min(max(p.Jitter, 0), 1)
	return time.Duration(full * (1 - jitter*(1-min(max(rnd, 0), 1))))
}

// longest bounds what a server may ask for: a delay beyond it is a mistake.
const longest = 30 * 24 * time.Hour

// RetryAfter returns the wait that the headers of an answer ask for: seconds,
// also with a fraction, or a date. It is 0 when there is none, it cannot be
// read, or it has passed.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(strings.TrimSpace(h.Get("Retry-After-Ms")), 64); err == nil {
		return seconds(ms / 1000)
	}
	return ParseRetryAfter(h.Get("Retry-After"), now)
}

// ParseRetryAfter is [RetryAfter] for the value of the one header.
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
