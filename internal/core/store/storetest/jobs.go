package storetest

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/job"
	"github.com/chela-ai/chela/internal/core/store"
)

// testJobs reads and writes scheduled jobs.
func testJobs(t *testing.T, s store.Store) {
	yes := true
	after := job.Millis(0)
	full := job.Job{
		ID:             "full",
		Name:           "Report",
		Description:    "d",
		DeclarationKey: "k",
		DisplayName:    "D",
		Enabled:        true,
		DeleteAfterRun: &yes,
		Agent:          "ops",
		Session:        "agent:main:main",
		Created:        job.At(at(1)),
		Updated:        job.At(at(2)),
		Schedule:       job.Schedule{Kind: job.KindCron, Expr: "0 9 * * *", TZ: "Europe/Berlin", StaggerMs: &after},
		Trigger:        &job.Trigger{Script: "file a", Once: true},
		Target:         job.TargetIsolated,
		Wake:           job.WakeNow,
		Payload:        job.Payload{Kind: job.AgentTurn, Message: "m", Tools: []string{"read"}},
		Delivery: &job.Delivery{Mode: job.Announce, Channel: "telegram", To: "7",
			Failure: &job.Destination{Channel: job.Last}},
		FailureAlert: &job.Alert{After: 3, CooldownMs: &after},

		State:     job.State{Next: job.At(at(10)), Run: "r", Delivered: &yes},
		Principal: chela.Owner("socket"),

		Address: chela.Address{Channel: "telegram", Peer: chela.Peer{Kind: chela.Direct, ID: "7"}},
		Source:  "jobs.json",
		Extra:   map[string]json.RawMessage{"x": json.RawMessage(`{"y":1}`)},
	}
	simple := func(id job.ID, next int, enabled bool) job.Job {
		return job.Job{ID: id, Name: string(id), Enabled: enabled, State: job.State{Next: job.At(at(next))}}
	}
	early, off, idle := simple("early", 5, true), simple("off", 1, false),
		job.Job{ID: "idle", Enabled: true, FailureAlert: &job.Alert{Off: true}}
	same(t, "next of no jobs",
		get(t, s, func(r store.Reader) (bool, error) { n, err := r.Jobs().Next(); return n.IsZero(), err }), true)
	update(t, s, func(tx store.Tx) error { return each(tx.Jobs().Put, full, early, off, idle) })
	get1 := func(id job.ID) (job.Job, error) {
		return store.Get(t.Context(), s, func(r store.Reader) (job.Job, error) { return r.Jobs().Get(id) })
	}
	for _, want := range []job.Job{full, early, off, idle} {
		got, err := get1(want.ID)
		same(t, "job", got, want)
		same(t, "error", err, nil)
	}
	_, err := get1("x")
	fails(t, "unknown job", err, chela.ErrNotFound)
	ids := func(f func(job.Reader) ([]job.Job, error)) (out []job.ID) {
		for _, j := range get(t, s, func(r store.Reader) ([]job.Job, error) { return f(r.Jobs()) }) {
			out = append(out, j.ID)
		}
		return out
	}
	due := func(minute, n int) []job.ID {
		return ids(func(r job.Reader) ([]job.Job, error) { return r.Due(at(minute), n) })
	}
	same(t, "list", ids(job.Reader.List), []job.ID{"full", "early", "off", "idle"})
	same(t, "count", get(t, s, func(r store.Reader) (int, error) { return r.Jobs().Count() }), 4)
	same(t, "due too early", due(4, 9), nil)
	same(t, "due at its time", due(5, 9), []job.ID{"early"})
	same(t, "due, earliest first", due(10, 9), []job.ID{"early", "full"})
	same(t, "due, limited", due(10, 1), []job.ID{"early"})
	same(t, "next",
		get(t, s, func(r store.Reader) (int64, error) { n, err := r.Jobs().Next(); return n.UnixMilli(), err }),
		at(5).UnixMilli())
	relative := []job.Job{simple("every", 6, true), simple("off, every", 6, false), simple("retry", 6, true),
		simple("late", 6, true)}
	relative[0].Schedule.Kind, relative[1].Schedule.Kind = job.KindEvery, job.KindEvery
	relative[2].State.Retries, relative[3].State.Missed = 1, 2
	update(t, s, func(tx store.Tx) error { return each(tx.Jobs().Put, relative...) })
	same(t, "relative", ids(job.Reader.Relative), []job.ID{"every", "retry", "late"})
	update(t, s, func(tx store.Tx) (err error) {
		for _, j := range relative {
			_, err = tx.Jobs().Delete(j.ID)
		}
		return err
	})
	early.Enabled, full.State.Next = false, job.At(at(20))
	update(t, s, func(tx store.Tx) error { return each(tx.Jobs().Put, early, full) })
	same(t, "due after a change", due(19, 9), nil)
	same(t, "order after a change", ids(job.Reader.List), []job.ID{"full", "early", "off", "idle"})
	for _, existed := range []bool{true, false} {
		update(t, s, func(tx store.Tx) error {
			got, err := tx.Jobs().Delete("off")
			same(t, "deleted", got, existed)
			return err
		})
	}
	same(t, "list after a deletion", ids(job.Reader.List), []job.ID{"full", "early", "idle"})
}

// testJobRuns claims slots of jobs and reads the runs.
func testJobRuns(t *testing.T, s store.Store) {
	claim := func(r job.Run) (ok bool) {
		update(t, s, func(tx store.Tx) (err error) { ok, err = tx.Jobs().Claim(r); return err })
		return ok
	}
	run := func(id chela.RunID, of job.ID, slot int) job.Run {
		return job.Run{
			ID:      id,
			Job:     of,
			Name:    "Name of " + string(of),
			Slot:    job.At(at(slot)),
			Agent:   "main",
			Session: "agent:main:main",
			Started: job.At(at(slot)),
		}
	}
	a1, a2, b1 := run("a1", "a", 1), run("a2", "a", 2), run("b1", "b", 1)
	for _, r := range []job.Run{a1, a2, b1} {
		same(t, "claimed", claim(r), true)
	}
	same(t, "claimed twice", claim(run("other", "a", 1)), false)
	get1 := func(id chela.RunID) (job.Run, error) {
		return store.Get(t.Context(), s, func(r store.Reader) (job.Run, error) { return r.Jobs().Run(id) })
	}
	got, err := get1("a1")
	same(t, "run", got, a1)
	same(t, "error", err, nil)
	_, err = get1("other")
	fails(t, "run of a lost claim", err, chela.ErrNotFound)
	ids := func(list []job.Run) (out []chela.RunID) {
		for _, r := range list {
			out = append(out, r.ID)
		}
		return out
	}
	open := func() []chela.RunID {
		return ids(get(t, s, func(r store.Reader) ([]job.Run, error) { return r.Jobs().OpenRuns() }))
	}
	query := func(q job.Query) (list []chela.RunID, total int) {
		view(t, s, func(r store.Reader) error {
			runs, n, err := r.Jobs().Runs(q)
			list, total = ids(runs), n
			return err
		})
		return list, total
	}
	same(t, "open", open(), []chela.RunID{"a1", "a2", "b1"})
	_, n := query(job.Query{Limit: 9})
	same(t, "ended", n, 0)
	a1.Ended, a1.Status, a1.Summary = job.At(at(3)), job.OK, "All is well"
	a2.Ended, a2.Status, a2.Error, a2.Delivery = job.At(at(4)), job.Failed, "no disk", job.NotDelivered
	b1.Ended, b1.Status, b1.Agent = job.At(at(5)), job.Skipped, "ops"
	update(t, s, func(tx store.Tx) error { return each(tx.Jobs().PutRun, a1, a2, b1) })
	got, _ = get1("a2")
	same(t, "ended run", got, a2)
	same(t, "open later", open(), nil)
	for _, tt := range []struct {
		name  string
		q     job.Query
		want  []chela.RunID
		total int
	}{
		{"all", job.Query{Limit: 9}, []chela.RunID{"b1", "a2", "a1"}, 3},
		{"oldest first", job.Query{Limit: 9, Oldest: true}, []chela.RunID{"a1", "a2", "b1"}, 3},
		{"a page", job.Query{Limit: 1, Offset: 1}, []chela.RunID{"a2"}, 3},
		{"of a job", job.Query{Job: "a", Limit: 9}, []chela.RunID{"a2", "a1"}, 2},
		{"of an agent", job.Query{Agent: "ops", Limit: 9}, []chela.RunID{"b1"}, 1},
		{"by status", job.Query{Statuses: []job.Status{job.OK, job.Failed}, Limit: 1, Offset: 1}, []chela.RunID{"a1"}, 2},
		{"by delivery", job.Query{Deliveries: []job.Delivered{job.NotRequested}, Limit: 9}, []chela.RunID{"b1", "a1"}, 2},
		{"by text", job.Query{Text: "DISK", Limit: 9}, []chela.RunID{"a2"}, 1},
		{"by id", job.Query{Run: "a1", Limit: 9}, []chela.RunID{"a1"}, 1},
	} {
		list, total := query(tt.q)
		same(t, tt.name, list, tt.want)
		same(t, tt.name+", in all", total, tt.total)
	}
	same(t, "claimed again after its end", claim(run("late", "a", 1)), false)
	a3 := run("a3", "a", 6)
	same(t, "claimed", claim(a3), true)
	for _, p := range []struct{ keep, n int }{{2, 0}, {1, 1}, {1, 0}} {
		update(t, s, func(tx store.Tx) error {
			n, err := tx.Jobs().PruneRuns(p.keep)
			same(t, "pruned", n, p.n)
			return err
		})
	}
	list, _ := query(job.Query{Limit: 9})
	same(t, "left", list, []chela.RunID{"b1", "a2"})
	same(t, "open runs are kept", open(), []chela.RunID{"a3"})
	err = s.Update(t.Context(), store.Ordered, func(tx store.Tx) error {
		_, err := tx.Jobs().Claim(run("a3", "c", 1))
		return err
	})
	if err == nil || errors.Is(err, chela.ErrNotFound) {
		t.Errorf("a second run with one id: %v", err)
	}
}
