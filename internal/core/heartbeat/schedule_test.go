package heartbeat

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/kit/needtest"
)

func TestSchedule(t *testing.T) {
	t.Parallel()
	const every = 30 * time.Minute
	at := func(min int) time.Time { return t0.Add(time.Duration(min) * time.Minute) }
	for _, c := range []struct {
		name        string
		ticked, now time.Time
		base, next  time.Time
		tick        time.Time // if it is due
	}{
		{"the first time", time.Time{}, at(0), at(0), at(30), time.Time{}},
		{"before it is due", at(0), at(29), at(0), at(30), time.Time{}},
		{"when it is due", at(0), at(30), at(0), at(30), at(30)},
		{"a little late, without drift", at(0), at(31), at(0), at(30), at(30)},
		{"after one was missed", at(0), at(65), at(0), at(30), at(65)},
		{"after a sleep of days", at(0), at(4321), at(0), at(30), at(4321)},
		{"after the clock was set back", at(0), at(-600), at(-600), at(-570), time.Time{}},
	} {
		base, next := Next(c.ticked, every, c.now)
		if !base.Equal(c.base) || !next.Equal(c.next) {
			t.Errorf("%s: base %v, next %v; want %v, %v", c.name, base, next, c.base, c.next)
		}
		if next.After(c.now) {
			if !c.tick.IsZero() {
				t.Errorf("%s: not due", c.name)
			}
			continue
		}
		tick := Tick(base, every, c.now)
		if !tick.Equal(c.tick) {
			t.Errorf("%s: tick %v, want %v", c.name, tick, c.tick)
		}
		if _, again := Next(tick, every, c.now); !again.After(c.now) {
			t.Errorf("%s: a second tick is due at %v", c.name, again)
		}
	}
	t.Run("a clock that is set back and forward again loses and doubles nothing", func(t *testing.T) {
		now, base, ticks := at(0), at(0), 0
		for i := range 20 * 60 {
			switch i {
			case 100:
				now = now.Add(-5 * time.Hour)
			case 700:
				now = now.Add(5 * time.Hour)
			default:
				now = now.Add(time.Minute)
			}
			var next time.Time
			if base, next = Next(base, every, now); !next.After(now) {
				base = Tick(base, every, now)
				ticks++
			}
		}
		if ticks < 39 || ticks > 41 {
			t.Errorf("%d ticks in 20 hours", ticks)
		}
	})
}

func TestHours(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		needtest.Missing(t, "time zones")
	}
	for _, c := range []struct {
		hours Hours
		at    string // UTC
		want  bool
	}{
		{Hours{"09:00", "22:00", "UTC"}, "2026-03-01T08:59:59Z", false},
		{Hours{"09:00", "22:00", "UTC"}, "2026-03-01T09:00:00Z", true},
		{Hours{"09:00", "22:00", "UTC"}, "2026-03-01T21:59:59Z", true},
		{Hours{"09:00", "22:00", "UTC"}, "2026-03-01T22:00:00Z", false},
		{Hours{"22:00", "06:00", "UTC"}, "2026-03-01T23:00:00Z", true},
		{Hours{"22:00", "06:00", "UTC"}, "2026-03-01T05:59:00Z", true},
		{Hours{"22:00", "06:00", "UTC"}, "2026-03-01T06:00:00Z", false},
		{Hours{"09:00", "09:00", "UTC"}, "2026-03-01T09:00:00Z", false},
		{Hours{"", "", "UTC"}, "2026-03-01T23:59:00Z", true},
		{Hours{"09:00", "", ""}, "2026-03-01T08:00:00Z", true}, // 09:00 in Berlin
		{Hours{"09:00", "24:00", "user"}, "2026-03-01T07:59:00Z", false},
		{Hours{"09:00", "10:00", "user"}, "2026-07-01T07:30:00Z", true}, // summer time
		{Hours{"03:00", "04:00", "Europe/Berlin"}, "2026-03-29T01:30:00Z", true},
	} {
		w, err := c.hours.window(berlin)
		now, err2 := time.Parse(time.RFC3339, c.at)
		if err != nil || err2 != nil || w.Contains(now) != c.want {
			t.Errorf("%+v at %s: %v, want %v; %v, %v", c.hours, c.at, w.Contains(now), c.want, err, err2)
		}
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		`{}`:              DefaultEvery,
		`{"every": "1h"}`: time.Hour,
		`{"every": 45}`:   45 * time.Minute,
		`{"every": "90"}`: 90 * time.Minute,
		`{"every": "0m"}`: 0,
		`{"every": 0}`:    0,
	} {
		var c Config
		if err := json.Unmarshal([]byte(text), &c); err != nil || c.Check("x") != nil ||
			c.Settings("main", time.UTC).Every != want {
			t.Errorf("%s: %v, %v", text, c.Settings("main", time.UTC).Every, err)
		}
	}
	for _, text := range []string{
		`{"every": "10s"}`, `{"every": "-5m"}`, `{"ackMaxChars": -1}`, `{"timeoutSeconds": -1}`,
		`{"directPolicy": "never"}`, `{"session": "a b"}`,
		`{"activeHours": {"start": "25:00"}}`, `{"activeHours": {"end": "9 am"}}`, `{"activeHours": {"timezone": "Mars"}}`,
	} {
		var c Config
		if err := json.Unmarshal([]byte(text), &c); err != nil {
			continue
		}
		if c.Check("agents.defaults.heartbeat") == nil {
			t.Errorf("%s is accepted", text)
		}
	}
	if err := json.Unmarshal([]byte(`{"every": "soon"}`), new(Config)); err == nil {
		t.Error(`"soon" is an interval`)
	}
	zero, ten, yes := 0, 10, true
	own, all := Config{MaxAck: &zero, Model: "a"}, Config{MaxAck: &ten, Model: "b", Target: "last", Light: &yes}
	if s := own.Or(all).Settings("ops", time.UTC); s.MaxAck != 0 || s.Model != "a" || s.Target != "last" || !s.Light ||
		s.Session != "agent:ops:main" {
		t.Errorf("settings %+v", s)
	}
}
