package sqlite

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	lib "zombiezen.com/go/sqlite"

	"github.com/chela-ai/chela/internal/core/admission"
	"github.com/chela-ai/chela/internal/core/heartbeat"
	"github.com/chela-ai/chela/internal/core/job"
	"github.com/chela-ai/chela/internal/core/journal"
	"github.com/chela-ai/chela/internal/core/lease"
	"github.com/chela-ai/chela/internal/core/node"
	"github.com/chela-ai/chela/internal/core/pairing"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/subagent"
	"github.com/chela-ai/chela/internal/core/usage"
	"github.com/chela-ai/chela/internal/plugin/store/table"
)

// forge runs statements that give the rows they change the checksum crc.
func forge(t *testing.T, path string, crc int64, statements ...string) {
	t.Helper()
	c, err := dial(path, "")
	if err != nil {
		t.Fatal(err)
	}
	err = c.CreateFunction("crc32c", &lib.FunctionImpl{NArgs: -1, Deterministic: true, AllowIndirect: true,
		Scalar: func(lib.Context, []lib.Value) (lib.Value, error) { return lib.IntegerValue(crc), nil }})
	for _, sql := range statements {
		err = errors.Join(err, c.script(t.Context(), sql))
	}
	if err := errors.Join(err, c.Close()); err != nil {
		t.Fatal(err)
	}
}

// columnsOf returns the columns of each table, without crc.
func columnsOf(t *testing.T, path string) map[string][]string {
	t.Helper()
	c, err := dial(path, "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	of := make(map[string][]string)
	if err := c.Query(func(r *table.Row) error { name := r.Text(); of[name] = append(of[name], r.Text()); return nil },
		"SELECT m.name, x.name FROM sqlite_schema m, pragma_table_info(m.name) x WHERE m.type = 'table' ORDER BY m.name, x.cid"); err != nil {
		t.Fatal(err)
	}
	return of
}

// TestChecksumColumns changes each column of each table. The checksum covers all of
// them.
func TestChecksumColumns(t *testing.T) {
	t.Parallel()
	path := oneRowEach(t)
	base, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for table, columns := range columnsOf(t, path) {
		for _, column := range columns {
			n++
			path := put(t, base, nil)
			c, err := dial(path, "")
			if err != nil {
				t.Fatal(err)
			}
			crc, err := c.Number("SELECT crc FROM " + table)
			if err := errors.Join(err, c.Close()); err != nil {
				t.Fatal(err)
			}
			forge(t, path, crc, fmt.Sprintf("UPDATE %s SET %[2]s = coalesce(iif(typeof(%[2]s) = 'text', %[2]s || 'x', %[2]s + 1), (SELECT iif(type = 'TEXT', 'x', 1) FROM pragma_table_info('%[1]s') WHERE name = '%[2]s'))", table, column))
			if _, err := Verify(t.Context(), path); !errors.As(err, new(*DamagedError)) ||
				!strings.Contains(err.Error(), "table "+table+":") {
				t.Errorf("%s.%s was changed: %v", table, column, err)
			}
		}
	}
	if n < 150 {
		t.Errorf("%d columns", n)
	}
}

// TestChecksumUses reads and updates rows that do not match their checksums. Each use
// reports damage, after which nothing is stored.
func TestChecksumUses(t *testing.T) {
	t.Parallel()
	path := oneRowEach(t)
	base, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	columns := columnsOf(t, path)
	type (
		r = store.Reader
		w = store.Tx
	)
	second := func(_ any, err error) error { return err }
	decided := func(d string) string {
		return "UPDATE approval SET decision = '" + d + "', session = 'agent:main:s', tool = 'x'"
	}
	for _, use := range []struct {
		name, table string
		prepare     string // a statement after which the use finds the row
		view        func(r) error
		update      func(w) error
	}{
		{name: "queue.Waiting", table: "item", view: func(v r) error { return second(v.Queue().Waiting("s")) }},
		{name: "queue.Get", table: "item", view: func(v r) error { return second(v.Queue().Get("i")) }},
		{name: "queue.ByKey", table: "item", view: func(v r) error { return second(v.Queue().ByKey("k")) }},
		{name: "queue.Deferred", table: "item", prepare: "UPDATE item SET state = 'owed'",
			view: func(v r) error { return second(v.Queue().Deferred()) }},
		{name: "queue.Put", table: "item",
			update: func(v w) error { return second(v.Queue().Put(queue.Item{ID: "j", Key: "k", Session: "s"})) }},
		{name: "queue.Set", table: "item", update: func(v w) error { return v.Queue().Set(queue.Done, queue.Item{ID: "i"}) }},
		{name: "queue.Take", table: "item",
			update: func(v w) error { return second(v.Queue().Take(queue.Taken, queue.Item{ID: "i"})) }},
		{name: "queue.Finish", table: "item", prepare: "UPDATE item SET state = 'taken', run = id",
			update: func(v w) error { return v.Queue().Finish("i") }},
		{name: "queue.Finish of another item", table: "item", prepare: "UPDATE item SET state = 'taken', run = 'r'",
			update: func(v w) error { return v.Queue().Finish("r") }},
		{name: "queue.Background", table: "item", prepare: "UPDATE item SET owner = 'x'",
			view: func(v r) error { return second(v.Queue().Background(9)) }},
		{name: "queue.OfRun", table: "item", prepare: "UPDATE item SET run = 'r'",
			view: func(v r) error { return second(v.Queue().OfRun("r")) }},
		{name: "sessions.Get", table: "session", view: func(v r) error { return second(v.Sessions().Get("s")) }},
		{name: "sessions.List", table: "session",
			view: func(v r) error { _, _, err := v.Sessions().List(session.Query{}); return err }},
		{name: "sessions.Past", table: "past", view: func(v r) error { return second(v.Sessions().Past("s")) }},
		{name: "sessions.Entries", table: "entry", view: func(v r) error { return second(v.Sessions().Entries("t", 0, 0)) }},
		{name: "sessions.Last", table: "entry", view: func(v r) error { return second(v.Sessions().Last("t", 1)) }},
		{name: "sessions.Delete, item", table: "item", update: func(v w) error { return v.Sessions().Delete("s") }},
		{name: "sessions.Delete, call", table: "call", update: func(v w) error { return v.Sessions().Delete("s") }},
		{name: "sessions.Delete, lease", table: "lease", update: func(v w) error { return v.Sessions().Delete("s") }},
		{name: "calls.Call", table: "call", view: func(v r) error { return second(v.Calls().Call("c")) }},
		{name: "calls.Open", table: "call", view: func(v r) error { return second(v.Calls().Open("r")) }},
		{name: "calls.OpenDetached", table: "call", view: func(v r) error { return second(v.Calls().OpenDetached("s")) }},
		{name: "calls.Recent", table: "call",
			view: func(v r) error { return second(v.Calls().Recent(session.CallQuery{Limit: 1})) }},
		{name: "calls.Move", table: "call", update: func(v w) error { return v.Calls().Move("c", session.Started) }},
		{name: "calls.Close", table: "call", update: func(v w) error { return v.Calls().Close("c", session.Outcome{}) }},
		{name: "calls.Put", table: "call", update: func(v w) error { return v.Calls().Put(session.Call{ID: "c"}) }},
		{name: "runs.Get", table: "run", view: func(v r) error { return second(v.Runs().Get("r")) }},
		{name: "runs.Active", table: "run", view: func(v r) error { return second(v.Runs().Active("s")) }},
		{name: "runs.Orphans", table: "run", prepare: "DELETE FROM lease",
			view: func(v r) error { return second(v.Runs().Orphans("", "me")) }},
		{name: "runs.Put", table: "run", update: func(v w) error { return v.Runs().Put(run.Run{ID: "r"}) }},
		{name: "runs.RequestStop", table: "run", update: func(v w) error { return second(v.Runs().RequestStop("r", "x")) }},
		{name: "leases.Get", table: "lease", view: func(v r) error { return second(v.Leases().Get(lease.Session("s"))) }},
		{name: "leases.Acquire", table: "lease",
			update: func(v w) error { _, _, err := v.Leases().Acquire(lease.Session("s"), "me"); return err }},
		{name: "leases.Release", table: "lease", update: func(v w) error {
			return v.Leases().Release(lease.Lease{Name: lease.Session("s"), Owner: "me", Fence: 1})
		}},
		{name: "approvals.Get", table: "approval", view: func(v r) error { return second(v.Approvals().Get("a")) }},
		{name: "approvals.Pending", table: "approval", view: func(v r) error { return second(v.Approvals().Pending("")) }},
		{name: "approvals.Decided", table: "approval", prepare: decided("deny"),
			view: func(v r) error { return second(v.Approvals().Decided("", 9)) }},
		{name: "approvals.Always", table: "approval", prepare: decided("allow-always"),
			view: func(v r) error { return second(v.Approvals().Always("", "")) }},
		{name: "approvals.Standing", table: "approval", prepare: decided("allow-session"),
			view: func(v r) error { return second(v.Approvals().Standing("agent:main:s", "x")) }},
		{name: "outbox.Get", table: "outbox", view: func(v r) error { return second(v.Outbox().Get("r:0")) }},
		{name: "outbox.Open", table: "outbox", view: func(v r) error { return second(v.Outbox().Open(0)) }},
		{name: "outbox.OfRun", table: "outbox", view: func(v r) error { return second(v.Outbox().OfRun("r")) }},
		{name: "outbox.Undelivered", table: "outbox", prepare: "UPDATE outbox SET state = 'failed'",
			view: func(v r) error { return second(v.Outbox().Undelivered(9)) }},
		{name: "usage.Sums", table: "usage", view: func(v r) error { return second(v.Usage().Sums(usage.Query{})) }},
		{name: "usage.Activity, item", table: "item", prepare: "UPDATE item SET kind = 'message', state = 'done'",
			view: func(v r) error { return second(v.Usage().Activity(usage.Query{})) }},
		{name: "usage.Activity, call", table: "call",
			view: func(v r) error { return second(v.Usage().Activity(usage.Query{})) }},
		{name: "usage.OfRun", table: "usage", view: func(v r) error { return second(v.Usage().OfRun("r")) }},
		{name: "usage.SettleHold", table: "hold", update: func(v w) error { return v.Usage().SettleHold("h", 1) }},
		{name: "devices.Device", table: "device", view: func(v r) error { return second(v.Devices().Device("d")) }},
		{name: "devices.Devices", table: "device", view: func(v r) error { return second(v.Devices().Devices()) }},
		{name: "devices.Requests", table: "device", view: func(v r) error { return second(v.Devices().Requests()) }},
		{name: "devices.PutDevice", table: "device",
			update: func(v w) error { return v.Devices().PutDevice(pairing.Device{ID: "d"}) }},
		{name: "devices.PutRequest", table: "device",
			update: func(v w) error { return v.Devices().PutRequest(pairing.Request{ID: "p", Device: "d"}) }},
		{name: "devices.DropRequest", table: "device", update: func(v w) error { return v.Devices().DropRequest("q") }},
		{name: "guests.Get", table: "guest", view: func(v r) error { return second(v.Guests().Get("c", "a", "g")) }},
		{name: "guests.List", table: "guest", view: func(v r) error { return second(v.Guests().List()) }},
		{name: "guests.Put", table: "guest",
			update: func(v w) error { return v.Guests().Put(admission.Guest{Channel: "c", Account: "a", ID: "g"}) }},
		{name: "children.Get", table: "child", view: func(v r) error { return second(v.Children().Get("c")) }},
		{name: "children.In", table: "child",
			view: func(v r) error { return second(v.Children().In("agent:main:subagent:c")) }},
		{name: "children.Of", table: "child", view: func(v r) error { return second(v.Children().Of("s")) }},
		{name: "children.Open", table: "child", view: func(v r) error { return second(v.Children().Open("")) }},
		{name: "children.Recent", table: "child", view: func(v r) error { return second(v.Children().Recent(9)) }},
		{name: "children.Ended", table: "child", prepare: "UPDATE child SET ended = 1",
			view: func(v r) error { return second(v.Children().Ended(time.Now())) }},
		{name: "children.Put", table: "child",
			update: func(v w) error { return v.Children().Put(subagent.Child{ID: "c", Session: "agent:main:subagent:c"}) }},
		{name: "jobs.Get", table: "job", view: func(v r) error { return second(v.Jobs().Get("j")) }},
		{name: "jobs.List", table: "job", view: func(v r) error { return second(v.Jobs().List()) }},
		{name: "jobs.Due", table: "job", view: func(v r) error { return second(v.Jobs().Due(time.Now(), 9)) }},
		{name: "jobs.Put", table: "job", update: func(v w) error { return v.Jobs().Put(job.Job{ID: "j"}) }},
		{name: "jobs.Run", table: "job_run", view: func(v r) error { return second(v.Jobs().Run("k")) }},
		{name: "jobs.OpenRuns", table: "job_run", view: func(v r) error { return second(v.Jobs().OpenRuns()) }},
		{name: "jobs.Runs", table: "job_run", prepare: "UPDATE job_run SET ended = 1",
			view: func(v r) error { _, _, err := v.Jobs().Runs(job.Query{Limit: 1}); return err }},
		{name: "jobs.Runs, with a condition", table: "job_run", prepare: "UPDATE job_run SET ended = 1",
			view: func(v r) error { _, _, err := v.Jobs().Runs(job.Query{Limit: 1, Text: "x"}); return err }},
		{name: "jobs.PutRun", table: "job_run", update: func(v w) error { return v.Jobs().PutRun(job.Run{ID: "k"}) }},
		{name: "heartbeats.Wakes", table: "wake", view: func(v r) error { return second(v.Heartbeats().Wakes()) }},
		{name: "heartbeats.Wake", table: "wake", view: func(v r) error { return second(v.Heartbeats().Wake("s")) }},
		{name: "heartbeats.PutWake", table: "wake",
			update: func(v w) error { return v.Heartbeats().PutWake(heartbeat.Wake{Session: "s"}) }},
		{name: "heartbeats.States", table: "heartbeat", view: func(v r) error { return second(v.Heartbeats().States()) }},
		{name: "heartbeats.State", table: "heartbeat", view: func(v r) error { return second(v.Heartbeats().State("main")) }},
		{name: "heartbeats.PutState", table: "heartbeat",
			update: func(v w) error { return v.Heartbeats().PutState(heartbeat.State{Agent: "main"}) }},
		{name: "invocations.Get", table: "invocation", view: func(v r) error { return second(v.Invocations().Get("k")) }},
		{name: "invocations.Put", table: "invocation",
			update: func(v w) error { return v.Invocations().Put(node.Invocation{Key: "k"}) }},
		{name: "changes.Get", table: "change", view: func(v r) error { return second(v.Changes().Get("c")) }},
		{name: "changes.List", table: "change", view: func(v r) error { return second(v.Changes().List(journal.Query{})) }},
		{name: "changes.Open", table: "change", prepare: "UPDATE change SET state = 'planned'",
			view: func(v r) error { return second(v.Changes().Open()) }},
		{name: "changes.Latest", table: "change", view: func(v r) error { return second(v.Changes().Latest("/w")) }},
		{name: "changes.LatestOf", table: "change", view: func(v r) error { return second(v.Changes().LatestOf("/w/f")) }},
		{name: "changes.Set", table: "change", update: func(v w) error { return v.Changes().Set(journal.Change{ID: "c"}) }},
		{name: "changes.Prune", table: "change",
			update: func(v w) error { return second(v.Changes().Prune(time.Now(), 1<<30)) }},
		{name: "media of entries", table: "entry", prepare: "UPDATE entry SET flags = 32",
			view: func(v r) error { return second(v.Media()) }},
		{name: "media of items", table: "item", prepare: `UPDATE item SET inbound = '{"ref":"x"}'`,
			view: func(v r) error { return second(v.Media()) }},
		{name: "media of parts", table: "outbox", prepare: "UPDATE outbox SET media = '[]'",
			view: func(v r) error { return second(v.Media()) }},
		{name: "media of changes", table: "change", prepare: `UPDATE change SET kept = 1, change = '{"ref":"x"}'`,
			view: func(v r) error { return second(v.Media()) }},
		{name: "setting", table: "setting", view: func(v r) error { return second(v.Setting("a")) }},
	} {
		t.Run(use.name, func(t *testing.T) {
			for _, changed := range []bool{false, true} {
				path := put(t, base, nil)
				c, err := dial(path, "")
				if err != nil {
					t.Fatal(err)
				}
				if err := errors.Join(c.script(t.Context(), use.prepare), c.Close()); err != nil {
					t.Fatal(err)
				}
				if changed {
					forge(t, path, 1, fmt.Sprintf("UPDATE %s SET %[2]s = %[2]s", use.table, columns[use.table][0]))
				}
				d := openAt(t, path)
				if use.view != nil {
					err = d.View(t.Context(), use.view)
				} else {
					err = d.Update(t.Context(), store.Ordered, use.update)
				}
				later := d.Update(t.Context(), store.Ordered, func(store.Tx) error { return nil })
				for _, err := range []error{err, later} {
					if errors.As(err, new(*DamagedError)) != changed || changed && !strings.Contains(err.Error(), "checksum") {
						t.Errorf("changed %v: %v", changed, err)
					}
				}
			}
		})
	}
}
