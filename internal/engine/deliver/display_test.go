package deliver

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/channel/channeltest"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/store"
)

// live starts a run, on disk and on the bus.
func (b *bench) live(phase chela.Phase) run.Run {
	b.t.Helper()
	r := answer("r1", "")
	r.State = run.Running
	b.update(func(tx store.Tx) error { return tx.Runs().Put(r) })
	b.event(chela.Event{Stream: chela.StreamLifecycle, Phase: phase})
	return r
}

func (b *bench) event(e chela.Event) {
	e.Run, e.Session = "r1", "agent:main:main"
	b.bus.Publish(e)
	synctest.Wait()
}

func (b *bench) delta(s string) { b.event(chela.Event{Stream: chela.StreamAssistant, Delta: s}) }

// finish ends the run with its text, on disk and then on the bus.
func (b *bench) finish(r run.Run) {
	b.t.Helper()
	if r.State == run.Running {
		r.State = run.OK
	}
	b.ended(r)
	b.event(chela.Event{Stream: chela.StreamLifecycle, Phase: chela.PhaseEnd, End: &chela.EndEvent{}})
}

func TestPreview(t *testing.T) {
	on(t, "one message that grows", func(t *testing.T, b *bench) {
		b.start()
		r := b.live(chela.PhaseStart)
		for range 30 {
			b.delta("word ")
			time.Sleep(100 * time.Millisecond)
		}
		b.shown(strings.TrimSpace(strings.Repeat("word ", 20))) // a hundred characters
		r.Text = strings.Repeat("word ", 30)
		b.finish(r)
		time.Sleep(time.Minute)
		b.shown(strings.TrimSpace(strings.Repeat("word ", 20)), strings.TrimSpace(strings.Repeat("word ", 10)))
		if n := len(b.fake.Calls("send")); n != 2 {
			t.Errorf("%d messages were sent", n)
		}
		edits := b.fake.Calls("edit")
		for i := 1; i < len(edits)-1; i++ { // the last edit is the answer, which is not delayed
			if d := edits[i].Time.Sub(edits[i-1].Time); d < time.Second {
				t.Errorf("edits %v apart", d)
			}
		}
		b.states("r1", "0 sent", "1 sent")
	})
	on(t, "a quick answer is sent once", func(t *testing.T, b *bench) {
		b.start()
		r := b.live(chela.PhaseStart)
		b.delta("hello")
		time.Sleep(100 * time.Millisecond)
		r.Text = "hello"
		b.finish(r)
		time.Sleep(time.Minute)
		b.shown("hello")
		if n := len(b.fake.Calls("edit")); n != 0 {
			t.Errorf("%d edits", n)
		}
	})
	on(t, "STREAM-03 NO_ REPLY is never shown", func(t *testing.T, b *bench) {
		b.start()
		r := b.live(chela.PhaseStart)
		for _, s := range []string{" no_", "REPLY"} {
			b.delta(s)
			time.Sleep(2 * time.Second)
		}
		r.Silent, r.Text = true, "NO_REPLY"
		b.finish(r)
		typed := len(b.fake.Calls("typing"))
		time.Sleep(time.Minute)
		if n := len(b.fake.Calls("send")); n > 0 {
			t.Errorf("%d messages were sent", n)
		}
		if n := len(b.fake.Calls("typing")); n != typed {
			t.Error("typing continues")
		}
	})
	on(t, "the preview of a silent answer is deleted", func(t *testing.T, b *bench) {
		b.start()
		r := b.live(chela.PhaseStart)
		b.delta("let me see")
		time.Sleep(2 * time.Second)
		b.shown("let me see")
		r.Silent = true
		b.finish(r)
		time.Sleep(time.Minute)
		b.shown()
		b.states("r1")
	})
	on(t, "a stop leaves the preview", func(t *testing.T, b *bench) {
		b.start()
		r := b.live(chela.PhaseStart)
		b.delta("half an")
		time.Sleep(2 * time.Second)
		r.State, r.Text = run.Aborted, "half an answ"
		b.finish(r)
		time.Sleep(time.Minute)
		b.shown("half an")
		b.states("r1", "0 sent")
	})
	on(t, "STREAM-12 the person deleted the preview", func(t *testing.T, b *bench) {
		b.start()
		r := b.live(chela.PhaseStart)
		b.delta("half an")
		time.Sleep(2 * time.Second)
		b.fake.Vanish(b.fake.Messages(at("1"))[0].ID)
		r.Text = "the answer"
		b.finish(r)
		time.Sleep(time.Minute)
		b.shown("the answer")
		b.states("r1", "0 sent")
	})
	on(t, "STREAM-12 the deletion is noticed before the end", func(t *testing.T, b *bench) {
		b.start()
		r := b.live(chela.PhaseStart)
		b.delta("half an")
		time.Sleep(2 * time.Second)
		b.fake.Vanish(b.fake.Messages(at("1"))[0].ID)
		b.delta(" answer")
		time.Sleep(2 * time.Second)
		b.shown()
		r.Text = "the answer"
		b.finish(r)
		time.Sleep(time.Minute)
		b.shown("the answer")
	})
	on(t, "after a crash the same message is edited", func(t *testing.T, b *bench) {
		b.start()
		b.live(chela.PhaseStart)
		b.delta("half an")
		time.Sleep(2 * time.Second)
		b.restart()
		b.start()
		r := b.live(chela.PhaseStart)
		b.delta("half again")
		time.Sleep(2 * time.Second)
		b.shown("half again")
		r.Text = "the answer"
		b.finish(r)
		time.Sleep(time.Minute)
		b.shown("the answer")
		if n := len(b.fake.Calls("send")); n != 1 {
			t.Errorf("%d messages were sent", n)
		}
	})
	on(t, "the run ends while the preview is being sent", func(t *testing.T, b *bench) {
		b.fake.Latency = 3 * time.Second
		b.start()
		r := b.live(chela.PhaseStart)
		b.delta("half an")
		time.Sleep(4500 * time.Millisecond)
		r.Text = "the answer"
		b.finish(r)
		time.Sleep(time.Minute)
		b.shown("the answer")
		if n := len(b.fake.Calls("send")); n != 1 {
			t.Errorf("%d messages were sent", n)
		}
	})
	on(t, "the preview is refused", func(t *testing.T, b *bench) {
		b.fake.Fail(channeltest.Permanent())
		b.start()
		r := b.live(chela.PhaseStart)
		b.delta("half an")
		time.Sleep(2 * time.Second)
		b.states("r1")
		r.Text = "the answer"
		b.finish(r)
		time.Sleep(time.Minute)
		b.shown("the answer")
	})
}

// used publishes the events of a tool call.
func (b *bench) used(id, verbose string) {
	t := chela.ToolEvent{ID: id, Name: "read", Label: "read " + id, Verbose: verbose}
	b.event(chela.Event{Stream: chela.StreamTool, Phase: chela.PhaseStart, Tool: &t})
	done := t
	done.Output = strings.Repeat("x", 2000)
	b.event(chela.Event{Stream: chela.StreamTool, Phase: chela.PhaseResult, Tool: &done})
}

func TestTools(t *testing.T) {
	on(t, "THINK-03 one line for each tool, above the text that follows", func(t *testing.T, b *bench) {
		b.start()
		r := b.live(chela.PhaseStart)
		b.delta("let me look")
		time.Sleep(2 * time.Second)
		b.used("a", "on")
		b.used("b", "on")
		b.event(chela.Event{Stream: chela.StreamLifecycle, Phase: chela.PhaseModel})
		b.delta("here it")
		time.Sleep(2 * time.Second)
		r.Text = "here it is"
		b.finish(r)
		time.Sleep(time.Minute)
		b.shown("let me look", "🔧 read a", "🔧 read b", "here it is")
	})
	on(t, "THINK-03 full adds the beginning of the output", func(t *testing.T, b *bench) {
		b.w.o.Typing, b.w.o.Preview = false, nil // lines depend on neither
		b.start()
		b.live(chela.PhaseStart)
		b.used("a", "full")
		time.Sleep(time.Minute)
		got := strings.Join(b.fake.Texts(at("1")), "\n")
		if n := strings.Count(got, "x"); !strings.HasPrefix(got, "🔧 read a\n```\nxxx") || n != maxOutput || !strings.Contains(got, "…") {
			t.Errorf("%d characters of output in %q", n, got)
		}
	})
	on(t, "THINK-03 off shows nothing", func(t *testing.T, b *bench) {
		b.start()
		r := b.live(chela.PhaseStart)
		b.used("a", "off")
		b.used("b", "")
		r.Text = "done"
		b.finish(r)
		time.Sleep(time.Minute)
		b.shown("done")
	})
}

func TestTyping(t *testing.T) {
	on(t, "STREAM-10 immediately, then every six seconds, until the end", func(t *testing.T, b *bench) {
		b.start()
		begun := time.Now()
		b.live(chela.PhaseStart)
		time.Sleep(20 * time.Second)
		b.event(chela.Event{Stream: chela.StreamLifecycle, Phase: chela.PhaseError, End: &chela.EndEvent{}})
		time.Sleep(time.Minute)
		var got []time.Duration
		for _, c := range b.fake.Calls("typing") {
			got = append(got, c.Time.Sub(begun))
		}
		if want := []time.Duration{0, 6 * time.Second, 12 * time.Second, 18 * time.Second}; !slices.Equal(got, want) {
			t.Errorf("typing at %v, want %v", got, want)
		}
	})
	on(t, "not for a superseded run", func(t *testing.T, b *bench) {
		b.start()
		r := b.live(chela.PhaseStart)
		b.delta("half an")
		time.Sleep(2 * time.Second)
		r.State = run.Superseded
		b.update(func(tx store.Tx) error { return tx.Runs().Put(r) }) // without an event
		time.Sleep(time.Minute)
		if n := len(b.fake.Calls("typing")); n != 1 {
			t.Errorf("typing was shown %d times", n)
		}
		b.shown("half an")
		b.states("r1", "0 sent")
	})
	on(t, "not while an approval is pending", func(t *testing.T, b *bench) {
		b.start()
		b.live(chela.PhaseStart)
		b.event(chela.Event{Stream: chela.StreamLifecycle, Phase: chela.PhaseSuspended})
		n := len(b.fake.Calls("typing"))
		time.Sleep(time.Minute)
		if got := len(b.fake.Calls("typing")); got != n {
			t.Errorf("typing was shown %d times more", got-n)
		}
		b.event(chela.Event{Stream: chela.StreamLifecycle, Phase: chela.PhaseResume})
		if got := len(b.fake.Calls("typing")); got != n+1 {
			t.Error("no typing after the run was resumed")
		}
	})
}
