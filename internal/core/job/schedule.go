package job

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/cronexpr"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// Schedule is when a job is due.
type Schedule struct {
	Kind     Kind   `json:"kind"`
	At       string `json:"at,omitempty"`       // RFC 3339
	EveryMs  int64  `json:"everyMs,omitempty"`  // at least MinEvery
	AnchorMs Millis `json:"anchorMs,omitempty"` // of every; 0: when the job was created
	Expr     string `json:"expr,omitempty"`     // five to seven fields
	// IANA name; empty: the zone of the host, or an interval that ignores clock changes
	TZ        string  `json:"tz,omitempty"`
	StaggerMs *Millis `json:"staggerMs,omitempty"`
}

// Kind is the kind of a schedule.
type Kind string

// The kinds of schedules.
const (
	KindAt    Kind = "at"
	KindEvery Kind = "every"
	KindCron  Kind = "cron"
)

const (
	// MinEvery is the shortest interval.
	MinEvery = time.Second
	// MinGap is the shortest time between the starts of two runs of a job.
	MinGap = 2 * time.Second
	// maxStagger is the default range in which jobs of the full hour are spread.
	maxStagger = 5 * time.Minute
	maxYear    = 9999
)

// AtTime returns the instant of a schedule of kind at.
func (s Schedule) AtTime() (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, s.At)
	if err != nil {
		return t, invalid("schedule.at: %q is not a time; want one like 2026-03-01T09:00:00Z", s.At)
	}
	return t, nil
}

// Location returns the zone of a cron expression or an interval.
func (s Schedule) Location() (*time.Location, error) {
	if s.TZ == "" {
		return time.Local, nil
	}
	loc, err := time.LoadLocation(s.TZ)
	if err != nil || s.TZ == "Local" {
		return nil, invalid("schedule.tz: unknown time zone %q; want a name like Europe/Berlin", s.TZ)
	}
	return loc, nil
}

// Check returns what is wrong with the schedule.
func (s Schedule) Check() error {
	switch s.Kind {
	case KindAt:
		t, err := s.AtTime()
		if err == nil && (t.Year() > maxYear || t.Year() < 1970) {
			err = invalid("schedule.at: %q is out of range", s.At)
		}
		return err
	case KindEvery:
		if d := time.Duration(s.EveryMs) * time.Millisecond; d < MinEvery || s.EveryMs > int64(maxEvery/time.Millisecond) {
			return invalid("schedule.everyMs: %d is out of range; want at least %d, which is %s", s.EveryMs,
				MinEvery.Milliseconds(), MinEvery)
		}
		if s.AnchorMs < 0 || s.AnchorMs.Time().Year() > maxYear {
			return invalid("schedule.anchorMs: %d is not a time", s.AnchorMs)
		}
		_, err := s.Location()
		return err
	case KindCron:
		if _, err := cronexpr.Parse(s.Expr); err != nil {
			return invalid("schedule.expr: %v; an example is \"0 9 * * MON-FRI\" (at nine on working days)", err)
		}
		if s.StaggerMs != nil && (*s.StaggerMs < 0 || *s.StaggerMs > Millis(24*time.Hour/time.Millisecond)) {
			return invalid("schedule.staggerMs: %d is out of range; want 0 to 86400000", *s.StaggerMs)
		}
		_, err := s.Location()
		return err
	case "on-exit", "stream":
		return invalid("schedule.kind: %q is not supported; want at, every or cron", s.Kind)
	case "":
		return invalid(`schedule is required: for example {"kind":"cron","expr":"0 9 * * MON-FRI","tz":"Europe/Berlin"}, {"kind":"every","everyMs":300000} or {"kind":"at","at":"2026-03-01T09:00:00Z"}`)
	}
	return invalid("schedule.kind: %q; want at, every or cron", s.Kind)
}

// maxEvery is the longest interval.
const maxEvery = 100 * 365 * 24 * time.Hour

// Slot returns the first slot of the schedule of a job that is later than after; zero:
// there is none. An error means that the schedule cannot be evaluated on this machine.
func (j Job) Slot(after time.Time) (time.Time, error) {
	switch s := j.Schedule; s.Kind {
	case KindAt:
		t, err := s.AtTime()
		if err != nil || !t.After(after) {
			return time.Time{}, err
		}
		return t, nil
	case KindEvery:
		if err := s.Check(); err != nil {
			return time.Time{}, err
		}
		anchor := int64(cmp.Or(s.AnchorMs, j.Created))
		n := after.UnixMilli() - anchor
		if n < 0 && s.AnchorMs != 0 {
			return time.UnixMilli(anchor), nil
		}
		if days := s.days(); days > 0 && s.TZ != "" {
			return s.afterDays(time.UnixMilli(anchor), days, after)
		}
		since := n % s.EveryMs // the last slot
		if since < 0 {         // the clock was ahead when the job was created
			since += s.EveryMs
		}
		return time.UnixMilli(after.UnixMilli() - since + s.EveryMs), nil
	case KindCron:
		expr, err := cronexpr.Parse(s.Expr)
		if err != nil {
			return time.Time{}, s.Check()
		}
		loc, err := s.Location()
		if err != nil {
			return time.Time{}, err
		}
		offset := j.stagger(expr)
		t := expr.Next(after.Add(-offset), loc)
		if t.IsZero() {
			return t, nil
		}
		return t.Add(offset), nil
	}
	return time.Time{}, j.Schedule.Check()
}

const day = 24 * time.Hour

// days returns the days of an interval; 0: it is not of whole days.
func (s Schedule) days() int {
	if d := time.Duration(s.EveryMs) * time.Millisecond; d%day == 0 {
		return int(d / day)
	}
	return 0
}

// afterDays returns the first slot later than after of an interval of days, which keeps its
// time of day in the zone when the clock changes.
func (s Schedule) afterDays(anchor time.Time, days int, after time.Time) (time.Time, error) {
	loc, err := s.Location()
	if err != nil {
		return time.Time{}, err
	}
	anchor = anchor.In(loc)
	n := int(after.Sub(anchor)/day)/days*days - days // a clock change is shorter than an interval
	for ; ; n += days {
		if t := anchor.AddDate(0, 0, n); t.After(after) {
			return t, nil
		}
	}
}

// stagger returns how long after the times of its expression the job is due. Jobs of
// the full hour are spread over some minutes, unless the schedule says otherwise.
func (j Job) stagger(expr cronexpr.Expr) time.Duration {
	span := time.Duration(0)
	switch s := j.Schedule.StaggerMs; {
	case s != nil:
		span = time.Duration(*s) * time.Millisecond
	case expr.TopOfHour():
		span = maxStagger
	}
	if span < time.Second {
		return 0
	}
	h := fnv.New64a()
	h.Write([]byte(j.ID))
	return time.Duration(h.Sum64()%uint64(span/time.Second)) * time.Second
}

// Missed returns the slots from first to now, the newest limit of them, and how many
// there are in all. Counting ends at maxMissed.
func (j Job) Missed(first, now time.Time, limit int) (slots []time.Time, n int, err error) {
	for t := first; !t.IsZero() && !t.After(now) && n < maxMissed; n++ {
		slots = append(slots, t)
		if len(slots) > limit {
			slots = slots[1:]
		}
		if t, err = j.Slot(t); err != nil {
			return nil, 0, err
		}
	}
	return slots, n, nil
}

// maxMissed bounds how many missed slots are counted.
const maxMissed = 100_000

// String returns the schedule for people.
func (s Schedule) String() string {
	switch s.Kind {
	case KindAt:
		return "at " + s.At
	case KindEvery:
		text := humanize.Span(time.Duration(s.EveryMs) * time.Millisecond)
		switch n := s.days(); {
		case n > 0 && n%7 == 0:
			text = strconv.Itoa(n/7) + "w"
		case n > 0:
			text = strconv.Itoa(n) + "d"
		}
		return strings.TrimSpace("every " + text + " " + s.TZ)
	case KindCron:
		return strings.TrimSpace(s.Expr + " " + s.TZ)
	}
	return string(s.Kind)
}

func invalid(format string, args ...any) error {
	return &chela.Error{Code: chela.CodeInvalid, Message: fmt.Sprintf(format, args...)}
}
