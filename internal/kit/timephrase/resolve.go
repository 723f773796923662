package timephrase

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// daytime is a part of the day.
type daytime int

const (
	anytime daytime = iota
	early           // before dawn
	morning
	noon
	afternoon
	evening
	night
	midnight
)

// hours are the hours that parts of the day stand for.
var hours = [...]int{anytime: 9, early: 5, morning: 8, noon: 12, afternoon: 15, evening: 19, night: 21, midnight: 24}

// unit is a unit of time.
type unit int

const (
	noUnit unit = iota
	second
	minute
	hour
	day
	week
	month
	year
)

// spec is what the parts of a phrase say.
type spec struct {
	now     time.Time
	morning int // see Finder

	after        bool // after a time from now
	months, days int
	span         time.Duration
	every        unit
	n            int // of every; 0: it is not a number
	dows         []time.Weekday
	nth          string // which one of such days of a month: 1 to 5, or L; empty: all
	part         daytime
	tonight      bool
	clock        bool
	hour, minute int
	written      bool // the hour is of the 24-hour clock
	dated        bool // the day is fixed by offset
	offset       int  // days from today
	weekday      bool // the day is a weekday
	dow          time.Weekday
	weeks        int  // 1: a weekday of the week before this one, 2: of this one, 3: of the next one, and so on
	later        bool // a weekday after today
	year         int
	month        time.Month
	dom          int
	lastDay      bool
	nextMonth    int
	past         bool
	bad, unclear bool
}

// maxAhead is how many years ahead a time may be.
const maxAhead = 100

// amount adds a number of units to the time from now.
func (s *spec) amount(n float64, u unit) {
	s.after = true
	if n < 0 || math.IsNaN(n) || n*float64(seconds[u]) > maxAhead*float64(seconds[year]) {
		s.bad = true
		return
	}
	switch whole := n == math.Trunc(n); {
	case u == year && whole:
		s.months += 12 * int(n)
	case u == month && whole:
		s.months += int(n)
	case (u == week || u == day) && whole:
		s.days += int(n) * int(seconds[u]/seconds[day])
	default:
		s.span += time.Duration(n * float64(seconds[u]) * float64(time.Second))
	}
	if century := maxAhead * seconds[year]; s.span > time.Duration(century)*time.Second || s.months > maxAhead*12 ||
		int64(s.days) > century/seconds[day] {
		s.bad = true
	}
}

// seconds are the lengths of the units.
var seconds = [...]int64{
	second: 1,
	minute: 60,
	hour:   3600,
	day:    86400,
	week:   7 * 86400,
	month:  30 * 86400,
	year:   365 * 86400,
}

// repeat sets the recurrence: every n units.
func (s *spec) repeat(n float64, u unit) {
	switch {
	case n == math.Trunc(n) && n >= 1 && n*float64(seconds[u]) <= maxAhead*float64(seconds[year]):
		s.every, s.n = u, int(n)
	case u <= hour && n*float64(seconds[u]) >= 1 && n < 1e6: // half an hour, 1.5 hours
		s.every, s.n = second, int(n*float64(seconds[u]))
	default:
		s.bad = true
	}
}

// number reads digits; a wrong or large number is -1.
func number(s string) int {
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil || n > 9999 {
		return -1
	}
	return n
}

// resolve returns the phrase that the parts make up.
func (s *spec) resolve() Phrase {
	p := Phrase{Timed: s.clock || s.part != anytime || s.after && s.months == 0 && s.days == 0}
	p.OnlyTime = p.Timed && !s.after && s.every == noUnit && len(s.dows) == 0 && !s.hasDay()
	h, m, ok := s.timeOfDay()
	switch {
	case s.bad || !ok:
		p.Err = ErrImpossible
	case s.past:
		p.Err = ErrPast
	case s.unclear, s.after && (s.every != noUnit || len(s.dows) > 0):
		p.Err = ErrUnclear
	case len(s.dows) > 0 || s.every != noUnit:
		s.recurrence(&p, h, m)
	case s.after:
		p.At, p.Err = s.fromNow(h, m)
	default:
		p.At, p.Err = s.instant(h, m)
		if p.Err == nil {
			p.Err = s.contradiction(p.At, h/24)
		}
	}
	if named := !s.after || s.clock || s.part != anytime; named && p.Err == nil && !p.At.IsZero() &&
		((p.At.Hour()-h)%12 != 0 || p.At.Minute() != m) {
		p.Err = ErrImpossible // the clock is put forward then
	}
	if p.Err == nil && p.Cron == "" && !p.At.IsZero() && (!p.At.After(s.now) || p.At.Year() > s.now.Year()+maxAhead) {
		p.Err = ErrImpossible
	}
	if p.Err != nil {
		p.At, p.Every, p.Cron = time.Time{}, 0, ""
	}
	return p
}

func (s *spec) hasDay() bool {
	return s.dated || s.weekday || s.dom > 0 || s.lastDay || s.nextMonth > 0 || s.past
}

// timeOfDay returns the hour, which may be up to 28 for the time after midnight, and the
// minute.
func (s *spec) timeOfDay() (h, m int, ok bool) {
	if !s.clock {
		if s.tonight {
			return 20, 0, true
		}
		return hours[s.part], 0, true
	}
	h, m = s.hour, s.minute
	if h < 0 || h > 24 || m < 0 || m > 59 || h == 24 && m > 0 {
		return 0, 0, false
	}
	if s.written || h > 12 || h == 0 {
		return h, m, true
	}
	switch s.part {
	case early, morning:
		if h == 12 && s.part == early {
			h = 0
		}
	case noon:
		if h < 4 {
			h += 12
		}
	case afternoon:
		if h < 12 {
			h += 12
		}
	case evening, night:
		if h >= 5 && s.part == night || h > 3 && h < 12 && s.part == evening || h == 12 {
			h += 12
		} else { // 2 at night
			h += 24
		}
	case midnight:
		h = 24
	case anytime:
		if h < s.morning && h < 12 {
			h += 12
		}
	}
	return h, m, true
}

// on returns the time of day on the day of t.
func on(t time.Time, h, m int) time.Time {
	y, mo, d := t.Date()
	return time.Date(y, mo, d, h, m, 0, 0, t.Location())
}

// addMonths returns t some months later, on an earlier day if the month is shorter.
func addMonths(t time.Time, n int) time.Time {
	y, m, d := t.Date()
	last := time.Date(y, m+time.Month(n)+1, 0, 0, 0, 0, 0, t.Location()).Day()
	return time.Date(y, m+time.Month(n), min(d, last), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), t.Location())
}

// fromNow returns the instant after a time from now.
func (s *spec) fromNow(h, m int) (time.Time, error) {
	timed := s.clock || s.part != anytime
	if s.hasDay() || timed && (s.span != 0 || s.months == 0 && s.days == 0) {
		return time.Time{}, ErrUnclear
	}
	t := addMonths(s.now, s.months).AddDate(0, 0, s.days)
	if timed {
		return on(t, h, m), nil
	}
	return t.Add(s.span), nil
}

// instant returns the time on the day that the phrase names.
func (s *spec) instant(h, m int) (time.Time, error) {
	switch {
	case s.dom > 0 || s.lastDay:
		return s.date(h, m)
	case s.weekday:
		return s.onWeekday(h, m)
	case s.nextMonth > 0:
		y, mo, _ := s.now.Date()
		return time.Date(y, mo+time.Month(s.nextMonth), 1, h, m, 0, 0, s.now.Location()), nil
	case s.dated || s.tonight:
		t := on(s.now.AddDate(0, 0, s.offset), h, m)
		if t.After(s.now) {
			return t, nil
		}
		if s.clock && !s.written && s.part == anytime && h < 12 { // today at 8, in the evening
			if t = on(t, h+12, m); t.After(s.now) {
				return t, nil
			}
		}
		return t, ErrPast
	}
	t := on(s.now, h, m)
	for h >= 24 && on(s.now, h-24, m).After(s.now) { // it is still night
		h -= 24
		t = on(s.now, h, m)
	}
	if !t.After(s.now) {
		t = on(s.now.AddDate(0, 0, 1), h, m)
	}
	return t, nil
}

// contradiction returns an error if not all days that the phrase names are the day of t. late
// is the number of days by which its hour is later.
func (s *spec) contradiction(t time.Time, late int) error {
	t = t.AddDate(0, 0, -late)
	other := s.now.AddDate(0, 0, s.offset).Format(time.DateOnly) != t.Format(time.DateOnly)
	switch {
	case s.weekday && s.dated && other && s.dom == 0 && s.weeks == 0:
		return WeekdayError{s.now.AddDate(0, 0, s.offset)}
	case s.dated && other && (s.dom > 0 || s.weekday):
		return ErrUnclear
	case s.weekday && (s.dom > 0 || s.lastDay) && s.weeks == 0 && t.Weekday() != s.dow:
		return WeekdayError{t}
	case s.weekday && s.weeks > 0 && (s.dom > 0 || s.lastDay):
		if week, _ := s.onWeekday(12, 0); week.Format(time.DateOnly) != t.Format(time.DateOnly) {
			return ErrUnclear
		}
	}
	return nil
}

// onWeekday returns the time on a weekday.
func (s *spec) onWeekday(h, m int) (time.Time, error) {
	today := s.now.Weekday()
	if s.weeks > 0 { // weeks begin on Monday
		days := int(s.dow+6)%7 - int(today+6)%7 + 7*(s.weeks-2)
		t := on(s.now.AddDate(0, 0, days), h, m)
		if !t.After(s.now) {
			return t, ErrPast
		}
		return t, nil
	}
	days := int(s.dow-today+7) % 7
	t := on(s.now.AddDate(0, 0, days), h, m)
	if !t.After(s.now) || days == 0 && s.later {
		t = on(s.now.AddDate(0, 0, days+7), h, m)
	}
	return t, nil
}

// date returns the time on the next such date.
func (s *spec) date(h, m int) (time.Time, error) {
	y, mo, _ := s.now.Date()
	exact := func(y int, mo time.Month) (time.Time, bool) {
		d := s.dom
		if s.lastDay {
			d = time.Date(y, mo+1, 0, 0, 0, 0, 0, time.UTC).Day()
		}
		first := time.Date(y, mo, 1, 0, 0, 0, 0, time.UTC)
		if time.Date(y, mo, d, 0, 0, 0, 0, time.UTC).Month() != first.Month() {
			return time.Time{}, false
		}
		return time.Date(y, mo, d, h, m, 0, 0, s.now.Location()), true
	}
	one := func(y int, mo time.Month) (time.Time, error) {
		t, ok := exact(y, mo)
		switch {
		case !ok:
			return t, ErrImpossible
		case !t.After(s.now):
			return t, ErrPast
		}
		return t, nil
	}
	switch {
	case s.dom > 31:
		return time.Time{}, ErrImpossible
	case s.year > 0 && s.month > 0:
		return one(s.year, s.month)
	case s.nextMonth > 0:
		return one(y, mo+time.Month(s.nextMonth))
	case s.month > 0:
		for i := range 9 { // 29 February
			if t, ok := exact(y+i, s.month); ok && t.After(s.now) {
				return t, nil
			}
		}
	default:
		for i := range 4 {
			if t, ok := exact(y, mo+time.Month(i)); ok && t.After(s.now) {
				return t, nil
			}
		}
	}
	return time.Time{}, ErrImpossible
}

// recurrence sets the interval or the cron expression.
func (s *spec) recurrence(p *Phrase, h, m int) {
	timed := s.clock || s.part != anytime
	n := max(s.n, 1)
	if s.every == week && n == 1 && len(s.dows) == 0 {
		s.dows = []time.Weekday{s.now.Weekday()}
		if s.weekday {
			s.dows[0] = s.dow
		}
	}
	switch {
	case s.nth != "" && (len(s.dows) != 1 || s.every != month || s.hasDay() || h >= 24 || s.nth > "5" && s.nth != "L"):
		p.Err = ErrUnclear
	case s.nth != "":
		p.Cron = fmt.Sprintf("%d %d * * %d#%s", m, h, s.dows[0], s.nth)
	case len(s.dows) > 0 && (s.every == hour && 24%n == 0 || s.every == minute && 60%n == 0) && !timed:
		step := "*"
		if n > 1 {
			step = fmt.Sprintf("*/%d", n)
		}
		fields := "0 " + step
		if s.every == minute {
			fields = step + " *"
		}
		p.Cron = fields + s.weekly(0, 0)[len("0 0"):]
	case len(s.dows) > 0 && (s.every == second || s.every == minute || s.every == hour):
		p.Err = ErrUnclear
	case len(s.dows) > 0 && s.every > week, len(s.dows) > 0 && s.every == day && n > 1, len(s.dows) > 1 && n > 1:
		p.Err = ErrUnclear // every second week has one day
	case len(s.dows) > 0 && n == 1:
		p.Cron = s.weekly(h, m)
	case s.every <= hour:
		p.Every = time.Duration(n) * time.Duration(seconds[s.every]) * time.Second
		if timed {
			p.At, p.Err = s.instant(h, m)
		}
	case s.every == day && n == 1 && s.hasDay():
		p.Err = ErrUnclear
	case s.every == day && n == 1:
		p.Cron = fmt.Sprintf("%d %d * * *", m, h%24)
	case s.every == day || s.every == week:
		if len(s.dows) == 1 {
			s.weekday, s.dow = true, s.dows[0]
		}
		p.Every = time.Duration(n) * time.Duration(seconds[s.every]) * time.Second
		p.At, p.Err = s.instant(h, m)
	case h >= 24, s.every == month && (n > 6 || 12%n != 0), s.every == year && n > 1, s.weekday, s.dated:
		p.Err = ErrUnclear
	case s.every == month && s.month == 0:
		every := "*"
		if n > 1 {
			every = fmt.Sprintf("*/%d", n)
		}
		p.Cron = fmt.Sprintf("%d %d %s %s *", m, h, s.domField(1), every)
	default:
		mo := s.month
		if mo == 0 {
			mo, s.dom = s.now.Month(), s.now.Day()
		}
		if s.dom > time.Date(2024, mo+1, 0, 0, 0, 0, 0, time.UTC).Day() {
			p.Err = ErrImpossible
			return
		}
		p.Cron = fmt.Sprintf("%d %d %s %d *", m, h, s.domField(1), mo)
	}
	if s.dom > 31 {
		p.Err = ErrImpossible
	}
}

func (s *spec) domField(otherwise int) string {
	switch {
	case s.lastDay:
		return "L"
	case s.dom > 0:
		return strconv.Itoa(s.dom)
	}
	return strconv.Itoa(otherwise)
}

// weekly returns the expression for some days of the week.
func (s *spec) weekly(h, m int) string {
	days := slices.Clone(s.dows)
	for i := range days {
		days[i] = (days[i] + time.Weekday(h/24)) % 7
	}
	slices.Sort(days)
	days = slices.Compact(days)
	list := make([]string, len(days))
	for i, d := range days {
		list[i] = strconv.Itoa(int(d))
	}
	field := strings.Join(list, ",")
	switch field {
	case "1,2,3,4,5":
		field = "1-5"
	case "0,1,2,3,4,5,6":
		field = "*"
	}
	return fmt.Sprintf("%d %d * * %s", m, h%24, field)
}
