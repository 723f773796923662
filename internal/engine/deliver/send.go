package deliver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/outbox"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// errNotAlive says that this process does not hold its leases for certain. It sends
// nothing until it has renewed them.
var errNotAlive = errors.New("this process was stopped for longer than its leases last")

// delivery is the Worker with the running instance of an account. It writes rows
// under the lease of the account.
type delivery struct {
	*Worker
	in    channel.Instance
	alive func() bool // since before the writes of this step; see Options.Track
}

// process performs the next step of a row. done reports whether the row is
// closed, so that the next row of the address may follow. The error is errNotAlive,
// or chela.ErrFenced if another process has the account and its rows, or else the
// store did not accept a write.
func (w *Worker) process(ctx context.Context, key string) (done bool, err error) {
	row, err := w.row(ctx, key)
	if errors.Is(err, chela.ErrNotFound) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	in, err := w.o.Channel(ctx, row.Address.Channel, row.Address.Account)
	switch {
	case errors.Is(err, chela.ErrFenced):
		return false, err
	case ctx.Err() != nil:
		return false, nil
	case err != nil:
		return delivery{Worker: w}.channelMissing(ctx, row)
	}
	defer in.Release()
	return delivery{w, in, w.o.Track()}.step(ctx, row)
}

// step performs the next step of a row of the account.
func (w delivery) step(ctx context.Context, row outbox.Row) (done bool, err error) {
	if !w.alive() {
		return false, errNotAlive
	}
	switch row.State {
	case outbox.Pending:
	case outbox.Attempted: // by a process that did not record the outcome
		return w.lookUp(ctx, row, nil)
	default:
		return true, nil
	}
	if say := unsaid(row); say != "" {
		return w.say(ctx, row, say)
	}
	row.State = outbox.Attempted
	row.Attempts++
	sync := store.Synced
	if row.PlatformID != "" {
		sync = store.Ordered // an edit, which can be repeated
	}
	if open, err := w.putOpen(ctx, sync, row); err != nil || !open {
		return err == nil, err
	}
	if row.PlatformID != "" {
		return w.replacePreview(ctx, row)
	}
	if row.Text == "" && len(row.Media) == 0 && row.Poll == nil {
		return true, w.drop(ctx, row) // a preview that was never sent
	}
	return w.send(ctx, row)
}

// send sends the row as a new message.
func (w delivery) send(ctx context.Context, row outbox.Row) (bool, error) {
	media, err := w.media(row)
	if err != nil {
		return w.fail(ctx, row, err)
	}
	r, err := w.callWithin(ctx, w.timeout(row), w.alive, func(ctx context.Context) (channel.Receipt, error) {
		if row.Poll != nil {
			return w.poll(ctx, row)
		}
		return w.in.Channel.Send(ctx, channel.Part{
			Key: row.Key, Address: row.Address, ReplyTo: row.ReplyTo, Text: row.Text, Media: media, Buttons: row.Buttons,
		})
	})
	if ctx.Err() != nil && err != nil {
		return false, nil // the worker is being stopped: the next start resolves the attempt
	}
	if errors.Is(err, channel.ErrAmbiguous) {
		return w.lookUp(ctx, row, err)
	}
	return w.outcome(ctx, row, r, err)
}

// poll sends the poll of a row.
func (w delivery) poll(ctx context.Context, row outbox.Row) (channel.Receipt, error) {
	p, ok := channel.As[channel.Poller](w.in.Channel)
	if !ok {
		return channel.Receipt{},
			&channel.Error{Permanent: true, Err: fmt.Errorf("channel %s has no polls", row.Address.Channel)}
	}
	return p.Poll(ctx, channel.Poll{
		Key: row.Key, Address: row.Address, Question: row.Poll.Question, Options: row.Poll.Options,
		Multiple: row.Poll.Multiple, Public: row.Poll.Public, Open: row.Poll.Open,
	})
}

// media returns the attachments of a row with their content.
func (w *Worker) media(row outbox.Row) ([]chela.Media, error) {
	if w.o.Load == nil || len(row.Media) == 0 {
		return row.Media, nil
	}
	out := make([]chela.Media, len(row.Media))
	for i, m := range row.Media {
		var err error
		if out[i], err = w.o.Load(m); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// replacePreview edits the preview to the text of the row, or deletes it if the
// row has no text. Repeating it is harmless. If the preview cannot be edited, the
// row is sent as a new message.
func (w delivery) replacePreview(ctx context.Context, row outbox.Row) (bool, error) {
	if row.Text == "" {
		if d, ok := channel.As[channel.Deleter](w.in.Channel); ok {
			_, err := w.call(ctx, w.alive, func(ctx context.Context) (channel.Receipt, error) {
				return channel.Receipt{}, d.Delete(ctx, row.Address, row.PlatformID)
			})
			if err != nil && !errors.Is(err, channel.ErrGone) {
				return w.outcome(ctx, row, channel.Receipt{}, err)
			}
		}
		return true, w.drop(ctx, row)
	}
	err := channel.ErrGone
	if e, ok := channel.As[channel.Editor](w.in.Channel); ok {
		_, err = w.callWithin(ctx, w.timeout(row), w.alive, func(ctx context.Context) (channel.Receipt, error) {
			return channel.Receipt{}, e.Edit(ctx, row.Address, row.PlatformID, row.Text)
		})
	}
	if ctx.Err() != nil && err != nil {
		return false, nil
	}
	refused := new(channel.Error)
	if !errors.Is(err, channel.ErrGone) && !(errors.As(err, &refused) && refused.Permanent) {
		return w.outcome(ctx, row, channel.Receipt{ID: row.PlatformID}, err)
	}
	row.PlatformID = "" // on disk before it is sent: a row with an id would be edited again after a crash
	if err := w.put(ctx, store.Synced, row); err != nil {
		return false, err
	}
	return w.send(ctx, row)
}

// lookUp resolves an attempt whose outcome is unknown. cause is the reason; nil
// means that the process died during the attempt.
func (w delivery) lookUp(ctx context.Context, row outbox.Row, cause error) (bool, error) {
	if cause == nil {
		cause = errors.New("the process ended while the message was being sent")
	}
	if row.PlatformID != "" { // an edit, which can be repeated
		row.State = outbox.Pending
		return false, w.put(ctx, store.Ordered, row)
	}
	f, ok := channel.As[channel.Finder](w.in.Channel)
	if !ok {
		return true, w.ambiguous(ctx, row, cause)
	}
	var found bool
	r, err := w.call(ctx, w.alive, func(ctx context.Context) (r channel.Receipt, err error) {
		r, found, err = f.Find(ctx, row.Address, row.Key)
		return r, err
	})
	switch {
	case ctx.Err() != nil:
		return false, nil
	case err == nil && found:
		return w.outcome(ctx, row, r, nil)
	case err == nil:
		return w.outcome(ctx, row, channel.Receipt{}, cause)
	case row.Attempts >= maxAttempts:
		return true, w.ambiguous(ctx, row, fmt.Errorf("%w; lookup: %w", cause, err))
	}
	row.Attempts++
	row.NotBefore = time.Now().Add(w.retry.Delay(row.Attempts, rand.Float64()))
	return false, w.put(ctx, store.Ordered, row)
}

// unsure ends the key of a row that tells a chat about an ambiguous one.
const unsure = ":unsure"

// ambiguous closes a row whose outcome cannot be determined. The commit that closes it
// adds a notice to the transcript of its session, and tells the chat, if the channel
// runs.
func (w delivery) ambiguous(ctx context.Context, row outbox.Row, cause error) error {
	row.State, row.Error = outbox.Ambiguous, cause.Error()
	text := fmt.Sprintf("%s may not have reached %s: %v; it is not sent again, because it could come twice", named(row),
		row.Address.Channel, cause)
	if err := w.close(ctx, row, text, func(tx store.Tx) error {
		if w.in.Channel == nil || strings.HasSuffix(row.Key, unsure) {
			return nil
		}
		return tell(tx, row)
	}); err != nil {
		return err
	}
	w.o.Log.Warn("outcome of a delivery is unknown; it is not sent again", "key", row.Key,
		"channel", row.Address.Channel, "err", cause)
	return nil
}

// tell writes a row that tells a chat about an ambiguous one. While it waits, it stands
// for later ones too.
func tell(tx store.Tx, row outbox.Row) error {
	tx.Wake(store.Topic{Kind: store.TopicOutbox})
	text := "I don't know whether %s arrived here: the connection broke while I was sending. Ask me to repeat it if it is missing."
	open, err := tx.Outbox().Open(0)
	if err != nil {
		return err
	}
	for _, told := range open {
		first, ok := strings.CutSuffix(told.Key, unsure)
		if !ok || told.Address != row.Address || told.State != outbox.Pending {
			continue
		}
		if row, err = tx.Outbox().Get(first); err != nil {
			return err
		}
		told.Text = fmt.Sprintf(text, "everything since "+named(row))
		return tx.Outbox().Put(told)
	}
	return tx.Outbox().Put(outbox.Row{
		Key: row.Key + unsure, Session: row.Session, Address: row.Address, State: outbox.Pending, Created: time.Now(),
		Text: fmt.Sprintf(text, named(row)), Origin: chela.Origin{Kind: chela.OriginSystem},
	})
}

// named says which message a row is, for the person who may miss it.
func named(row outbox.Row) string {
	switch {
	case row.Poll != nil:
		return fmt.Sprintf("the poll %q", humanize.Truncate(row.Poll.Question, 40))
	case row.Text != "":
		return fmt.Sprintf("the message that begins %q", humanize.Truncate(humanize.OneLine(row.Text), 40))
	case len(row.Media) > 0 && row.Media[0].Name != "":
		return "the attachment " + row.Media[0].Name
	}
	return "a message"
}

// channelMissing delays a row whose channel is not running, for at most maxAge.
func (w delivery) channelMissing(ctx context.Context, row outbox.Row) (bool, error) {
	err := fmt.Errorf("channel %s/%s is not running", row.Address.Channel, row.Address.Account)
	if age := time.Since(row.Created); age <= maxAge {
		row.NotBefore, row.Error = time.Now().Add(min(max(age/2, recheck), time.Hour)), err.Error()
		open, err := w.putOpen(ctx, store.Ordered, row)
		return err == nil && !open, err
	}
	if row.State == outbox.Attempted {
		return true, w.ambiguous(ctx, row, err)
	}
	return w.fail(ctx, row, err)
}

// outcome records the outcome of an attempt. A row that can be retried becomes
// pending, and the rows after it wait for it.
func (w delivery) outcome(ctx context.Context, row outbox.Row, r channel.Receipt, err error) (bool, error) {
	now := time.Now()
	if err == nil {
		row.State, row.PlatformID, row.Error = outbox.Sent, r.ID, ""
		return true, w.put(ctx, store.Ordered, row)
	}
	row.State, row.Error = outbox.Pending, err.Error()
	refused, _ := errors.AsType[*channel.Error](err)
	failed := now.Sub(row.Created) > maxAge
	switch {
	case errors.Is(err, errNotAlive): // it was not attempted
		row.Attempts--
		failed = false
	case refused != nil && refused.Permanent:
		failed = true
	case refused != nil && refused.RetryAfter > 0: // rate limited: not counted as an attempt
		row.Attempts--
		row.NotBefore = now.Add(min(refused.RetryAfter, maxAge))
	case row.Attempts >= maxAttempts:
		failed = true
	default:
		row.NotBefore = now.Add(w.retry.Delay(row.Attempts, rand.Float64()))
	}
	if !failed {
		return false, w.put(ctx, store.Ordered, row)
	}
	return w.fail(ctx, row, err)
}

// fail closes a row as failed and tells the owner.
func (w delivery) fail(ctx context.Context, row outbox.Row, cause error) (bool, error) {
	row.State, row.Error = outbox.Failed, cause.Error()
	text := fmt.Sprintf("the answer could not be delivered to %s: %v", row.Address.Channel, cause)
	if err := w.close(ctx, row, text, func(store.Tx) error { return nil }); err != nil {
		return false, err
	}
	w.o.Log.Error("delivery failed", "key", row.Key, "channel", row.Address.Channel,
		"attempts", row.Attempts, "err", cause)
	return true, nil
}

// close closes a row that was not delivered for certain: the commit adds a notice to
// the transcript of its session, and what more writes.
func (w delivery) close(ctx context.Context, row outbox.Row, text string, more func(store.Tx) error) error {
	err := w.update(ctx, store.Ordered, func(tx store.Tx) error {
		if err := errors.Join(w.putTx(tx, row), more(tx)); err != nil {
			return err
		}
		m, err := tx.Sessions().Get(row.Session)
		if errors.Is(err, chela.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		return tx.Sessions().Append(m.ID, &session.Entry{
			ID:      uuid.NewString(),
			Kind:    session.KindNotice,
			Time:    time.Now(),
			Run:     row.Run,
			Text:    text,
			NanoUSD: -1,
		})
	})
	if err != nil {
		return err
	}
	w.o.Bus.Publish(chela.Event{Session: row.Session, Stream: chela.StreamNotice, Phase: chela.PhaseError, Text: text})
	w.publish(row)
	w.notifySent(ctx, row)
	return nil
}

// timeout returns the time limit for sending a row once.
func (w *Worker) timeout(row outbox.Row) time.Duration {
	if w.o.Timeout == nil {
		return sendTimeout
	}
	return cmp.Or(w.o.Timeout(row), sendTimeout)
}

// call is callWithin with the usual time limit.
func (w *Worker) call(ctx context.Context, alive func() bool,
	f func(context.Context) (channel.Receipt, error)) (channel.Receipt, error) {
	return w.callWithin(ctx, sendTimeout, alive, f)
}

// callWithin calls a method of a channel with a time limit, or returns errNotAlive. A
// channel is a plug-in and may hang or panic; then the outcome is unknown.
func (w *Worker) callWithin(ctx context.Context, limit time.Duration, alive func() bool,
	f func(context.Context) (channel.Receipt, error)) (r channel.Receipt, err error) {
	if !alive() {
		return r, errNotAlive
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("channel panicked: %v: %w", p, channel.ErrAmbiguous)
		}
	}()
	r, err = f(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("no answer within %s: %w", limit, channel.ErrAmbiguous)
	}
	return r, err
}

func (w *Worker) row(ctx context.Context, key string) (row outbox.Row, err error) {
	err = w.o.Store.View(ctx, func(r store.Reader) error {
		row, err = r.Outbox().Get(key)
		return err
	})
	return row, err
}
