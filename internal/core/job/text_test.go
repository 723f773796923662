package job

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestDueText(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 25, 8, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		job         Job
		found, want string
	}{
		{Job{ID: "7", Name: "water", Payload: Payload{Kind: SystemEvent, Text: "drink water"}}, "",
			"[cron:7 water] drink water"},
		{Job{ID: "7", Name: "a] b", Payload: Payload{Kind: SystemEvent, Text: "x"}}, "", `[cron:7 "a] b"] x`},
		{Job{ID: "a b", Name: "", Payload: Payload{Kind: SystemEvent, Text: "x"}}, "", `[cron:"a b" ""] x`},
		{Job{ID: "7", Name: "吃药", Payload: Payload{Kind: SystemEvent, Text: "吃药"}}, "", "[cron:7 吃药] 吃药"},
		{
			Job{ID: "7", Name: "n", Payload: Payload{Kind: AgentTurn, Message: "list the files"}}, "",
			"[cron:7 n] list the files\n\nCurrent time: Wednesday, 25 November 2026, 09:00:00 +01:00 (Europe/Berlin)",
		},
		{
			Job{ID: "7", Name: "n", Payload: Payload{Kind: SystemEvent, Text: "a\n[cron:8 m] b\n\nCurrent time: x"}}, "",
			"[cron:7 n] a\n\\[cron:8 m] b\n\n\\Current time: x",
		},
		{
			Job{ID: "7", Name: "n", Payload: Payload{Kind: AgentTurn, Message: "read it"}},
			"new\n\nCurrent time: then\n- [cron:8 m] b",
			"[cron:7 n] read it\n\nCurrent time: Wednesday, 25 November 2026, 09:00:00 +01:00 (Europe/Berlin)\n\n" +
				"What the check found:\nnew\n\n\\Current time: then\n- \\[cron:8 m] b",
		},
	} {
		got := tc.job.DueText(now, now, berlin, tc.found)
		if got != tc.want {
			t.Errorf("got  %q\nwant %q", got, tc.want)
		}
		checkDue(t, tc.job, "", tc.found, got)
	}
	for _, tc := range []struct {
		job  Job
		due  time.Time
		late string
		want string
	}{
		{reminder("a"), now.Add(-time.Minute), "", "[cron:7 n] a"},
		{reminder("a"), time.Time{}, "", "[cron:7 n] a"}, // it was started by hand
		{reminder("a"), now.Add(-20 * time.Hour), "2026-11-24 13:00",
			"[cron:7 n] a\n\nThis is late, it was due: 2026-11-24 13:00"},
		{
			reminder("a\n\nThis is late, it was due: never"), now.Add(-time.Hour), "2026-11-25 08:00",
			"[cron:7 n] a\n\n\\This is late, it was due: never\n\nThis is late, it was due: 2026-11-25 08:00",
		},
		{
			Job{ID: "7", Name: "n", Payload: Payload{Kind: AgentTurn, Message: "read it"}},
			now.Add(-time.Hour), "2026-11-25 08:00",
			"[cron:7 n] read it\n\nThis is late, it was due: 2026-11-25 08:00\n\nCurrent time: Wednesday, 25 November 2026, 09:00:00 +01:00 (Europe/Berlin)",
		},
	} {
		got := tc.job.DueText(tc.due, now, berlin, "")
		if got != tc.want {
			t.Errorf("got  %q\nwant %q", got, tc.want)
		}
		checkDue(t, tc.job, tc.late, "", got)
	}
	for _, s := range []string{"", "hello", "[cron:", "[cron:7", "[cron:7 n", `[cron:"7 n] x`,
		`[cron:7 "n] x`, " [cron:7 n] x"} {
		if d, ok := ParseDue(s); ok {
			t.Errorf("%q is read as %+v", s, d)
		}
	}
}

func reminder(text string) Job {
	return Job{ID: "7", Name: "n", Payload: Payload{Kind: SystemEvent, Text: text}}
}

// checkDue checks that the due text of a job is read back as it was, alone and in a
// list.
func checkDue(t *testing.T, j Job, late, found, text string) {
	t.Helper()
	want := Due{
		Job:   j.ID,
		Name:  j.Name,
		Text:  j.Payload.Content(),
		Turn:  j.Payload.Kind == AgentTurn,
		Late:  late,
		Found: found,
	}
	if got, ok := ParseDue(text); !ok || got != want {
		t.Errorf("%q is read as %+v, %v; want %+v", text, got, ok, want)
	}
	list := SplitDue("[System events]\n- the command x ended\n- " + text + "\n- " + text)
	if len(list) != 2 || list[0] != want || list[1] != want {
		t.Errorf("a list with %q is read as %+v, want it twice", text, list)
	}
}

func FuzzDueText(f *testing.F) {
	f.Add("7", "water", "drink water", false, "")
	f.Add("7", "a] b [cron:8 c] ", "[cron:7 n] x\n- [cron:7 n] y\n\\[cron:", true, "What the check found:\n")
	f.Add("a b", `"quoted" \`, "a\n\nCurrent time: now", false, "\n\nCurrent time: ")
	f.Add("\xff", "\n\x00\xff\u202e", "\nCurrent time: \n\nCurrent time: x\r\n", true, "\n- [cron:")
	f.Fuzz(func(t *testing.T, id, name, text string, turn bool, found string) {
		j := Job{ID: ID(id), Name: name, Payload: Payload{Kind: SystemEvent, Text: text}}
		if turn {
			j.Payload = Payload{Kind: AgentTurn, Message: text}
		}
		now := time.Date(2026, 11, 25, 8, 0, 0, 0, time.UTC)
		checkDue(t, j, "", found, j.DueText(now, now, time.UTC, found))
		due := j.DueText(now.Add(-time.Hour), now, time.UTC, found)
		checkDue(t, j, "2026-11-25 07:00", found, due)
		if head, _, _ := strings.Cut(due, "\n"); !strings.HasPrefix(head, "[cron:") {
			t.Errorf("the first line is %q", head)
		}
	})
}

func FuzzParseDue(f *testing.F) {
	f.Add("[cron:7 n] x")
	f.Add(`[cron:"7" "n"] x`)
	f.Fuzz(func(t *testing.T, s string) {
		d, ok := ParseDue(s)
		if !ok {
			return
		}
		j := Job{ID: d.Job, Name: d.Name, Payload: Payload{Kind: SystemEvent, Text: d.Text}}
		if d.Turn {
			j.Payload = Payload{Kind: AgentTurn, Message: d.Text}
		}
		checkDue(t, j, "", d.Found, j.DueText(time.Unix(0, 0), time.Unix(0, 0), time.UTC, d.Found))
	})
}

func TestResultText(t *testing.T) {
	t.Parallel()
	j := Job{Name: `a "b"`}
	for _, why := range []error{nil, errors.New("the chat is gone")} {
		note := ""
		if why != nil {
			note = "It was to be sent elsewhere, but the chat is gone."
		}
		text := j.ResultText(why, "one\n\ntwo")
		title, gotNote, answer, ok := ParseResult(text)
		if !ok || title != j.Name || gotNote != note || answer != "one\n\ntwo" {
			t.Errorf("%q is read as %q, %q, %q, %v", text, title, gotNote, answer, ok)
		}
	}
	for _, s := range []string{"", "The scheduled job ", `The scheduled job "a" failed`,
		`The scheduled job "a" has ended.`} {
		if _, _, _, ok := ParseResult(s); ok {
			t.Errorf("%q is read", s)
		}
	}
}

func TestLine(t *testing.T) {
	t.Parallel()
	next := time.Date(2026, 11, 26, 8, 0, 0, 0, time.FixedZone("", 3600))
	for _, tc := range []struct {
		job  Job
		next string
		want Listed
	}{
		{
			Job{ID: "7", Name: "call Ann", Schedule: Schedule{Kind: KindAt, At: "2026-11-26T08:00:00+01:00"}},
			next.Format(NextLayout),
			Listed{Schedule: Schedule{Kind: KindAt, At: "2026-11-26T08:00:00+01:00"}, Next: next},
		},
		{
			Job{ID: "7", Name: `a "b": c; next d`, Schedule: Schedule{Kind: KindEvery, EveryMs: 5_400_000, AnchorMs: 7}},
			Off + "; last error: x; next y",
			Listed{Schedule: Schedule{Kind: KindEvery, EveryMs: 5_400_000}, Off: true},
		},
		{
			Job{ID: "7", Name: "n", Schedule: Schedule{Kind: KindCron, Expr: "0 9 * * MON-FRI", TZ: "Europe/Berlin"}},
			"running now",
			Listed{Schedule: Schedule{Kind: KindCron, Expr: "0 9 * * MON-FRI", TZ: "Europe/Berlin"}},
		},
		{
			Job{ID: "7", Name: "n", Schedule: Schedule{Kind: KindCron, Expr: "0 0 9 * * 1"},
				Trigger: &Trigger{Script: "file a\n; next \"b\""}}, next.Format(NextLayout) + "; last ok",
			Listed{Schedule: Schedule{Kind: KindCron, Expr: "0 0 9 * * 1"},
				Trigger: &Trigger{Script: "file a\n; next \"b\""}, Next: next},
		},
	} {
		line := tc.job.Line(tc.next)
		tc.want.ID, tc.want.Title = tc.job.ID, tc.job.Name
		got, ok := ParseLine(line)
		if !ok || !got.Next.Equal(tc.want.Next) || (got.Trigger == nil) != (tc.want.Trigger == nil) ||
			got.Trigger != nil && *got.Trigger != *tc.want.Trigger {
			t.Errorf("%q is read as %+v, want %+v", line, got, tc.want)
		}
		got.Next, got.Trigger, tc.want.Next, tc.want.Trigger = time.Time{}, nil, time.Time{}, nil
		if got != tc.want {
			t.Errorf("%q is read as %+v, want %+v", line, got, tc.want)
		}
	}
	for _, s := range []string{"", "There are no jobs.", "and 7 more", `7 "n`, `7 "n" x`} {
		if got, ok := ParseLine(s); ok {
			t.Errorf("%q is read as %+v", s, got)
		}
	}
}

func FuzzParseLine(f *testing.F) {
	f.Add("7", "a", "file a", "every 1m", true)
	f.Fuzz(func(t *testing.T, id, name, script, next string, trigger bool) {
		ParseLine(script)
		j := Job{ID: ID(id), Name: name, Schedule: Schedule{Kind: KindEvery, EveryMs: 60_000}}
		if trigger {
			j.Trigger = &Trigger{Script: script}
		}
		if strings.Contains(id, ` "`) || !utf8.ValidString(name+script) {
			return
		}
		got, ok := ParseLine(j.Line(next))
		if !ok || got.ID != j.ID || got.Title != name || trigger && got.Trigger.Script != script {
			t.Errorf("%q is read as %+v", j.Line(next), got)
		}
	})
}
