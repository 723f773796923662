package job_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/job"
)

// now is a time at which jobs are read.
func now() time.Time { return time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC) }

// text returns the job as JSON without the fields that are not asked for.
func text(t *testing.T, j job.Job) string {
	t.Helper()
	raw, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(raw, &m); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"id", "createdAtMs", "updatedAtMs", "state"} {
		if s, ok := m[name]; name != "id" || ok && s == "" {
			delete(m, name)
		}
	}
	raw, err = json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// same compares two JSON objects.
func same(t *testing.T, label, got, want string) {
	t.Helper()
	var g, w any
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatalf("%s: %v", want, err)
	}
	if err := json.Unmarshal([]byte(got), &g); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(w, g); diff != "" {
		t.Errorf("%s: %s", label, diff)
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	const (
		turn     = `"enabled":true,"name":"water the plants","payload":{"kind":"agentTurn","message":"water the plants"},"sessionTarget":"isolated","wakeMode":"now","delivery":{"mode":"announce"}`
		reminder = `"enabled":true,"name":"call Ann","payload":{"kind":"systemEvent","text":"call Ann"},"sessionTarget":"main","wakeMode":"now"`
		five     = `"schedule":{"kind":"every","everyMs":300000}`
		nine     = `"schedule":{"kind":"cron","expr":"0 9 * * MON"}`
		at       = `"schedule":{"kind":"at","at":"2026-03-01T08:20:00Z"}`
	)
	for _, tt := range []struct{ name, raw, want string }{
		{"CR-23 the canonical form", `{"name":"x","schedule":{"kind":"cron","expr":"0 9 * * MON","tz":"Europe/Berlin","staggerMs":0},"sessionTarget":"isolated","wakeMode":"next-heartbeat",
			"payload":{"kind":"agentTurn","message":"m","model":"a/b","thinking":"low","timeoutSeconds":30,"toolsAllow":["read"],"lightContext":true},
			"delivery":{"mode":"announce","channel":"telegram","to":"7","threadId":42,"bestEffort":true,"failureDestination":{"channel":"slack","to":"C1"}},"failureAlert":{"after":3,"cooldownMs":60000}}`,
			`{"name":"x","enabled":true,"schedule":{"kind":"cron","expr":"0 9 * * MON","tz":"Europe/Berlin","staggerMs":0},"sessionTarget":"isolated","wakeMode":"next-heartbeat",
			"payload":{"kind":"agentTurn","message":"m","model":"a/b","thinking":"low","timeoutSeconds":30,"toolsAllow":["read"],"lightContext":true},
			"delivery":{"mode":"announce","channel":"telegram","to":"7","threadId":"42","bestEffort":true,"failureDestination":{"channel":"slack","to":"C1"}},"failureAlert":{"after":3,"cooldownMs":60000}}`},
		{"CR-23 schedule is a duration", `{"schedule":"20m","text":"call Ann"}`, `{` + at + `,` + reminder + `}`},
		{"CR-23 schedule in words", `{"schedule":"in 20 minutes","text":"call Ann"}`, `{` + at + `,` + reminder + `}`},
		{"CR-23 schedule is an interval", `{"schedule":"every 5m","message":"water the plants"}`,
			`{` + five + `,` + turn + `}`},
		{"days keep a zone",
			`{"schedule":{"kind":"every","everyMs":172800000,"tz":"Europe/Berlin"},"message":"water the plants"}`,
			`{"schedule":{"kind":"every","everyMs":172800000,"tz":"Europe/Berlin"},` + turn + `}`},
		{"minutes have no zone",
			`{"schedule":{"kind":"every","everyMs":300000,"tz":"Europe/Berlin"},"message":"water the plants"}`,
			`{` + five + `,` + turn + `}`},
		{"CR-23 schedule is a cron expression", `{"schedule":"0 9 * * MON","message":"water the plants"}`,
			`{` + nine + `,` + turn + `}`},
		{"CR-23 schedule is a time", `{"schedule":"2026-03-01T09:20:00+01:00","text":"call Ann"}`,
			`{` + at + `,` + reminder + `}`},
		{"CR-23 atMs", `{"atMs":1772353200000,"text":"call Ann"}`, `{` + at + `,` + reminder + `}`},
		{"CR-23 atMs in the schedule, as a text", `{"schedule":{"atMs":"1772353200000"},"text":"call Ann"}`,
			`{` + at + `,` + reminder + `}`},
		{"CR-23 seconds since 1970", `{"at":1772353200,"text":"call Ann"}`, `{` + at + `,` + reminder + `}`},
		{"CR-23 each", `{"schedule":"each 5 minutes","message":"water the plants"}`, `{` + five + `,` + turn + `}`},
		{"CR-23 null is absent", `{"schedule":null,"payload":null,"delivery":null,"failureAlert":null,"enabled":null,"every":"5m","text":"call Ann"}`, `{` + five + `,` + reminder + `}`},
		{"CR-23 every", `{"every":"5m","message":"water the plants"}`, `{` + five + `,` + turn + `}`},
		{"CR-23 every_seconds", `{"every_seconds":300,"prompt":"water the plants"}`, `{` + five + `,` + turn + `}`},
		{"CR-23 everyMs as a text",
			`{"schedule":{"kind":"every","everyMs":"300000"},"payload":"water the plants","sessionTarget":"isolated"}`,
			`{` + five + `,` + turn + `}`},
		{"CR-23 cron", `{"cron":"0 9 * * MON","message":"water the plants"}`, `{` + nine + `,` + turn + `}`},
		{"CR-23 cron_expr", `{"cron_expr":"0 9 * * MON","message":"water the plants"}`, `{` + nine + `,` + turn + `}`},
		{"CR-23 schedule.cron", `{"schedule":{"cron":"0 9 * * MON"},"message":"water the plants"}`,
			`{` + nine + `,` + turn + `}`},
		{"CR-23 schedule.cronExpr", `{"schedule":{"kind":"cron","cronExpr":"0 9 * * MON"},"message":"water the plants"}`,
			`{` + nine + `,` + turn + `}`},
		{"CR-23 JSON in texts", `"{\"job\":\"{\\\"schedule\\\":\\\"{\\\\\\\"everyMs\\\\\\\":300000}\\\",\\\"message\\\":\\\"water the plants\\\"}\"}"`, `{` + five + `,` + turn + `}`},
		{"CR-23 snake_case", `{"session_target":"isolated","wake_mode":"now","schedule":{"every_ms":300000},"payload":{"kind":"agent_turn","message":"water the plants"},"delivery":{"mode":"announce"},"delete_after_run":false}`,
			`{"deleteAfterRun":false,` + five + `,` + turn + `}`},
		{"CR-23 flat payload and delivery", `{"every":"5m","message":"water the plants","model":"a/b","thinking":"low","timeoutSeconds":"60","channel":"telegram","to":12345,"announce":true}`,
			`{"enabled":true,"name":"water the plants","payload":{"kind":"agentTurn","message":"water the plants","model":"a/b","thinking":"low","timeoutSeconds":60},"sessionTarget":"isolated","wakeMode":"now","delivery":{"mode":"announce","channel":"telegram","to":"12345"},` + five + `}`},
		{"CR-23 what a model fills in", `{"name":"","schedule":{"kind":"cron","at":"","everyMs":0,"expr":"0 9 * * MON","tz":"","staggerMs":null},"payload":{"kind":"agentTurn","text":"","message":"water the plants","model":"","fallbacks":[]},"delivery":{},"agentId":null}`,
			`{"enabled":true,"name":"water the plants","payload":{"kind":"agentTurn","message":"water the plants"},"sessionTarget":"isolated","wakeMode":"now","delivery":{"mode":"announce"},` + nine + `}`},
		{"a time with the zone beside it", `{"at":"2026-03-01 09:20","tz":"Europe/Berlin","text":"call Ann"}`,
			`{` + at + `,` + reminder + `}`},
		{"a time without a zone", `{"at":"2026-03-01T08:20","text":"call Ann"}`, `{` + at + `,` + reminder + `}`},
		{"a time that the clock skips", `{"at":"2026-03-29T02:30","tz":"Europe/Berlin","text":"call Ann"}`,
			`{"schedule":{"kind":"at","at":"2026-03-29T01:00:00Z"},` + reminder + `}`},
		{"a time that the clock shows twice", `{"at":"2026-10-25T02:30","tz":"Europe/Berlin","text":"call Ann"}`,
			`{"schedule":{"kind":"at","at":"2026-10-25T00:30:00Z"},` + reminder + `}`},
		{"a time that it shows twice, in the west", `{"at":"2026-11-01T01:30","tz":"America/New_York","text":"call Ann"}`,
			`{"schedule":{"kind":"at","at":"2026-11-01T05:30:00Z"},` + reminder + `}`},
		{"a time in the half of an hour that it shows twice",
			`{"at":"2026-04-05T01:45","tz":"Australia/Lord_Howe","text":"call Ann"}`,
			`{"schedule":{"kind":"at","at":"2026-04-04T14:45:00Z"},` + reminder + `}`},
		{"the hour after the one that it shows twice", `{"at":"2026-10-25T03:00","tz":"Europe/Berlin","text":"call Ann"}`,
			`{"schedule":{"kind":"at","at":"2026-10-25T02:00:00Z"},` + reminder + `}`},
		{"a zone before the expression", `{"cron":"CRON_TZ=Europe/Berlin 0 9 * * MON","text":"call Ann"}`,
			`{"schedule":{"kind":"cron","expr":"0 9 * * MON","tz":"Europe/Berlin"},` + reminder + `}`},
		{"exact", `{"cron":"0 9 * * MON","exact":true,"text":"call Ann"}`,
			`{"schedule":{"kind":"cron","expr":"0 9 * * MON","staggerMs":0},` + reminder + `}`},
		{"the target decides the payload", `{"every":"5m","message":"call Ann","session":"main"}`,
			`{` + five + `,` + reminder + `}`},
		{"a model decides the payload", `{"every":"5m","text":"x","model":"a/b"}`, `{"enabled":true,"name":"x","payload":{"kind":"agentTurn","message":"x","model":"a/b"},"sessionTarget":"isolated","wakeMode":"now","delivery":{"mode":"announce"},` + five + `}`},
		{"deliver false", `{"every":"5m","message":"x","deliver":false}`, `{"enabled":true,"name":"x","payload":{"kind":"agentTurn","message":"x"},"sessionTarget":"isolated","wakeMode":"now","delivery":{"mode":"none"},` + five + `}`},
		{"webhook", `{"every":"5m","message":"x","webhook":"https://example.com/a","failureAlert":false}`, `{"enabled":true,"name":"x","payload":{"kind":"agentTurn","message":"x"},"sessionTarget":"isolated","wakeMode":"now","delivery":{"mode":"webhook","to":"https://example.com/a"},"failureAlert":false,` + five + `}`},
		{"delivery is a mode", `{"every":"5m","message":"x","delivery":"none"}`, `{"enabled":true,"name":"x","payload":{"kind":"agentTurn","message":"x"},"sessionTarget":"isolated","wakeMode":"now","delivery":{"mode":"none"},` + five + `}`},
		{"a watch", `{"every":"5m","message":"x","watchFile":"/tmp/a b"}`, `{"enabled":true,"name":"x","payload":{"kind":"agentTurn","message":"x"},"sessionTarget":"isolated","wakeMode":"now","delivery":{"mode":"announce"},"trigger":{"script":"file /tmp/a b"},` + five + `}`},
		{"the session of the chat", `{"every":"5m","message":"x","session":"current"}`, `{"enabled":true,"name":"x","payload":{"kind":"agentTurn","message":"x"},"sessionTarget":"current","wakeMode":"now","delivery":{"mode":"announce"},` + five + `}`},
		{"an owner", `{"every":"5m","text":"call Ann","owner":{"agentId":"ops","sessionKey":"agent:ops:main"}}`,
			`{"agentId":"ops","sessionKey":"agent:ops:main",` + five + `,` + reminder + `}`},
		{"a job that was answered",
			`{"id":"j1","state":{"nextRunAtMs":5},"createdAtMs":1,"configRevision":"a","every":"5m","text":"call Ann"}`,
			`{"id":"j1",` + five + `,` + reminder + `}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			j, err := job.Parse([]byte(tt.raw), now(), nil)
			if err != nil {
				t.Fatalf("%s: %v", tt.raw, err)
			}
			same(t, tt.raw, text(t, j), tt.want)
		})
	}
}

func TestParseZone(t *testing.T) {
	t.Parallel()
	loc, err := time.LoadLocation("Asia/Tokyo")
	if err != nil {
		t.Fatal(err)
	}
	for raw, want := range map[string]string{
		`{"cron":"0 9 * * *","text":"x"}`:                   "Asia/Tokyo",
		`{"cron":"0 9 * * *","text":"x","tz":"UTC"}`:        "UTC",
		`{"every":"1h","text":"x"}`:                         "",
		`{"at":"2026-03-02T09:00","text":"x"}`:              "",
		`{"schedule":"@daily","text":"x"}`:                  "Asia/Tokyo",
		`{"every":"1h","text":"x","timezone":"Asia/Seoul"}`: "",
	} {
		if j, err := job.Parse([]byte(raw), now(), loc); err != nil || j.Schedule.TZ != want {
			t.Errorf("%s: zone %q, %v; want %q", raw, j.Schedule.TZ, err, want)
		}
	}
}

func TestParseSpan(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"90s":                     90 * time.Second,
		"1h30m":                   90 * time.Minute,
		"1 hour and 30 minutes":   90 * time.Minute,
		"1 hour, 30 min":          90 * time.Minute,
		"2 days":                  48 * time.Hour,
		"an hour":                 time.Hour,
		"hour":                    time.Hour,
		"1.5h":                    90 * time.Minute,
		"500 milliseconds and 1s": 1500 * time.Millisecond,

		"1 week":                7 * 24 * time.Hour,
		"every minute":          time.Minute,
		"half an hour":          0,
		"1 month":               0,
		"5":                     0,
		"m":                     time.Minute,
		"5 5m":                  0,
		"-5m":                   0,
		"1e3s":                  0,
		"99999999999999999999h": 0,

		"200 years": 0,
		"and 5m":    0,
		"":          0,
	} {
		raw, err := json.Marshal(map[string]string{"every": text, "text": "x"})
		if err != nil {
			t.Fatal(err)
		}
		j, err := job.Parse(raw, now(), nil)
		if got := time.Duration(j.Schedule.EveryMs) * time.Millisecond; got != want || (err == nil) != (want > 0) {
			t.Errorf("every %q is %v, %v; want %v", text, got, err, want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, raw, want string }{
		{"CR-05 an expression that is no expression", `{"cron":"99 * * * *","text":"x"}`,
			`schedule.expr: minute "99" is not in the range`},
		{"CR-05 an empty schedule", `{"text":"x"}`, "schedule is required: for example"},
		{"CR-31 words", `{"schedule":"every day at nine","text":"x"}`,
			`"every day at nine" is not an interval; want a time like`},
		{"CR-31 a minute out of range", `{"schedule":"61 * * * *","text":"x"}`, `minute "61"`},
		{"CR-31 a minute out of range, in cron", `{"cron":"61 * * * *","text":"x"}`, `an example is "0 9 * * MON-FRI"`},
		{"CR-31 four fields", `{"schedule":"0 9 * *","text":"x"}`, "does not have 5, 6 or 7 fields; want a time like"},
		{"CR-31 eight fields", `{"cron":"0 0 9 * * * * *","text":"x"}`, "does not have 5, 6 or 7 fields; an example is"},
		{"CR-36 a turn in the main session",
			`{"every":"5m","sessionTarget":"main","payload":{"kind":"agentTurn","message":"x"}}`,
			`sessionTarget "main" goes with payload {"kind":"systemEvent","text":"..."}`},
		{"CR-36 an event elsewhere", `{"every":"5m","sessionTarget":"isolated","payload":{"kind":"systemEvent","text":"x"}}`,
			`sessionTarget "isolated" goes with payload {"kind":"agentTurn","message":"..."}`},
		{"two schedules", `{"every":"5m","cron":"0 9 * * *","text":"x"}`, "every and cron contradict each other"},
		{"two intervals", `{"every":"5m","everyMs":60000,"text":"x"}`, "every and everyMs contradict each other"},
		{"two zones", `{"cron":"TZ=UTC 0 9 * * *","tz":"Asia/Tokyo","text":"x"}`, "contradict each other"},
		{"two texts", `{"every":"5m","text":"x","message":"y"}`, "message and text contradict each other"},
		{"another kind", `{"schedule":{"kind":"cron","everyMs":5000},"text":"x"}`,
			`schedule.everyMs goes with a schedule of kind "every", not "cron"`},
		{"the past", `{"at":"2026-02-27T08:00:00Z","text":"x"}`, "2026-02-27T08:00:00Z was 2 days ago"},
		{"a number without a unit", `{"every":300,"text":"x"}`, `every: 300 has no unit; want one like "5m"`},
		{"a schedule without a unit", `{"schedule":300,"text":"x"}`, "schedule: 300 has no unit"},
		{"too often", `{"everyMs":10,"text":"x"}`, "schedule.everyMs: 10 is out of range"},
		{"no interval", `{"schedule":{"kind":"every","everyMs":0},"text":"x"}`, "schedule.everyMs: 0 is out of range"},
		{"negative", `{"schedule":{"kind":"every","everyMs":-5},"text":"x"}`, "out of range"},
		{"year 10000", `{"at":"10000-01-01T00:00:00Z","text":"x"}`, "is not a time"},
		{"no time", `{"at":"NaN","text":"x"}`, "is not a time"},
		{"no zone", `{"cron":"0 9 * * *","tz":"Mars/Base","text":"x"}`, `unknown time zone "Mars/Base"`},
		{"stagger of an interval", `{"every":"5m","stagger":"30s","text":"x"}`, "stagger goes with a cron expression"},
		{"no text", `{"every":"5m","payload":{"kind":"agentTurn","message":" "}}`, "payload is required"},
		{"no payload", `{"every":"5m"}`, "payload is required"},
		{"an unknown field", `{"every":"5m","text":"x","shedule":1}`, `unknown field "shedule"; did you mean "schedule"?`},
		{"an unknown inner field", `{"every":"5m","payload":{"txt":"x"}}`,
			`unknown field "payload.txt"; did you mean "text"?`},
		{"a private field", `{"every":"5m","text":"x","principal":{"id":"owner","scopes":["operator.admin"]}}`,
			`unknown field "principal"`},
		{"a private address", `{"every":"5m","text":"x","address":{"channel":"telegram"}}`, `unknown field "address"`},
		{"extra", `{"every":"5m","text":"x","extra":{}}`, `unknown field "extra"`},
		{"a command", `{"every":"5m","payload":{"kind":"command","argv":["ls"]}}`, `payload.kind "command" is not supported`},
		{"on exit", `{"schedule":{"kind":"on-exit","command":"ls"},"text":"x"}`, `"on-exit" is not supported`},
		{"pacing", `{"every":"5m","text":"x","pacing":{"min":"1m"}}`, "pacing is not supported"},
		{"a model for an event", `{"every":"5m","payload":{"kind":"systemEvent","text":"x","model":"a/b"}}`,
			"payload.model goes with payload"},
		{"no tools", `{"every":"5m","message":"x","toolsAllow":[]}`, "toolsAllow is empty"},
		{"no mode", `{"every":"5m","message":"x","delivery":{"mode":"shout"}}`, `delivery.mode: "shout" is not a mode`},
		{"no boolean", `{"every":"5m","message":"x","enabled":"maybe"}`, `enabled: want true or false, not "maybe"`},
		{"no JSON", `{"every":`, "the job is not JSON"},
		{"no object", `[1]`, "want a job like"},
		{"two objects", `{} {}`, "unexpected data"},
		{"too long", `{"every":"5m","message":"` + strings.Repeat("x", 300<<10) + `"}`, "at most 256 KB are allowed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			j, err := job.Parse([]byte(tt.raw), now(), nil)
			if err == nil || !strings.Contains(err.Error(), tt.want) || chela.CodeOf(err) != chela.CodeInvalid {
				t.Errorf("%s\n got %v (%+v)\nwant %s", tt.raw, err, j, tt.want)
			}
		})
	}
}

func TestPatch(t *testing.T) {
	t.Parallel()
	const (
		turn     = `{"id":"j1","name":"n","cron":"0 9 * * MON","tz":"Europe/Berlin","message":"m","model":"a/b","channel":"telegram","to":"7","description":"d"}`
		reminder = `{"id":"j1","name":"n","at":"2026-03-02T09:00:00Z","text":"call Ann"}`
		head     = `"id":"j1","name":"n","enabled":true,"wakeMode":"now"`
	)
	for _, tt := range []struct{ name, old, raw, want string }{
		{"nothing", reminder, `{}`, `{` + head + `,"schedule":{"kind":"at","at":"2026-03-02T09:00:00Z"},"sessionTarget":"main","payload":{"kind":"systemEvent","text":"call Ann"}}`},
		{"the same kind is merged", turn, `{"schedule":{"kind":"cron","expr":"0 8 * * *"},"payload":{"kind":"agentTurn","thinking":"low"},"delivery":{"bestEffort":true}}`,
			`{` + head + `,"description":"d","schedule":{"kind":"cron","expr":"0 8 * * *","tz":"Europe/Berlin"},"sessionTarget":"isolated","payload":{"kind":"agentTurn","message":"m","model":"a/b","thinking":"low"},"delivery":{"mode":"announce","channel":"telegram","to":"7","bestEffort":true}}`},
		{"another kind replaces", turn, `{"every":"5m"}`, `{` + head + `,"description":"d","schedule":{"kind":"every","everyMs":300000},"sessionTarget":"isolated","payload":{"kind":"agentTurn","message":"m","model":"a/b"},"delivery":{"mode":"announce","channel":"telegram","to":"7"}}`},
		{"null resets", turn,
			`{"description":null,"payload":{"model":null},"delivery":{"channel":null,"to":null},"schedule":{"tz":null}}`,
			`{` + head + `,"schedule":{"kind":"cron","expr":"0 9 * * MON"},"sessionTarget":"isolated","payload":{"kind":"agentTurn","message":"m"},"delivery":{"mode":"announce"}}`},
		{"an empty text is no change, but for the description", turn,
			`{"name":"","description":"","agentId":"","payload":{"message":""}}`,
			`{` + head + `,"schedule":{"kind":"cron","expr":"0 9 * * MON","tz":"Europe/Berlin"},"sessionTarget":"isolated","payload":{"kind":"agentTurn","message":"m","model":"a/b"},"delivery":{"mode":"announce","channel":"telegram","to":"7"}}`},
		{"the text of a reminder by another name", reminder, `{"message":"call Bob"}`, `{` + head + `,"schedule":{"kind":"at","at":"2026-03-02T09:00:00Z"},"sessionTarget":"main","payload":{"kind":"systemEvent","text":"call Bob"}}`},
		{"another target", reminder, `{"session":"isolated"}`, `{` + head + `,"schedule":{"kind":"at","at":"2026-03-02T09:00:00Z"},"sessionTarget":"isolated","payload":{"kind":"agentTurn","message":"call Ann"},"delivery":{"mode":"announce"}}`},
		{"to the main session", turn, `{"sessionTarget":"main"}`, `{` + head + `,"description":"d","schedule":{"kind":"cron","expr":"0 9 * * MON","tz":"Europe/Berlin"},"sessionTarget":"main","payload":{"kind":"systemEvent","text":"m"}}`},
		{"to a webhook", turn, `{"webhook":"https://example.com/a"}`,
			`{` + head + `,"description":"d","schedule":{"kind":"cron","expr":"0 9 * * MON","tz":"Europe/Berlin"},"sessionTarget":"isolated","payload":{"kind":"agentTurn","message":"m","model":"a/b"},"delivery":{"mode":"webhook","to":"https://example.com/a"}}`},
		{"no delivery for a while", turn, `{"deliver":false}`,
			`{` + head + `,"description":"d","schedule":{"kind":"cron","expr":"0 9 * * MON","tz":"Europe/Berlin"},"sessionTarget":"isolated","payload":{"kind":"agentTurn","message":"m","model":"a/b"},"delivery":{"mode":"none","channel":"telegram","to":"7"}}`},
		{"in a wrapper, with the id", reminder, `{"patch":{"jobId":"j1","at":"20m"}}`, `{` + head + `,"schedule":{"kind":"at","at":"2026-03-01T08:20:00Z"},"sessionTarget":"main","payload":{"kind":"systemEvent","text":"call Ann"}}`},
		{"an alert", reminder, `{"failureAlert":{"after":5}}`, `{` + head + `,"failureAlert":{"after":5},"schedule":{"kind":"at","at":"2026-03-02T09:00:00Z"},"sessionTarget":"main","payload":{"kind":"systemEvent","text":"call Ann"}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			old, err := job.Parse([]byte(tt.old), now(), nil)
			if err != nil {
				t.Fatal(err)
			}
			got, err := old.Patch([]byte(tt.raw), now(), nil)
			if err != nil {
				t.Fatal(err)
			}
			same(t, tt.raw, text(t, got), tt.want)
		})
	}
	old, err := job.Parse([]byte(turn), now(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for raw, want := range map[string]string{
		`{"id":"other"}`:                     "is not the id of this job",
		`{"schedule":null}`:                  "schedule cannot be removed",
		`{"cron":"61 * * * *"}`:              `minute "61"`,
		`{"payload":{"kind":"systemEvent"}}`: `goes with payload`,
		`{"at":"2026-02-01T00:00:00Z"}`:      "was 28 days ago",
		`{"source":"x"}`:                     "unknown field",
		`{"every":"1h","tz":"UTC"}`:          "tz goes with a cron expression",
	} {
		if _, err := old.Patch([]byte(raw), now(), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Patch(%s): %v, want %s", raw, err, want)
		}
	}
	old.Principal, old.Address, old.Source = chela.Owner("token"), chela.Address{Channel: "telegram"}, "/a"
	old.Extra = map[string]json.RawMessage{"x": json.RawMessage(`1`)}
	old.Enabled, old.State = false,
		job.State{Next: 5, Last: 3, Errors: 10, Disabled: &job.Disabled{Reason: job.ReasonFailures, Errors: 10}}
	on, err := old.Patch([]byte(`{"enabled":true,"state":{"nextRunAtMs":99}}`), now(), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := old
	want.Enabled, want.State = true, job.State{Next: 5, Last: 3}
	if diff := cmp.Diff(want, on); diff != "" {
		t.Errorf("enabled again: %s", diff)
	}
}

const file = `{
  "version": 1,
  "jobs": [
    {"id":"a","name":"report","enabled":true,"createdAtMs":1700000000000,"updatedAtMs":1700000000001,"agentId":"main","schedule":{"kind":"cron","expr":"0 7 * * *","tz":"Asia/Tokyo"},
     "sessionTarget":"isolated","wakeMode":"now","payload":{"kind":"agentTurn","message":"report","futureField":{"x":1}},"delivery":{"mode":"announce","channel":"telegram","to":"7"},
     "state":{"nextRunAtMs":1700003600000,"lastStatus":"ok","lastRunAtMs":1700000000000,"consecutiveErrors":2,"runningAtMs":5,"lastDiagnosticSummary":"fine"},"owner":{"accountId":"z"},"tags":["x"]},
    {"jobId":"b","name":"old form","enabled":false,"schedule":{"kind":"at","atMs":1600000000000},"sessionTarget":"main","payload":{"kind":"systemEvent","text":"hi"}},
    {"id":"c","schedule":{"cron":"0 9 * * *"},"payload":{"kind":"agentTurn","message":"x","deliver":true,"channel":"Telegram","to":"9","bestEffortDeliver":true}}
  ]
}`

func TestFile(t *testing.T) {
	t.Parallel()
	jobs, err := job.ParseFile([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	if len(jobs) != 3 || jobs[1].ID != "b" || jobs[1].Enabled || jobs[1].Schedule.At != "2020-09-13T12:26:40Z" ||
		!jobs[2].Enabled {
		t.Fatalf("%+v", jobs)
	}
	a := jobs[0]
	if a.State != (job.State{Next: 1700003600000, Last: 1700000000000, LastStatus: job.OK, Errors: 2}) ||
		a.Created != 1700000000000 || a.Updated != 1700000000001 {
		t.Errorf("state %+v", a)
	}
	for path, want := range map[string]string{
		"payload.futureField":         `{"x":1}`,
		"state.lastDiagnosticSummary": `"fine"`,
		"owner":                       `{"accountId":"z"}`,
		"tags":                        `["x"]`,
	} {
		if got := string(a.Extra[path]); got != want {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
	}
	if d := jobs[2].Delivery; d == nil ||
		*d != (job.Delivery{Mode: job.Announce, Channel: "Telegram", To: "9", BestEffort: true}) {
		t.Errorf("the delivery of an older file: %+v", d)
	}
	private := jobs
	private[0].Principal, private[0].Address, private[0].Source = chela.Owner("token"),
		chela.Address{Channel: "telegram"}, "/a"
	out, err := job.WriteFile(private)
	if err != nil {
		t.Fatal(err)
	}
	for _, hidden := range []string{"principal", "address", `"source"`, "extra", "operator.admin"} {
		if strings.Contains(string(out), hidden) {
			t.Errorf("%s is in the file: %s", hidden, out)
		}
	}
	again, err := job.ParseFile(out)
	if err != nil {
		t.Fatal(err)
	}
	jobs[0].Principal, jobs[0].Address, jobs[0].Source = chela.Principal{}, chela.Address{}, ""
	if diff := cmp.Diff(jobs, again); diff != "" {
		t.Errorf("read again: %s", diff)
	}
	if !strings.Contains(string(out), `"futureField"`) || !strings.Contains(string(out), `"lastDiagnosticSummary"`) {
		t.Errorf("unknown fields are lost: %s", out)
	}
}

func TestFileRefuses(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"":                           "not JSON",
		file[:len(file)/2]:           "not JSON",
		`{"version":2,"jobs":[]}`:    "not a list of jobs",
		`{"version":1}`:              "not a list of jobs",
		`"jobs"`:                     "not a list of jobs",
		`{"version":1,"jobs":[]} {}`: "after the end of the value",
	} {
		if jobs, err := job.ParseFile([]byte(raw)); err == nil || jobs != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.30q: %v, %v; want %s", raw, jobs, err, want)
		}
	}
	jobs, err := job.ParseFile([]byte(`{"version":1,"jobs":[{"id":"a","every":"5m","text":"x"},{"id":"a","every":"5m","text":"y"},{"every":"5m","text":"z"},{"id":"d","schedule":{"kind":"at","at":"20m"},"text":"x"},7,
		{"id":"e","schedule":{"kind":"every","everyMs":60000},"payload":{"kind":"command","argv":["ls"]}}]}`))
	rejected, ok := errors.AsType[*job.Rejected](err)
	if !ok || len(rejected.Jobs) != 5 || len(jobs) != 1 || jobs[0].ID != "a" {
		t.Fatalf("%v, %v", jobs, err)
	}
	for i, want := range []string{"job a: another job has the same id", "job 3: id is required",
		`job d: schedule.at: "20m" is not a time`, "job 5: want an object", `job e: payload.kind "command"`} {
		if !strings.Contains(rejected.Jobs[i].Error(), want) {
			t.Errorf("%v, want %s", rejected.Jobs[i], want)
		}
	}
	if got := err.Error(); !strings.HasSuffix(got, "(and 4 jobs more)") {
		t.Error(got)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		`{"schedule":"in 20 minutes","text":"x"}`,
		`{"cron":"0 9 * * MON","tz":"Europe/Berlin","message":"x","to":5,"channel":"a"}`,
		`{"schedule":{"kind":"every","everyMs":"300000","anchorMs":5},"payload":{"kind":"agentTurn","message":"x","toolsAllow":"a,b"},"failureAlert":{"after":2}}`,
		`"{\"at\":1772353200,\"text\":\"x\"}"`,
		`{"at":"2026-03-29 02:30","tz":"Europe/Berlin","text":"x","session":"current","delivery":"https://a/b"}`,
		`{"every":"1h and 30 minutes","text":"x"}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		j, err := job.Parse([]byte(raw), now(), nil)
		if err != nil {
			return
		}
		if j.Target == job.TargetCurrent && j.Session == "" {
			j.Session = "main"
		}
		if err := j.Check(); err != nil {
			t.Fatalf("%q is accepted as %+v: %v", raw, j, err)
		}
		encoded, err := json.Marshal(j)
		if err != nil {
			t.Fatal(err)
		}
		again, err := job.Parse(encoded, now().Add(-time.Hour), nil)
		if err != nil {
			t.Fatalf("%s: %v", encoded, err)
		}
		if diff := cmp.Diff(j, again); diff != "" {
			t.Errorf("%q read again: %s", raw, diff)
		}
		if same, err := j.Patch([]byte(`{}`), now(), nil); err != nil || !cmp.Equal(j, same) {
			t.Errorf("%q after a change of nothing: %v, %s", raw, err, cmp.Diff(j, same))
		}
	})
}

func FuzzParseFile(f *testing.F) {
	f.Add([]byte(file))
	f.Fuzz(func(t *testing.T, raw []byte) {
		jobs, _ := job.ParseFile(raw)
		out, err := job.WriteFile(jobs)
		if err != nil {
			t.Fatal(err)
		}
		again, err := job.ParseFile(out)
		if err != nil || len(again) != len(jobs) {
			t.Fatalf("%q: %v", raw, err)
		}
	})
}
