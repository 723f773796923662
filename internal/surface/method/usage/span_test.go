package usage

import (
	"strings"
	"testing"
	"time"
)

// FuzzSpan checks that ranges are short and that their days are consecutive.
func FuzzSpan(f *testing.F) {
	for _, s := range [][4]string{{"", "", "", ""}, {"2026-02-28", "2026-03-02", "utc", ""},
		{"2026-03-02", "", "specific", "UTC-3:30"}, {"x", "y", "z", "UTC+99"}} {
		f.Add(s[0], s[1], s[2], s[3], 30)
	}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, start, end, mode, offset string, days int) {
		s, err := spanOf(start, end, mode, offset, days, now)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "at /") {
				t.Errorf("%v", err)
			}
			return
		}
		if s.days < 1 || s.days > maxDays || s.offset.Abs() > 14*time.Hour {
			t.Errorf("%d days, offset %v", s.days, s.offset)
		}
		if got, want := s.day(s.days-1), s.until().Add(s.offset-time.Second).Format(time.DateOnly); got != want {
			t.Errorf("the last day is %s, and it ends on %s", got, want)
		}
	})
}
