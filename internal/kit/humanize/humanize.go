// Package humanize formats numbers, sizes and durations for people, and reads the
// durations that they write.
package humanize

import (
	"strconv"
	"strings"
	"time"
)

// Many returns n and the noun in the right number: 1 entry, 2 entries.
func Many[N int | int64](n N, noun string) string {
	if n != 1 {
		if stem, ok := strings.CutSuffix(noun, "ry"); ok {
			noun = stem + "rie"
		}
		noun += "s"
	}
	return strconv.FormatInt(int64(n), 10) + " " + noun
}

// Count formats n with at most three digits: 340, 1.2k, 12k, 3.4M.
func Count(n int64) string {
	switch {
	case n < 1000:
		return strconv.FormatInt(n, 10)
	case n < 999_500:
		return short(n, 1000) + "k"
	}
	return short(n, 1_000_000) + "M"
}

// Bytes formats a size in units of 1024: 973 bytes, 1.5 KB, 12 MB.
func Bytes(n int64) string {
	const k = 1 << 10
	switch {
	case n == 1:
		return "1 byte"
	case n < k:
		return strconv.FormatInt(n, 10) + " bytes"
	case n < k*k-k/2:
		return short(n, k) + " KB"
	case n < k*k*k-k*k/2:
		return short(n, k*k) + " MB"
	}
	return short(n, k*k*k) + " GB"
}

// short formats n in multiples of unit. Below ten it has one decimal place,
// unless that is 0.
func short(n, unit int64) string {
	tenths := n/unit*10 + (n%unit*10+unit/2)/unit
	if tenths >= 100 {
		return strconv.FormatInt((n+unit/2)/unit, 10)
	}
	return strings.TrimSuffix(strconv.FormatInt(tenths/10, 10)+"."+strconv.FormatInt(tenths%10, 10), ".0")
}

// Span formats a duration. It is rounded to tenths of a second below ten
// seconds, to seconds below an hour, and to minutes otherwise: 1.2s, 1m30s, 2h5m.
func Span(d time.Duration) string {
	unit := time.Minute
	switch {
	case d < 10*time.Second:
		unit = 100 * time.Millisecond
	case d < time.Hour:
		unit = time.Second
	}
	s := d.Round(unit).String()
	for _, nothing := range [...]string{"m0s", "h0m"} {
		if rest, ok := strings.CutSuffix(s, nothing); ok {
			s = rest + nothing[:1]
		}
	}
	return s
}
