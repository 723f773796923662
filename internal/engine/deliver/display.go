package deliver

import (
	"context"
	"errors"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/outbox"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/store"
)

const (
	typingInterval      = 6 * time.Second
	previewDelay        = 400 * time.Millisecond // a faster answer has no preview
	defaultEditInterval = time.Second
)

// display is the state of a run in progress that its channel may show.
type display struct {
	run  chela.RunID
	text chan struct{} // cap 1: the answer has grown
	tool chan struct{} // cap 1: lines about tools are pending
	done chan struct{} // closed when the run ends or waits

	// Guarded by Worker.mu.
	answer string   // the text of the current message
	lines  []string // pending lines about tools
}

// observe receives the events of all runs. It does not block.
func (w *Worker) observe(ctx context.Context, e chela.Event) {
	if e.Stream == chela.StreamApproval {
		signal(w.approvals)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	d := w.displays[e.Run]
	switch e.Stream {
	case chela.StreamAssistant:
		if d != nil {
			d.answer = e.Text
			signal(d.text)
		}
	case chela.StreamTool:
		if line := toolLine(e); line != "" {
			if d == nil {
				d = w.startDisplayLocked(ctx, e.Run)
			}
			d.answer = ""
			d.lines = append(d.lines, line)
			signal(d.tool)
		}
	case chela.StreamLifecycle:
		switch e.Phase {
		case chela.PhaseStart, chela.PhaseResume:
			at, known := e.Data.(chela.Address)
			if d == nil && (w.o.Typing || w.o.Preview != nil) && !(known && at.Local()) {
				w.startDisplayLocked(ctx, e.Run)
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
	d := &display{run: id, text: make(chan struct{}, 1), tool: make(chan struct{}, 1), done: make(chan struct{})}
	if !w.stopping {
		w.displays[id] = d
		w.wg.Go(func() { w.show(ctx, d) })
	}
	return d
}

func (w *Worker) answerOf(d *display) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return d.answer
}

// show shows a run until it ends.
func (w *Worker) show(ctx context.Context, d *display) {
	p := preview{w: w, d: d}
	err := w.o.Store.View(ctx, func(r store.Reader) error {
		v, err := r.Runs().Get(d.run)
		p.row.Address, p.row.Session = v.Address, v.Session
		return err
	})
	if err != nil || p.row.Address.Local() {
		return
	}
	in, err := w.o.Channel(ctx, p.row.Address.Channel, p.row.Address.Account)
	if err != nil {
		return
	}
	in.Release() // each call acquires the channel again, so that the account can be restarted meanwhile
	p.chunks, p.interval = w.Chunks(p.row.Address), w.o.Limits(p.row.Address.Channel).Edit
	if p.interval <= 0 {
		p.interval = defaultEditInterval
	}
	if w.o.Preview == nil || !w.o.Preview(p.row.Address) {
		p.off = true
	}
	if _, ok := in.Channel.(channel.Editor); !ok {
		p.off = true
	}
	_, types := in.Channel.(channel.Typer)
	w.refresh(ctx, d, &p, types && w.o.Typing)
}

// refresh updates the indicators of a run until it ends.
func (w *Worker) refresh(ctx context.Context, d *display, p *preview, types bool) {
	typing := time.NewTimer(0)
	defer typing.Stop()
	edit := time.NewTimer(previewDelay)
	defer edit.Stop()
	scheduled := true // the edit timer is running
	for {
		select {
		case <-typing.C:
			typing.Reset(typingInterval)
			if w.superseded(ctx, d) {
				return
			}
			if types {
				w.typing(ctx, p.row.Address)
			}
		case <-d.text:
			if !scheduled && !p.off {
				scheduled = true
				edit.Reset(max(0, time.Until(p.last.Add(p.interval))))
			}
		case <-edit.C:
			scheduled = false
			if again := p.update(ctx, w.answerOf(d)); again > 0 {
				scheduled = true
				edit.Reset(again)
			}
		case <-d.tool:
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

// typing shows the typing indicator on channels that have one.
func (w *Worker) typing(ctx context.Context, to chela.Address) {
	in, err := w.o.Channel(ctx, to.Channel, to.Account)
	if err != nil {
		return
	}
	defer in.Release()
	typer, ok := in.Channel.(channel.Typer)
	if !ok {
		return
	}
	_, err = w.call(ctx, w.o.Track(), func(ctx context.Context) (channel.Receipt, error) {
		return channel.Receipt{}, typer.Typing(ctx, to)
	})
	if err != nil {
		w.o.Log.Debug("typing indicator", "channel", to.Channel, "err", err)
	}
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
