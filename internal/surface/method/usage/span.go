package usage

import (
	"fmt"
	"regexp"
	"strconv"
	"sync"
	"time"
)

// span is a range of days.
type span struct {
	first  time.Time // start of the first day, in UTC
	days   int
	offset time.Duration // time by which days start before those of UTC
}

// Limits of a report.
const (
	defaultDays = 30
	maxDays     = 366
)

// ranges are the named ranges, in days.
var ranges = map[string]int{"7d": 7, "30d": 30, "90d": 90, "1y": 365, "all": maxDays}

// spanOf returns the range between two dates, or else the last days. The error
// names the invalid property.
func spanOf(start, end, mode, offset string, days int, now time.Time) (span, error) {
	var s span
	var err error
	switch mode {
	case "", "utc":
	case "gateway":
		_, seconds := now.Local().Zone()
		s.offset = time.Duration(seconds) * time.Second
	case "specific":
		if s.offset, err = parseOffset(offset); err != nil {
			return s, err
		}
	default:
		return s, fmt.Errorf("at /mode: must be equal to one of the allowed values")
	}
	today := now.UTC().Add(s.offset).Truncate(24 * time.Hour)
	last, err := date("endDate", end, today)
	if err != nil {
		return s, err
	}
	s.first, err = date("startDate", start, last.AddDate(0, 0, 1-min(max(days, 1), maxDays)))
	if err != nil {
		return s, err
	}
	s.days = int(last.Sub(s.first)/(24*time.Hour)) + 1
	switch {
	case s.days < 1:
		return s, fmt.Errorf("at /endDate: must not be before startDate")
	case s.days > maxDays:
		return s, fmt.Errorf("at /startDate: must not be more than %d days before endDate", maxDays)
	}
	s.first = s.first.Add(-s.offset)
	return s, nil
}

// until returns the end of the range.
func (s span) until() time.Time { return s.first.AddDate(0, 0, s.days) }

// day returns the date of day i of the range.
func (s span) day(i int) string { return s.first.Add(s.offset).AddDate(0, 0, i).Format(time.DateOnly) }

// date parses a date; "" is def.
func date(name, s string, def time.Time) (time.Time, error) {
	if s == "" {
		return def, nil
	}
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		return t, fmt.Errorf("at /%s: must be a date, YYYY-MM-DD", name)
	}
	return t, nil
}

var offsets = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^UTC([+-])(\d{1,2})(?::([0-5]\d))?$`) })

// parseOffset parses offsets like UTC+2 and UTC-3:30.
func parseOffset(s string) (time.Duration, error) {
	m := offsets().FindStringSubmatch(s)
	if m == nil {
		return 0, fmt.Errorf("at /utcOffset: must match pattern %q", offsets())
	}
	hours, _ := strconv.Atoi(m[2])   // digits
	minutes, _ := strconv.Atoi(m[3]) // digits or empty
	d := time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute
	if d > 14*time.Hour {
		return 0, fmt.Errorf("at /utcOffset: must be within UTC-14 and UTC+14")
	}
	if m[1] == "-" {
		d = -d
	}
	return d, nil
}
