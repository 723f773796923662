package chelatest

import (
	"fmt"
	"github.com/chela-ai/chela/internal/kit/needtest"
	"slices"
	"testing"
	"time"
)

// TestCronDaylightSaving runs daily jobs over the days on which local time skips and
// repeats their hour, in five zones. Between the days the gateway does not run, to save
// time.
func TestCronDaylightSaving(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		zone, change string // the instant of the change
		spec         string // minute and hour of the job
		run          string // the instant of its run on that day
	}{
		{"Europe/Berlin", "2026-03-29T01:00:00Z", "30 2", "2026-03-29T01:00:00Z"},
		{"Europe/Berlin", "2026-10-25T01:00:00Z", "30 2", "2026-10-25T00:30:00Z"},
		{"America/New_York", "2026-03-08T07:00:00Z", "30 2", "2026-03-08T07:00:00Z"},
		{"America/New_York", "2026-11-01T06:00:00Z", "30 1", "2026-11-01T05:30:00Z"},
		{"Australia/Lord_Howe", "2026-10-03T15:30:00Z", "15 2", "2026-10-03T15:30:00Z"}, // half an hour
		{"Australia/Lord_Howe", "2026-04-04T15:00:00Z", "45 1", "2026-04-04T14:45:00Z"},
		{"Africa/Cairo", "2026-04-23T22:00:00Z", "30 0", "2026-04-23T22:00:00Z"}, // the day begins at one
		{"Africa/Cairo", "2026-10-29T21:00:00Z", "30 23", "2026-10-29T20:30:00Z"},
		{"America/Santiago", "2026-09-06T04:00:00Z", "15 0", "2026-09-06T04:00:00Z"},
		{"America/Santiago", "2026-04-05T03:00:00Z", "30 23", "2026-04-05T02:30:00Z"}, // the day ends twice
	} {
		for _, restart := range []bool{false, true} { // after the change, before the hour is repeated
			t.Run(fmt.Sprintf("%s %s, restart %t", c.zone, c.change[:10], restart), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					zone, err := time.LoadLocation(c.zone)
					if err != nil {
						needtest.Missing(t, "the time zone "+c.zone)
					}
					at := func(s string) time.Time {
						v, err := time.Parse(time.RFC3339, s)
						if err != nil {
							t.Fatal(err)
						}
						return v
					}
					change, run := at(c.change), at(c.run)
					var by time.Duration
					now := func() time.Time { return time.Now().Add(by) }
					until := func(d time.Duration) { time.Sleep(change.Add(d).Sub(now())) }
					by = time.Until(change.Add(-40 * time.Minute))
					s := newScheduledWith(t, "", func(o *Options) { o.Now = now })
					j := s.add(`{"name":"x","schedule":{"kind":"cron","expr":%q,"tz":%q},"payload":{"kind":"agentTurn","message":"report"},"sessionTarget":"isolated","wakeMode":"now","delivery":{"mode":"none"}}`, c.spec+" * * *", c.zone)
					if restart {
						until(5 * time.Minute)
						s.restart(time.Second)
					}
					until(40 * time.Minute)
					s.stop()
					until(23*time.Hour + 10*time.Minute)
					s.start()
					until(24*time.Hour + 40*time.Minute)

					var minute, hour int
					fmt.Sscan(c.spec, &minute, &hour)
					day := run.In(zone)
					next := time.Date(day.Year(), day.Month(), day.Day()+1, hour, minute, 0, 0, zone)
					want := []string{c.run, next.UTC().Format(time.RFC3339)}
					var got []string
					s.mu.Lock()
					for _, st := range s.starts {
						got = append(got, st.at.Add(by).UTC().Round(time.Second).Format(time.RFC3339))
					}
					s.mu.Unlock()
					if !slices.Equal(got, want) {
						t.Errorf("turns at %v,\nwant %v", got, want)
					}
					equal(t, "runs", len(s.runs(j.ID)), len(want))
					s.stop()
				})
			})
		}
	}
}
