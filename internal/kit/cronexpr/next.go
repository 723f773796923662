package cronexpr

import (
	"math/bits"
	"time"
)

// A wall is the time that a clock shows, as the Unix time at which a clock in
// UTC shows it.
const (
	secondsPerDay = 24 * 60 * 60

	unixDay   = 719162                    // dayNumber(1970, 1, 1)
	firstWall = -unixDay * secondsPerDay  // the first second of firstYear
	lastWall  = 2932897*secondsPerDay - 1 // the last second of lastYear
)

const (
	// maxOffset is above the difference of any zone's clock from UTC, in seconds.
	maxOffset = 26 * 60 * 60

	// ruleYear is a year from which every zone follows one rule: its clock changes
	// on the same dates in all years of a kind.
	ruleYear = 2100

	// forever is after all times that are searched.
	forever = 1 << 60
)

// Next returns the first whole second after the given time that e matches in
// loc, or the zero Time if there is none up to the end of the year 9999. Times
// before the zero Time count as the zero Time. A nil loc is UTC. The result is in
// loc.
func (e Expr) Next(after time.Time, loc *time.Location) time.Time {
	if loc == nil {
		loc = time.UTC
	}
	sec := after.Unix()
	if sec > lastWall+maxOffset {
		return time.Time{}
	}
	sec = max(sec, firstWall)
	var ok bool
	if e.fixed {
		sec, ok = e.nextFixed(sec, loc)
	} else {
		sec, ok = e.nextShown(sec, loc)
	}
	if !ok {
		return time.Time{}
	}
	return time.Unix(sec, 0).In(loc)
}

// nextFixed returns the first instant after the given one that an expression
// with a fixed time matches.
func (e *Expr) nextFixed(after int64, loc *time.Location) (int64, bool) {
	offset, _ := zoneAt(after, loc)
	from := after + offset + 1
	seen := e.newYears(from)
	for {
		wall, ok := e.nextWall(from)
		if !ok {
			return 0, false
		}
		if sec, ok := firstShown(wall, loc); ok && sec > after {
			return sec, true
		}
		seen.reach(wall)
		from = wall + 1
	}
}

// firstShown returns the first instant at which the clock shows a wall. If the
// clock skips it, that is the end of the gap, and ok tells whether it is on the
// same day.
func firstShown(wall int64, loc *time.Location) (sec int64, ok bool) {
	for start := wall - maxOffset; ; {
		offset, end := zoneAt(start, loc)
		sec := wall - offset
		if sec < start {
			return start, dayOf(start+offset) == dayOf(wall)
		}
		if sec < end {
			return sec, true
		}
		start = end
	}
}

// nextShown returns the first instant after the given one at which the clock
// shows a wall that matches. It looks at one interval with the same offset after
// another.
func (e *Expr) nextShown(after int64, loc *time.Location) (int64, bool) {
	start := after + 1
	offset, end := zoneAt(start, loc)
	seen := e.newYears(start + offset)
	for start < forever {
		wall, ok := e.nextWall(start + offset)
		if ok && wall-offset < end {
			return wall - offset, true
		}
		// A change after a long time does not turn the clock back to a wall before
		// this interval. So no wall matches before the one that was found, which the
		// clock does not show earlier than maxOffset before.
		if end-start > 2*maxOffset {
			if !ok {
				return 0, false
			}
			end = max(end, wall-maxOffset)
		}
		if ok {
			seen.reach(wall)
		}
		start = end
		offset, end = zoneAt(start, loc)
	}
	return 0, false
}

// zoneAt returns the offset of the clock at an instant and an instant up to which
// it does not change, usually the next change.
func zoneAt(sec int64, loc *time.Location) (offset, end int64) {
	t := time.Unix(sec, 0).In(loc)
	_, seconds := t.Zone()
	_, bound := t.ZoneBounds()
	end = forever
	if !bound.IsZero() {
		end = bound.Unix()
	}
	if end <= sec {
		// ZoneBounds ends a year of a rule after 365 days. On the last day of a leap
		// year, the offset does not change before midnight.
		end = (dayOf(sec) + 1) * secondsPerDay
	}
	return int64(seconds), end
}

// years removes kinds of years from an expression during a search: those in which
// the clock skips all walls that match. Without it, a search for a time that is
// always skipped would look at the clock in each year up to 9999.
type years struct {
	e           *Expr
	first, last int64
}

func (e *Expr) newYears(from int64) years {
	y := yearOf(from)
	return years{e, y, y}
}

// reach is called with the walls that match, in order, if the search goes on after
// them. A year is in vain if the next wall is in a later year. The year in which the
// search began is not known, because its first part was not searched.
func (y *years) reach(wall int64) {
	year := yearOf(wall)
	if year > y.last && y.last > y.first && y.last >= ruleYear {
		y.e.kinds &^= 1 << kindOf(int(y.last))
	}
	y.last = year
}

// nextWall returns the first wall from the given one that matches.
func (e *Expr) nextWall(from int64) (int64, bool) {
	from = max(from, firstWall)
	if from > lastWall {
		return 0, false
	}
	t := time.Unix(from, 0).UTC()
	year, month, day := t.Date()
	y, m, d, ok := e.nextDay(year, int(month), day)
	if ok && y == year && m == int(month) && d == day {
		if clock, ok := e.nextClock(t.Clock()); ok {
			return wallAt(y, m, d) + clock, true
		}
		y, m, d, ok = e.nextDay(y, m, d+1)
	}
	if !ok {
		return 0, false
	}
	clock, ok := e.nextClock(0, 0, 0)
	return wallAt(y, m, d) + clock, ok
}

// nextClock returns the first second of a day, from the given time of day, that
// matches.
func (e *Expr) nextClock(hour, minute, second int) (int64, bool) {
	h := hour + bits.TrailingZeros64(uint64(e.hour)>>hour)
	if h > hour {
		minute, second = 0, 0
	}
	if h >= 24 {
		return 0, false
	}
	m := minute + bits.TrailingZeros64(e.minute>>minute)
	if m > minute {
		second = 0
	}
	if m >= 60 {
		return e.nextClock(h+1, 0, 0)
	}
	s := second + bits.TrailingZeros64(e.second>>second)
	if s >= 60 {
		return e.nextClock(h, m+1, 0)
	}
	return int64(h*3600 + m*60 + s), true
}

func wallAt(year, month, day int) int64 {
	return int64(dayNumber(year, month, day)-unixDay) * secondsPerDay
}

// dayOf returns the number of the day of a wall, yearOf its year.
func dayOf(wall int64) int64 {
	day := wall / secondsPerDay
	if wall%secondsPerDay < 0 {
		day--
	}
	return day
}

func yearOf(wall int64) int64 { return int64(time.Unix(wall, 0).UTC().Year()) }
