package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/job"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/surface/method/methodtest"
	"github.com/chela-ai/chela/wire"
)

// fixed is an engine that runs elsewhere.
type fixed struct{ *methodtest.Fixture }

func (f fixed) Dial(ctx context.Context) (net.Conn, error) { return f.Pipe.Dial(ctx) }

func (fixed) Close(context.Context) error { return nil }

// cronTest runs commands against a gateway whose scheduler is in memory.
type cronTest struct {
	*testing.T
	h   *methodtest.Fixture
	dir string
}

func openCron(t *testing.T) *cronTest {
	t.Helper()
	return &cronTest{t, methodtest.New(t, llmtest.NewScript()), t.TempDir()}
}

// run runs a command. It returns its exit code and what it printed.
func (t *cronTest) run(args ...string) (code int, out, errors string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	c := &commands{
		app: App{Start: func(context.Context, Start) (Engine, error) { return fixed{t.h}, nil }},
		console: console{stdin: os.Stdin, stdout: &stdout, stderr: &stderr,
			getenv: func(name string) string { return map[string]string{"CHELA_STATE_DIR": t.dir}[name] }},
	}
	code = c.run(t.Context(), append([]string{"cron"}, args...))
	return code, stdout.String(), stderr.String()
}

// prints runs a command that succeeds, and checks that it prints the texts.
func (t *cronTest) prints(args []string, want ...string) string {
	t.Helper()
	code, out, errors := t.run(args...)
	if code != 0 {
		t.Fatalf("cron %q: exit code %d: %s", args, code, errors)
	}
	for _, w := range want {
		if !strings.Contains(out+errors, w) {
			t.Errorf("cron %q prints %q %q, want %q", args, out, errors, w)
		}
	}
	return out
}

// fails runs a command that fails, and checks what it reports.
func (t *cronTest) fails(code int, args []string, want ...string) {
	t.Helper()
	got, out, errors := t.run(args...)
	if got != code {
		t.Errorf("cron %q: exit code %d, want %d: %s%s", args, got, code, out, errors)
	}
	for _, w := range want {
		if !strings.Contains(errors, w) {
			t.Errorf("cron %q reports %q, want %q", args, errors, w)
		}
	}
}

// jobs returns the jobs of the scheduler.
func (t *cronTest) jobs() []job.Job {
	t.Helper()
	list, err := t.h.Jobs.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func words(s string) []string { return strings.Fields(s) }

func TestCronCommands(t *testing.T) {
	t.Parallel()
	c := openCron(t)
	c.prints(words("list"), "there are no jobs")
	t.Run("CR-40 each command succeeds, and the next list shows its effect", func(*testing.T) {
		c.prints([]string{"add", "--name", "report", "--cron", "0 9 * * MON-FRI", "--tz", "Europe/Berlin", "--message",
			"write the report", "--model", "mock/m1", "--timeout-seconds", "60", "--channel", "telegram", "--to", "7",
			"--tools", "read,exec"},
			"added job-1 report: 0 9 * * MON-FRI Europe/Berlin; next ", "answer: telegram:7")
		j := c.jobs()[0]
		if p := j.Payload; p.Model != "mock/m1" || *p.TimeoutSeconds != 60 || len(p.Tools) != 2 || !j.Isolated() ||
			j.Schedule.TZ != "Europe/Berlin" {
			t.Errorf("%+v", j)
		}
		c.prints(words("status"), "scheduler  on", "jobs       1")
		c.prints(words("list"), "ID ", "NEXT", "job-1", "report", "telegram:7")
		c.prints([]string{"edit", "report", "--cron", "0 8 * * *", "--clear-model", "--no-deliver", "--message", "short"},
			"changed job-1 report: 0 8 * * * Europe/Berlin", "answer: nowhere")
		if j := c.jobs()[0]; j.Payload.Model != "" || j.Payload.Message != "short" || j.Delivery.Mode != job.None {
			t.Errorf("%+v, %+v", j, j.Delivery)
		}
		c.prints(words("disable report"), "disabled job-1 report")
		c.prints(words("list"), "there are no jobs")
		c.prints(words("list --all"), "job-1", "off")
		c.prints(words("run job-1"), "started job-1 report", "hint: chela cron runs job-1")
		c.prints(words("run job-1 --wait"), "status     ok", "done: short")
		c.prints(words("runs job-1"), "TIME", "STATUS", "ok", "delivered", "done: short")
		c.prints(words("enable job-1"), "enabled job-1 report")
		c.prints(words("show report"), "job        job-1", "schedule   0 8 * * *", "last       ok", "\nshort\n")
		c.prints(words("list"), "ok now")
		c.prints(words("rm job-1"), "removed job-1 report")
		c.prints(words("list --all"), "there are no jobs")
	})
	t.Run("CR-40 as JSON", func(*testing.T) {
		var added wire.CronAdded
		decode := func(into any, args ...string) {
			t.Helper()
			if err := json.Unmarshal([]byte(c.prints(append(args, "--json"))), into); err != nil {
				t.Errorf("cron %q: %v", args, err)
			}
		}
		decode(&added, "add", "--at", "20m", "--system-event", "call Ann")
		if added.Payload.Text != "call Ann" || added.SessionTarget != "main" || added.Schedule.Kind != "at" {
			t.Errorf("%+v", added)
		}
		var page wire.CronPage
		decode(&page, "list")
		if page.Total != 1 || page.Jobs[0].ID != added.ID {
			t.Errorf("%+v", page)
		}
		var j wire.CronJob
		decode(&j, "edit", added.ID, "--at", "1h")
		if j.Schedule.At == added.Schedule.At {
			t.Errorf("%+v", j)
		}
		var s wire.CronStatus
		decode(&s, "status")
		var started wire.CronStarted
		decode(&started, "run", added.ID)
		var runs wire.CronRunsPage
		decode(&runs, "runs", added.ID)
		decode(&j, "show", added.ID)
		decode(&j, "disable", added.ID)
		var removed wire.CronRemoved
		decode(&removed, "remove", added.ID)
		if s.Jobs != 1 || started.RunID == "" || len(runs.Entries) != 1 || j.Enabled || !removed.Removed {
			t.Errorf("%+v %+v %+v %+v %+v", s, started, runs, j, removed)
		}
		if code, out, _ := c.run("status", "--json"); code != 0 || !strings.Contains(out, `"nextWakeAtMs": null`) {
			t.Errorf("%d %s", code, out)
		}
	})
}

func TestCronAdd(t *testing.T) {
	t.Parallel()
	c := openCron(t)
	at := time.Now().Add(time.Hour).UTC().Format("2006-01-02T15:04")
	for _, tt := range []struct {
		args string
		want func(job.Job) bool
	}{
		{`add|every 1h|check the mail`, func(j job.Job) bool {
			return j.Schedule.EveryMs == 3_600_000 && j.Payload.Message == "check the mail" && j.Isolated()
		}},
		{`add|my name|check|--every|1h`, func(j job.Job) bool { return j.Name == "my name" && j.Payload.Message == "check" }},
		{`add|my name|--every|1h|--message|m`,
			func(j job.Job) bool { return j.Name == "my name" && j.Payload.Message == "m" }},
		{`add|--at|` + at + `|--system-event|x`,
			func(j job.Job) bool { return strings.HasPrefix(j.Schedule.At, at) && j.Target == job.TargetMain }},
		{`add|--cron|0 * * * *|--exact|--message|m`,
			func(j job.Job) bool { return j.Schedule.StaggerMs != nil && *j.Schedule.StaggerMs == 0 }},
		{`add|--cron|0 * * * *|--stagger|30s|--message|m`, func(j job.Job) bool { return *j.Schedule.StaggerMs == 30_000 }},
		{`add|--every|1h|--message|m|--webhook|https://example.com/x`, func(j job.Job) bool {
			return j.Delivery.Mode == job.Webhook && j.Delivery.To == "https://example.com/x"
		}},
		{`add|--every|1h|--message|m|--announce|--channel|last|--best-effort-deliver`,
			func(j job.Job) bool { return j.Delivery.Mode == job.Announce && j.Delivery.BestEffort }},
		{`add|--every|1h|--message|m|--watch-command|git ls-remote origin|--watch-once`,
			func(j job.Job) bool { return j.Trigger.Script == "command git ls-remote origin" && j.Trigger.Once }},
		{`add|--every|1h|--message|m|--session|session:work|--disabled`,
			func(j job.Job) bool { return j.Named() == "work" && !j.Enabled }},
		{`add|--every|1h|--message|m|--session|current|--session-key|work`,
			func(j job.Job) bool { return j.Target == job.TargetCurrent && j.Session == "agent:main:work" }},
		{`add|--every|1h|--message|m|--failure-alert-after|3|--failure-alert-cooldown|2h`,
			func(j job.Job) bool { return j.FailureAlert.After == 3 && *j.FailureAlert.CooldownMs == 7_200_000 }},
		{`add|--every|1h|--message|m|--no-failure-alert`, func(j job.Job) bool { return j.FailureAlert.Off }},
		{`add|--at|20m|--system-event|x|--delete-after-run|--wake|next-heartbeat`,
			func(j job.Job) bool { return j.Deletes() && j.Wake == job.WakeNext }},
		{`add|--every|1h|--message|m|--declaration-key|k`, func(j job.Job) bool { return j.DeclarationKey == "k" }},
	} {
		c.prints(strings.Split(tt.args, "|"), "added ")
		all := c.jobs()
		if j := all[len(all)-1]; !tt.want(j) {
			t.Errorf("%s: %+v", tt.args, j)
		}
	}
	c.prints(words("add --every 1h --message m --declaration-key k"), "unchanged ")
	c.prints(words("add --every 2h --message m --declaration-key k"), "changed ")
	n := len(c.jobs())
	for _, tt := range []struct{ name, args, want string }{
		{"CR-05 an invalid expression", `add|--cron|99 * * * *|--message|m`, `schedule.expr: minute "99"`},
		{"CR-31 words", `add|every day at nine|x`, `"every day at nine" is not an interval; want a time like`},
		{"CR-31 a minute out of range", `add|61 * * * *|x`, `minute "61"`},
		{"CR-31 four fields", `add|--cron|0 9 * *|--message|m`, "does not have 5, 6 or 7 fields"},
		{"CR-31 eight fields", `add|0 0 9 * * * * *|x`, "does not have 5, 6 or 7 fields"},
		{"CR-31 a hint that can be typed", `add|noon|x`, `hint: chela cron add "every 1h" "check the mail"`},
		{"CR-31 a hint with the flag that was used", `add|--at|yesterday evening|x`,
			`hint: chela cron add --at 20m "check the mail"`},
		{"CR-31 a hint with an expression", `add|--cron|99 * * * *|x`,
			`hint: chela cron add --cron "0 9 * * MON-FRI" "check the mail"`},
		{"no such agent", `add|--every|1h|--message|m|--agent|ops`, "hint: chela agents list"},
	} {
		t.Run(tt.name, func(*testing.T) { c.fails(1, strings.Split(tt.args, "|"), tt.want) })
	}
	for args, want := range map[string]string{
		`add|--every|1h|--message|m|--system-event|e`:        "either --message or --system-event",
		`add|a|b|--every|1h|--message|m`:                     "the message is given twice",
		`add|--every|1h|--message|m|--announce|--no-deliver`: "--no-deliver contradicts another flag",

		`edit|x`:                         "nothing to change",
		`edit|x|--enable|--disable`:      "either --enable or --disable",
		`edit|x|--model|m|--clear-model`: "--clear-model contradicts",
		`rm`:                             "missing argument",
		// CR-36
		`add|--every|1h|--session|main|--message|m`: "--message does not go with --session main",

		`add|--every|1h|--session|isolated|--system-event|m`: "--system-event goes with --session main only",
		`add|--every|1h`: "what is to be done is missing",
	} {
		c.fails(2, strings.Split(args, "|"), want)
	}
	if len(c.jobs()) != n {
		t.Errorf("%d jobs, want %d", len(c.jobs()), n)
	}
}

func TestCronRefs(t *testing.T) {
	t.Parallel()
	c := openCron(t)
	c.prints(words("add --name one --every 1h --message m"))
	c.prints(words("add --name two --every 1h --message m"))
	c.fails(1, words("show nothing"), `there is no job "nothing"`, "hint: chela cron list --all")
	c.fails(1, words("rm job-"), "2 jobs match")
	c.fails(1, words("runs nothing"), "there is no job")
	c.fails(1, words("rm one nothing"), `nothing: there is no job "nothing"`)
	c.prints(words("list"), "two")
	if len(c.jobs()) != 1 {
		t.Errorf("%+v", c.jobs())
	}
	c.prints(words("run two --due"), "not started: not-due")
	c.h.Jobs.Off = true
	c.prints(words("status"), "off (cron.enabled)")
	c.prints(words("list --query two"), "two")
	c.prints(words("list --query nothing"), "no job matches")
	c.prints(words("runs"), "there are no runs")
}

func TestCronFile(t *testing.T) {
	t.Parallel()
	c := openCron(t)
	c.prints(words("add --name one --every 1h --message m"))
	file := filepath.Join(c.dir, "jobs.json")
	c.prints([]string{"export", "--output", file}, file)
	c.fails(1, []string{"export", "--output", file}, "already exists")
	if out := c.prints(words("export")); !strings.Contains(out, `"version": 1`) || strings.Contains(out, "principal") {
		t.Errorf("%s", out)
	}
	c.prints(words("rm one"))
	c.prints([]string{"import", file}, "added 1 job, changed 0")
	c.prints(words("list"), "one")
	broken := filepath.Join(c.dir, "broken.json")
	if err := os.WriteFile(broken,
		[]byte(`{"version":1,"jobs":[{"id":"b","schedule":"61 * * * *","text":"x"},{"id":"c","every":"1h","text":"x"}]}`),
		0o600); err != nil {
		t.Fatal(err)
	}
	c.fails(1, []string{"import", broken}, `job b: schedule: minute "61"`, "hint: chela cron import --skip-invalid")
	c.prints([]string{"import", broken, "--skip-invalid"}, "left out: job b", "added 1 job")
	c.prints(words("rm c"))
	older := "\xef\xbb\xbf" + `[{"id":"b","schedule":"61 * * * *","text":"x"},{"id":"c","every":"1h","text":"x"},{"id":"c","every":"1h","text":"x"}]`
	if err := os.WriteFile(broken, []byte(older), 0o600); err != nil {
		t.Fatal(err)
	}
	c.prints([]string{"import", broken, "--skip-invalid"}, "left out: job b",
		"left out: job c: another job has the same id", "added 1 job")
	if err := os.WriteFile(broken, []byte(`{"version":1,"jobs":[`), 0o600); err != nil {
		t.Fatal(err)
	}
	c.fails(1, []string{"import", broken}, "the file is not JSON")
	c.fails(1, []string{"import", broken, "--skip-invalid"}, "the file is not JSON")
	if len(c.jobs()) != 2 {
		t.Errorf("%+v", c.jobs())
	}
}
