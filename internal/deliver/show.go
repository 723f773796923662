package deliver

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/channel"
	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/chunk"
	"github.com/chela-ai/chela/internal/outbox"
	"github.com/chela-ai/chela/internal/store"
)

const (
	typingEvery  = 6 * time.Second
	previewAfter = 400 * time.Millisecond // a quick answer needs no preview
	defaultEdit  = time.Second
	silentToken  = "NO_REPLY"
)

// show is a run in progress as its channel may see it.
type show struct {
	run  chela.RunID
	more chan struct{} // cap 1: text has grown
	used chan struct{} // cap 1: there are lines
	done chan struct{} // closed when the run has ended, or waits

	// Guarded by Worker.mu.
	text  string   // of the current message
	lines []string // about tools, to be sent
}

// observe follows the runs on the bus. It only takes notes.
func (w *Worker) observe(ctx context.Context, e chela.Event) {
	if e.Stream == chela.StreamApproval {
		hint(w.asked)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.shows[e.Run]
	switch e.Stream {
	case chela.StreamAssistant:
		if s != nil {
			s.text = e.Text
			hint(s.more)
		}
	case chela.StreamTool:
		if line := toolLine(e); line != "" {
			if s == nil {
				s = w.beginLocked(ctx, e.Run)
			}
			s.text = ""
			s.lines = append(s.lines, line)
			hint(s.used)
		}
	case chela.StreamLifecycle:
		switch e.Phase {
		case chela.PhaseStart, chela.PhaseResume:
			at, known := e.Data.(chela.Address)
			if s == nil && (w.o.Typing || w.o.Preview != nil) && !(known && at.Local()) {
				w.beginLocked(ctx, e.Run)
			}
		case chela.PhaseEnd, chela.PhaseError, chela.PhaseSuspended:
			if s != nil {
				close(s.done)
				delete(w.shows, e.Run)
			}
		}
	}
}

// beginLocked begins to show a run.
func (w *Worker) beginLocked(ctx context.Context, id chela.RunID) *show {
	s := &show{run: id, more: make(chan struct{}, 1), used: make(chan struct{}, 1), done: make(chan struct{})}
	if !w.shut {
		w.shows[id] = s
		w.wg.Go(func() { w.follow(ctx, s) })
	}
	return s
}

func (w *Worker) textOf(s *show) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return s.text
}

// follow shows a run until it ends.
func (w *Worker) follow(ctx context.Context, s *show) {
	p := preview{w: w, s: s}
	err := w.o.Store.View(ctx, func(r store.Reader) error {
		v, err := r.Runs().Get(s.run)
		p.row.Address, p.row.Session = v.Address, v.Session
		return err
	})
	if err != nil || p.row.Address.Local() {
		return
	}
	ch, limits, ok := w.o.Channels(p.row.Address.Channel, p.row.Address.Account)
	if !ok {
		return
	}
	p.ch, p.o, p.every = ch, chunks(limits), limits.Edit
	if p.every <= 0 {
		p.every = defaultEdit
	}
	if w.o.Preview == nil || !w.o.Preview(p.row.Address) {
		p.off = true
	}
	if p.editor, ok = ch.(channel.Editor); !ok {
		p.off = true
	}
	typer, _ := ch.(channel.Typer)
	if !w.o.Typing {
		typer = nil
	}
	w.keep(ctx, s, &p, typer)
}

// typing says that something is being written, where that can be said.
func (w *Worker) typing(ctx context.Context, typer channel.Typer, to chela.Address) {
	if typer == nil {
		return
	}
	_, err := call(ctx, func(ctx context.Context) (channel.Receipt, error) {
		return channel.Receipt{}, typer.Typing(ctx, to)
	})
	if err != nil {
		w.o.Log.Debug("typing", "channel", to.Channel, "err", err)
	}
}

// keep refreshes what is shown.
func (w *Worker) keep(ctx context.Context, s *show, p *preview, typer channel.Typer) {
	typing := time.NewTimer(0)
	defer typing.Stop()
	edit := time.NewTimer(previewAfter)
	defer edit.Stop()
	waiting := true // the timer of the preview runs
	for {
		select {
		case <-typing.C:
			typing.Reset(typingEvery)
			if w.over(ctx, s) { // it was superseded, which nobody says
				return
			}
			w.typing(ctx, typer, p.row.Address)
		case <-s.more:
			if !waiting && !p.off {
				waiting = true
				edit.Reset(max(0, time.Until(p.last.Add(p.every))))
			}
		case <-edit.C:
			waiting = false
			if again := p.update(ctx, w.textOf(s)); again > 0 {
				waiting = true
				edit.Reset(again)
			}
		case <-s.used:
			if err := p.tools(ctx); err != nil && ctx.Err() == nil {
				w.o.Log.Error("lines about tools", "run", s.run, "err", err)
			}
		case <-s.done:
			return
		case <-ctx.Done():
			return
		}
	}
}

// over reports whether the run has ended, and forgets it then.
func (w *Worker) over(ctx context.Context, s *show) bool {
	var final bool
	err := w.o.Store.View(ctx, func(r store.Reader) error {
		v, err := r.Runs().Get(s.run)
		final = v.State.Final()
		return err
	})
	if err != nil || !final {
		return false
	}
	if err := w.tidy(ctx); err != nil {
		w.o.Log.Error("previews of runs that were superseded", "err", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.shows[s.run] == s {
		delete(w.shows, s.run)
	}
	return true
}

// tidy closes the previews of runs that ended without an answer of their own:
// what was shown stays.
func (w *Worker) tidy(ctx context.Context) error {
	return w.o.Store.Update(ctx, store.Ordered, func(tx store.Tx) error {
		rows, err := tx.Outbox().Open(0)
		if err != nil {
			return err
		}
		for _, d := range rows {
			if d.State != outbox.Draft {
				continue
			}
			r, err := tx.Runs().Get(d.Run)
			if errors.Is(err, chela.ErrNotFound) || err == nil && r.State.Final() {
				d.State = outbox.Sent
				err = tx.Outbox().Put(d)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// preview is the message that grows with the answer.
type preview struct {
	w      *Worker
	s      *show
	ch     channel.Channel
	editor channel.Editor
	o      chunk.Options
	every  time.Duration // least time between edits

	row    outbox.Row
	last   time.Time // of the last call
	off    bool      // no more of it
	closed int       // previews before this one
	lines  int       // about tools, so far
}

// update brings the preview to the text. It returns after which time to try
// again, if that is not when the text grows.
func (p *preview) update(ctx context.Context, text string) time.Duration {
	if p.off || held(text) {
		return 0
	}
	if parts := outbox.Rows(outbox.Row{}, text, p.o); len(parts) > 0 {
		text = parts[0].Text
	}
	if text == p.row.Text {
		return 0
	}
	if !p.w.take(p.row.Address) {
		return p.every / 4 // something is being sent there
	}
	defer p.w.give(p.row.Address)
	select {
	case <-p.s.done: // the end is written, or about to be
		return 0
	default:
	}
	p.last = time.Now()
	err := p.show(ctx, text)
	refused, _ := errors.AsType[*channel.Error](err)
	switch {
	case err == nil:
	case refused != nil && refused.RetryAfter > 0:
		return refused.RetryAfter
	case errors.Is(err, errEnded):
		p.off = true
	default:
		p.off = true
		p.w.o.Log.Warn("preview", "channel", p.row.Address.Channel, "run", p.s.run, "err", err)
	}
	return 0
}

// errEnded says that the run has written its end: its rows are not touched.
var errEnded = errors.New("the run has ended")

// show sends the preview, or edits it.
func (p *preview) show(ctx context.Context, text string) error {
	if p.row.PlatformID == "" {
		return p.first(ctx, text)
	}
	_, err := call(ctx, func(ctx context.Context) (channel.Receipt, error) {
		return channel.Receipt{}, p.editor.Edit(ctx, p.row.Address, p.row.PlatformID, text)
	})
	if errors.Is(err, channel.ErrGone) { // the answer will be a message of its own
		p.row.PlatformID = ""
		return errors.Join(err, p.change(ctx, func(d *outbox.Row) { d.PlatformID = "" }))
	}
	if err == nil {
		p.row.Text = text
	}
	return err
}

// first makes the preview: a row on disk, then the message, then its id.
func (p *preview) first(ctx context.Context, text string) error {
	row := outbox.Row{
		Key: string(p.s.run) + ":0", Run: p.s.run, Session: p.row.Session, Address: p.row.Address,
		Text: text, State: outbox.Draft, Created: time.Now(),
	}
	again := false // there is a row of the process that carried the run before
	err := p.w.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
		r, err := tx.Runs().Get(p.s.run)
		if err != nil {
			return err
		}
		had, err := tx.Outbox().OfRun(p.s.run)
		if err != nil {
			return err
		}
		for _, d := range had {
			if d.State == outbox.Draft {
				row.PlatformID, again = d.PlatformID, true
			}
		}
		if r.State.Final() || r.Address != row.Address {
			return errEnded
		}
		return tx.Outbox().Put(row)
	})
	if err != nil {
		return err
	}
	if f, ok := p.ch.(channel.Finder); ok && again && row.PlatformID == "" {
		if r, found, err := f.Find(ctx, row.Address, previewKey(row)); err == nil && found {
			row.PlatformID = r.ID
		}
	}
	if row.PlatformID == "" {
		return p.send(ctx, row)
	}
	p.row = row
	p.row.Text = ""
	return errors.Join(p.show(ctx, text), p.change(ctx, func(d *outbox.Row) { d.PlatformID = row.PlatformID }))
}

// previewKey is the key under which the platform knows the preview. It is not
// the row's: a platform that knows keys would take the answer for the preview.
func previewKey(row outbox.Row) string { return row.Key + ":preview" }

func (p *preview) send(ctx context.Context, row outbox.Row) error {
	key := previewKey(row)
	if p.closed > 0 {
		key += strconv.Itoa(p.closed)
	}
	r, err := call(ctx, func(ctx context.Context) (channel.Receipt, error) {
		return p.ch.Send(ctx, channel.Part{Key: key, Address: row.Address, ReplyTo: row.ReplyTo, Text: row.Text})
	})
	if f, ok := p.ch.(channel.Finder); ok && errors.Is(err, channel.ErrAmbiguous) {
		if found, ok, ferr := f.Find(ctx, row.Address, key); ferr == nil && ok {
			r, err = found, nil
		}
	}
	if err != nil {
		return errors.Join(err, p.forget(ctx, row.Key))
	}
	row.PlatformID = r.ID
	p.row = row
	return p.change(ctx, func(d *outbox.Row) { d.PlatformID = r.ID })
}

// change changes the preview's row, also when the run ended meanwhile and made
// it part of the answer: nothing is sent to the address before this is done.
func (p *preview) change(ctx context.Context, f func(*outbox.Row)) error {
	return p.w.o.Store.Update(context.WithoutCancel(ctx), store.Ordered, func(tx store.Tx) error {
		d, err := tx.Outbox().Get(string(p.s.run) + ":0")
		if err == nil && d.Address != p.row.Address {
			d, err = tx.Outbox().Get(previewKey(d)) // see settle
		}
		if err != nil {
			return err
		}
		f(&d)
		return tx.Outbox().Put(d)
	})
}

// forget takes the row of a preview away that could not be sent.
func (p *preview) forget(ctx context.Context, key string) error {
	return p.w.o.Store.Update(context.WithoutCancel(ctx), store.Ordered, func(tx store.Tx) error {
		d, err := tx.Outbox().Get(key)
		if err != nil || d.State != outbox.Draft {
			return err
		}
		return tx.Outbox().Delete(key)
	})
}

// held reports whether the text may still become one that is not shown.
func held(text string) bool {
	t := strings.ToUpper(strings.TrimSpace(text))
	return strings.HasPrefix(silentToken, t)
}
