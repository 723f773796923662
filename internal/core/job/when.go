package job

import (
	"strconv"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/kit/cronexpr"
)

// scheduleExamples ends messages about a text that is not a schedule.
const scheduleExamples = `want a time like "in 20m" or "2026-03-01T09:00:00Z", an interval like "every 1h", or a cron expression like "0 9 * * MON-FRI"`

// readSchedule reads a schedule that is one text. The result is the path of the field
// that the text stands for, and its value: the text of a time, milliseconds, or a cron
// expression.
func readSchedule(text string) (path string, value any, err error) {
	text = strings.TrimSpace(text)
	lower := strings.ToLower(text)
	if rest, ok := cutWord(lower, "cron"); ok {
		return "schedule.expr", strings.TrimSpace(text[len(text)-len(rest):]), nil
	}
	if rest, ok := cutWord(lower, "every", "each"); ok {
		span, ok := readInterval(rest)
		if !ok {
			return "", nil, invalid("schedule: %q is not an interval; %s", text, scheduleExamples)
		}
		return "schedule.everyMs", span.Milliseconds(), nil
	}
	fields := strings.Fields(text)
	if strings.HasPrefix(text, "@") || len(fields) > 1 && isField(fields[0]) && isField(fields[1]) {
		if _, err := cronexpr.Parse(text); err != nil {
			return "", nil, invalid("schedule: %v; %s", err, scheduleExamples)
		}
		return "schedule.expr", text, nil
	}
	if _, err := readAt(text, time.Unix(0, 0), time.UTC); err != nil {
		return "", nil, invalid("schedule: %q is not understood; %s", text, scheduleExamples)
	}
	return "schedule.at", text, nil
}

// isField reports whether a word looks like a field of a cron expression.
func isField(s string) bool {
	return s != "" && strings.Trim(s, "0123456789*/,-?") == ""
}

// cutWord returns the text after one of the words, and after a colon behind it.
func cutWord(text string, words ...string) (string, bool) {
	for _, w := range words {
		rest, ok := strings.CutPrefix(text, w)
		if trimmed := strings.TrimLeft(rest, " \t:"); ok && trimmed != rest {
			return trimmed, true
		}
	}
	return text, false
}

// readInterval reads an interval, which may have a unit without a number: "hour".
func readInterval(text string) (time.Duration, bool) {
	if rest, ok := cutWord(strings.ToLower(text), "every", "each"); ok {
		text = rest
	}
	if d, ok := readSpan(text); ok {
		return d, true
	}
	return readSpan("1 " + text)
}

// readSpan reads a duration like 5m, 1h30m, "20 minutes" or "1 hour and 30 minutes". A
// number without a unit is no duration.
func readSpan(text string) (time.Duration, bool) {
	s := strings.ToLower(strings.TrimSpace(text))
	total, found := time.Duration(0), false
	for s != "" {
		if found {
			s = strings.TrimLeft(s, " \t,")
			if rest, ok := cutWord(s, "and"); ok {
				s = rest
			}
		}
		n := len(s) - len(strings.TrimLeft(s, "0123456789."))
		number, rest := s[:n], strings.TrimLeft(s[n:], " \t")
		if article, ok := cutWord(s, "an", "a", "one"); ok {
			number, rest = "1", article
		}
		n = len(rest) - len(strings.TrimLeft(rest, "abcdefghijklmnopqrstuvwxyz"))
		unit := unitOf(rest[:n])
		f, err := strconv.ParseFloat(number, 64)
		if err != nil || unit == 0 || f*float64(unit) > float64(maxEvery) || total > maxEvery {
			return 0, false
		}
		total, found, s = total+time.Duration(f*float64(unit)), true, rest[n:]
	}
	return total, found && total <= maxEvery
}

// unitOf returns the duration of a unit; 0: there is no such unit.
func unitOf(name string) time.Duration {
	switch name {
	case "ms", "millisecond", "milliseconds":
		return time.Millisecond
	case "s", "sec", "secs", "second", "seconds":
		return time.Second
	case "m", "min", "mins", "minute", "minutes":
		return time.Minute
	case "h", "hr", "hrs", "hour", "hours":
		return time.Hour
	case "d", "day", "days":
		return 24 * time.Hour
	case "w", "wk", "wks", "week", "weeks":
		return 7 * 24 * time.Hour
	}
	return 0
}

// readAt reads an instant: a time with or without a zone, a duration from now, or a
// number of milliseconds or seconds since 1970. A time without a zone is in loc. If now
// is zero, durations are refused.
func readAt(text string, now time.Time, loc *time.Location) (time.Time, error) {
	s := strings.TrimSpace(text)
	lower := strings.ToLower(s)
	if rest, ok := cutWord(lower, "at"); ok {
		s, lower = s[len(s)-len(rest):], rest
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil && n >= 1e9 {
		if n < 1e11 { // milliseconds would be in the first years after 1970
			n *= 1000
		}
		if n <= maxMillis {
			return time.UnixMilli(n).UTC(), nil
		}
	}
	span := strings.TrimPrefix(lower, "+")
	if rest, ok := cutWord(lower, "in"); ok {
		span = rest
	} else if rest, ok := strings.CutSuffix(lower, " from now"); ok {
		span = rest
	}
	if d, ok := readSpan(span); ok && !now.IsZero() {
		return now.Add(d).UTC(), nil
	}
	if t, ok := readTime(s, loc); ok {
		return t, nil
	}
	return time.Time{},
		invalid(`schedule.at: %q is not a time; want one like "2026-03-01T09:00:00Z", "2026-03-01T09:00:00+01:00" or "in 20m"`, text)
}

// maxMillis is the last instant of the year 9999.
const maxMillis = 253402300799999

// readTime reads a time in a form of ISO 8601.
func readTime(s string, loc *time.Location) (time.Time, bool) {
	s = strings.ToUpper(s)
	if len(s) > len("2026-03-01 ") && s[10] == ' ' {
		s = s[:10] + "T" + s[11:]
	}
	if rest, ok := strings.CutSuffix(s, "UTC"); ok {
		s = strings.TrimSpace(rest) + "Z"
	}
	for _, zone := range [...]string{"Z07:00", "Z0700", "Z07"} {
		for _, clock := range [...]string{"2006-01-02T15:04:05", "2006-01-02T15:04"} {
			if t, err := time.Parse(clock+zone, s); err == nil {
				return t, true
			}
		}
	}
	for _, layout := range [...]string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02"} {
		if t, err := time.Parse(layout, s); err == nil {
			return wallClock(t, loc), true
		}
	}
	return time.Time{}, false
}

// wallClock returns the instant at which a clock in loc shows what a clock in UTC shows
// at t. If the clock in loc skips that, it is the end of the gap; if the clock shows it
// twice, it is the first time, while time.Date returns the second one east of Greenwich.
func wallClock(t time.Time, loc *time.Location) time.Time {
	y, m, d := t.Date()
	got := time.Date(y, m, d, t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), loc)
	start, end := got.ZoneBounds()
	if got.Hour() == t.Hour() && got.Minute() == t.Minute() {
		if start.IsZero() {
			return got
		}
		_, before := start.Add(-time.Second).Zone()
		_, now := got.Zone()
		if first := got.Add(time.Duration(now-before) * time.Second); first.Before(start) && before > now {
			return first
		}
		return got
	}
	if !end.IsZero() && end.Sub(got) < got.Sub(start) {
		return end
	}
	return start
}
