package cron_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/job"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/surface/method/methodtest"
	"github.com/chela-ai/chela/wire"
)

type m = map[string]any

func open(t *testing.T) *methodtest.Fixture {
	t.Helper()
	return methodtest.New(t, llmtest.NewScript())
}

// refused checks that a method fails with a text and a code in the details.
func refused(t *testing.T, h *methodtest.Fixture, method string, params any, want, code string) {
	t.Helper()
	err := h.Call(t.Context(), method, params, nil)
	e, ok := errors.AsType[*wire.Error](err)
	if !ok || !strings.Contains(e.Message, want) || e.Code != wire.InvalidRequest || e.Detail() != code {
		t.Errorf("%s %.200s: %v, want %q with %q", method, fmt.Sprint(params), err, want, code)
	}
}

// count returns the number of jobs.
func count(t *testing.T, h *methodtest.Fixture) int {
	t.Helper()
	return methodtest.Do[wire.CronStatus](t, h, wire.MethodCronStatus, m{}).Jobs
}

func TestJob(t *testing.T) {
	t.Parallel()
	h := open(t)
	added := methodtest.Do[wire.CronAdded](t, h, wire.MethodCronAdd, m{
		"name":          "report",
		"schedule":      m{"kind": "cron", "expr": "0 9 * * MON", "tz": "Europe/Berlin"},
		"sessionTarget": "isolated",
		"wakeMode":      "now",
		"payload":       m{"kind": "agentTurn", "message": "report", "model": "mock/m1"},

		"delivery":     m{"mode": "announce", "channel": "last"},
		"failureAlert": m{"after": 3},
	})
	if added.ID == "" || added.Schedule.TZ != "Europe/Berlin" || added.Payload.Model != "mock/m1" ||
		added.NextRunAt == nil || added.Preview.Label != "last" ||
		string(added.FailureAlert) != `{"after":3}` || added.EffectiveAgent != "" || added.ConfigRevision == "" {
		t.Errorf("%+v", added)
	}
	j, err := h.Jobs.Get(t.Context(), job.ID(added.ID))
	if err != nil || !j.Principal.IsOwner() {
		t.Errorf("principal %+v, %v", j.Principal, err)
	}
	got := methodtest.Do[json.RawMessage](t, h, wire.MethodCronGet, m{"jobId": added.ID})
	for _, private := range []string{"principal", "address", "source", "extra", "operator", "runId", "retries"} {
		if strings.Contains(string(got), private) {
			t.Errorf("clients see %s: %s", private, got)
		}
	}
	t.Run("a change needs the revision that was read", func(t *testing.T) {
		changed := methodtest.Do[wire.CronJob](t, h, wire.MethodCronUpdate,
			m{"id": added.ID, "patch": m{"schedule": m{"kind": "cron", "expr": "0 8 * * *"}, "payload": m{"kind": "agentTurn",
				"model": nil}}, "expectedConfigRevision": added.ConfigRevision})
		if changed.Schedule.Expr != "0 8 * * *" || changed.Schedule.TZ != "Europe/Berlin" || changed.Payload.Model != "" ||
			changed.ConfigRevision == added.ConfigRevision {
			t.Errorf("%+v", changed)
		}
		refused(t, h, wire.MethodCronUpdate, m{"id": added.ID, "patch": m{"enabled": false},
			"expectedConfigRevision": added.ConfigRevision}, "was changed since it was read", wire.DetailJobChanged)
		refused(t, h, wire.MethodCronUpdate, m{"id": added.ID, "patch": m{"schedule": "61 * * * *"}}, `minute "61"`, "")
		refused(t, h, wire.MethodCronUpdate, m{"id": added.ID, "patch": m{"agentId": "nobody"}},
			"unknown agent", "UNKNOWN_AGENT_ID")
		refused(t, h, wire.MethodCronUpdate, m{"id": added.ID}, "must have required property 'patch'", "")
	})
	t.Run("runs", func(t *testing.T) {
		s := methodtest.Do[wire.CronStarted](t, h, wire.MethodCronRun, m{"id": added.ID, "mode": "due"})
		if !s.OK || s.Ran == nil || *s.Ran || s.Reason != job.NotDue || s.RunID != "" {
			t.Errorf("not due: %+v", s)
		}
		s = methodtest.Do[wire.CronStarted](t, h, wire.MethodCronRun, m{"id": added.ID, "expectedProcessInstanceId": "boot"})
		if !s.OK || !s.Enqueued || s.RunID == "" || s.Ran != nil || s.Instance != "boot" {
			t.Errorf("forced: %+v", s)
		}
		refused(t, h, wire.MethodCronRun, m{"id": added.ID, "expectedProcessInstanceId": "other"}, "was restarted", "")
		refused(t, h, wire.MethodCronRun, m{"id": added.ID, "mode": "x"}, "at /mode", "")
		page := methodtest.Do[wire.CronRunsPage](t, h, wire.MethodCronRuns, m{"id": added.ID, "status": "ok"})
		if page.Total != 1 || len(page.Entries) != 1 || page.HasMore || page.Next != nil {
			t.Fatalf("%+v", page)
		}
		if e := page.Entries[0]; e.RunID != s.RunID || e.Action != "finished" || e.Completion != "succeeded" ||
			e.Delivered == nil || !*e.Delivered || e.JobName != "report" {
			t.Errorf("%+v", e)
		}
		for params, want := range map[string]int{
			`{"scope":"all"}`:                        1,
			`{"statuses":["error"]}`:                 0,
			`{"deliveryStatus":"delivered"}`:         1,
			`{"deliveryStatuses":["not-delivered"]}`: 0,
			`{"query":"REPORT"}`:                     1,
			`{"query":"nothing"}`:                    0,
			`{"runId":"` + s.RunID + `"}`:            1,
			`{"limit":1,"offset":1}`:                 0,

			`{"status":"all","sortDir":"asc"}`: 1,
		} {
			page := methodtest.Do[wire.CronRunsPage](t, h, wire.MethodCronRuns, json.RawMessage(params))
			if len(page.Entries) != want {
				t.Errorf("cron.runs %s: %+v, want %d", params, page, want)
			}
		}
		refused(t, h, wire.MethodCronRuns, m{"scope": "job"}, "must have required property 'id'", "")
		refused(t, h, wire.MethodCronRuns, m{"limit": 201}, "at /limit", "")
		refused(t, h, wire.MethodCronRuns, m{"status": "x"}, "at /status", "")
	})
	t.Run("a job that does not exist", func(t *testing.T) {
		for _, method := range []string{wire.MethodCronGet, wire.MethodCronRemove, wire.MethodCronRun,
			wire.MethodCronScratchGet} {
			refused(t, h, method, m{"id": "nothing"}, "cron job not found: nothing", wire.DetailNoJob)
			refused(t, h, method, m{}, "must have required property 'id'", "")
			refused(t, h, method, m{"id": "a", "jobId": "b"}, "differ", "")
		}
	})
	if r := methodtest.Do[wire.CronRemoved](t, h, wire.MethodCronRemove, m{"jobId": added.ID}); !r.OK ||
		!r.Removed || count(t, h) != 0 {
		t.Errorf("%+v", r)
	}
}

func TestAdd(t *testing.T) {
	t.Parallel()
	h := open(t)
	for _, tt := range []struct {
		name   string
		params m
		want   string
	}{
		{"CR-05 an invalid expression", m{"name": "x", "schedule": m{"kind": "cron", "expr": "99 * * * *"}, "text": "x"},
			`minute "99"`},
		{"CR-31 words", m{"schedule": "every day at nine", "text": "x"}, "want a time like"},
		{"CR-31 a minute out of range", m{"schedule": m{"cron": "61 * * * *"}, "text": "x"}, `minute "61"`},
		{"CR-31 four fields", m{"schedule": "0 9 * *", "text": "x"}, "does not have 5, 6 or 7 fields"},
		{"CR-31 eight fields", m{"cron": "0 0 9 * * * * *", "text": "x"}, `an example is "0 9 * * MON-FRI"`},
		{"CR-36 a turn in the main session", m{"every": "5m", "sessionTarget": "main", "payload": m{"kind": "agentTurn",
			"message": "x"}}, `{"kind":"systemEvent","text":"..."}`},
		{"CR-36 an event elsewhere", m{"every": "5m", "sessionTarget": "isolated", "payload": m{"kind": "systemEvent",
			"text": "x"}}, `{"kind":"agentTurn","message":"..."}`},
		{"an id", m{"id": "mine", "every": "5m", "text": "x"}, "give it a declarationKey"},
		{"an unknown field", m{"every": "5m", "text": "x", "shedule": 1}, `did you mean "schedule"?`},
		{"the current session", m{"every": "5m", "message": "x", "sessionTarget": "current"}, "sessionKey is required"},
		{"a session of another agent", m{"every": "5m", "message": "x", "agentId": "main", "sessionKey": "agent:ops:main"},
			"belongs to another agent"},
		{"nothing", m{}, "payload is required"},
	} {
		t.Run(tt.name, func(t *testing.T) { refused(t, h, wire.MethodCronAdd, tt.params, tt.want, "") })
	}
	refused(t, h, wire.MethodCronAdd, m{"every": "5m", "text": "x", "agentId": "nobody"},
		"unknown agent", "UNKNOWN_AGENT_ID")
	if n := count(t, h); n != 0 {
		t.Errorf("%d jobs were stored", n)
	}
	t.Run("CR-23 flat fields", func(t *testing.T) {
		j := methodtest.Do[wire.CronJob](t, h, wire.MethodCronAdd,
			m{"every_seconds": "300", "prompt": "x", "timezone": "", "deliver": false})
		if j.Schedule.EveryMs != 300_000 || j.Payload.Message != "x" || j.Delivery == nil || j.Delivery.Mode != "none" {
			t.Errorf("%+v", j)
		}
	})
}

func TestDeclared(t *testing.T) {
	t.Parallel()
	h := open(t)
	declare := func(more m) wire.CronDeclared {
		t.Helper()
		params := m{"declarationKey": "app:report", "name": "report", "every": "5m", "message": "x"}
		for k, v := range more {
			params[k] = v
		}
		return methodtest.Do[wire.CronDeclared](t, h, wire.MethodCronAdd, params)
	}
	first := declare(nil)
	if !first.Created || first.Updated || first.Job.ID == "" || first.Preview.Label == "" {
		t.Errorf("%+v", first)
	}
	if again := declare(nil); again.Created || again.Updated || again.Job.ID != first.Job.ID {
		t.Errorf("the same again: %+v", again)
	}
	methodtest.Do[wire.CronJob](t, h, wire.MethodCronUpdate, m{"id": first.Job.ID, "patch": m{"enabled": false}})
	changed := declare(m{"every": "10m"})
	if changed.Created || !changed.Updated || changed.Job.ID != first.Job.ID || changed.Job.Schedule.EveryMs != 600_000 ||
		changed.Job.Enabled {
		t.Errorf("changed: %+v", changed)
	}
	if on := declare(m{"every": "10m", "enabled": true}); !on.Updated || !on.Job.Enabled || count(t, h) != 1 {
		t.Errorf("switched on: %+v", on)
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	h := open(t)
	now := time.Now()
	for i, params := range []m{
		{"name": "b report", "every": "2h", "message": "x", "sessionKey": "agent:main:work"},
		{"name": "A report", "every": "1h", "message": "x", "watchFile": "/tmp/x"},
		{"name": "c off", "cron": "0 9 * * *", "message": "needle", "enabled": false},
		{"name": "d once", "at": now.Add(30 * time.Minute).Format(time.RFC3339), "text": "x"},
	} {
		if err := h.Call(t.Context(), wire.MethodCronAdd, params, nil); err != nil {
			t.Fatalf("%d: %v", i, err)
		}
	}
	for params, want := range map[string]string{
		`{}`:                                   "d A b",
		`{"includeDisabled":true}`:             "d A b c",
		`{"enabled":"all","sortDir":"desc"}`:   "c b A d",
		`{"enabled":"disabled"}`:               "c",
		`{"enabled":"all","sortBy":"name"}`:    "A b c d",
		`{"scheduleKind":"at"}`:                "d",
		`{"scheduleKind":"every"}`:             "A b",
		`{"trigger":"conditional"}`:            "A",
		`{"trigger":"unconditional"}`:          "d b",
		`{"query":" NEEDLE ","enabled":"all"}`: "c",
		`{"query":"report"}`:                   "A b",
		`{"lastRunStatus":"unknown"}`:          "d A b",
		`{"lastRunStatus":"ok"}`:               "",
		`{"agentId":"main"}`:                   "d A b",
		`{"agentId":"ops"}`:                    "",
		`{"sessionKey":"work"}`:                "b",
		`{"limit":1,"offset":1}`:               "A",
		`{"offset":9}`:                         "",
		`{"includeDisabled":true,"sortBy":"updatedAtMs","limit":200}`: "",
	} {
		page := methodtest.Do[wire.CronPage](t, h, wire.MethodCronList, json.RawMessage(params))
		var names []string
		for _, j := range page.Jobs {
			names = append(names, j.Name[:1])
		}
		if got := strings.Join(names, " "); got != want && !strings.Contains(params, "updatedAtMs") {
			t.Errorf("cron.list %s: %s, want %s", params, got, want)
		}
		if len(page.Jobs) > 0 && page.Jobs[0].EffectiveAgent != "main" {
			t.Errorf("%+v", page.Jobs[0])
		}
		if page.Snapshot == "" || len(page.Previews) != len(page.Jobs) {
			t.Errorf("cron.list %s: %+v", params, page)
		}
	}
	t.Run("pages", func(t *testing.T) {
		first := methodtest.Do[wire.CronPage](t, h, wire.MethodCronList,
			m{"includeDisabled": true, "limit": 3, "includeDeliveryPreviews": false})
		if first.Total != 4 || !first.HasMore || first.Next == nil || *first.Next != 3 ||
			first.Previews != nil || first.Limit != 3 {
			t.Errorf("%+v", first)
		}
		second := methodtest.Do[wire.CronPage](t, h, wire.MethodCronList, m{"includeDisabled": true, "limit": 3, "offset": 3})
		if second.HasMore || second.Next != nil || second.Snapshot != first.Snapshot || len(second.Jobs) != 1 {
			t.Errorf("%+v", second)
		}
		if err := h.Call(t.Context(), wire.MethodCronRemove, m{"id": first.Jobs[0].ID}, nil); err != nil {
			t.Fatal(err)
		}
		if third := methodtest.Do[wire.CronPage](t, h, wire.MethodCronList, m{"includeDisabled": true}); third.Snapshot ==
			first.Snapshot {
			t.Error("the snapshot does not change with the list")
		}
	})
	t.Run("compact", func(t *testing.T) {
		raw := methodtest.Do[json.RawMessage](t, h, wire.MethodCronList, m{"compact": true, "includeDisabled": true})
		var page wire.CronCompactPage
		if err := json.Unmarshal(raw, &page); err != nil || len(page.Jobs) != 3 || strings.Contains(string(raw), "payload") ||
			!strings.Contains(string(raw), `"lastRunAtMs":null`) {
			t.Errorf("%s, %v", raw, err)
		}
		if i := slices.IndexFunc(page.Jobs, func(j wire.CronSummary) bool { return j.Trigger }); i < 0 ||
			page.Jobs[i].ScheduleKind != "every" || page.Jobs[i].NextRunAt == nil {
			t.Errorf("%+v", page.Jobs)
		}
	})
	for params, want := range map[string]string{
		`{"limit":201}`:   "/limit",
		`{"offset":-1}`:   "/offset",
		`{"sortBy":"x"}`:  "/sortBy",
		`{"enabled":"x"}`: "/enabled",
	} {
		refused(t, h, wire.MethodCronList, json.RawMessage(params), want, "")
	}
}

func TestScratch(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.Put(func(tx store.Tx) error {
		return tx.Jobs().Put(job.Job{ID: "j1", Name: "n", Enabled: true})
	})
	set := func(params m) wire.CronScratchWritten {
		t.Helper()
		params["id"] = "j1"
		return methodtest.Do[wire.CronScratchWritten](t, h, wire.MethodCronScratchSet, params)
	}
	get := func() wire.CronScratchResult {
		t.Helper()
		return methodtest.Do[wire.CronScratchResult](t, h, wire.MethodCronScratchGet, m{"id": "j1"})
	}
	if g := get(); g.Scratch != nil || g.Revision != 0 || g.MaxBytes != 256<<10 {
		t.Errorf("%+v", g)
	}
	if w := set(m{"content": "one", "expectedRevision": 0}); !w.OK || w.Revision != 1 || w.CronScratchResult == nil ||
		w.Scratch.Content != "one" {
		t.Errorf("%+v", w)
	}
	if w := set(m{"content": "two", "expectedRevision": 0}); w.OK || w.Reason != "revision-conflict" || w.Revision != 1 {
		t.Errorf("%+v", w)
	}
	if g := get(); g.Scratch == nil || g.Scratch.Content != "one" || g.Scratch.Revision != 1 || g.Scratch.UpdatedAt == 0 {
		t.Errorf("%+v", g)
	}
	if w := set(m{"content": nil}); !w.OK || w.Revision != 2 || w.Scratch != nil {
		t.Errorf("%+v", w)
	}
	if g := get(); g.Scratch != nil || g.Revision != 2 {
		t.Errorf("%+v", g)
	}
	refused(t, h, wire.MethodCronScratchSet, m{"id": "j1", "content": strings.Repeat("x", 256<<10+1)},
		"must not have more than", "")
	refused(t, h, wire.MethodCronScratchSet, m{"id": "j2", "content": "x"}, "cron job not found: j2", wire.DetailNoJob)
}

func TestFile(t *testing.T) {
	t.Parallel()
	h := open(t)
	file := `{"version":1,"jobs":[{"id":"a","name":"n","schedule":{"kind":"every","everyMs":60000},"sessionTarget":"main","wakeMode":"now","payload":{"kind":"systemEvent","text":"x"},"future":1}%s]}`
	r := methodtest.Do[wire.CronImported](t, h, wire.MethodCronImport,
		m{"file": json.RawMessage(fmt.Sprintf(file, "")), "source": "jobs.json"})
	if r.Added != 1 || r.Changed != 0 {
		t.Errorf("%+v", r)
	}
	if j, err := h.Jobs.Get(t.Context(), "a"); err != nil || j.Source != "jobs.json" || !j.Principal.IsOwner() {
		t.Errorf("%+v, %v", j, err)
	}
	out := methodtest.Do[wire.CronExported](t, h, wire.MethodCronExport, m{})
	if !strings.Contains(string(out.File), `"future"`) || strings.Contains(string(out.File), "principal") {
		t.Errorf("%s", out.File)
	}
	broken := json.RawMessage(
		fmt.Sprintf(file, `,{"id":"b","schedule":"61 * * * *","text":"x"},{"id":"c","every":"1h","text":"x"}`))
	refused(t, h, wire.MethodCronImport, m{"file": broken}, `job b: schedule: minute "61"`, "")
	if n := count(t, h); n != 1 {
		t.Errorf("%d jobs after a refused file", n)
	}
	r = methodtest.Do[wire.CronImported](t, h, wire.MethodCronImport,
		m{"file": broken, "skip": true, "source": "jobs.json"})
	if r.Added != 1 || len(r.Rejected) != 1 || count(t, h) != 2 {
		t.Errorf("%+v", r)
	}
}

func TestEvent(t *testing.T) {
	t.Parallel()
	h := open(t)
	j := job.Job{ID: "j1", Name: "n", Schedule: job.Schedule{Kind: job.KindEvery, EveryMs: 60_000},
		Principal: chela.Owner("x")}
	h.Bus.Publish(chela.Event{Stream: chela.StreamCron, Data: job.Event{
		Action: "finished", Job: j, Run: job.Run{
			Job:      "j1",
			ID:       "r1",
			Started:  1000,
			Ended:    3000,
			Status:   job.OK,
			Summary:  "done",
			Model:    "mock/m1",
			Delivery: job.WasDelivered,
		},
	}})
	h.Bus.Publish(chela.Event{Stream: chela.StreamCron, Data: job.Event{Action: "removed", Job: j}})
	var got []wire.CronEvent
	for e := range h.Events() {
		if e.Name != wire.EventCron {
			continue
		}
		var c wire.CronEvent
		if err := e.Decode(&c); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(e.Payload), "principal") {
			t.Errorf("%s", e.Payload)
		}
		if got = append(got, c); len(got) == 2 {
			break
		}
	}
	if c := got[0]; c.Action != "finished" || c.JobID != "j1" || c.Job == nil || c.RunID != "r1" || c.DurationMs != 2000 ||
		c.Status != "ok" || c.Provider != "mock" || c.Model != "m1" || c.Delivered == nil {
		t.Errorf("%+v", c)
	}
	if c := got[1]; c.Action != "removed" || c.JobID != "j1" || c.Job != nil || c.RunID != "" {
		t.Errorf("%+v", c)
	}
}
