package deliver

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/heartbeat"
	"github.com/chela-ai/chela/internal/core/outbox"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/store"
)

const (
	typingInterval      = 6 * time.Second
	previewDelay        = 400 * time.Millisecond // a faster answer has no preview
	progressDelay       = 1500 * time.Millisecond
	maxSteps            = 8   // lines of a message about progress
	maxStep             = 120 // characters of a line
	defaultEditInterval = time.Second
)

// display is the state of a run in progress that its channel may show.
type display struct {
	run   chela.RunID
	text  chan struct{} // cap 1: the answer has grown, or a tool has started
	tool  chan struct{} // cap 1: lines about tools are pending
	think chan struct{} // cap 1: the model has begun to think
	done  chan struct{} // closed when the run ends or waits

	// Guarded by Worker.mu.
	answer string   // the text of the current message
	wrote  bool     // the model has written something for people
	whole  []string // the texts of messages that are complete, if they are kept
	keep   bool     // for StreamBlock
	over   bool     // the current message has started over
	lines  []string // pending lines about tools
	steps  []string // what the tools did last, for StreamProgress
}

// next begins the next message of the model.
func (d *display) next() {
	if d.answer != "" && !strings.HasPrefix(d.answer, Thoughts) && d.keep {
		d.whole = append(d.whole, d.answer)
	}
	d.answer = ""
}

// observe receives the events of all runs. It does not block.
func (w *Worker) observe(ctx context.Context, e chela.Event) {
	if e.Stream == chela.StreamApproval {
		signal(w.approvals)
		return
	}
	if heartbeat.IsRun(e.Run) { // it usually has nothing to say
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	d := w.displays[e.Run]
	switch e.Stream {
	case chela.StreamAssistant:
		if d != nil {
			if e.Text == "" { // it starts over
				d.over = true
			}
			d.answer = e.Text
			signal(d.text)
		}
	case chela.StreamThinking:
		if d != nil {
			signal(d.think)
		}
		if d != nil && e.Text != "" && (d.answer == "" || strings.HasPrefix(d.answer, Thoughts)) {
			d.answer = Thoughts + e.Text
			signal(d.text)
		}
	case chela.StreamTool:
		if line := toolLine(e); line != "" {
			if d == nil {
				d = w.startDisplayLocked(ctx, e.Run)
			}
			d.lines = append(d.lines, line)
			signal(d.tool)
		}
		if d != nil && e.Phase == chela.PhaseStart && e.Tool != nil {
			d.next()
			d.steps = append(d.steps, step(e.Tool))
			d.steps = d.steps[max(0, len(d.steps)-maxSteps):]
			signal(d.text)
		}
	case chela.StreamLifecycle:
		switch e.Phase {
		case chela.PhaseStart, chela.PhaseResume:
			at, known := e.Data.(chela.Address)
			if d == nil && !(known && at.Local()) {
				w.startDisplayLocked(ctx, e.Run)
			}
		case chela.PhaseModel:
			if d != nil {
				d.next()
			}
		case chela.PhaseEnd, chela.PhaseError, chela.PhaseSuspended:
			if d != nil {
				close(d.done)
				delete(w.displays, e.Run)
			}
		}
	}
}

// startDisplayLocked starts to show a run.
func (w *Worker) startDisplayLocked(ctx context.Context, id chela.RunID) *display {
	d := &display{
		run:   id,
		text:  make(chan struct{}, 1),
		tool:  make(chan struct{}, 1),
		think: make(chan struct{}, 1),
		keep:  true,
		done:  make(chan struct{}),
	}
	if !w.stopping {
		w.displays[id] = d
		w.wg.Go(func() { w.show(ctx, d) })
	}
	return d
}

// show shows a run until it ends.
func (w *Worker) show(ctx context.Context, d *display) {
	p := preview{w: w, d: d}
	var in chela.Inbound // the message that is answered
	err := w.o.Store.View(ctx, func(r store.Reader) error {
		v, err := r.Runs().Get(d.run)
		if err != nil {
			return err
		}
		p.row.Address, p.row.Session = v.Address, v.Session
		in, err = answered(r.Queue(), v)
		return err
	})
	if err != nil || p.row.Address.Local() {
		return
	}
	to := p.row.Address
	instance, err := w.o.Channel(ctx, to.Channel, to.Account)
	if err != nil {
		return
	}
	instance.Release() // each call acquires the channel again, so that the account can be restarted meanwhile
	p.style = w.style(p.row.Session.Agent(), to)
	p.chunks, p.interval = w.chunks(p.style, to), w.o.Limits(to.Channel).Edit
	if p.interval <= 0 {
		p.interval = defaultEditInterval
	}
	if p.style.Reply != ReplyOff && p.style.Reply != "" {
		p.row.ReplyTo = in.ID
	}
	_, edits := channel.As[channel.Editor](instance.Channel)
	_, types := channel.As[channel.Typer](instance.Channel)
	_, reacts := channel.As[channel.Reactor](instance.Channel)
	p.off = !w.previewable() || p.style.namesModel() ||
		p.style.Stream != StreamBlock && (p.style.Stream == StreamOff || !edits)
	if reacts && p.style.Reaction != "" && in.ID != "" && p.style.Acknowledge.covers(in) {
		w.acknowledge(ctx, d, p.style, in)
	}
	w.mu.Lock()
	if d.keep = p.style.Stream == StreamBlock; !d.keep {
		d.whole = nil
	}
	w.mu.Unlock()
	typing := TypingNever
	if types {
		typing = p.style.typing(to, in.Mentioned)
	}
	w.refresh(ctx, d, &p, typing)
}

// answered returns the message that a run answers: the latest one of its address. The zero
// message: it answers none, such as a run that was scheduled.
func answered(q queue.Reader, v run.Run) (chela.Inbound, error) {
	items, err := q.OfRun(v.ID)
	if err != nil {
		return chela.Inbound{}, err
	}
	first, err := q.Get(string(v.ID))
	if err != nil && !errors.Is(err, chela.ErrNotFound) {
		return chela.Inbound{}, err
	}
	for _, it := range slices.Backward(append([]queue.Item{first}, items...)) {
		if it.Kind == queue.Message && it.Origin.Kind == chela.OriginPerson && it.Inbound.Address == v.Address {
			return it.Inbound, nil
		}
	}
	return chela.Inbound{}, nil
}

// acknowledge sets the reaction to a message. It removes it when the run ends, if that is
// configured.
func (w *Worker) acknowledge(ctx context.Context, d *display, s Style, in chela.Inbound) {
	react := func(emoji string) (ok bool) {
		err := w.withChannel(ctx, in.Address, func(ctx context.Context, ch channel.Channel) error {
			r, ok := channel.As[channel.Reactor](ch)
			if !ok {
				return nil
			}
			return r.React(ctx, in.Address, in.ID, emoji)
		})
		if err != nil {
			w.o.Log.Debug("reaction", "channel", in.Address.Channel, "err", err)
		}
		refused, is := errors.AsType[*channel.Error](err)
		return !is || !refused.Permanent
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopping {
		return
	}
	w.wg.Go(func() {
		if !react(s.Reaction) && s.Reaction != UsualReaction { // the platform may not have it
			react(UsualReaction)
		}
		if !s.Withdraw {
			return
		}
		select {
		case <-d.done:
			react("")
		case <-ctx.Done():
		}
	})
}

// refresh updates the indicators of a run until it ends.
func (w *Worker) refresh(ctx context.Context, d *display, p *preview, when Typing) {
	typing := time.NewTimer(0)
	defer typing.Stop()
	first := previewDelay
	if p.style.Stream == StreamProgress {
		first = progressDelay
	}
	edit := time.NewTimer(first)
	defer edit.Stop()
	scheduled := true // the edit timer is running
	types := when == TypingInstant
	begin := func() {
		if !types && when != TypingNever {
			types = true
			typing.Reset(0)
		}
	}
	for {
		select {
		case <-typing.C:
			typing.Reset(p.style.Refresh)
			if w.superseded(ctx, d) {
				return
			}
			if types {
				w.typing(ctx, p.row.Address)
			}
		case <-d.think:
			if when == TypingThinking {
				begin()
			}
		case <-d.text:
			if w.writes(d) {
				begin()
			}
			if !scheduled && !p.off {
				scheduled = true
				edit.Reset(max(0, time.Until(p.last.Add(p.interval))))
			}
		case <-edit.C:
			scheduled = false
			if again := p.advance(ctx); again > 0 {
				scheduled = true
				edit.Reset(again)
			}
		case <-d.tool:
			if p.style.Stream == StreamBlock {
				p.advance(ctx) // what was said before
			}
			if err := p.writeLines(ctx); err != nil && ctx.Err() == nil {
				w.o.Log.Error("store lines about tools", "run", d.run, "err", err)
			}
		case <-d.done:
			return
		case <-ctx.Done():
			return
		}
	}
}

// writes reports whether the model has begun an answer that people will see.
func (w *Worker) writes(d *display) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	d.wrote = d.wrote || d.answer != "" && !strings.HasPrefix(d.answer, Thoughts) && !(run.Answer{}).MayBeSilent(d.answer)
	return d.wrote
}

// typing shows the typing indicator on channels that have one.
func (w *Worker) typing(ctx context.Context, to chela.Address) {
	err := w.withChannel(ctx, to, func(ctx context.Context, ch channel.Channel) error {
		t, ok := channel.As[channel.Typer](ch)
		if !ok {
			return nil
		}
		return t.Typing(ctx, to)
	})
	if err != nil {
		w.o.Log.Debug("typing indicator", "channel", to.Channel, "err", err)
	}
}

// withChannel calls f with the running instance of an account, with the usual time limit.
// It does nothing if the account does not run.
func (w *Worker) withChannel(ctx context.Context, a chela.Address,
	f func(context.Context, channel.Channel) error) error {
	in, err := w.o.Channel(ctx, a.Channel, a.Account)
	if err != nil {
		return nil
	}
	defer in.Release()
	_, err = w.call(ctx, w.o.Track(),
		func(ctx context.Context) (channel.Receipt, error) { return channel.Receipt{}, f(ctx, in.Channel) })
	return err
}

// superseded reports whether the run has ended without an event, as a superseded
// run does. It then closes the run's preview and removes the display.
func (w *Worker) superseded(ctx context.Context, d *display) bool {
	if final, err := w.final(ctx, d.run); err != nil || !final {
		return false
	}
	if err := w.closePreviews(ctx); err != nil {
		w.o.Log.Error("close the previews of ended runs", "err", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.displays[d.run] == d {
		delete(w.displays, d.run)
	}
	return true
}

// final reports whether the end of a run is stored.
func (w *Worker) final(ctx context.Context, id chela.RunID) (bool, error) {
	r, err := store.Get(ctx, w.o.Store, func(r store.Reader) (run.Run, error) { return r.Runs().Get(id) })
	return r.State.Final(), err
}

// closePreviews closes the previews of runs that ended without an answer of their
// own. The messages remain on the platform.
func (w *Worker) closePreviews(ctx context.Context) error {
	return w.o.Store.Update(ctx, store.Ordered, func(tx store.Tx) error {
		rows, err := tx.Outbox().Open(0)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if row.State != outbox.Draft {
				continue
			}
			r, err := tx.Runs().Get(row.Run)
			if errors.Is(err, chela.ErrNotFound) || err == nil && r.State.Final() {
				row.State = outbox.Sent
				err = w.putTx(tx, row)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}
