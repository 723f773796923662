package deliver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/channel/channeltest"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/outbox"
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

// before is a store that calls a function before each commit.
type before struct {
	store.Store
	call func()
}

func (b before) Update(ctx context.Context, s store.Sync, f func(store.Tx) error) error {
	b.call()
	return b.Store.Update(ctx, s, f)
}

// failing is a store whose commits sometimes fail.
type failing struct {
	store.Store
	fails func() bool
}

func (f failing) Update(ctx context.Context, s store.Sync, g func(store.Tx) error) error {
	if f.fails() {
		return errors.New("disk I/O error")
	}
	return f.Store.Update(ctx, s, g)
}

// refusals is a platform that at first refuses to delete messages.
type refusals struct {
	*channeltest.Fake
	left int
}

func (r *refusals) Delete(ctx context.Context, a chela.Address, id string) error {
	if r.left--; r.left >= 0 {
		return channeltest.Temporary().Err
	}
	return r.Fake.Delete(ctx, a, id)
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
	on(t, "the channel limits how often a message is edited", func(t *testing.T, b *bench) {
		b.w.o.Limits = func(name string) channel.Limits {
			return channel.Limits{Edit: map[string]time.Duration{"fake": 5 * time.Second}[name]}
		}
		b.start()
		b.live(chela.PhaseStart)
		for range 200 {
			b.delta("word ")
			time.Sleep(100 * time.Millisecond)
		}
		edits := b.fake.Calls("edit")
		for i := 1; i < len(edits); i++ {
			if d := edits[i].Time.Sub(edits[i-1].Time); d < 5*time.Second {
				t.Errorf("edits %v apart", d)
			}
		}
		if len(edits) != 3 {
			t.Errorf("%d edits in 20 seconds", len(edits))
		}
	})
	for name, change := range map[string]func(*bench){
		"the channel cannot edit":       func(b *bench) { b.view = b.fake.Plain() },
		"the chat wants none":           func(b *bench) { b.style.Stream = StreamOff },
		"the account is not configured": func(b *bench) { b.gone = true },
	} {
		on(t, "no preview: "+name, func(t *testing.T, b *bench) {
			change(b)
			if !b.gone { // else there is no indicator either
				b.style.Typing = TypingNever
			}
			b.start()
			r := b.live(chela.PhaseStart)
			b.delta("half an")
			time.Sleep(10 * time.Second)
			if got := b.fake.Calls(""); len(got) > 0 {
				t.Errorf("calls %+v", got)
			}
			b.states("r1")
			b.gone = false
			r.Text = "the answer"
			b.finish(r)
			time.Sleep(time.Minute)
			b.shown("the answer")
		})
	}
	on(t, "D4 the id of the preview cannot be stored", func(t *testing.T, b *bench) {
		failed := false
		b.w.o.Store = failing{b.db, func() bool { // the first commit after it was sent
			fails := !failed && len(b.fake.Calls("send")) == 1
			failed = failed || fails
			return fails
		}}
		b.start()
		r := b.live(chela.PhaseStart)
		b.delta("half an")
		time.Sleep(5 * time.Second)
		b.shown()
		r.Text = "half an answer"
		b.finish(r)
		time.Sleep(time.Minute)
		b.shown("half an answer")
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
	on(t, "the preview of a silent answer that cannot be deleted at once", func(t *testing.T, b *bench) {
		refusals := &refusals{Fake: b.fake, left: 2}
		b.view = refusals
		b.start()
		r := b.live(chela.PhaseStart)
		b.delta("let me see")
		time.Sleep(2 * time.Second)
		r.Silent = true
		b.finish(r)
		time.Sleep(time.Minute)
		b.shown()
		b.states("r1")
		if refusals.left >= 0 {
			t.Errorf("%d refusals are left", refusals.left)
		}
	})
	on(t, "the preview of a silent answer that the person deleted", func(t *testing.T, b *bench) {
		b.start()
		r := b.live(chela.PhaseStart)
		b.delta("let me see")
		time.Sleep(2 * time.Second)
		b.fake.Vanish(b.fake.Messages(at("1"))[0].ID)
		r.Silent = true
		b.finish(r)
		time.Sleep(time.Hour)
		b.states("r1")
		if n := len(b.fake.Calls("delete")); n != 1 || len(b.notices) > 0 {
			t.Errorf("%d attempts to delete it, notices %q", n, b.notices)
		}
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
		if n := len(b.fake.Calls("edit")); n != 1 {
			t.Errorf("%d edits of a message that is gone", n)
		}
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
	on(t, "a crash during the edit to the answer, which is repeated without a lookup", func(t *testing.T, b *bench) {
		b.view = b.fake.Editing()
		b.start()
		r := b.live(chela.PhaseStart)
		b.delta("half an")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		b.fake.Latency = time.Hour
		r.Text = "the answer"
		b.finish(r)
		time.Sleep(time.Second)
		b.restart()
		b.states("r1", "0 attempted")
		b.shown("half an")
		b.fake.Latency = 0
		b.start()
		time.Sleep(time.Minute)
		b.shown("the answer")
		b.states("r1", "0 sent")
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
	on(t, "no edit follows the answer, although the end is not published yet", func(t *testing.T, b *bench) {
		b.start()
		r := b.live(chela.PhaseStart)
		b.delta("half an")
		time.Sleep(2 * time.Second)
		b.delta(" answer")
		b.delta(" with more") // due a second after the edit before
		r.State, r.Text = run.OK, "the answer"
		b.ended(r)
		time.Sleep(time.Minute)
		b.shown("the answer")
		b.event(chela.Event{Stream: chela.StreamLifecycle, Phase: chela.PhaseEnd, End: &chela.EndEvent{}})
		time.Sleep(time.Minute)
		b.shown("the answer")
		b.states("r1", "0 sent")
	})
	on(t, "the run ends before the preview is stored", func(t *testing.T, b *bench) {
		b.start()
		r := b.live(chela.PhaseStart)
		ended := false
		b.w.o.Store = before{b.db, func() {
			if !ended {
				ended = true
				r.State, r.Text = run.OK, "the answer"
				b.ended(r)
			}
		}}
		b.delta("half an")
		time.Sleep(time.Minute)
		b.event(chela.Event{Stream: chela.StreamLifecycle, Phase: chela.PhaseEnd, End: &chela.EndEvent{}})
		if n := len(b.fake.Calls("edit")); n != 0 || !ended {
			t.Errorf("%d edits, ended %t", n, ended)
		}
		b.shown("the answer")
		b.states("r1", "0 sent")
	})
	on(t, "the preview is refused", func(t *testing.T, b *bench) {
		b.fake.Fail(channeltest.Permanent())
		b.start()
		r := b.live(chela.PhaseStart)
		b.delta("half an")
		time.Sleep(2 * time.Second)
		b.states("r1")
		b.delta(" answer")
		time.Sleep(2 * time.Second)
		b.shown()
		r.Text = "the answer"
		b.finish(r)
		time.Sleep(time.Minute)
		b.shown("the answer")
	})
	on(t, "the preview is refused after the run has ended", func(t *testing.T, b *bench) {
		b.fake.Latency = 3 * time.Second
		b.fake.Fail(channeltest.Permanent())
		b.start()
		r := b.live(chela.PhaseStart)
		b.delta("half an")
		time.Sleep(4500 * time.Millisecond)
		r.Text = "the answer"
		b.finish(r)
		time.Sleep(time.Minute)
		b.shown("the answer")
	})
	on(t, "the preview waits for another message to the chat", func(t *testing.T, b *bench) {
		b.fake.Latency = 2 * time.Second
		b.ended(answer("r0", "before"))
		b.start()
		b.live(chela.PhaseStart)
		b.delta("half an")
		time.Sleep(time.Minute)
		b.shown("before", "half an")
	})
	on(t, "a platform that asks for a pause", func(t *testing.T, b *bench) {
		b.fake.FailEdits(channeltest.Limited(30 * time.Second))
		b.start()
		b.live(chela.PhaseStart)
		b.delta("half an")
		time.Sleep(2 * time.Second)
		for range 20 {
			b.delta(" answer")
			time.Sleep(time.Second)
		}
		b.shown("half an")
		time.Sleep(time.Minute)
		b.shown("half an" + strings.Repeat(" answer", 13)) // as much as one message may contain
		b.delta(" answer")
		time.Sleep(time.Minute)
		if n := len(b.fake.Calls("edit")); n != 2 {
			t.Errorf("%d edits", n)
		}
	})
	on(t, "the connection is lost while the preview is being sent", func(t *testing.T, b *bench) {
		b.fake.Fail(channeltest.Cut())
		b.start()
		r := b.live(chela.PhaseStart)
		b.delta("half an")
		time.Sleep(2 * time.Second)
		r.Text = "the answer"
		b.finish(r)
		time.Sleep(time.Minute)
		b.shown("the answer")
	})
	for _, fail := range []int{0, 2} {
		on(t, fmt.Sprintf("a crash after the preview was sent, before its id was stored (%d lookups fail)", fail),
			func(t *testing.T, b *bench) {
				b.view = &lookups{Fake: b.fake, fail: fail}
				r := b.live(chela.PhaseStart)
				row := outbox.Row{Key: "r1:0", Run: r.ID, Session: r.Session, Address: r.Address, State: outbox.Draft}
				if _, err := b.fake.Send(t.Context(),
					channel.Part{Key: previewKey(row), Address: r.Address, Text: "half an"}); err != nil {
					t.Fatal(err)
				}
				b.update(func(tx store.Tx) error { return tx.Outbox().Put(row) })
				b.fake.FailEdits(channeltest.Limited(5 * time.Second))
				b.start()
				b.live(chela.PhaseResume)
				b.delta("half again")
				time.Sleep(time.Minute)
				b.shown("half again")
				r.Text = "the answer"
				b.finish(r)
				time.Sleep(time.Minute)
				b.shown("the answer")
			})
	}
	for _, latency := range []time.Duration{0, 3 * time.Second} {
		on(t, fmt.Sprintf("a steering message moves the run to another chat (latency %v)", latency),
			func(t *testing.T, b *bench) {
				b.fake.Latency = latency
				b.start()
				r := b.live(chela.PhaseStart)
				b.delta("half an")
				time.Sleep(4500 * time.Millisecond) // with the latency, the preview is being sent
				r.Address = at("2")
				b.update(func(tx store.Tx) error { return tx.Runs().Put(r) })
				r.Text = "the answer"
				b.finish(r)
				time.Sleep(time.Minute)
				b.shown()
				if got := b.fake.Texts(at("2")); len(got) != 1 || got[0] != r.Text {
					t.Errorf("visible in the other chat: %q", got)
				}
			})
	}
	on(t, "a run that was moved to another chat before it had a preview", func(t *testing.T, b *bench) {
		b.start()
		r := b.live(chela.PhaseStart)
		r.Address = at("2")
		b.update(func(tx store.Tx) error { return tx.Runs().Put(r) })
		b.delta("half an")
		time.Sleep(time.Minute)
		b.shown()
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
		b.fake.Once = true // the previews differ in their keys
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
	on(t, "text that was to be shown before a tool is not shown after it", func(t *testing.T, b *bench) {
		b.start()
		b.live(chela.PhaseStart)
		b.delta("let me")
		time.Sleep(2 * time.Second)
		b.delta(" look")
		b.delta(" again") // due in a second
		b.used("a", "on")
		time.Sleep(time.Minute)
		b.shown("let me look", "🔧 read a")
	})
	on(t, "THINK-03 full adds the beginning of the output", func(t *testing.T, b *bench) {
		b.style = Style{Stream: StreamOff, Typing: TypingNever} // lines depend on neither
		b.start()
		b.live(chela.PhaseStart)
		b.used("a", "full")
		time.Sleep(time.Minute)
		got := strings.Join(b.fake.Texts(at("1")), "\n")
		if n := strings.Count(got, "x"); !strings.HasPrefix(got, "🔧 read a\n```\nxxx") || n != maxOutput ||
			!strings.Contains(got, "…") {
			t.Errorf("%d characters of output in %q", n, got)
		}
	})
	on(t, "no line follows the answer, although the end is not published yet", func(t *testing.T, b *bench) {
		b.start()
		r := b.live(chela.PhaseStart)
		r.State, r.Text = run.OK, "done"
		b.ended(r)
		b.used("a", "full")
		time.Sleep(time.Minute)
		b.shown("done")
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
	on(t, "once for a run that is reported to begin twice", func(t *testing.T, b *bench) {
		b.start()
		b.live(chela.PhaseStart)
		b.live(chela.PhaseResume)
		time.Sleep(time.Second)
		if n := len(b.fake.Calls("typing")); n != 1 {
			t.Errorf("typing was shown %d times", n)
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
