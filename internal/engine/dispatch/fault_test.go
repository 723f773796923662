package dispatch_test

import (
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/engine/runner"
	"github.com/chela-ai/chela/internal/test/power"
)

// TestFaults makes the Nth operation on the disk fail, for every N of a turn
// with a tool, and for each kind of failure. An accepted message is answered when
// the disk works again, a refused one is not in the transcript, and the tool does
// not run twice.
func TestFaults(t *testing.T) {
	for _, f := range []struct {
		name  string
		op    power.Op
		fault power.Fault
	}{
		{"no room", power.Write, power.NoRoom},
		{"a broken write", power.Write, power.Broken},
		{"a broken sync", power.Sync, power.Broken},
	} {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			for n := 0; ; n++ {
				hit := false
				synctest.Test(t, func(t *testing.T) { hit = faultAt(t, n, f.op, f.fault) })
				if !hit || t.Failed() {
					t.Logf("%d operations", n)
					return
				}
			}
		})
	}
}

// faultAt runs a turn in which the nth operation of the kind fails, and
// reports whether there was such an operation.
func faultAt(t *testing.T, n int, op power.Op, fault power.Fault) bool {
	act := newTool("act", tool.Acts, nil)
	h := newHarness(t, asksOnce("act"), act)
	d := power.New(t)
	db := d.Open(t)
	at := 0
	var hit atomic.Bool
	d.Fail(func(_ int, o power.Op, _ string) power.Fault {
		if o != op {
			return power.None
		}
		at++
		if at-1 != n {
			return power.None
		}
		hit.Store(true)
		return fault
	})
	h.start(db, slog.New(slog.DiscardHandler), func() error { return nil })
	defer h.stop()
	_, err := h.gate.Admit(owner(t.Context()), chela.Inbound{
		ID: "m1", Session: key, Text: "use it", Time: time.Now(), Address: chela.Address{Channel: chela.LocalChannel},
	})
	if err != nil {
		if _, err := h.con.Wait(t.Context(), "m1"); !errors.Is(err, chela.ErrNotFound) {
			t.Errorf("fault %d: refused, but stored: %v", n, err)
		}
		h.send("m1", "use it") // the client retries
	}
	r := h.wait("m1")
	if r.State != run.OK {
		t.Errorf("fault %d: the run is %s: %s", n, r.State, r.Error)
	}
	if act.count() > 1 {
		t.Errorf("fault %d: the tool ran %d times", n, act.count())
	}
	asked := 0
	for _, l := range h.lines() {
		if l == "user: use it" {
			asked++
		}
	}
	if asked != 1 {
		t.Errorf("fault %d: the message is in the transcript %d times", n, asked)
	}
	return hit.Load()
}

// TestRetryPause ends runs while a row of their ends cannot be written. They are tried
// again with pauses, although another message waits.
func TestRetryPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, echoes())
		var tries, most atomic.Int64
		most.Store(1000)
		h.ended = []runner.Ended{func(run.Run) func(store.Tx) error {
			return func(store.Tx) error {
				if tries.Add(1) < most.Load() {
					return errors.New("not now")
				}
				return nil
			}
		}}
		h.startOn(power.New(t).Open(t))
		defer h.stop()
		h.send("m1", "one")
		h.send("m2", "two")
		time.Sleep(time.Minute)
		if n := tries.Load(); n < 5 || n > 10 {
			t.Errorf("%d attempts in a minute", n)
		}
		most.Store(0)
		for _, id := range []chela.RunID{"m1", "m2"} {
			if r := h.wait(id); r.State != run.OK {
				t.Errorf("%s is %s: %s", id, r.State, r.Error)
			}
		}
	})
}
