package heartbeat

import (
	"fmt"
	"time"
)

// Next returns when the tick after the one at ticked is due, given the time now. A tick in
// the future says that the clock was set back: it is taken for one at now, which the
// caller has to store, because the result depends on it.
func Next(ticked time.Time, every time.Duration, now time.Time) (base, next time.Time) {
	base = ticked
	if base.IsZero() || base.After(now) {
		base = now
	}
	return base, base.Add(every)
}

// Tick returns the tick for which a heartbeat is due at now, after the one at base. It is
// the time at which the tick was due, so that the interval does not drift. If further ticks
// were missed, because the machine slept or the clock was set forward, it is now: all of
// them are one.
func Tick(base time.Time, every time.Duration, now time.Time) time.Time {
	due := base.Add(every)
	if now.Sub(due) >= every {
		return now
	}
	return due
}

// Window is a part of the day, from Start until End. The zero Window is the whole day.
type Window struct {
	Start, End time.Duration // since midnight
	Zone       *time.Location
}

// Contains reports whether the time is in the window. A window that ends when it starts
// contains none. One that ends earlier than it starts spans midnight.
func (w Window) Contains(now time.Time) bool {
	if w.Zone == nil {
		return true
	}
	now = now.In(w.Zone)
	at := time.Duration(now.Hour())*time.Hour + time.Duration(now.Minute())*time.Minute
	if w.Start <= w.End {
		return w.Start <= at && at < w.End
	}
	return at >= w.Start || at < w.End
}

// window returns the hours as a window. person is the person's time zone.
func (h Hours) window(person *time.Location) (w Window, err error) {
	switch h.Zone {
	case "", "user":
		w.Zone = person
	case "local":
		w.Zone = time.Local
	default:
		if w.Zone, err = time.LoadLocation(h.Zone); err != nil {
			return w, err
		}
	}
	if w.Start, err = clock(h.Start, "00:00"); err != nil {
		return w, err
	}
	w.End, err = clock(h.End, "24:00")
	return w, err
}

// clock parses a time of the day, up to 24:00.
func clock(s, empty string) (time.Duration, error) {
	if s == "" {
		s = empty
	}
	if s == "24:00" {
		return 24 * time.Hour, nil
	}
	t, err := time.Parse("15:04", s)
	if err != nil {
		return 0, fmt.Errorf("%q is not a time of the day such as 08:30", s)
	}
	return time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute, nil
}
