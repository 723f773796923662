package offline

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/job"
	"github.com/chela-ai/chela/internal/core/llm"
)

// jobs are the jobs that are planned in the tests, as the tool cron lists them.
const jobs = `j1 "call Ann": at 2026-11-26T08:00:00Z; next Thu 26 Nov 2026 09:00:00 +01:00
j2 "drink water": every 2h; next Wed 25 Nov 2026 12:30:00 +01:00; last ok
j3 "stand-up meeting": 0 9 * * 1-5 Europe/Berlin; next Thu 26 Nov 2026 09:00:00 +01:00
j4 "notes.txt has changed": every 1m, only if this has changed: "file notes.txt"; next Wed 25 Nov 2026 10:31:00 +01:00
j5 "吃药": 0 8 * * * Asia/Tokyo; next running now
j6 "给妈妈打电话": 0 9 1 * *; next running now
j7 "交房租": */7 9 1 * *; next never: it is off
j8 "pay the rent": 0 9 3 3 *; next never: it is off; last error: x
j9 "water the plants": 0 18 * * 1,4; next Thu 26 Nov 2026 18:00:00 +01:00`

// scheduled returns what becomes of a request, in the form of testdata/schedule.tsv.
func scheduled(k *talk, reply string) string {
	if len(k.log) == 0 {
		for _, r := range [...]struct {
			text localized
			name string
		}{{pastTimeText, "past"}, {impossibleTimeText, "impossible"}, {unclearTimeText, "unclear"},
			{localized{"I need more information", "还缺少一些信息"}, "ask"}} {
			for _, w := range []string{r.text.en, r.text.zh} {
				if before, after, _ := strings.Cut(w, "%s"); strings.Contains(reply, before) && strings.Contains(reply, after) {
					return r.name
				}
			}
		}
		return "none"
	}
	last := k.log[len(k.log)-1]
	args, ok := strings.CutPrefix(last, "cron ")
	if !ok {
		return "none"
	}
	var a struct {
		Action, JobID string
		Job           json.RawMessage
		Patch         struct{ Enabled bool }
	}
	if err := json.Unmarshal([]byte(args), &a); err != nil {
		return err.Error()
	}
	switch {
	case a.Action == "add":
		return addedJob(a.Job)
	case a.Action == "update":
		return fmt.Sprint("update ", a.JobID, " ", a.Patch.Enabled)
	case a.Action == "list" && !strings.Contains(reply, "Planned") && !strings.Contains(reply, "计划如下"),
		strings.Contains(reply, "fits"), strings.Contains(reply, "相符"):
		return "ask"
	}
	return strings.TrimSpace(a.Action + " " + a.JobID)
}

// addedJob returns a job in the form of testdata/schedule.tsv.
func addedJob(raw json.RawMessage) string {
	j := job.Job{ID: "new", Created: job.At(testNow)}
	if err := json.Unmarshal(raw, &j); err != nil {
		return err.Error()
	}
	j.Complete()
	if err := j.Check(); err != nil {
		return err.Error()
	}
	berlin, _ := time.LoadLocation("Europe/Berlin")
	s := j.Schedule
	out := s.Expr
	switch {
	case j.Trigger != nil:
		out = j.Trigger.Script
	case s.Kind == job.KindAt:
		at, err := s.AtTime()
		if err != nil || !at.After(testNow) || !j.Deletes() {
			return fmt.Sprint(err, at)
		}
		out = strings.TrimSuffix(at.In(berlin).Format("2006-01-02 15:04:05"), ":00")
	case s.Kind == job.KindEvery:
		out = "every " + (time.Duration(s.EveryMs) * time.Millisecond).String()
		if s.AnchorMs != 0 {
			out += " from " + s.AnchorMs.Time().In(berlin).Format("2006-01-02 15:04")
		}
	case s.TZ != "Europe/Berlin":
		return "zone " + s.TZ
	}
	mark := ""
	if j.Payload.Kind == job.AgentTurn {
		mark = "! "
	}
	return out + " | " + mark + j.Payload.Content()
}

// TestSchedule uses requests that were written before the grammar.
func TestSchedule(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/schedule.tsv")
	if err != nil {
		t.Fatal(err)
	}
	p, n := New(), 0
	for line := range strings.Lines(string(data)) {
		f := strings.Split(strings.TrimRight(line, "\n"), "\t")
		if len(f) != 3 || strings.HasPrefix(line, "#") {
			continue
		}
		n++
		k := newTalk(t)
		k.p, k.tools = p, allTools
		reply := k.say(f[1])
		if got := scheduled(k, reply); got != f[2] {
			t.Errorf("%q: got %q, want %q (%s)", f[1], got, f[2], reply)
		}
	}
	if n < 200 {
		t.Errorf("%d requests, want all", n)
	}
}

// due returns the message about a job that is due.
func due(name, text string, kind job.PayloadKind) string {
	j := job.Job{ID: "id-" + job.ID(name), Name: name, Payload: job.Payload{Kind: kind, Text: text}}
	if kind == job.AgentTurn {
		j.Payload = job.Payload{Kind: kind, Message: text}
	}
	return j.DueText(testNow, testNow, time.UTC, "")
}

func TestReminders(t *testing.T) {
	t.Parallel()
	scheduler := func(t *testing.T) *talk {
		k := newTalk(t)
		k.tools = allTools
		return k
	}
	t.Run("the answer says the time in the person's zone", func(t *testing.T) {
		k := scheduler(t)
		for say, want := range map[string]string{
			"remind me tomorrow at 9 to call Ann":      "I will remind you tomorrow, Thursday 26 November, at 09:00: call Ann",
			"remind me at 5 to call Ann":               "I will remind you today at 17:00: call Ann",
			"remind me in 30 seconds to blink":         "I will remind you today at 10:30:30: blink",
			"remind me on 3 March to call Ann":         "I will remind you on Wednesday 3 March 2027 at 09:00: call Ann",
			"remind me every Monday at 9 to call Ann":  "I will remind you every Monday at 09:00, first on Monday 30 November at 09:00: call Ann",
			"remind me every 2 hours to drink":         "I will remind you every 2 hours, first today at 12:30: drink",
			"every day at 7 list the files":            "I will do this every day at 07:00, first tomorrow, Thursday 26 November, at 07:00: list the files",
			"when a.txt changes list the files":        "When a.txt changes, I will do this: list the files. I look every minute.",
			"watch https://example.com":                "I will tell you when https://example.com changes. I look every 5 minutes.",
			"remind me on 31 February to jump":         "there is no such time as “on 31 February”",
			"remind me yesterday to jump":              "because “yesterday” has passed",
			"remind me on 3/4 to jump":                 "I do not know which time “on 3/4” is",
			"明天早上9点提醒我交房租":                             "好的，我会在明天，11月26日（星期四） 09:00 提醒你：交房租",
			"每两小时提醒我喝水":                                "好的，我会在每2小时（第一次：今天 12:30） 提醒你：喝水",
			"2月31号提醒我跳舞":                               "“2月31号”这个时间不存在",
			"remind me every month on the 22nd to pay": "on the 22nd of every month at 09:00",
			"每年3月3号提醒我祝贺小王":                            "每年3月3日 09:00",

			"remind me every second Monday to call mum":                  "every 14 days, first on Monday 30 November at 09:00: call mum",
			"remind me every other Tuesday at 9 to water the plants":     "every 14 days, first on Tuesday 1 December at 09:00: water the plants",
			"remind me fortnightly on Monday at 9 to vacuum":             "every 14 days, first on Monday 30 November at 09:00: vacuum",
			"remind me biweekly on Monday to water":                      "I do not know which time",
			"remind me the first Monday of the month to back up":         "on the 1st Monday of every month at 09:00, first on Monday 7 December at 09:00: back up",
			"每月最后一个周五下午5点提醒我交周报":                                         "每月最后一个星期五 17:00",
			"remind me every 3rd day at 10 to shave":                     "every 3 days, first tomorrow, Thursday 26 November, at 10:00: shave",
			"remind me in 5 min and 10 min to stir":                      "I do not know which time",
			"remind me every Tuesday this month at 9 to swim":            "I cannot keep to “this month",
			"remind me on Tuesdays at 9 to swim until Christmas":         "I cannot keep to “until Christmas”",
			"remind me next Tuesday at 9 or 10 to call":                  "I cannot keep to “or 10",
			"remind me every day at 8 to wait until the kettle whistles": "every day at 08:00",
		} {
			has(t, k.say(say), want)
		}
	})
	t.Run("a zone without a name is not in the schedule", func(t *testing.T) {
		r := request(allTools, llm.User("remind me every day at 8 to call Ann"))
		r.System = []llm.Block{{Text: "## Date and time\n\nTime zone: UTC-05:30\n"}}
		_, calls, _ := New().answer(r, testNow)
		if len(calls) != 1 || strings.Contains(string(calls[0].Args), "tz") {
			t.Errorf("the calls are %s", calls)
		}
		r.Messages = []*llm.Message{llm.User("remind me at 5 to call Ann")}
		if _, calls, _ = New().answer(r, testNow); len(calls) != 1 ||
			!strings.Contains(string(calls[0].Args), `"at":"2026-11-25T17:00:00-05:30"`) {
			t.Errorf("the calls are %s", calls)
		}
	})
	t.Run("a turn that goes on later keeps its time", func(t *testing.T) {
		k := scheduler(t)
		r := request(allTools, llm.User("remind me today at 11am to call Ann"))
		m := collect(t, k.p, r)
		r.Messages = append(r.Messages, m, &llm.Message{Role: llm.RoleTool, CallID: m.Calls()[0].ID, ToolName: "cron",
			Parts: []llm.Part{llm.Text("{}")}})
		text, calls, _ := k.p.answer(r, testNow.Add(3*time.Hour))
		has(t, text, "I will remind you today at 11:00: call Ann")
		if len(calls) > 0 {
			t.Errorf("the calls are %s", calls)
		}
	})
	t.Run("a failed call is no reminder", func(t *testing.T) {
		k := scheduler(t)
		k.cron = `{"status":"error","error":"schedule.at: too late"}`
		got := k.say("remind me at 5 to call Ann")
		has(t, got, "`call Ann` failed: schedule.at: too late")
		if strings.Contains(got, "I will") {
			t.Error(got)
		}
	})
	t.Run("the plan is listed by time", func(t *testing.T) {
		k := scheduler(t)
		got := k.say("what is planned?")
		has(t, got, "- notes.txt has changed: when notes.txt changes\n- drink water: every 2 hours, next today at 12:30\n- call Ann: tomorrow, Thursday 26 November, at 09:00\n"+
			"- stand-up meeting: every weekday at 09:00, next tomorrow, Thursday 26 November, at 09:00\n- water the plants: every Monday and Thursday at 18:00, next",
			"- 吃药: every day at 08:00 (Asia/Tokyo)", "- 给妈妈打电话: on the 1st of every month at 09:00",
			"- 交房租: by the cron expression `*/7 9 1 * *` (paused)",
			"- pay the rent: every year on 3 March at 09:00 (paused)")
		k.jobs = jobs + "\nand 7 more"
		has(t, k.say("what is planned?"), "There are 7 more")
		k.jobs = ""
		has(t, k.say("有什么计划？"), "- 吃药：每天 08:00 (Asia/Tokyo)", "- pay the rent：每年3月3日 09:00（已暂停）")
		k.jobs = job.NoJobs
		has(t, k.say("list reminders"), "Nothing is planned.")
		has(t, k.say("取消关于妈妈的提醒"), "目前没有任何计划。")
		k.jobs = "no list"
		has(t, k.say("list reminders"), "no list")
		has(t, k.say("cancel the reminder about Ann"), "no list")
		k.calls(`cron {"action":"list"}`)
	})
	t.Run("a job is canceled only if it is the only one that fits", func(t *testing.T) {
		k := scheduler(t)
		has(t, k.say("cancel the reminder about water"), "Which one do you mean?", "drink water", "water the plants")
		k.calls(`cron {"action":"list"}`)
		has(t, k.say("cancel the reminder about the dentist"),
			"Nothing that is planned fits “the dentist”, so I changed nothing", "call Ann")
		k.calls(`cron {"action":"list"}`)
		has(t, k.say("pause the reminder j2"), "Paused: drink water")
		k.calls(`cron {"action":"list"}`, `cron {"action":"update","jobId":"j2","patch":{"enabled":false}}`)
		k.jobs = `only "x": every 1m; next running now`
		has(t, k.say("cancel the reminder"), "Canceled: x")
	})
	t.Run("“it” is the job that was spoken of last", func(t *testing.T) {
		k := scheduler(t)
		k.say("remind me at 5 to drink water")
		has(t, k.say("cancel it"), "Canceled: drink water")
		k.messages = append(k.messages, llm.User(llm.EventPrefix+due("water", "drink", job.SystemEvent)))
		k.jobs = "a \"a\": every 1m; next running now\nid-water \"drink\": every 1m; next running now"
		has(t, k.say("stop that reminder"), "Canceled: drink")
	})
	t.Run("a reminder is told, and nothing else", func(t *testing.T) {
		if got := scheduler(t).say(llm.EventPrefix + due("a] b", "call Ann\nat home", job.SystemEvent)); got !=
			"⏰ Reminder: call Ann\nat home" {
			t.Errorf("the reply is %q", got)
		}
		if got := scheduler(t).say(llm.EventPrefix + due("a", "吃药", job.SystemEvent)); got != "⏰ 提醒：吃药" {
			t.Errorf("the reply is %q", got)
		}
		for text, want := range map[string]string{
			"call Ann": "⏰ Reminder: call Ann (late: it was due 2026-03-03 12:00)",
			"吃药":       "⏰ 提醒：吃药（迟了，原定时间 2026-03-03 12:00）",
		} {
			now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
			j := job.Job{ID: "a", Payload: job.Payload{Kind: job.SystemEvent, Text: text}}
			if got := scheduler(t).say(llm.EventPrefix + j.DueText(now.AddDate(0, 0, -1), now, time.UTC, "")); got != want {
				t.Errorf("the reply is %q, want %q", got, want)
			}
		}
		k := scheduler(t)
		k.messages = []*llm.Message{llm.User(llm.EventPrefix + due("a", "one", job.SystemEvent)),
			llm.User(llm.EventPrefix + due("b", "list the files", job.SystemEvent))}
		has(t, k.say(llm.EventPrefix+"the command x ended"),
			"⏰ Reminder: one\n\n⏰ Reminder: list the files\n\nthe command x ended")
		if len(k.log) > 0 {
			t.Errorf("a reminder was carried out: %q", k.log)
		}
	})
	t.Run("reminders for the next turn are told in it", func(t *testing.T) {
		k := scheduler(t)
		k.messages = []*llm.Message{llm.User(llm.EventsHeading + "\n- x ended\n- " + due("a", "one\n- [cron:8 b] two",
			job.SystemEvent) + "\n- " + due("b", "three", job.SystemEvent))}
		has(t, k.say("what time is it?"), "12:00:00", "⏰ Reminder: one\n- [cron:8 b] two\n\n⏰ Reminder: three")
	})
	t.Run("the message of a turn is carried out", func(t *testing.T) {
		k := scheduler(t)
		if got := k.say(due("a", "tell me the time", job.AgentTurn)); got !=
			"It is Wednesday, 4 March 2026, 12:00:00 +00:00 (UTC)." {
			t.Errorf("the reply is %q", got)
		}
		k = scheduler(t)
		has(t, k.say(llm.EventPrefix+due("a", "list the files, then show a.txt", job.AgentTurn)), "b.txt")
		k.calls(`ls {"path":"."}`, `read {"path":"a.txt"}`)
		has(t, scheduler(t).say(due("a", "write me a poem", job.AgentTurn)),
			"⏰ This was planned for now, but I did not understand it, and no language model is configured: write me a poem")
	})
	t.Run("the result of a turn is told", func(t *testing.T) {
		j := job.Job{Name: "files"}
		k := scheduler(t)
		has(t, k.say(llm.EventPrefix+j.ResultText(errors.New("the chat is gone"), "a.txt")),
			"⏰ files:\n\na.txt\n\nIt was to be sent elsewhere, but the chat is gone.")
	})
	t.Run("messages sent together are all planned", func(t *testing.T) {
		k := scheduler(t)
		has(t, k.say("remind me at 5 to call Ann\nremind me at 6pm to call Bob"), "17:00: call Ann", "18:00: call Bob")
		has(t, k.say("list the files and remind me at 5 to leave"), "b.txt", "17:00: leave")
	})
	t.Run("a long request ends", func(t *testing.T) {
		p := New()
		for _, w := range []string{"at 5 and ", "remind me at 5 to ", "每周一三五提醒我", "一", "every the day "} {
			p.answer(request(allTools, llm.User(strings.Repeat(w, 1000/len(w)))), testNow)
		}
	})
}

// FuzzTimes checks that what is planned is in the future, and valid.
func FuzzTimes(f *testing.F) {
	for _, tc := range corpus {
		f.Add(tc.say)
	}
	data, err := os.ReadFile("testdata/schedule.tsv")
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if parts := strings.Split(line, "\t"); len(parts) == 3 {
			f.Add(parts[1])
		}
	}
	p := New()
	f.Fuzz(func(t *testing.T, say string) {
		_, calls, _ := p.answer(request(allTools, llm.User(say)), testNow)
		for _, c := range calls {
			var a struct {
				Action string
				Job    job.Job
			}
			if c.Name != "cron" || json.Unmarshal(c.Args, &a) != nil || a.Action != "add" {
				continue
			}
			a.Job.ID, a.Job.Created = "new", job.At(testNow)
			a.Job.Complete()
			if err := a.Job.Check(); err != nil && a.Job.Trigger == nil && !strings.Contains(err.Error(), "payload has") {
				t.Fatalf("%q: %s: %v", say, c.Args, err)
			}
			if next, err := a.Job.Slot(testNow); err != nil || !next.After(testNow) {
				t.Fatalf("%q: %s is due at %v, %v", say, c.Args, next, err)
			}
		}
	})
}
