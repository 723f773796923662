package usage

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/llm"
)

func TestDays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ zone, at, day, start, next string }{
		{"UTC", "2026-11-26T23:59:59Z", "2026-11-26", "2026-11-26T00:00:00Z", "2026-11-27T00:00:00Z"},
		{"Europe/Berlin", "2026-11-26T23:30:00Z", "2026-11-27", "2026-11-27T00:00:00+01:00", "2026-11-28T00:00:00+01:00"},
		{"America/New_York", "2026-11-27T04:30:00Z", "2026-11-26", "2026-11-26T00:00:00-05:00", "2026-11-27T00:00:00-05:00"},
		// 23 hours
		{"Europe/Berlin", "2026-03-29T12:00:00Z", "2026-03-29", "2026-03-29T00:00:00+01:00", "2026-03-30T00:00:00+02:00"},
		// 25 hours
		{"Europe/Berlin", "2026-10-25T12:00:00Z", "2026-10-25", "2026-10-25T00:00:00+02:00", "2026-10-26T00:00:00+01:00"},
		// the clock is put forward at midnight
		{"Africa/Cairo", "2026-04-23T12:00:00Z", "2026-04-23", "2026-04-23T00:00:00+02:00", "2026-04-24T01:00:00+03:00"},
		{"Africa/Cairo", "2026-04-24T12:00:00Z", "2026-04-24", "2026-04-24T01:00:00+03:00", "2026-04-25T00:00:00+03:00"},
	} {
		zone, err := time.LoadLocation(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		at, err := time.Parse(time.RFC3339, c.at)
		if err != nil {
			t.Fatal(err)
		}
		now := Limits{Zone: zone}.In(at)
		got := []string{DayScope(now), DayStart(now).Format(time.RFC3339), NextDay(now).Format(time.RFC3339)}
		if diff := cmp.Diff([]string{"day:" + c.day, c.start, c.next}, got); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", c.zone, c.at, diff)
		}
	}
}

// settings is a table of settings in memory.
type settings map[string]string

func (s settings) Setting(name string) (string, error) { return s[name], nil }

func (s settings) SetSetting(name, value string) error {
	s[name] = value
	return nil
}

func TestToday(t *testing.T) {
	t.Parallel()
	s := settings{}
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	l := Limits{Day: 5, Task: 3}
	if err := l.SetLimit(s, "", 9, now); err != nil {
		t.Fatal(err)
	}
	if err := l.SetLimit(s, "main", 9, now); err == nil {
		t.Error("the limit of an agent without a budget was set")
	}
	today, err := ReadToday(s, now)
	if err != nil || !today.Tell("a") || today.Tell("a") {
		t.Errorf("%+v, %v", today, err)
	}
	if err := today.Write(s); err != nil {
		t.Fatal(err)
	}
	for at, want := range map[time.Time]struct {
		limit int64
		told  bool
	}{now.Add(time.Hour): {9, true}, now.Add(12 * time.Hour): {5, false}} {
		today, err := ReadToday(s, at)
		got := l.Scopes("main", "r", "root", today, at)
		if err != nil || len(got) != 2 || got[0].Limit != want.limit || got[1].Limit != 3 || today.Tell("a") == want.told {
			t.Errorf("%s: %+v, %v", at, got, err)
		}
	}
	for i := range 2 * maxTold {
		today.Tell(time.Duration(i).String())
	}
	if len(today.Told) != maxTold {
		t.Errorf("%d notes", len(today.Told))
	}
	s[todayKey] = "{"
	if _, err := ReadToday(s, now); err == nil {
		t.Error("a broken setting was read")
	}
}

func TestQuote(t *testing.T) {
	t.Parallel()
	dear, cheap := llm.Price{Input: 10, Output: 50, CacheWrite: 12}, llm.Price{Input: 20, Output: 1}
	for _, c := range []struct {
		name   string
		q      Quote
		full   int64 // of the longest answer
		left   int64
		output int64
		ok     bool
	}{
		{"fits", Quote{Prices: []llm.Price{dear}, Prompt: 1000, Output: 2000}, 112e6, 112e6, 2000, true},
		{"is lowered", Quote{Prices: []llm.Price{dear}, Prompt: 1000, Output: 2000}, 112e6, 100e6, 1760, true},
		{"is not lowered below the floor", Quote{Prices: []llm.Price{dear}, Prompt: 1000, Output: 2000},
			112e6, 50e6, 760, false},
		{"a short answer needs no floor", Quote{Prices: []llm.Price{dear}, Prompt: 1000, Output: 500}, 37e6, 37e6, 500, true},
		{"must not be lowered", Quote{Prices: []llm.Price{dear}, Prompt: 1000, Output: 2000, Floor: 2000},
			112e6, 111e6, 1980, false},
		{"the prompt alone is too much", Quote{Prices: []llm.Price{dear}, Prompt: 1000, Output: 2000}, 112e6, 11e6, 0, false},
		{"the highest price counts", Quote{Prices: []llm.Price{dear, cheap}, Prompt: 10_000, Output: 100}, 200_100_000,
			200_100_000, 100, true},
		{"free", Quote{Prices: []llm.Price{{}}, Prompt: 10_000, Output: 100}, 0, 0, 100, true},
		{"no price", Quote{Prompt: 10_000, Output: 100}, 0, 0, 100, true},
	} {
		output, ok := c.q.Fit(c.left)
		if full := c.q.Nano(c.q.Output); full != c.full || ok != c.ok || output != c.output {
			t.Errorf("%s: full %d, want %d; output %d %v, want %d %v", c.name, full, c.full, output, ok, c.output, c.ok)
		}
	}
}

// FuzzQuote checks that what fits costs no more than what is left.
func FuzzQuote(f *testing.F) {
	f.Add(3.0, 15.0, 3.75, int64(1000), int64(8192), int64(20_000_000))
	f.Fuzz(func(t *testing.T, in, out, write float64, prompt, output, left int64) {
		for _, p := range []float64{in, out, write} {
			if !(p >= 0 && p < 1000) {
				return
			}
		}
		if prompt < 0 || prompt > 1e8 || output < 1 || output > 1e7 || left < 0 || left > 1e15 {
			return
		}
		q := Quote{Prices: []llm.Price{{Input: in, Output: out, CacheWrite: write}}, Prompt: prompt, Output: output}
		got, ok := q.Fit(left)
		if ok && (q.Nano(got) > left || got > output || got < min(MinOutput, output)) {
			t.Errorf("%d tokens of %d cost %d of %d", got, output, q.Nano(got), left)
		}
	})
}

func TestReceipt(t *testing.T) {
	t.Parallel()
	sums := []Sum{
		{Run: "r", Session: "s", Provider: "p", Model: "a", Calls: 1, NanoUSD: 1},
		{Run: "r", Session: "s", Provider: "p", Model: "b", Calls: 1, NanoUSD: 5},
		{Run: "c", Session: "t", Provider: "p", Model: "a", Calls: 2, NanoUSD: 2},
	}
	want := Receipt{
		Root: "r", Total: Sum{Calls: 4, NanoUSD: 8},
		Models: []Sum{{Provider: "p", Model: "b", Calls: 1, NanoUSD: 5}, {Provider: "p", Model: "a", Calls: 3, NanoUSD: 3}},
		Runs:   []Sum{{Run: "r", Session: "s", Calls: 2, NanoUSD: 6}, {Run: "c", Session: "t", Calls: 2, NanoUSD: 2}},
	}
	if diff := cmp.Diff(want, NewReceipt("r", sums)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
