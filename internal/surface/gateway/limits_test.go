package gateway

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/wire"
)

// TestReplayLogLimits checks which events and subscribers the log drops when it is
// full, and that it counts what it holds.
func TestReplayLogLimits(t *testing.T) {
	var r replayLog
	add := func(n, bytes int) {
		for range n {
			r.pos++
			r.add(&retained{to: everyone, bytes: bytes}, nil)
		}
	}
	check := func(what string, events, bytes int, evicted int64) {
		t.Helper()
		if r.events.Len() != events || r.bytes != bytes || r.evicted != evicted {
			t.Errorf("%s: %d events of %d bytes, evicted up to %d; want %d of %d, %d", what, r.events.Len(), r.bytes, r.evicted,
				events, bytes, evicted)
		}
	}
	add(maxRetained, 1)
	check("as many events as fit", maxRetained, maxRetained, 0)
	add(3, 1)
	check("three more", maxRetained, maxRetained, 3)
	add(1, maxRetainedBytes)
	check("one as large as all", 1, maxRetainedBytes, maxRetained+3)
	old := r.events.Back().Value.(*retained)
	r.pos++
	r.add(&retained{to: everyone, bytes: 5}, old)
	check("one in its place", 1, 5, maxRetained+3)
	r.clear()
	check("cleared", 0, 0, maxRetained+5)

	now := time.Now()
	for i := range maxDisconnected + 1 {
		r.disconnect(&subscriber{id: fmt.Sprint(i)}, now)
	}
	if n := len(r.disconnected); n != maxDisconnected || r.takeDisconnected("0") != nil || r.takeDisconnected("1") == nil {
		t.Errorf("%d subscribers remain, want all but the first", n)
	}
	r.disconnect(&subscriber{id: "late"}, now.Add(time.Second))
	r.expire(now.Add(resumeWindow - 1))
	if r.takeDisconnected("2") == nil {
		t.Error("a subscriber was forgotten too early")
	}
	r.expire(now.Add(resumeWindow))
	if n := len(r.disconnected); n != 1 || r.takeDisconnected("late") == nil {
		t.Errorf("%d subscribers remain after their time, want the last", n)
	}
}

// TestRecent checks that a set of the last ids forgets the oldest.
func TestRecent(t *testing.T) {
	r := newRecent(2)
	var got []bool
	for _, id := range []chela.RunID{"a", "a", "b", "a", "c", "b", "c", "a"} {
		got = append(got, r.add(id))
	}
	if diff := cmp.Diff([]bool{true, false, true, false, true, false, false, true}, got); diff != "" || len(r.ids) != 2 {
		t.Errorf("new ids (-want +got), %d stored:\n%s", len(r.ids), diff)
	}
}

// TestCachedRows checks that the rows of many sessions are not all kept, and that
// a row shows the run in progress.
func TestCachedRows(t *testing.T) {
	var cs changes
	key := func(i int) chela.SessionKey { return chela.SessionKey(fmt.Sprint("agent:main:", i)) }
	for i := range 3*maxRows + 1 {
		cs.cacheRow(key(i), &wire.Session{Key: string(key(i)), Status: "done"})
		if len(cs.rows) > maxRows {
			t.Fatalf("%d rows, want at most %d", len(cs.rows), maxRows)
		}
	}
	last := key(3 * maxRows)
	if row := cs.cachedRow(last, "r", false); row == nil || row.Active || row.Status != "done" || row.Runs != nil {
		t.Errorf("without a run: %+v", row)
	}
	if row := cs.cachedRow(last, "r", true); row == nil || !row.Active || row.Status != "running" ||
		!cmp.Equal(row.Runs, []string{"r"}) {
		t.Errorf("with a run: %+v", row)
	}
	if row := cs.cachedRow(last, "r", false); row == nil || row.Active {
		t.Errorf("the cached row was changed: %+v", row)
	}
	cs.cacheRow(last, nil)
	if cs.cachedRow(last, "r", false) != nil {
		t.Error("a removed row is still there")
	}
}
