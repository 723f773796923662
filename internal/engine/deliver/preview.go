package deliver

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/outbox"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/kit/chunk"
)

// preview is the message that is edited while an answer grows.
type preview struct {
	w        *Worker
	d        *display
	style    Style
	ch       channel.Channel // during update
	chunks   chunk.Options
	interval time.Duration // minimum time between edits

	row      outbox.Row
	last     time.Time // of the last call
	off      bool      // no further updates
	finished int       // earlier previews of this run
	lines    int       // lines about tools so far
	blocks   int       // messages of StreamBlock so far
	sent     int       // bytes of the current message that they contain
}

// advance shows what the model has written and the tools have done since the last time. It
// returns the time after which to try again; 0: when there is something new.
func (p *preview) advance(ctx context.Context) time.Duration {
	p.w.mu.Lock()
	whole, answer := p.d.whole, p.d.answer
	p.d.whole = nil
	if p.d.over {
		p.d.over, p.sent = false, 0
	}
	answer = shownSoFar(answer)
	for i := range whole {
		whole[i] = shown(whole[i])
	}
	steps := strings.Join(p.d.steps, "\n")
	p.w.mu.Unlock()
	switch {
	case p.off:
	case p.style.Stream == StreamBlock:
		p.last = time.Now()
		if err := p.writeBlocks(ctx, whole, answer); err != nil {
			p.off = true
			if !errors.Is(err, errEnded) && ctx.Err() == nil {
				p.w.o.Log.Error("store a part of an answer", "run", p.d.run, "err", err)
			}
		}
	case p.style.Stream == StreamProgress && steps == "":
	case p.style.Stream == StreamProgress:
		return p.update(ctx, steps)
	case answer != "":
		return p.update(ctx, p.style.Prefix+answer)
	}
	return 0
}

// update changes the preview to the text. It returns the time after which to try
// again; 0: when the text grows.
func (p *preview) update(ctx context.Context, text string) time.Duration {
	if p.off || (run.Answer{}).MayBeSilent(text) {
		return 0
	}
	if parts := outbox.Rows(outbox.Row{}, text, p.chunks); len(parts) > 0 {
		text = parts[0].Text
	}
	if text == p.row.Text {
		return 0
	}
	if !p.w.acquire(p.row.Address) {
		return p.interval / 4
	}
	defer p.w.release(p.row.Address)
	switch final, err := p.w.final(ctx, p.d.run); {
	case err != nil:
		return p.interval
	case final: // the answer may have been sent, although the end is not published yet
		p.off = true
		return 0
	}
	in, err := p.w.o.Channel(ctx, p.row.Address.Channel, p.row.Address.Account)
	if err != nil {
		p.off = true
		return 0
	}
	defer in.Release()
	p.ch, p.last = in.Channel, time.Now()
	err = p.show(ctx, text)
	refused, _ := errors.AsType[*channel.Error](err)
	switch {
	case err == nil:
	case refused != nil && refused.RetryAfter > 0:
		return refused.RetryAfter
	case errors.Is(err, errEnded):
		p.off = true
	default:
		p.off = true
		p.w.o.Log.Warn("preview", "channel", p.row.Address.Channel, "run", p.d.run, "err", err)
	}
	return 0
}

// errEnded says that the end of the run is stored. The preview no longer changes
// its rows.
var errEnded = errors.New("the run has ended")

// show sends the preview, or edits it.
func (p *preview) show(ctx context.Context, text string) error {
	if p.row.PlatformID == "" {
		return p.create(ctx, text)
	}
	editor, ok := channel.As[channel.Editor](p.ch)
	if !ok {
		return errors.New("the channel cannot edit messages any more")
	}
	_, err := p.w.call(ctx, p.w.o.Track(), func(ctx context.Context) (channel.Receipt, error) {
		return channel.Receipt{}, editor.Edit(ctx, p.row.Address, p.row.PlatformID, text)
	})
	if errors.Is(err, channel.ErrGone) { // the answer will be sent as a new message
		return errors.Join(err, p.change(ctx, func(d *outbox.Row) { d.PlatformID = "" }))
	}
	if err == nil {
		p.row.Text = text
	}
	return err
}

// create creates the preview: first the row, on disk, then the message, then the
// message's id in the row.
func (p *preview) create(ctx context.Context, text string) error {
	row := outbox.Row{
		Key: string(p.d.run) + ":0", Run: p.d.run, Session: p.row.Session, Address: p.row.Address, ReplyTo: p.row.ReplyTo,
		Text: text, State: outbox.Draft, Created: time.Now(),
	}
	existed := false // an earlier process created the row
	err := p.w.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
		r, err := tx.Runs().Get(p.d.run)
		if err != nil {
			return err
		}
		present, err := tx.Outbox().OfRun(p.d.run)
		if err != nil {
			return err
		}
		for _, d := range present {
			if d.State == outbox.Draft {
				row.PlatformID, existed = d.PlatformID, true
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
	if f, ok := channel.As[channel.Finder](p.ch); ok && existed && row.PlatformID == "" {
		r, found, err := f.Find(ctx, row.Address, previewKey(row))
		if err != nil { // a second one is not sent before this is known
			return &channel.Error{RetryAfter: max(p.interval, time.Second), Err: fmt.Errorf("look the preview up: %w", err)}
		}
		if found {
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

// previewKey is the key with which the preview is sent. It differs from the key
// of the row, because a platform that supports keys would otherwise mistake the
// answer for the preview.
func previewKey(row outbox.Row) string { return row.Key + ":preview" }

// send sends the preview as a new message.
func (p *preview) send(ctx context.Context, row outbox.Row) error {
	key := previewKey(row)
	if p.finished > 0 {
		key += strconv.Itoa(p.finished)
	}
	r, err := p.w.call(ctx, p.w.o.Track(), func(ctx context.Context) (channel.Receipt, error) {
		return p.ch.Send(ctx, channel.Part{Key: key, Address: row.Address, ReplyTo: p.row.ReplyTo, Text: row.Text})
	})
	if f, ok := channel.As[channel.Finder](p.ch); ok && errors.Is(err, channel.ErrAmbiguous) {
		if found, ok, ferr := f.Find(ctx, row.Address, key); ferr == nil && ok {
			r, err = found, nil
		}
	}
	if err != nil {
		return errors.Join(err, p.remove(ctx, row.Key))
	}
	row.PlatformID = r.ID
	p.row = row
	err = p.change(ctx, func(d *outbox.Row) { d.PlatformID = r.ID })
	if err != nil { // without the id, the answer becomes a new message
		err = errors.Join(err, p.withdraw(ctx))
	}
	return err
}

// withdraw deletes the message of the preview, if the channel can do that.
func (p *preview) withdraw(ctx context.Context) error {
	d, ok := channel.As[channel.Deleter](p.ch)
	if !ok {
		return nil
	}
	_, err := p.w.call(ctx, p.w.o.Track(), func(ctx context.Context) (channel.Receipt, error) {
		return channel.Receipt{}, d.Delete(ctx, p.row.Address, p.row.PlatformID)
	})
	return err
}

// change changes the row of the preview, even if the run ended meanwhile and made
// it a part of the answer: nothing is sent to the address before this returns.
func (p *preview) change(ctx context.Context, f func(*outbox.Row)) error {
	return p.w.o.Store.Update(context.WithoutCancel(ctx), store.Ordered, func(tx store.Tx) error {
		d, err := tx.Outbox().Get(string(p.d.run) + ":0")
		if err == nil && d.Address != p.row.Address {
			d, err = tx.Outbox().Get(previewKey(d)) // see mergePreview
		}
		if err != nil {
			return err
		}
		f(&d)
		return tx.Outbox().Put(d)
	})
}

// remove deletes the row of a preview that could not be sent.
func (p *preview) remove(ctx context.Context, key string) error {
	return p.w.o.Store.Update(context.WithoutCancel(ctx), store.Ordered, func(tx store.Tx) error {
		d, err := tx.Outbox().Get(key)
		if err != nil || d.State != outbox.Draft {
			return err
		}
		return tx.Outbox().Delete(key)
	})
}
