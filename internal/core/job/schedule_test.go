package job_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/job"
)

func at(s string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		panic(err)
	}
	return t
}

func millis(n int64) *job.Millis {
	m := job.Millis(n)
	return &m
}

func cronJob(expr, tz string) job.Job {
	return job.Job{ID: "j", Schedule: job.Schedule{Kind: job.KindCron, Expr: expr, TZ: tz, StaggerMs: millis(0)}}
}

// slots returns the first n slots after a time, as times of a zone.
func slots(t *testing.T, j job.Job, after time.Time, n int, zone string) (out []string) {
	t.Helper()
	loc, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		next, err := j.Slot(after)
		if err != nil {
			t.Fatal(err)
		}
		if next.IsZero() {
			break
		}
		if !next.After(after) {
			t.Fatalf("slot %v is not after %v", next, after)
		}
		out, after = append(out, next.In(loc).Format("01-02 15:04:05")), next
	}
	return out
}

func TestSlot(t *testing.T) {
	t.Parallel()
	every := func(d time.Duration, anchor string) job.Job {
		return job.Job{Schedule: job.Schedule{Kind: job.KindEvery, EveryMs: d.Milliseconds(), AnchorMs: job.At(at(anchor))}}
	}
	in := func(j job.Job, zone string) job.Job {
		j.Schedule.TZ = zone
		return j
	}
	for _, tt := range []struct {
		name  string
		job   job.Job
		after string
		zone  string
		want  []string
	}{
		{"at", job.Job{Schedule: job.Schedule{Kind: job.KindAt, At: "2026-03-01T09:00:00+01:00"}}, "2026-03-01T07:00:00Z",
			"UTC", []string{"03-01 08:00:00"}},
		{"at, over", job.Job{Schedule: job.Schedule{Kind: job.KindAt, At: "2026-03-01T08:00:00Z"}},
			"2026-03-01T08:00:00Z", "UTC", nil},
		{"CR-02 an interval stays on its grid after a late start", every(5*time.Minute, "2026-03-01T00:00:00Z"),
			"2026-03-01T00:06:30Z", "UTC", []string{"03-01 00:10:00", "03-01 00:15:00"}},
		{"an interval before its anchor", every(time.Hour, "2026-03-01T12:00:00Z"), "2026-03-01T00:00:00Z", "UTC",
			[]string{"03-01 12:00:00", "03-01 13:00:00"}},
		{"an interval without an anchor before its creation", job.Job{Created: job.At(at("2026-03-01T12:20:00Z")),
			Schedule: job.Schedule{Kind: job.KindEvery, EveryMs: 3_600_000}}, "2026-03-01T08:00:00Z", "UTC",
			[]string{"03-01 08:20:00", "03-01 09:20:00"}},
		{"an interval at its anchor", every(time.Hour, "2026-03-01T12:00:00Z"), "2026-03-01T12:00:00Z", "UTC",
			[]string{"03-01 13:00:00"}},
		{"weeks in a zone over a change to summer time", in(every(14*24*time.Hour, "2026-03-16T08:00:00Z"), "Europe/Berlin"),
			"2026-03-16T07:00:00Z", "Europe/Berlin", []string{"03-16 09:00:00", "03-30 09:00:00", "04-13 09:00:00"}},
		{"days in a zone over a change to winter time", in(every(2*24*time.Hour, "2026-10-22T07:00:00Z"), "Europe/Berlin"),
			"2026-10-24T07:00:00Z", "Europe/Berlin", []string{"10-26 09:00:00", "10-28 09:00:00"}},
		{"days without a zone are equal", every(2*24*time.Hour, "2026-10-22T07:00:00Z"), "2026-10-24T07:00:00Z",
			"Europe/Berlin", []string{"10-26 08:00:00", "10-28 08:00:00"}},
		{"days in a zone before their creation",
			in(job.Job{Created: job.At(at("2026-03-31T07:00:00Z")), Schedule: job.Schedule{Kind: job.KindEvery,
				EveryMs: 172_800_000}}, "Europe/Berlin"), "2026-03-25T12:00:00Z", "Europe/Berlin",
			[]string{"03-27 09:00:00", "03-29 09:00:00", "03-31 09:00:00"}},
		{"hours have no zone", in(every(36*time.Hour, "2026-10-24T07:00:00Z"), "Europe/Berlin"), "2026-10-24T07:00:00Z",
			"Europe/Berlin", []string{"10-25 20:00:00", "10-27 08:00:00"}},
		{"CR-03 local time over a change to summer time", cronJob("0 9 * * MON", "Europe/Berlin"), "2026-03-22T00:00:00Z",
			"Europe/Berlin", []string{"03-23 09:00:00", "03-30 09:00:00"}},
		{"CR-03 local time over a change to winter time", cronJob("0 9 * * MON", "Europe/Berlin"), "2026-10-18T00:00:00Z",
			"Europe/Berlin", []string{"10-19 09:00:00", "10-26 09:00:00"}},
		{"CR-04 either day", cronJob("0 9 15 * 1", "UTC"), "2026-06-07T12:00:00Z", "UTC",
			[]string{"06-08 09:00:00", "06-15 09:00:00", "06-22 09:00:00", "06-29 09:00:00", "07-06 09:00:00",
				"07-13 09:00:00", "07-15 09:00:00"}},
		{"CR-06 a slot that ran a little early is over", cronJob("0 12 * * *", "UTC"), "2026-06-07T12:00:00.003Z", "UTC",
			[]string{"06-08 12:00:00"}},
		{"seconds", cronJob("*/20 * * * * *", "UTC"), "2026-06-07T12:00:00.5Z", "UTC",
			[]string{"06-07 12:00:20", "06-07 12:00:40", "06-07 12:01:00"}},
		{"a leap day", cronJob("0 0 29 2 *", "UTC"), "2026-06-07T00:00:00Z", "UTC", []string{"02-29 00:00:00"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := slots(t, tt.job, at(tt.after), max(len(tt.want), 1), tt.zone)
			if fmt.Sprint(got) != fmt.Sprint(tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
	t.Run("CR-30 every Wednesday of a year and at no other instant", func(t *testing.T) {
		j, n := cronJob("30 14 * * 3", "America/New_York"), 0
		loc, _ := time.LoadLocation("America/New_York")
		for next := time.Date(2026, 1, 1, 0, 0, 0, 0, loc); ; n++ {
			var err error
			if next, err = j.Slot(next); err != nil {
				t.Fatal(err)
			}
			if l := next.In(loc); l.Year() > 2026 {
				break
			} else if l.Weekday() != time.Wednesday || l.Format("15:04:05") != "14:30:00" {
				t.Errorf("slot at %v", l)
			}
		}
		if n != 52 {
			t.Errorf("%d slots, want 52", n)
		}
	})
}

func TestStagger(t *testing.T) {
	t.Parallel()
	hour := at("2026-03-01T08:30:00Z")
	seen := map[time.Duration]bool{}
	for i := range 12 {
		j := cronJob("0 * * * *", "UTC")
		j.ID, j.Schedule.StaggerMs = job.ID(fmt.Sprint("job-", i)), nil
		first, err := j.Slot(hour)
		if err != nil {
			t.Fatal(err)
		}
		again, _ := j.Slot(hour)
		second, _ := j.Slot(first)
		offset := first.Sub(at("2026-03-01T09:00:00Z"))
		if offset < 0 || offset >= 5*time.Minute || !first.Equal(again) || second.Sub(first) != time.Hour {
			t.Errorf("CR-29 slots %v, %v, %v", first, again, second)
		}
		seen[offset] = true
		j.Schedule.StaggerMs = millis(0)
		if exact, _ := j.Slot(hour); !exact.Equal(at("2026-03-01T09:00:00Z")) {
			t.Errorf("CR-29 exact: %v", exact)
		}
		j.Schedule.StaggerMs = millis(30_000)
		if near, _ := j.Slot(hour); near.Sub(at("2026-03-01T09:00:00Z")) >= 30*time.Second {
			t.Errorf("CR-29 within 30 s: %v", near)
		}
		j.Schedule.StaggerMs, j.Schedule.Expr = nil, "0 9 * * *"
		if daily, _ := j.Slot(hour); daily.Sub(at("2026-03-01T09:00:00Z")) != 0 {
			t.Errorf("a job of one hour is spread: %v", daily)
		}
	}
	if len(seen) < 8 {
		t.Errorf("CR-29 12 jobs have only %d different offsets", len(seen))
	}
}

func TestMissed(t *testing.T) {
	t.Parallel()
	j := job.Job{Schedule: job.Schedule{Kind: job.KindEvery, EveryMs: time.Hour.Milliseconds(),
		AnchorMs: job.At(at("2026-03-01T00:00:00Z"))}}
	for _, tt := range []struct {
		first, now string
		limit      int
		want       string
	}{
		{"2026-03-01T01:00:00Z", "2026-03-01T00:59:59Z", 9, "[] 0"},
		{"2026-03-01T01:00:00Z", "2026-03-01T01:00:00Z", 9, "[01:00] 1"},
		{"2026-03-01T01:00:00Z", "2026-03-01T03:30:00Z", 1, "[03:00] 3"},
		{"2026-03-01T01:00:00Z", "2026-03-01T05:30:00Z", 2, "[04:00 05:00] 5"},
	} {
		list, n, err := j.Missed(at(tt.first), at(tt.now), tt.limit)
		var got []string
		for _, s := range list {
			got = append(got, s.UTC().Format("15:04"))
		}
		if s := fmt.Sprint(got, " ", n); s != tt.want || err != nil {
			t.Errorf("%+v: %s, %v", tt, s, err)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	good := func() job.Job {
		j := job.Job{Schedule: job.Schedule{Kind: job.KindEvery, EveryMs: 60_000},
			Payload: job.Payload{Kind: job.AgentTurn, Message: "Report"}}
		j.Complete()
		return j
	}
	if j := good(); j.Check() != nil || j.Name != "Report" || j.Target != job.TargetIsolated || j.Wake != job.WakeNow ||
		j.Delivery.Mode != job.Announce {
		t.Errorf("%+v: %v", j, j.Check())
	}
	timeout := -1.0
	for _, tt := range []struct {
		name   string
		change func(*job.Job)
		want   []string
	}{
		{"CR-05 a bad expression", func(j *job.Job) { j.Schedule = job.Schedule{Kind: job.KindCron, Expr: "61 * * * *"} },
			[]string{"schedule.expr", "minute", "61", "0 9 * * MON-FRI"}},
		{"CR-31 four fields", func(j *job.Job) { j.Schedule = job.Schedule{Kind: job.KindCron, Expr: "0 9 * *"} },
			[]string{"schedule.expr"}},
		{"CR-31 eight fields", func(j *job.Job) { j.Schedule = job.Schedule{Kind: job.KindCron, Expr: "0 0 9 * * * * *"} },
			[]string{"schedule.expr"}},
		{"CR-31 words", func(j *job.Job) { j.Schedule = job.Schedule{Kind: job.KindCron, Expr: "every day at nine"} },
			[]string{"schedule.expr"}},
		{"an unknown zone", func(j *job.Job) {
			j.Schedule = job.Schedule{Kind: job.KindCron, Expr: "0 9 * * *", TZ: "Mars/Base"}
		}, []string{"schedule.tz", "Mars/Base", "Europe/Berlin"}},
		{"no interval", func(j *job.Job) { j.Schedule.EveryMs = 0 }, []string{"schedule.everyMs"}},
		{"an interval below a second", func(j *job.Job) { j.Schedule.EveryMs = 999 }, []string{"schedule.everyMs", "1000"}},
		{"a time that is none", func(j *job.Job) { j.Schedule = job.Schedule{Kind: job.KindAt, At: "soon"} },
			[]string{"schedule.at", "soon"}},
		{"a year beyond 9999", func(j *job.Job) { j.Schedule = job.Schedule{Kind: job.KindAt, At: "+10000-01-01T00:00:00Z"} },
			[]string{"schedule.at"}},
		{"no schedule", func(j *job.Job) { j.Schedule = job.Schedule{} }, []string{"schedule is required"}},
		{"an unsupported schedule", func(j *job.Job) { j.Schedule.Kind = "stream" }, []string{"stream", "not supported"}},
		{"CR-36 main with a turn", func(j *job.Job) { j.Target = job.TargetMain },
			[]string{`sessionTarget "main"`, "systemEvent", "isolated"}},
		{"CR-36 isolated with an event", func(j *job.Job) { j.Payload = job.Payload{Kind: job.SystemEvent, Text: "x"} },
			[]string{"agentTurn", "main"}},
		{"an empty message", func(j *job.Job) { j.Payload.Message = " \n" }, []string{"payload.message"}},
		{"a long message", func(j *job.Job) { j.Payload.Message = strings.Repeat("x", 65<<10) }, []string{"65 KB"}},
		{"a negative limit", func(j *job.Job) { j.Payload.TimeoutSeconds = &timeout }, []string{"timeoutSeconds", "-1"}},
		{"no current session", func(j *job.Job) { j.Target = job.TargetCurrent }, []string{"sessionKey"}},
		{"an unknown target", func(j *job.Job) { j.Target = "session:" }, []string{"sessionTarget"}},
		{"a webhook without URL", func(j *job.Job) { j.Delivery = &job.Delivery{Mode: job.Webhook, To: "example.com"} },
			[]string{"delivery.to", "https://"}},
		{"a URL with credentials",
			func(j *job.Job) { j.Delivery = &job.Delivery{Mode: job.Webhook, To: "https://a:b@example.com/"} },
			[]string{"credentials", "cron.webhookToken"}},
		{"a chat without channel", func(j *job.Job) { j.Delivery = &job.Delivery{Mode: job.Announce, To: "7"} },
			[]string{"delivery.channel"}},
		{"an unknown check", func(j *job.Job) { j.Trigger = &job.Trigger{Script: "eval x"} },
			[]string{"trigger.script", "file PATH"}},
		{"a check of nothing", func(j *job.Job) { j.Trigger = &job.Trigger{Script: "file"} }, []string{"trigger.script"}},
		{"an alert after no failure", func(j *job.Job) { j.FailureAlert = &job.Alert{After: -1} },
			[]string{"failureAlert.after"}},
		{"an unknown delivery", func(j *job.Job) { j.Delivery.Mode = "mail" },
			[]string{"delivery.mode", "announce, webhook or none"}},
		{"a long name", func(j *job.Job) { j.Name = strings.Repeat("é", 201) }, []string{"name", "200"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j := good()
			tt.change(&j)
			err := j.Check()
			if e := (*chela.Error)(nil); !errors.As(err, &e) || e.Code != chela.CodeInvalid {
				t.Fatalf("error %v", err)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not contain %q", err, want)
				}
			}
		})
	}
}
