package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/admission"
	"github.com/chela-ai/chela/internal/core/approval"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/heartbeat"
	"github.com/chela-ai/chela/internal/core/job"
	"github.com/chela-ai/chela/internal/core/journal"
	"github.com/chela-ai/chela/internal/core/lease"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/node"
	"github.com/chela-ai/chela/internal/core/outbox"
	"github.com/chela-ai/chela/internal/core/pairing"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/subagent"
	"github.com/chela-ai/chela/internal/core/usage"
	"github.com/chela-ai/chela/internal/plugin/store/sqlite/page"
	"github.com/chela-ai/chela/internal/plugin/store/table"
)

// sessionData is the content of a session.
type sessionData struct {
	Meta    session.Meta
	Entries []session.Entry
	Past    []session.Past
}

// conversations adds sessions of several lengths to the database.
func conversations(tb testing.TB, d *DB, from, to int) {
	tb.Helper()
	now := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	for n := from; n < to; n++ {
		key := chela.SessionKey(fmt.Sprintf("agent:main:s-%02d", n))
		id := fmt.Sprintf("transcript-%02d", n)
		err := d.Update(tb.Context(), store.Ordered, func(tx store.Tx) error {
			r := run.Run{
				ID:        chela.RunID(fmt.Sprint("run-", n)),
				Session:   key,
				SessionID: id,
				Agent:     "main",
				State:     run.OK,
				Started:   now,
				Ended:     now,
			}
			if _, _, err := tx.Leases().Acquire(lease.Session(key), "me"); err != nil {
				return err
			}
			for i := range 3 + n*n%11 {
				size := 20 + (i*n*531)%1000
				if i == 7 && n%5 == 0 {
					size = 20_000 // needs overflow pages
				}
				e := &session.Entry{
					ID:      fmt.Sprint(i),
					Kind:    session.KindMessage,
					Time:    now,
					Run:     r.ID,
					Message: llm.User(strings.Repeat(fmt.Sprintf("%d.%d ", n, i), size/5)),
				}
				if err := tx.Sessions().Append(id, e); err != nil {
					return err
				}
			}
			return errors.Join(tx.Runs().Put(r), tx.Sessions().Put(session.Meta{
				Key:     key,
				ID:      id,
				Agent:   "main",
				Updated: now,
				Label:   "label",
			}))
		})
		if err != nil {
			tb.Fatal(err)
		}
	}
}

// String returns the content as JSON for comparison.
func (t sessionData) String() string {
	b, err := json.Marshal(t)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// readSessions reads all sessions.
func readSessions(tb testing.TB, path string) map[chela.SessionKey]sessionData {
	tb.Helper()
	d := &DB{opts: Options{Path: path}}
	c, err := d.openReader()
	if err != nil {
		tb.Fatal(err)
	}
	defer c.Close()
	all, err := sessionsOf(table.Reader{C: c.Tables})
	if err != nil {
		tb.Fatal(err)
	}
	return all
}

func sessionsOf(r store.Reader) (map[chela.SessionKey]sessionData, error) {
	all := make(map[chela.SessionKey]sessionData)
	list, _, err := r.Sessions().List(session.Query{Limit: 1000})
	for _, m := range list {
		entries, err1 := r.Sessions().Entries(m.ID, 0, 0)
		past, err2 := r.Sessions().Past(m.Key)
		all[m.Key] = sessionData{m, entries, past}
		err = errors.Join(err, err1, err2)
	}
	return all, err
}

// damagedBase returns the files of a database with 50 sessions. The last ten are
// only in the log.
func damagedBase(tb testing.TB) (db, log []byte) {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "chela.db")
	d, err := Open(tb.Context(), Options{Path: path})
	if err != nil {
		tb.Fatal(err)
	}
	conversations(tb, d, 0, 40)
	if err := d.Close(); err != nil {
		tb.Fatal(err)
	}
	if d, err = Open(tb.Context(), Options{Path: path}); err != nil {
		tb.Fatal(err)
	}
	defer d.Close()
	conversations(tb, d, 40, 50)
	db, err1 := os.ReadFile(path)
	log, err2 := os.ReadFile(path + "-wal")
	if err := errors.Join(err1, err2); err != nil {
		tb.Fatal(err)
	}
	return db, log
}

// tempDir is tb.TempDir on a RAM disk if the system has one.
func tempDir(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "chela-test-")
	if err != nil {
		return tb.TempDir()
	}
	tb.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func put(tb testing.TB, db, log []byte) string {
	tb.Helper()
	path := filepath.Join(tempDir(tb), "chela.db")
	if err := os.WriteFile(path, db, 0o600); err != nil {
		tb.Fatal(err)
	}
	if log != nil {
		if err := os.WriteFile(path+"-wal", log, 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	return path
}

// readableRows returns the rows on the pages of a database, by table, rowid and
// values.
func readableRows(tb testing.TB, path string) map[string]bool {
	tb.Helper()
	p, err := page.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer p.Close()
	rows := make(map[string]bool)
	for r, err := range p.Rows() {
		if err == nil {
			rows[fmt.Sprint(len(r.Values), r.ID, r.Values)] = true
		}
	}
	return rows
}

// owners returns the session of each row.
func owners(tb testing.TB, path string) map[string]chela.SessionKey {
	tb.Helper()
	p, err := page.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer p.Close()
	of := make(map[string]chela.SessionKey)
	key := func(n int64) chela.SessionKey { return chela.SessionKey(fmt.Sprintf("agent:main:s-%02d", n)) }
	for r, err := range p.Rows() {
		if err != nil {
			continue
		}
		name := fmt.Sprint(len(r.Values), r.ID, r.Values)
		switch len(r.Values) {
		case 4, 5, 11, 27: // transcript, lease, session, run: written in the order of the sessions
			of[name] = key(r.ID - 1)
		case 28:
			of[name] = key(r.ID>>table.SeqBits - 1)
		}
	}
	return of
}

func TestSalvage(t *testing.T) {
	t.Parallel()
	db, log := damagedBase(t)
	intact := put(t, db, log)
	owner := owners(t, intact)
	want := make(map[chela.SessionKey]string)
	for key, data := range readSessions(t, put(t, db, log)) {
		want[key] = data.String()
	}
	if len(want) != 50 {
		t.Fatalf("%d sessions, want 50", len(want))
	}
	pageCount := len(db) / 4096
	const header, frame = 32, 24 + 4096 // sizes in the log
	type damage struct {
		name string
		do   func(r *rand.Rand, db, log []byte) ([]byte, []byte)
	}
	kinds := []damage{
		{"a page zeroed", func(r *rand.Rand, db, log []byte) ([]byte, []byte) {
			n := r.IntN(pageCount)
			clear(db[n*4096 : (n+1)*4096])
			return db, log
		}},
		{"a bit flipped", func(r *rand.Rand, db, log []byte) ([]byte, []byte) {
			n := r.IntN(len(db))
			db[n] ^= 1 << r.IntN(8)
			return db, log
		}},
		{"the tail cut", func(r *rand.Rand, db, log []byte) ([]byte, []byte) {
			return db[:len(db)-r.IntN(len(db)/4)], log
		}},
		{"the log missing", func(_ *rand.Rand, db, _ []byte) ([]byte, []byte) { return db, nil }},
		{"the log cut", func(r *rand.Rand, db, log []byte) ([]byte, []byte) { return db, log[:r.IntN(len(log))] }},
		{"a bit of the log flipped", func(r *rand.Rand, db, log []byte) ([]byte, []byte) {
			n := r.IntN(len(log) / frame)
			log[header+n*frame+r.IntN(frame)] ^= 1 << r.IntN(8)
			return db, log
		}},
		{"the first page zeroed", func(_ *rand.Rand, db, log []byte) ([]byte, []byte) {
			clear(db[:4096])
			return db, log
		}},
		{"nothing", func(_ *rand.Rand, db, log []byte) ([]byte, []byte) { return db, log }},
	}
	seeds := uint64(200)
	if race {
		seeds = 36 // three of each
	}
	for seed := range seeds {
		kind := kinds[min(int(seed)%12, 11)%8]
		if seed%12 > 7 {
			kind = kinds[seed%2] // more seeds for the common kinds
		}
		t.Run(fmt.Sprintf("%d %s", seed, kind.name), func(t *testing.T) {
			t.Parallel()
			d, l := kind.do(rand.New(rand.NewPCG(seed, 1)), slices.Clone(db), slices.Clone(log))
			path := put(t, d, l)
			dst := filepath.Join(filepath.Dir(path), "new.db")
			p, err := page.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			report := Report{Rows: make(map[string]int)}
			if err := rebuild(t.Context(), p, dst, &report); err != nil { // Salvage without its sync
				t.Fatal(err)
			}
			if _, err := Verify(t.Context(), dst); err != nil {
				t.Fatalf("salvaged database: %v", err)
			}
			// A session must be intact if all of its rows are readable.
			readable := readableRows(t, path)
			broken := make(map[chela.SessionKey]bool)
			for row, key := range owner {
				if !readable[row] {
					broken[key] = true
				}
			}
			got := readSessions(t, dst)
			for key, w := range want {
				reported := slices.Contains(report.Damaged, key)
				same := w == got[key].String()
				switch {
				case !broken[key] && !same:
					t.Errorf("%s: its pages are intact, but its content differs", key)
				case !broken[key] && reported:
					t.Errorf("%s: reported as damaged, but its pages are intact", key)
				case !same && !reported && strings.Contains(kind.name, "zeroed"):
					t.Errorf("%s: its content differs, but it is not reported", key)
				}
			}
			switch kind.name {
			case "nothing":
				if len(broken)+len(report.Damaged)+report.Bad+len(report.Orphaned) > 0 {
					t.Errorf("damage in an intact file: %v, %+v", broken, report)
				}
			case "a page zeroed", "a bit flipped":
				if len(broken) > 49 {
					t.Errorf("one page broke %d sessions", len(broken))
				}
			}
		})
	}
}

func TestRecover(t *testing.T) {
	t.Parallel()
	db, log := damagedBase(t)
	want := readSessions(t, put(t, db, log))
	clear(db[:4096]) // header and schema
	path := put(t, db, nil)
	_, err := Open(t.Context(), Options{Path: path})
	if !errors.As(err, new(*DamagedError)) || !strings.Contains(chela.HintOf(err), "salvage") {
		t.Fatalf("open: have error %v (hint %q), want a *DamagedError with a hint", err, chela.HintOf(err))
	}
	report, err := Recover(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	checkPrivate(t, path, report.Renamed)
	got := readSessions(t, path)
	for key, w := range want {
		if w.Meta.ID < "transcript-40" && w.String() != got[key].String() {
			t.Errorf("%s: its content differs", key)
		}
	}
	if saved, err := os.ReadFile(report.Renamed); err != nil || string(saved) != string(db) {
		t.Errorf("the damaged file is missing: %v", err)
	}
	if len(report.Damaged) > 0 {
		t.Errorf("damaged: %v", report.Damaged)
	}
}

// TestUnrecovered makes each preparation of a recovery fail. It returns an error and
// leaves the database where it is.
func TestUnrecovered(t *testing.T) {
	t.Parallel()
	none := filepath.Join(t.TempDir(), "none.db")
	if _, err := Salvage(t.Context(), none, none+".new"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no database: %v", err)
	}
	source := open(t)
	mustSet(t, source, "a", "1")
	for _, suffix := range []string{".salvaged", ".salvaged.part"} {
		path := filepath.Join(t.TempDir(), "chela.db")
		if err := source.Backup(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(path+suffix, "x"), 0o700); err != nil {
			t.Fatal(err)
		}
		if report, err := Recover(t.Context(), path); err == nil || report.Renamed != "" {
			t.Errorf("%s is in the way: %+v, %v", suffix, report, err)
		}
		if v := settingOf(t, openAt(t, path), "a"); v != "1" {
			t.Errorf("%s is in the way: the database is lost", suffix)
		}
	}
}

// TestValidText checks which texts of a row are refused as damaged.
func TestValidText(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		column, text string
		want         bool
	}{
		{"meta", `{"label":"x"}`, true}, {"meta", "", true}, {"meta", `{"label":"x"`, false}, {"meta", `{"label":7}`, false},
		{"meta", "{\"label\":\"\xff\"}", false}, {"parts", `[{}]`, true},
		{"parts", "[\"\xc3\"]", false}, {"parts", "[", false},
		{"inbound", "{}", true}, {"inbound", "[]", false}, {"principal", "7", false}, {"name", "{", true},
	} {
		if got := validText(tt.column, tt.text); got != tt.want {
			t.Errorf("%s %q: %v, want %v", tt.column, tt.text, got, tt.want)
		}
	}
}

// TestSalvageFillsGaps deletes entries in the middle and at the end of a transcript: the others
// keep their ids and places.
func TestSalvageFillsGaps(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "chela.db")
	d, err := Open(t.Context(), Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	err = d.Update(t.Context(), store.Synced, func(tx store.Tx) error {
		for i := range 8 {
			e := &session.Entry{ID: fmt.Sprint(i), Kind: session.KindMessage, Message: llm.User("m")}
			switch i {
			case 4:
				e = &session.Entry{ID: "cut", Kind: session.KindCut, First: 4}
			case 5:
				e = &session.Entry{ID: "prune", Kind: session.KindPrune, Prune: &session.Prune{Clear: []int64{4}}}
			}
			if err := tx.Sessions().Append("t", e); err != nil {
				return err
			}
		}
		return tx.Sessions().Put(session.Meta{Key: "s", ID: "t"})
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.writer.c.Exec("DELETE FROM entry WHERE pos IN (1 << 32 | 2, 1 << 32 | 3, 1 << 32 | 8)"); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Verify(t.Context(), path); !errors.As(err, new(*DamagedError)) {
		t.Errorf("verify: have %v, want a *DamagedError", err)
	}
	report, err := Recover(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]chela.SessionKey{"s"}, report.Damaged); diff != "" {
		t.Errorf("damaged (-want +got):\n%s", diff)
	}
	entries := readSessions(t, path)["s"].Entries
	var ids []string
	for i, e := range entries {
		ids = append(ids, e.ID)
		if e.Seq != int64(i+1) {
			t.Errorf("entry %s: seq %d, want %d", e.ID, e.Seq, i+1)
		}
		if e.Kind == session.KindCut && e.First != 4 ||
			e.Kind == session.KindPrune && !slices.Equal(e.Prune.Clear, []int64{4}) || e.ID == "3" && e.Seq != 4 {
			t.Errorf("another place: %+v", e)
		}
		if said := e.Text == lostText; said != (e.ID == "lost-1-2" || e.ID == "lost-1-8") {
			t.Errorf("entry %s says %q", e.ID, e.Text)
		}
	}
	if diff := cmp.Diff([]string{"0", "lost-1-2", "lost-1-3", "3", "cut", "prune", "6", "lost-1-8"}, ids); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}

// oneRowEach creates a database with one row in each table.
func oneRowEach(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(tempDir(t), "chela.db")
	d, err := Open(t.Context(), Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().Round(0).UTC()
	hold := usage.Hold{ID: "h", Run: "r", Scopes: []usage.Scope{{Name: "tree:r"}}, Nano: 7, Created: now}
	if err := d.Update(t.Context(), store.Synced, func(tx store.Tx) error {
		_, err1 := tx.Queue().Put(queue.Item{
			ID:        "i",
			Key:       "k",
			Session:   "s",
			Kind:      queue.Event,
			Next:      true,
			Skipped:   3,
			Overrides: run.Overrides{Think: "low"},
		})
		_, _, err2 := tx.Leases().Acquire(lease.Session("s"), "me")
		return errors.Join(err1, err2, tx.SetSetting("a", "1"), usage.Reserve(tx.Usage(), hold),
			tx.Leases().Beat("me", time.Hour),
			tx.Usage().Add(usage.Row{Run: "r", Session: "s", Agent: "main", Time: now}),
			tx.Runs().Put(run.Run{ID: "r", Session: "s", SessionID: "t", State: run.Running, Kind: run.Turn, Started: now}),
			tx.Calls().Plan(session.Call{ID: "c", Run: "r", Session: "s", Rights: []string{"net"}, Detached: true}),
			tx.Approvals().Put(approval.Request{ID: "a", Session: "s", Created: now}),
			tx.Outbox().Put(outbox.Row{
				Key:     "r:0",
				Run:     "r",
				Session: "s",
				Origin:  chela.Origin{Kind: chela.OriginCron, ID: "job"},
				State:   outbox.Pending,
			}),
			tx.Devices().PutDevice(pairing.Device{ID: "d", Created: now}),
			tx.Devices().PutRequest(pairing.Request{ID: "q", Device: "d"}),
			tx.Guests().Put(admission.Guest{Channel: "c", Account: "a", ID: "g"}),
			tx.Children().Put(subagent.Child{ID: "c", Session: "agent:main:subagent:c", Requester: "s"}),
			tx.Jobs().Put(job.Job{ID: "j", Enabled: true, State: job.State{Next: 1}}),
			claim(tx, job.Run{ID: "k", Job: "j", Slot: 1}),
			tx.Heartbeats().PutWake(heartbeat.Wake{Session: "s"}), tx.Heartbeats().PutState(heartbeat.State{Agent: "main"}),
			tx.Invocations().Put(node.Invocation{Key: "k"}),
			tx.Changes().Add(journal.Change{
				ID:     "c",
				Kind:   journal.File,
				Target: "/w/f",
				State:  journal.Done,
				After:  journal.Version{Exists: true},
			}),
			tx.Sessions().Append("t", &session.Entry{ID: "e", Kind: session.KindVoid, Voids: session.Ref{Run: "old"}}),
			tx.Sessions().Put(session.Meta{Key: "s", ID: "t", Agent: "main", Updated: now}),
			tx.Sessions().Archive("s", session.Past{ID: "t"}))
	}); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func claim(tx store.Tx, r job.Run) error {
	_, err := tx.Jobs().Claim(r)
	return err
}

// TestSalvageChanged salvages a database with a changed entry, which is left out.
func TestSalvageChanged(t *testing.T) {
	t.Parallel()
	path := filepath.Join(tempDir(t), "chela.db")
	d := openAt(t, path)
	conversations(t, d, 0, 4)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	want := readSessions(t, path)
	forge(t, path, 1, "UPDATE entry SET text = 'changed' WHERE pos = (3 << 32) + 2")
	report, err := Recover(t.Context(), path)
	if err != nil || report.Changed != 1 || report.Bad > 0 ||
		!slices.Equal(report.Damaged, []chela.SessionKey{"agent:main:s-02"}) {
		t.Fatalf("recover: %+v, %v", report, err)
	}
	got := readSessions(t, path)
	for key, w := range want {
		entries := got[key].Entries
		for i, e := range w.Entries {
			if key == "agent:main:s-02" && i == 1 {
				if i >= len(entries) || entries[i].Text != lostText {
					t.Errorf("%s: there is no notice in place of %s", key, e.ID)
				}
				continue
			}
			if i >= len(entries) || entries[i].ID != e.ID || entries[i].Message.PlainText() != e.Message.PlainText() {
				t.Errorf("%s: entry %d is not %s", key, i, e.ID)
			}
		}
	}
	if _, err := Verify(t.Context(), path); err != nil {
		t.Error(err)
	}
}

// TestSalvageTables salvages one row of each table with rowids except devices
// and guests, which are not recovered.
func TestSalvageTables(t *testing.T) {
	t.Parallel()
	path := oneRowEach(t)
	report, err := Recover(t.Context(), path)
	if err != nil || report.Bad > 0 || len(report.Damaged) > 0 {
		t.Fatalf("recover: %+v, %v", report, err)
	}
	for _, name := range []string{
		"setting", "transcript", "lease", "past", "hold", "approval", "session",
		"usage", "outbox", "item", "call", "run", "entry", "child", "job", "job_run", "wake", "heartbeat",
		"change", "invocation",
	} {
		if report.Rows[name] != 1 {
			t.Errorf("%s: %d rows, want 1", name, report.Rows[name])
		}
	}
	if len(report.Rows) != 20 {
		t.Errorf("rows of %d tables: %v", len(report.Rows), report.Rows)
	}
	if err := openAt(t, path).View(t.Context(), func(r store.Reader) error {
		spent, err1 := r.Usage().Committed("tree:r")
		held, err2 := r.Leases().Get(lease.Session("s"))
		alive, err3 := r.Leases().Alive("me")
		if spent != 7 || held.Owner != "me" || alive {
			t.Errorf("spent %d, lease %+v, its owner is alive: %v", spent, held, alive)
		}
		return errors.Join(err1, err2, err3)
	}); err != nil {
		t.Fatal(err)
	}
}

// TestSalvageDevices salvages what lets devices and people in. A row may be an old version, so
// that only refusals are kept.
func TestSalvageDevices(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "chela.db")
	d, err := Open(t.Context(), Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Update(t.Context(), store.Synced, func(tx store.Tx) error {
		at := tx.Devices()
		return errors.Join(
			at.PutDevice(pairing.Device{ID: "paired"}),
			at.PutDevice(pairing.Device{ID: "revoked", Removed: time.Now()}),
			at.PutRequest(pairing.Request{ID: "q", Device: "new"}),
			at.PutRequest(pairing.Request{ID: "u", Device: "paired"}),
			at.PutInvites([]pairing.Invite{{ID: "i"}}),
			tx.Guests().Put(admission.Guest{Channel: "c", Account: "a", ID: "g", Admitted: time.Now()}),
			tx.SetSetting("other", "1"))
	}); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	report, err := Recover(t.Context(), path)
	if err != nil || report.Rows["device"] != 1 {
		t.Fatalf("recover: %+v, %v", report, err)
	}
	if err := openAt(t, path).View(t.Context(), func(r store.Reader) error {
		all, err1 := r.Devices().Devices()
		asked, err2 := r.Devices().Requests()
		invited, err3 := r.Devices().Invites()
		other, err4 := r.Setting("other")
		guests, err5 := r.Guests().List()
		if len(all) != 1 || all[0].ID != "revoked" || all[0].Removed.IsZero() ||
			len(asked)+len(invited)+len(guests) > 0 || other != "1" {
			t.Errorf("devices %+v, requests %+v, invitations %+v, the other setting %q", all, asked, invited, other)
		}
		return errors.Join(err1, err2, err3, err4, err5)
	}); err != nil {
		t.Fatal(err)
	}
}
