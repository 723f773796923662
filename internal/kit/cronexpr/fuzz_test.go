package cronexpr

import (
	"errors"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/kit/waittest"
)

// FuzzParse checks that a text is an expression whose next time is later and
// matches, or an Error with a reason.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"* * * * *", "*/5 9-17 1,15,L * MON-FRI", "0 30 2 LW JAN-MAR/2 +5L 2024-2030", "0 0 15W * TUE#2", "@daily",
		"@reboot", "? ? ? ? ?",
		"61 * * * *", "every day at nine", "0-24/5 0-24/5 * * SUN-SUN", "0 0 31W,L */12 *", "1 2 3 4 5 6 7 8", "",
	} {
		f.Add(text, int64(1_774_746_000), uint8(1))
	}
	f.Fuzz(func(t *testing.T, text string, sec int64, z uint8) {
		e, err := Parse(text)
		if err != nil {
			if got, ok := errors.AsType[*Error](err); !ok || got.Reason == "" {
				t.Fatalf("Parse(%q): %v", text, err)
			}
			return
		}
		if again, err := Parse(e.String()); err != nil || again.String() != e.String() {
			t.Fatalf("Parse(%q) = %q, %v", e.String(), again, err)
		}
		e.TopOfHour()
		loc := zone(t, zones()[int(z)%len(zones())])
		after := time.Unix(sec, 0)
		start := time.Now()
		at := e.Next(after, loc)
		if took := time.Since(start); took > waittest.Limit {
			t.Fatalf("Next of %q took %v", text, took)
		}
		if at.IsZero() {
			return
		}
		if !at.After(after) || at.Nanosecond() != 0 || at.Year() > 9999 {
			t.Fatalf("%q after %v: %v", text, after.In(loc), at)
		}
		if e.fixed && at.Add(-time.Second).In(loc).Format(time.TimeOnly) != before(at).Format(time.TimeOnly) {
			return // the end of a gap
		}
		if !shows(e, at) {
			t.Fatalf("%q after %v: %v does not match", text, after.In(loc), at)
		}
	})
}

// before returns the second before a time, in the zone of that time.
func before(at time.Time) time.Time {
	name, offset := at.Zone()
	return at.Add(-time.Second).In(time.FixedZone(name, offset))
}

// shows reports whether the fields of an expression have the values of a time.
func shows(e Expr, at time.Time) bool {
	y, m, d := at.Date()
	return e.second>>at.Second()&1 != 0 && e.minute>>at.Minute()&1 != 0 && e.hour>>at.Hour()&1 != 0 &&
		e.days(y, int(m))>>d&1 != 0 && e.month>>m&1 != 0 && (e.years == nil || e.years.has(y))
}

// FuzzNext compares Next with the model for expressions that the input picks.
func FuzzNext(f *testing.F) {
	for i, sec := range []int64{1_774_746_000, 1_792_890_000, 1_325_239_200, 1_712_325_600, 1_771_117_200} {
		f.Add([]byte("\x04\x04\x04\x00\x02\x01\x05\x03\x07"), sec, uint8(i))
	}
	f.Fuzz(func(t *testing.T, choices []byte, sec int64, z uint8) {
		// Before 1990, some clocks changed at times that the model does not know, and
		// it takes long.
		const from, to = 631_152_000, 4_000_000_000
		if sec < from || sec > to || len(choices) > 100 {
			t.Skip()
		}
		pick := func(n int) int {
			if len(choices) == 0 {
				return n - 1
			}
			c := int(choices[0])
			choices = choices[1:]
			return c % n
		}
		after := time.Unix(sec, 0)
		compare(t, newModel(pick), after, after.Add(5*24*time.Hour), zone(t, zones()[int(z)%len(zones())]), 10)
	})
}
