//go:build conformance

package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/kit/cronexpr"
)

// cronWindow asks for the first times after an instant, up to the first at or
// after another one. All times are in seconds.
type cronWindow struct {
	After int64 `json:"after"`
	Until int64 `json:"until"`
	Count int   `json:"count"`
}

type cronRequest struct {
	Zone     string       `json:"zone"`
	Texts    []string     `json:"texts"`
	Windows  []cronWindow `json:"windows"`
	Instants []int64      `json:"instants"`
}

type cronAnswer struct {
	Times   [][][]int64 `json:"times"` // by text, nil if it is invalid, and window
	Offsets []int64     `json:"offsets"`
}

// croner returns what croner computes.
func croner(t *testing.T, r cronRequest) cronAnswer {
	t.Helper()
	in, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	modules := packages(t, kit{name: "croner", Needs: map[string]string{"croner": "11.0.1"}})
	cmd := exec.CommandContext(t.Context(), node(t), "testdata/croner.mjs", modules)
	var errs bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("croner: %v\n%s", err, errs.String())
	}
	var a cronAnswer
	if err := json.Unmarshal(out, &a); err != nil {
		t.Fatal(err)
	}
	return a
}

// cronTimes returns what we compute for a window.
func cronTimes(e cronexpr.Expr, loc *time.Location, w cronWindow) []int64 {
	at, times := time.Unix(w.After, 0), []int64{}
	for len(times) < w.Count && at.Unix() < w.Until {
		if at = e.Next(at, loc); at.IsZero() {
			break
		}
		times = append(times, at.Unix())
	}
	return times
}

func cronTexts() []string {
	return []string{
		"* * * * *", "*/5 * * * *", "*/7 * * * *", "0 * * * *", "15,45 * * * *", "30 */2 * * *",
		"0 0-5 * * *", "30 1,2,3 * * *",
		"0 0 * * *", "30 0 * * *", "0 1 * * *", "30 1 * * *", "59 1 * * *", "0 2 * * *", "15 2 * * *",
		"30 2 * * *", "0 3 * * *",
		"30 23 * * *", "45 23 * * *", "0 9 * * MON-FRI", "30 2 * * SUN", "0 12 * * 7", "0 9 1 * *", "0 9 L * *",
		"0 9 LW * *", "0 9 15W * *",
		"30 2 * 3,4,9,10,11 SUN#1", "30 1 * * SUN#L", "0 0 * * SAT#L", "0 9 13 * FRI", "0 9 13 * +FRI",
		"0 9 */3 * */2", "0 9 * * FRI#2,MONL",
		"*/20 30 2 * * *", "0,30 0 0,1,2,3,23 * * *", "15 30 2 * * *", "45 59 23 31 12 *", "0 0 12 29 2 *",
		"0 30 2 */2 MAR-NOV/2 SAT,SUN 2024-2029/2",
		"0 0 0 1 1 * 2027", "0 0 29 2 +MON", "0 0 30 2 *", "0 0 31 * *", "@weekly", "30 0-23/3 ? * ?",
	}
}

// cronZones are zones with clock changes of all kinds: by half an hour or two
// hours, at midnight and in the evening, in both hemispheres, with other rules
// each year, and of zones that have given them up.
func cronZones() []string {
	return []string{
		"UTC", "America/New_York", "Europe/Berlin", "Europe/London", "Europe/Dublin", "Australia/Lord_Howe",
		"Australia/Sydney", "Pacific/Apia",
		"Pacific/Chatham", "Pacific/Norfolk", "Africa/Casablanca", "Africa/Cairo", "Antarctica/Troll",
		"America/Havana", "America/Santiago",
		"America/St_Johns", "America/Nuuk", "America/Scoresbysund", "Atlantic/Azores", "Asia/Beirut", "Asia/Gaza",
		"Asia/Jerusalem", "Asia/Kolkata",
		"Asia/Kathmandu", "Asia/Almaty", "Asia/Tokyo",
	}
}

// TestCronTimes compares the times of expressions from 2024 to 2030.
func TestCronTimes(t *testing.T) {
	t.Parallel()
	var compared atomic.Int32
	t.Run("zones", func(t *testing.T) {
		for _, zone := range cronZones() {
			t.Run(zone, func(t *testing.T) {
				t.Parallel()
				if compareZone(t, zone, cronTexts(), time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC),
					time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC)) {
					compared.Add(1)
				}
			})
		}
	})
	if n := compared.Load(); n < 20 {
		t.Errorf("%d zones were compared, want 20", n)
	}
}

// TestCronPast compares the times around changes that no zone repeats.
func TestCronPast(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ zone, day string }{
		{"Pacific/Apia", "2011-12-30"},      // skipped
		{"Pacific/Fakaofo", "2011-12-30"},   // skipped
		{"America/Caracas", "2016-05-01"},   // half an hour
		{"Asia/Pyongyang", "2018-05-05"},    // half an hour before midnight
		{"Antarctica/Casey", "2018-03-11"},  // three hours back
		{"Europe/Volgograd", "2020-12-27"},  // back, once
		{"America/Sao_Paulo", "2018-11-04"}, // midnight is skipped
		{"America/Asuncion", "2024-10-06"},  // midnight is skipped, for the last time
		{"Asia/Tehran", "2022-09-21"},       // midnight is repeated, for the last time
		{"Africa/Juba", "2021-02-01"},       // midnight is repeated
	} {
		t.Run(tt.zone, func(t *testing.T) {
			t.Parallel()
			day, err := time.Parse(time.DateOnly, tt.day)
			if err != nil {
				t.Fatal(err)
			}
			texts := append(cronTexts(), "0 9 30 12 *", "*/30 * 30 12 *", "30 23 4 5 *", "15 0 5 5 *")
			compareZone(t, tt.zone, texts, day.AddDate(0, 0, -3), day.AddDate(0, 0, 4))
		})
	}
}

// compareZone compares the times of the texts in a zone around its clock changes
// between two instants, at the start of each year, and the first times. It reports
// whether node's clock for the zone is the same in all this time.
func compareZone(t *testing.T, zone string, texts []string, from, to time.Time) bool {
	loc, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	r := cronRequest{Zone: zone, Texts: texts, Windows: []cronWindow{{from.Unix(), cronLimit(), 370}}}
	for at := from; at.Before(to); at = at.AddDate(1, 0, 0) {
		r.Windows = append(r.Windows, cronWindow{at.AddDate(0, 0, -1).Unix(), at.AddDate(0, 0, 20).Unix(), 30})
	}
	for at := from; at.Before(to.AddDate(1, 0, 0)); at = at.Add(12 * time.Hour) {
		r.Instants = append(r.Instants, at.Unix())
	}
	for _, change := range changes(loc, from, to) {
		r.Instants = append(r.Instants, change-1, change)
		const hour = 3600
		r.Windows = append(r.Windows, cronWindow{change - 60*hour, change + 60*hour, 20},
			cronWindow{change - 2*hour, change + 24*hour, 300})
		for at := change - 3*hour; at <= change+3*hour; at += hour / 2 {
			r.Windows = append(r.Windows, cronWindow{at - 1, cronLimit(), 1}, cronWindow{at + hour/4, cronLimit(), 1})
		}
	}
	a := croner(t, r)
	until := cronLimit()
	for i, at := range r.Instants {
		if _, offset := time.Unix(at, 0).In(loc).Zone(); int64(offset) != a.Offsets[i] {
			until = min(until, at-12*3600)
		}
	}
	for i, text := range texts {
		e, err := cronexpr.Parse(text)
		if err != nil || a.Times[i] == nil {
			t.Errorf("%s: Parse: %v, croner's times %v", text, err, a.Times[i])
			continue
		}
		for j, w := range r.Windows {
			if got, want := before(cronTimes(e, loc, w), until), before(a.Times[i][j], until); !slices.Equal(got, want) {
				t.Errorf("%s after %s: %s", text, time.Unix(w.After, 0).In(loc), difference(got, want, loc))
				break
			}
		}
	}
	if until == cronLimit() {
		return true
	}
	t.Logf("not compared from %v, when node's clock is different", time.Unix(until, 0).UTC())
	return false
}

// cronLimit is where croner gives up: it finds no time from the year 3000, unless
// the expression has a field for the year. We find times up to the year 9999 for
// all expressions.
func cronLimit() int64 { return time.Date(2999, 12, 30, 0, 0, 0, 0, time.UTC).Unix() }

// before returns the times before a limit.
func before(times []int64, limit int64) []int64 {
	if i := slices.IndexFunc(times, func(at int64) bool { return at >= limit }); i >= 0 {
		return times[:i]
	}
	return times
}

// changes returns the instants at which the offset of a zone changes.
func changes(loc *time.Location, from, to time.Time) []int64 {
	var found []int64
	offset := func(sec int64) int {
		_, n := time.Unix(sec, 0).In(loc).Zone()
		return n
	}
	const step = 900
	for at := from.Unix(); at < to.Unix(); at += step {
		if offset(at) != offset(at+step) {
			found = append(found, at+step)
		}
	}
	return found
}

// difference describes the first difference of two lists of times.
func difference(got, want []int64, loc *time.Location) string {
	show := func(times []int64, i int) string {
		if i >= len(times) {
			return "nothing"
		}
		return time.Unix(times[i], 0).In(loc).String()
	}
	i := 0
	for i < len(got) && i < len(want) && got[i] == want[i] {
		i++
	}
	return fmt.Sprintf("time %d is %s, croner's %s", i, show(got, i), show(want, i))
}

// TestCronTexts compares which texts are expressions, and their first times.
func TestCronTexts(t *testing.T) {
	t.Parallel()
	texts := randomCronTexts(40_000)
	r := cronRequest{Zone: "UTC", Texts: texts,
		Windows: []cronWindow{{time.Date(2026, 1, 30, 12, 0, 0, 0, time.UTC).Unix(), cronLimit(), 6}}}
	a := croner(t, r)
	valid, bad := 0, 0
	for i, text := range texts {
		e, err := cronexpr.Parse(text)
		if err == nil {
			valid++
		}
		switch {
		case (err != nil) != (a.Times[i] == nil):
			t.Errorf("Parse(%q) = %v; croner accepts it: %v", text, err, a.Times[i] != nil)
			bad++
		case err == nil:
			if got, want := cronTimes(e, time.UTC, r.Windows[0]), a.Times[i][0]; !slices.Equal(got, want) {
				t.Errorf("%q: %s", text, difference(got, want, time.UTC))
				bad++
			}
		}
		if bad > 20 {
			t.FailNow()
		}
	}
	if valid < len(texts)/10 {
		t.Errorf("only %d of %d texts are expressions", valid, len(texts))
	}
	t.Logf("%d of %d texts are expressions", valid, len(texts))
}

// randomCronTexts returns texts of which many are expressions and many nearly
// are.
func randomCronTexts(n int) []string {
	rnd := rand.New(rand.NewPCG(1, 2))
	pick := func(from ...string) string { return from[rnd.IntN(len(from))] }
	value := func() string {
		return pick("0", "1", "2", "3", "5", "7", "09", "12", "23", "24", "28", "31", "59", "60", "2026", "2027", "9999",
			"10000", "mon", "TUE", "sun", "Sat", "jan", "FEB", "jul", "Dec", "*", "?", "L", "x", "")
	}
	item := func() string {
		switch rnd.IntN(12) {
		case 0, 1:
			return pick("*", "?")
		case 2, 3:
			return pick("*/", "?/", "*/", "/", value()+"/") +
				pick("1", "2", "3", "5", "7", "8", "24", "31", "32", "60", "61", "0", value())
		case 4, 5:
			return value() + "-" + value()
		case 6:
			return value() + "-" + value() + "/" + pick("1", "2", "3", "7", "0", value())
		case 7:
			return pick(value(), value()+"-"+value(), "*/2") +
				pick("L", "l", "#1", "#2", "#5", "#L", "#0", "#6", "#02", "#", "#2L", "L#2")
		case 8:
			return pick("L", "LW", "lw", value()+"W", "15w", "31W", "W", "1-5W", "L-3", "*W", "*L")
		}
		return value()
	}
	texts := make([]string, 0, n)
	for range n {
		fields := []string{"0", "0", "12", "*", "*", "*", "*"}
		for i := range fields {
			if rnd.IntN(3) > 0 {
				continue
			}
			fields[i] = item()
			for rnd.IntN(3) == 0 {
				fields[i] += "," + item()
			}
			if rnd.IntN(10) == 0 {
				fields[i] = pick("+", "-", "*", "#", "/", ",") + fields[i]
			}
		}
		fields = [][]string{fields, fields[:6], fields[1:6], fields[1:6], fields[1:], fields[2:6]}[rnd.IntN(6)]
		texts = append(texts, pick("", " ", "\t")+strings.Join(fields, pick(" ", "  ", "\t")))
	}
	return append(texts, "@hourly", "@HOURLY", " @daily ", "@midnight", "@weekly", "@monthly", "@yearly", "@annually",
		"@reboot", "@every 5m", "@", "@daily 0 0 * * *", "", " ", "every day at nine", "1 2 3 4 5 6 7 8")
}
