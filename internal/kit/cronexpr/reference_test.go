package cronexpr

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// model is an expression as sets of values, with its text. It matches times in
// the slowest and plainest way.
type model struct {
	text                               string
	second, minute, hour, month, years map[int]bool // years is nil for any
	day                                func(t time.Time) bool
	fixed                              bool
}

// matches reports whether a clock that shows t matches.
func (m model) matches(t time.Time) bool {
	return m.second[t.Second()] && m.minute[t.Minute()] && m.hour[t.Hour()] && m.date(t)
}

func (m model) date(t time.Time) bool {
	return m.month[int(t.Month())] && (m.years == nil || m.years[t.Year()]) && m.day(t)
}

// next walks from one instant to the next up to a limit. All clocks change at a
// full quarter of an hour.
func (m model) next(after, limit time.Time, loc *time.Location) time.Time {
	if m.fixed {
		return m.nextFixed(after, limit, loc)
	}
	for t := after.Truncate(time.Second).Add(time.Second); !t.After(limit); {
		at := t.In(loc)
		switch {
		case m.matches(at):
			return at
		case !m.date(at):
			t = t.Truncate(15 * time.Minute).Add(15 * time.Minute)
		case !m.hour[at.Hour()] || !m.minute[at.Minute()]:
			t = t.Truncate(time.Minute).Add(time.Minute)
		default:
			t = t.Add(time.Second)
		}
	}
	return time.Time{}
}

// nextFixed walks from one date to the next.
func (m model) nextFixed(after, limit time.Time, loc *time.Location) time.Time {
	y, month, d := after.In(loc).Date()
	for day := time.Date(y, month, d, 12, 0, 0, 0, time.UTC).AddDate(0, 0,
		-1); day.Before(limit.AddDate(0, 0, 2)); day = day.AddDate(0, 0, 1) {
		if !m.date(day) {
			continue
		}
		if at := m.onDate(day, loc); at.After(after) && !at.After(limit) {
			return at
		}
	}
	return time.Time{}
}

// onDate returns the time of a fixed expression on a date, the zero Time if there
// is none.
func (m model) onDate(day time.Time, loc *time.Location) time.Time {
	y, month, d := day.Date()
	wall := time.Date(y, month, d, only(m.hour), only(m.minute), only(m.second), 0, time.UTC)
	for t := wall.Truncate(time.Minute).Add(-15 * time.Hour); ; t = t.Add(time.Minute) {
		at := t.In(loc)
		shown := time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), 0, 0, time.UTC)
		switch {
		case shown.Equal(wall.Truncate(time.Minute)):
			return at.Add(time.Duration(wall.Second()) * time.Second)
		case !shown.After(wall):
		case at.Day() == d:
			return at // the end of the gap
		default:
			return time.Time{}
		}
	}
}

func only(set map[int]bool) int {
	for n := range set {
		return n
	}
	return 0
}

func span(from, to, step int) map[int]bool {
	set := map[int]bool{}
	for n := from; n <= to; n += step {
		set[n] = true
	}
	return set
}

// source picks a number below n: from a random generator or the input of a fuzz
// test.
type source func(n int) int

// newModel picks an expression.
func newModel(pick source) model {
	var m model
	texts := make([]string, 7)
	texts[0], m.second = pickClock(pick, 59)
	texts[1], m.minute = pickClock(pick, 59)
	texts[2], m.hour = pickClock(pick, 23)
	fixed := !strings.ContainsAny(texts[0]+texts[1]+texts[2], "*?/") && len(m.second) == 1 &&
		len(m.minute) == 1 && len(m.hour) == 1
	texts[4], m.month = "*", span(1, 12, 1)
	if pick(3) == 0 {
		texts[4], m.month = pickMonth(pick)
	}
	texts[6] = "*"
	if pick(8) == 0 {
		from, step := 2000+pick(40), 1+pick(3)
		texts[6], m.years = fmt.Sprintf("%d-%d/%d", from, from+10, step), span(from, from+10, step)
	}
	var day, weekday func(time.Time) bool
	texts[3], day = pickDay(pick)
	texts[5], weekday = pickWeekday(pick)
	m.day = func(t time.Time) bool { return day(t) || weekday(t) }
	if pick(4) == 0 {
		texts[5] = "+" + texts[5]
		m.day = func(t time.Time) bool { return day(t) && weekday(t) }
	}
	if texts[3] == "*" || strings.HasSuffix(texts[5], "*") {
		m.day = func(t time.Time) bool { return day(t) && weekday(t) }
	}
	m.fixed = fixed
	if m.years == nil && pick(2) == 0 {
		texts = texts[:6]
		if len(m.second) == 1 && m.second[0] && texts[0] != "*/60" {
			texts = texts[1:]
		}
	}
	m.text = strings.Join(texts, " ")
	return m
}

// pickClock picks a field of seconds, minutes or hours.
func pickClock(pick source, highest int) (string, map[int]bool) {
	a, b := pick(highest+1), pick(highest+1)
	switch pick(6) {
	case 0:
		return []string{"*", "?"}[pick(2)], span(0, highest, 1)
	case 1:
		step := 1 + pick(highest+1)
		return fmt.Sprintf("*/%d", step), span(0, highest, step)
	case 2:
		return fmt.Sprintf("%d,%d", a, b), map[int]bool{a: true, b: true}
	case 3:
		lo, hi, step := min(a, b), max(a, b), 1+pick(10)
		if step == 1 {
			return fmt.Sprintf("%d-%d", lo, hi), span(lo, hi, 1)
		}
		return fmt.Sprintf("%d-%d/%d", lo, hi, step), span(lo, hi, step)
	case 4:
		return "0", map[int]bool{0: true}
	}
	return fmt.Sprint(a), map[int]bool{a: true}
}

func pickMonth(pick source) (string, map[int]bool) {
	a, b := 1+pick(12), 1+pick(12)
	name := func(n int) string { return time.Month(n).String()[:3] }
	switch pick(3) {
	case 0:
		return fmt.Sprintf("%s,%d", strings.ToLower(name(a)), b), map[int]bool{a: true, b: true}
	case 1:
		return fmt.Sprintf("%s-%s", name(min(a, b)), strings.ToUpper(name(max(a, b)))), span(min(a, b), max(a, b), 1)
	}
	step := 1 + pick(12)
	return fmt.Sprintf("*/%d", step), span(1, 12, step)
}

// lastOf returns the last date of t's month.
func lastOf(t time.Time) time.Time { return time.Date(t.Year(), t.Month()+1, 0, 0, 0, 0, 0, time.UTC) }

func workday(t time.Time) bool { return t.Weekday() != time.Saturday && t.Weekday() != time.Sunday }

// nearest reports whether t is the weekday of its month with the least distance
// from a day, the only one or the one before it.
func nearest(t time.Time, day int) bool {
	if day > lastOf(t).Day() {
		return false
	}
	for _, distance := range []int{0, -1, 1, -2, 2} {
		at := time.Date(t.Year(), t.Month(), day+distance, 0, 0, 0, 0, time.UTC)
		if at.Month() == t.Month() && workday(at) {
			return at.Day() == t.Day()
		}
	}
	return false
}

func pickDay(pick source) (string, func(time.Time) bool) {
	a, b := 1+pick(31), 1+pick(31)
	switch pick(9) {
	case 0:
		return fmt.Sprint(a), func(t time.Time) bool { return t.Day() == a }
	case 1:
		step := 1 + pick(31)
		return fmt.Sprintf("*/%d", step), func(t time.Time) bool { return (t.Day()-1)%step == 0 }
	case 2:
		return fmt.Sprintf("%d-%d", min(a, b), max(a, b)),
			func(t time.Time) bool { return t.Day() >= min(a, b) && t.Day() <= max(a, b) }
	case 3:
		return fmt.Sprintf("%d,L", a), func(t time.Time) bool { return t.Day() == a || t.Day() == lastOf(t).Day() }
	case 4:
		return fmt.Sprintf("%dW,%d", a, b), func(t time.Time) bool { return nearest(t, a) || t.Day() == b }
	case 5:
		return "lw", func(t time.Time) bool { return nearest(t, lastOf(t).Day()) }
	case 6:
		return "L", func(t time.Time) bool { return t.AddDate(0, 0, 1).Day() == 1 }
	}
	return "*", func(time.Time) bool { return true }
}

func pickWeekday(pick source) (string, func(time.Time) bool) {
	a, b := time.Weekday(pick(7)), time.Weekday(pick(7))
	name := func(d time.Weekday) string { return strings.ToUpper(d.String()[:3]) }
	switch pick(8) {
	case 0:
		return name(a), func(t time.Time) bool { return t.Weekday() == a }
	case 1:
		return "MON-FRI,7", func(t time.Time) bool { return t.Weekday() != time.Saturday }
	case 2:
		return fmt.Sprintf("%d-SUN", max(a, 1)),
			func(t time.Time) bool { return t.Weekday() == time.Sunday || t.Weekday() >= max(a, 1) }
	case 3:
		week := 1 + pick(5)
		return fmt.Sprintf("%s#%d", name(a), week),
			func(t time.Time) bool { return t.Weekday() == a && (t.Day()+6)/7 == week }
	case 4:
		return fmt.Sprintf("%dL,%s#1", a, name(b)), func(t time.Time) bool {
			return t.Weekday() == a && t.AddDate(0, 0, 7).Month() != t.Month() || t.Weekday() == b && t.Day() <= 7
		}
	case 5:
		step := 1 + pick(7)
		return fmt.Sprintf("*/%d", step), func(t time.Time) bool { return int(t.Weekday())%step == 0 }
	}
	return "*", func(time.Time) bool { return true }
}

func random(rnd *rand.Rand) source { return rnd.IntN }

// changes returns the instants between two years at which a zone's clock changes.
func changes(loc *time.Location, from, to int) []time.Time {
	var found []time.Time
	offset := func(t time.Time) int {
		_, n := t.In(loc).Zone()
		return n
	}
	const step = 15 * time.Minute
	for at := time.Date(from, 1, 1, 0, 0, 0, 0, time.UTC); at.Year() < to; {
		if offset(at) == offset(at.Add(24*time.Hour)) {
			at = at.Add(24 * time.Hour)
			continue
		}
		for offset(at) == offset(at.Add(step)) {
			at = at.Add(step)
		}
		at = at.Add(step)
		found = append(found, at)
	}
	return found
}

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

// zones have clock changes of all kinds.
func zones() []string {
	return []string{
		"UTC", "America/New_York", "Europe/Berlin", "Europe/Dublin", "Australia/Lord_Howe", "Pacific/Apia",
		"Pacific/Chatham", "Africa/Casablanca",
		"Africa/Cairo", "Antarctica/Troll", "Antarctica/Casey", "America/Havana", "America/Santiago",
		"America/Sao_Paulo", "America/St_Johns",
		"America/Godthab", "Atlantic/Azores", "Asia/Beirut", "Asia/Gaza", "Asia/Tehran", "Asia/Kathmandu", "Asia/Pyongyang",
	}
}

// TestNextReference compares Next with the model for random expressions, in the
// weeks of random instants and of clock changes.
func TestNextReference(t *testing.T) {
	t.Parallel()
	for i, name := range zones() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(1, uint64(i)))
			loc := zone(t, name)
			moments := changes(loc, 2008, 2033)
			for range 10 {
				moments = append(moments, time.Unix(1_100_000_000+rnd.Int64N(1_200_000_000), 0))
			}
			for _, moment := range moments {
				for range 4 {
					m := newModel(random(rnd))
					after := moment.Add(time.Duration(rnd.Int64N(int64(8*time.Hour))) - 4*time.Hour)
					compare(t, m, after, moment.Add(5*24*time.Hour), loc, 25)
				}
			}
		})
	}
}

// compare compares the first times of an expression after an instant, up to a
// limit.
func compare(t *testing.T, m model, after, limit time.Time, loc *time.Location, n int) {
	t.Helper()
	e, err := Parse(m.text)
	if err != nil {
		t.Fatalf("Parse(%q): %v", m.text, err)
	}
	for range n {
		got, want := e.Next(after, loc), m.next(after, limit, loc)
		if got.After(limit) {
			got = time.Time{}
		}
		if !got.Equal(want) {
			t.Fatalf("%q after %v: %v, want %v", m.text, after.In(loc), got, want)
		}
		if got.IsZero() {
			return
		}
		after = got
	}
}
