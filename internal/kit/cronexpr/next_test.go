package cronexpr

import (
	"strings"
	"testing"
	"time"
)

// times returns the next dates and times in the location of the first, and "none"
// after the last.
func times(e Expr, after time.Time, n int) []string {
	var found []string
	for range n {
		after = e.Next(after, after.Location())
		if after.IsZero() {
			return append(found, "none")
		}
		found = append(found, after.Format("2006-01-02 15:04:05"))
	}
	return found
}

// TestNextDay lists the days of expressions at noon.
func TestNextDay(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ days, want string }{
		{"* * *", "2026-01-02 2026-01-03 2026-01-04"},
		{"13 * *", "2026-01-13 2026-02-13 2026-03-13"},
		{"31 * *", "2026-01-31 2026-03-31 2026-05-31"},
		{"29 2 *", "2028-02-29 2032-02-29 2036-02-29"},
		{"29,30 2 +MON", "2044-02-29 2072-02-29 2112-02-29"}, // 2100 is not a leap year
		{"30 2 *", "none"},
		{"31 2,4,6,9,11 *", "none"},
		{"* * MON", "2026-01-05 2026-01-12 2026-01-19"},
		{"* * 0", "2026-01-04 2026-01-11 2026-01-18"},
		{"* * 7", "2026-01-04 2026-01-11 2026-01-18"},
		{"* * SAT-SUN", "2026-01-03 2026-01-04 2026-01-10"},
		{"13 * FRI", "2026-01-02 2026-01-09 2026-01-13"}, // one of them
		{"13 * +FRI", "2026-02-13 2026-03-13 2026-11-13"},
		{"* * +FRI", "2026-01-02 2026-01-09 2026-01-16"},
		{"13 * +*", "2026-01-13 2026-02-13 2026-03-13"},
		{"*/1 * FRI", "2026-01-02 2026-01-03 2026-01-04"}, // */1 is a restriction
		{"*,1 * FRI", "2026-01-02 2026-01-03 2026-01-04"},
		{"*,L * FRI", "2026-01-02 2026-01-09 2026-01-16"},
		{"13 * */1", "2026-01-02 2026-01-03 2026-01-04"},
		{"*/10 * *", "2026-01-11 2026-01-21 2026-01-31"},
		{"5-31/10 * *", "2026-01-05 2026-01-15 2026-01-25"},
		{"L * *", "2026-01-31 2026-02-28 2026-03-31"},
		{"L 2 *", "2026-02-28 2027-02-28 2028-02-29"},
		{"L * FRI", "2026-01-02 2026-01-09 2026-01-16"},
		{"L * +FRI", "2026-07-31 2027-04-30 2027-12-31"},
		{"15,L * *", "2026-01-15 2026-01-31 2026-02-15"},
		{"LW * *", "2026-01-30 2026-02-27 2026-03-31"},
		{"LW 5 *", "2026-05-29 2027-05-31 2028-05-31"}, // the 31st of May 2026 is a Sunday
		{"15W * *", "2026-01-15 2026-02-16 2026-03-16"},
		{"1W * *", "2026-02-02 2026-03-02 2026-04-01"},
		{"1W 8 *", "2026-08-03 2027-08-02 2028-08-01"}, // the 1st of August 2026 is a Saturday
		{"31W * *", "2026-01-30 2026-03-31 2026-05-29"},
		{"30W 4,5,8 *", "2026-04-30 2026-05-29 2026-08-31"},
		{"1W,15 * +MON", "2026-02-02 2026-03-02 2026-06-01"},
		{"* * MON#1", "2026-01-05 2026-02-02 2026-03-02"},
		{"* * MON#2", "2026-01-12 2026-02-09 2026-03-09"},
		{"* * THU#5", "2026-01-29 2026-04-30 2026-07-30"},
		{"* * 5L", "2026-01-30 2026-02-27 2026-03-27"},
		{"* * MON#L", "2026-01-26 2026-02-23 2026-03-30"},
		{"* * 4-5L", "2026-01-29 2026-01-30 2026-02-26"},
		{"* * FRI#1,FRI#L", "2026-01-02 2026-01-30 2026-02-06"},
		{"* 2 MON#5", "2044-02-29 2072-02-29 2112-02-29"},
		{"1 1 *", "2027-01-01 2028-01-01 2029-01-01"},
		{"* 12 SUN#L", "2026-12-27 2027-12-26 2028-12-31"},
	} {
		e, err := Parse("0 12 " + tt.days)
		if err != nil {
			t.Error(err)
			continue
		}
		got := strings.Join(times(e, time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC), 3), " ")
		if got = strings.ReplaceAll(got, " 12:00:00", ""); got != tt.want {
			t.Errorf("%s: %s, want %s", e, got, tt.want)
		}
	}
}

func TestNext(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ text, after, want string }{
		{"* * * * *", "2026-01-01 00:00:00", "2026-01-01 00:01:00"}, // strictly after
		{"* * * * *", "2025-12-31 23:59:59.999999999", "2026-01-01 00:00:00"},
		{"* * * * * *", "2026-01-01 00:00:00", "2026-01-01 00:00:01"},
		{"* * * * * *", "2026-01-01 00:00:00.5", "2026-01-01 00:00:01"},
		{"* * * * * *", "2026-12-31 23:59:59.5", "2027-01-01 00:00:00"},
		{"* * * * * *", "1969-12-31 23:59:58.5", "1969-12-31 23:59:59"},
		{"0 9 * * *", "2026-01-01 09:00:00", "2026-01-02 09:00:00"},
		{"0 9 * * *", "2026-01-01 08:59:59.9", "2026-01-01 09:00:00"},
		{"59 59 23 * * *", "2026-01-01 23:59:58", "2026-01-01 23:59:59"},
		{"59 59 23 31 12 *", "2026-12-31 23:59:59", "2027-12-31 23:59:59"},
		{"*/20 * * * *", "2026-01-01 00:40:00", "2026-01-01 01:00:00"},
		{"*/25 * * * *", "2026-01-01 00:25:00", "2026-01-01 00:50:00"},
		{"*/25 * * * *", "2026-01-01 00:50:00", "2026-01-01 01:00:00"},
		{"10-50/20 * * * *", "2026-01-01 00:30:00", "2026-01-01 00:50:00"},
		{"10-49/20 * * * *", "2026-01-01 00:30:00", "2026-01-01 01:10:00"},
		{"7 5,10 1,3 * * *", "2026-01-01 01:10:07", "2026-01-01 03:05:07"},
		{"7 5,10 1,3 * * *", "2026-01-01 03:05:08", "2026-01-01 03:10:07"},
		{"7 5,10 1,3 * * *", "2026-01-01 02:05:07", "2026-01-01 03:05:07"},
		{"59 * 23 * * *", "2026-01-01 23:59:59", "2026-01-02 23:00:59"},
		{"0 0 29 2 *", "2096-03-01 00:00:00", "2104-02-29 00:00:00"},
		{"0 0 29 2 *", "1999-03-01 00:00:00", "2000-02-29 00:00:00"},
		{"0 0 0 29 2 * 2100", "2026-01-01 00:00:00", "none"},
		{"0 0 0 29 2 * 2400", "2026-01-01 00:00:00", "2400-02-29 00:00:00"},
		{"0 0 0 1 1 * 2020-2025", "2026-01-01 00:00:00", "none"},
		{"0 0 0 1 1 * 2020-2030/10", "2026-01-01 00:00:00", "2030-01-01 00:00:00"},
		{"0 0 0 1 1 * 2026", "2025-06-01 00:00:00", "2026-01-01 00:00:00"},
		{"0 0 0 1 1 * 2026", "2026-01-01 00:00:00", "none"},
		{"0 0 0 1 1 * */10000", "2026-01-01 00:00:00", "none"},
		{"0 0 0 2 1 * 1", "-0009-01-01 00:00:00", "0001-01-02 00:00:00"},
		{"0 0 2 1 *", "-0009-01-01 00:00:00", "0001-01-02 00:00:00"},
		{"* 12 2 1 *", "0001-01-02 12:58:00", "0001-01-02 12:59:00"},
		{"0 0 1 1 *", "9998-06-01 00:00:00", "9999-01-01 00:00:00"},
		{"0 0 1 1 *", "9999-01-01 00:00:00", "none"},
		{"0 0 0 31 12 * 9999", "2026-01-01 00:00:00", "9999-12-31 00:00:00"},
		{"* * * * * *", "9999-12-31 23:59:58", "9999-12-31 23:59:59"},
		{"* * * * * *", "9999-12-31 23:59:59", "none"},
		{"* * * * * *", "12000-01-01 00:00:00", "none"},
	} {
		e, err := Parse(tt.text)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, zone := range []*time.Location{time.UTC, time.FixedZone("UTC+14", 14*3600),
			time.FixedZone("UTC-12", -12*3600)} {
			if got := times(e, parseTime(t, tt.after, zone), 1)[0]; got != tt.want {
				t.Errorf("%s after %s in %v: %s, want %s", tt.text, tt.after, zone, got, tt.want)
			}
		}
	}
}

// parseTime reads a date and time, also of years with a minus or five digits.
func parseTime(t *testing.T, text string, loc *time.Location) time.Time {
	t.Helper()
	years := map[string]int{"-0009": -9, "12000": 12000}
	year, rest, _ := strings.Cut(strings.TrimPrefix(text, "-"), "-")
	if n, ok := years[strings.TrimSuffix(text, "-"+rest)]; ok {
		return time.Date(n, 1, 1, 0, 0, 0, 0, loc)
	}
	at, err := time.ParseInLocation("2006-01-02 15:04:05", year+"-"+rest, loc)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// TestNextExtreme calls Next with times that no calendar has.
func TestNextExtreme(t *testing.T) {
	t.Parallel()
	e, err := Parse("0 0 1 1 *")
	if err != nil {
		t.Fatal(err)
	}
	first := time.Date(2, 1, 1, 0, 0, 0, 0, time.UTC) // the zero Time is not after the zero Time
	for _, tt := range []struct {
		after, want time.Time
	}{
		{time.Unix(1<<63-1, 999999999), time.Time{}},
		{time.Unix(1<<62, 0), time.Time{}},
		{time.Unix(-1<<63, 0), first},
		{time.Unix(-1<<62, 0), first},
		{time.Time{}, first},
	} {
		if got := e.Next(tt.after, nil); got != tt.want {
			t.Errorf("Next(%v) = %v, want %v", tt.after.Unix(), got, tt.want)
		}
	}
	if got := (Expr{}).Next(first, time.UTC); !got.IsZero() {
		t.Errorf("Next of the zero Expr = %v", got)
	}
}

// TestNextLocal checks the location of the result.
func TestNextLocal(t *testing.T) {
	t.Parallel()
	e, err := Parse("30 9 * * *")
	if err != nil {
		t.Fatal(err)
	}
	after := time.Date(2026, 6, 1, 9, 30, 0, 0, time.Local)
	got := e.Next(after.UTC(), time.Local)
	if want := time.Date(2026, 6, 2, 9, 30, 0, 0, time.Local); got != want {
		t.Errorf("Next = %v, want %v", got, want)
	}
}

// TestNextQuick searches for times that do not exist and others that are hard to
// find.
func TestNextRare(t *testing.T) {
	t.Parallel()
	after := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, tt := range []struct{ text, zone, want string }{
		{"0 0 30 2 *", "Europe/Berlin", "none"},
		{"*/5 * 31 2,4,6,9,11 *", "Europe/Berlin", "none"},
		{"0 0 0 1,15 * +TUE#2 1-9999", "Europe/Berlin", "none"},
		{"* * * 30 2 * 1-9999", "Africa/Casablanca", "none"},
		{"0,30 2 8-14 3 +SUN", "America/New_York", "none"}, // skipped in each year
		{"0 0,30 2 8-14 3 +SUN 2024-9999", "America/New_York", "none"},
		{"0 0,30 2 * 3 +SUN#2 2024-9999", "America/New_York", "none"},
		{"30 23 24-30 3 +SAT", "America/Nuuk", "none"},
		{"0 30 23 24-30 3 +SAT 2024-9998,9999", "America/Nuuk", "none"},
		{"* 0,30 2 14 3 * 2021,2027,2100-9999", "America/New_York", "2101-03-14 02:00:00"}, // Sundays before
		{"* 0 2 14 3 +SUN", "America/New_York", "none"},
		{"0 0 0 29 2 +MON 9000-9999", "Europe/Berlin", "9008-02-29 00:00:00"},
		{"0 0 0 31 12 +FRI 9990-9999", "Australia/Lord_Howe", "9993-12-31 00:00:00"},
	} {
		e, err := Parse(tt.text)
		if err != nil {
			t.Error(err)
			continue
		}
		loc := zone(t, tt.zone)
		got := times(e, after.In(loc), 1)[0]
		if got != tt.want {
			t.Errorf("%s: %s, want %s", tt.text, got, tt.want)
		}
	}
}

func TestNextAllocs(t *testing.T) {
	loc := zone(t, "America/New_York")
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, text := range []string{"*/5 * * * *", "0 9 * * MON-FRI", "0 0 0 L,15W * +MON#2 2024-2999"} {
		e, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(100, func() { at = e.Next(at, loc) }); n != 0 {
			t.Errorf("%s: %v allocations", text, n)
		}
	}
}
