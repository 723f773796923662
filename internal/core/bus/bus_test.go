package bus_test

import (
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/bus"
	"github.com/chela-ai/chela/internal/core/chela"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// log collects events. It is safe for concurrent use.
type log struct {
	mu     sync.Mutex
	events []chela.Event
}

func (l *log) add(e chela.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
}

// of formats the events of a run as "seq stream phase".
func (l *log) of(id chela.RunID) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for _, e := range l.events {
		if e.Run == id {
			out = append(out, fmt.Sprintf("%d %s %s", e.Seq, e.Stream, e.Phase))
		}
	}
	return out
}

func lifecycle(id chela.RunID, phase chela.Phase) chela.Event {
	return chela.Event{Run: id, Session: "agent:main:main", Stream: chela.StreamLifecycle, Phase: phase}
}

func text(id chela.RunID, delta string) chela.Event {
	return chela.Event{Run: id, Stream: chela.StreamAssistant, Delta: delta}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	t.Run("EVT-01 seq is 1..n without gaps for each of two runs at once", func(t *testing.T) {
		t.Parallel()
		b, l := bus.New(quiet()), &log{}
		b.Subscribe(l.add)
		const n = 200
		var wg sync.WaitGroup
		for _, id := range []chela.RunID{"a", "b"} {
			wg.Go(func() {
				b.Publish(lifecycle(id, chela.PhaseStart))
				for range n {
					b.Publish(text(id, "x"))
					b.Publish(chela.Event{Run: id, Stream: chela.StreamMessage}) // is not numbered
				}
				b.Publish(lifecycle(id, chela.PhaseEnd))
			})
		}
		wg.Wait()
		for _, id := range []chela.RunID{"a", "b"} {
			want := int64(0)
			for _, e := range l.events {
				switch {
				case e.Run != id:
				case e.Stream == chela.StreamMessage:
					if e.Seq != 0 {
						t.Errorf("run %s: stored message has seq %d", id, e.Seq)
					}
				default:
					if want++; e.Seq != want {
						t.Fatalf("run %s: seq %d, want %d", id, e.Seq, want)
					}
				}
			}
			if want != n+2 {
				t.Errorf("run %s: %d numbered events, want %d", id, want, n+2)
			}
		}
	})
	t.Run("EVT-02 an observer that panics does not disturb the others", func(t *testing.T) {
		t.Parallel()
		b, before, after := bus.New(quiet()), &log{}, &log{}
		b.Subscribe(before.add)
		var order []string
		for _, name := range []string{"first", "second"} {
			b.Subscribe(func(chela.Event) { order = append(order, name) })
		}
		panics := 0
		b.Subscribe(func(chela.Event) { panics++; panic("observer") })
		b.Subscribe(after.add)
		b.Publish(lifecycle("r", chela.PhaseStart))
		b.Publish(lifecycle("r", chela.PhaseEnd))
		want := []string{"1 lifecycle start", "2 lifecycle end"}
		if diff := cmp.Diff(want, before.of("r")) + cmp.Diff(want, after.of("r")); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"first", "second", "first", "second"}, order); diff != "" {
			t.Errorf("order of the observers: %s", diff)
		}
		if panics != 1 {
			t.Errorf("the observer was called %d times, want once", panics)
		}
	})
	t.Run("EVT-03 a cancelled observer receives nothing", func(t *testing.T) {
		t.Parallel()
		b, l := bus.New(quiet()), &log{}
		cancel := b.Subscribe(l.add)
		b.Publish(lifecycle("r", chela.PhaseStart))
		cancel()
		cancel() // a second call has no effect
		b.Publish(lifecycle("r", chela.PhaseEnd))
		if diff := cmp.Diff([]string{"1 lifecycle start"}, l.of("r")); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("EVT-04 start, update and result of a call, thinking and a notice arrive in order", func(t *testing.T) {
		t.Parallel()
		b, l := bus.New(quiet()), &log{}
		b.Subscribe(l.add)
		b.Publish(lifecycle("r", chela.PhaseStart))
		for _, phase := range []chela.Phase{chela.PhaseStart, chela.PhaseUpdate, chela.PhaseResult} {
			b.Publish(chela.Event{Run: "r", Stream: chela.StreamTool, Phase: phase, Tool: &chela.ToolEvent{ID: "t1",
				Name: "read"}})
		}
		b.Publish(chela.Event{Run: "r", Stream: chela.StreamThinking, Delta: "hm"})
		b.Publish(chela.Event{Run: "r", Stream: chela.StreamNotice, Text: "retrying"})
		want := []string{"1 lifecycle start", "2 tool start", "3 tool update", "4 tool result", "5 thinking ", "6 notice "}
		if diff := cmp.Diff(want, l.of("r")); diff != "" {
			t.Error(diff)
		}
		for _, e := range l.events[1:4] {
			if e.Tool.ID != "t1" {
				t.Errorf("%s of call %s, want t1", e.Phase, e.Tool.ID)
			}
		}
	})
	t.Run("EVT-05 exactly one start and one end", func(t *testing.T) {
		t.Parallel()
		b, l := bus.New(quiet()), &log{}
		b.Subscribe(l.add)
		b.Publish(text("r", "before the start"))
		b.Publish(chela.Event{Run: "r", Stream: chela.StreamTool, Phase: chela.PhaseStart})
		b.Publish(lifecycle("r", chela.PhaseStart))
		b.Publish(lifecycle("r", chela.PhaseEnd))
		b.Publish(text("r", "after the end"))
		b.Publish(lifecycle("r", chela.PhaseError))
		b.Publish(lifecycle("r", chela.PhaseEnd))
		if diff := cmp.Diff([]string{"1 lifecycle start", "2 lifecycle end"}, l.of("r")); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("EVT-05 of ends at the same time one is published", func(t *testing.T) {
		t.Parallel()
		b := bus.New(quiet())
		ends := 0
		var wg sync.WaitGroup
		b.Subscribe(func(e chela.Event) {
			switch {
			case e.Phase == chela.PhaseEnd:
				ends++
			case e.Stream == chela.StreamAssistant: // the ends arrive while it is delivered
				var begun sync.WaitGroup
				begun.Add(2)
				for range 2 {
					wg.Go(func() { begun.Done(); b.Publish(lifecycle("r", chela.PhaseEnd)) })
				}
				begun.Wait()
				for range 100 {
					runtime.Gosched()
				}
			}
		})
		const runs = 50
		for range runs {
			b.Publish(lifecycle("r", chela.PhaseStart))
			b.Publish(text("r", "x"))
			wg.Wait()
		}
		if ends != runs {
			t.Errorf("%d ends of %d runs", ends, runs)
		}
	})
}

func TestText(t *testing.T) {
	t.Parallel()
	b := bus.New(quiet())
	var got []string
	b.Subscribe(func(e chela.Event) {
		if e.Stream == chela.StreamAssistant {
			got = append(got, e.Text)
		}
	})
	b.Publish(lifecycle("r", chela.PhaseStart))
	b.Publish(text("r", "Let "))
	b.Publish(text("r", "me see"))
	b.Publish(lifecycle("r", chela.PhaseModel)) // another message
	b.Publish(text("r", "Half"))
	b.Publish(text("r", "")) // the message starts over
	b.Publish(text("r", "Done"))
	want := []string{"Let ", "Let me see", "Half", "", "Done"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestLive(t *testing.T) {
	t.Parallel()
	b := bus.New(quiet())
	live := func() (out []string) {
		for _, l := range b.Live("agent:main:main") {
			out = append(out, fmt.Sprintf("%s %d %q", l.Run, l.Seq, l.Text))
		}
		return out
	}
	for _, step := range []struct {
		publish chela.Event
		want    []string
	}{
		{lifecycle("r", chela.PhaseStart), []string{`r 1 ""`}},
		{text("r", "Hel"), []string{`r 2 "Hel"`}},
		{text("r", "lo"), []string{`r 3 "Hello"`}},
		{lifecycle("r", chela.PhaseSuspended), nil},
		{lifecycle("r", chela.PhaseResume), []string{`r 5 "Hello"`}},
		{chela.Event{Run: "x", Session: "agent:main:other", Stream: chela.StreamLifecycle, Phase: chela.PhaseStart},
			[]string{`r 5 "Hello"`}},
		{lifecycle("r", chela.PhaseError), nil},
	} {
		b.Publish(step.publish)
		if diff := cmp.Diff(step.want, live()); diff != "" {
			t.Errorf("after %s %s (-want +got):\n%s", step.publish.Stream, step.publish.Phase, diff)
		}
	}
	if all := b.Live(""); len(all) != 1 || all[0].Run != "x" {
		t.Errorf("all runs in progress: %+v, want x", all)
	}
}

func TestTime(t *testing.T) {
	t.Parallel()
	b, l := bus.New(quiet()), &log{}
	b.Subscribe(l.add)
	b.Publish(chela.Event{Stream: chela.StreamSession, Phase: chela.PhaseCreated})
	if l.events[0].Time.IsZero() {
		t.Error("an event without a time was published")
	}
	before := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	resumed := lifecycle("r", chela.PhaseResume)
	resumed.Time = before
	if b.Publish(resumed); !l.events[1].Time.Equal(before) {
		t.Errorf("an event of %v was published with %v", before, l.events[1].Time)
	}
	if live := b.Live(""); len(live) != 1 || !live[0].Started.Equal(before) {
		t.Errorf("runs in progress: %+v, want one since %v", live, before)
	}
}
