package message

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/chela-ai/chela/internal/core/action"
	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// call calls a method of the running instance of an account, with a time limit. A channel is
// a plug-in and may hang or panic; then the outcome is unknown.
func (a *Actor) call(ctx context.Context, acc channel.Account,
	f func(context.Context, channel.Channel) error) (err error) {
	ctx, cancel := context.WithTimeout(ctx, a.o.Limit)
	defer cancel()
	alive := a.o.Track()
	in, err := a.o.Acquire(ctx, acc.Channel, acc.ID)
	switch {
	case errors.Is(err, chela.ErrFenced):
		return chela.Errorf(chela.CodeUnavailable, "another process runs the account %s", acc)
	case err != nil:
		return chela.Errorf(chela.CodeUnavailable, "the account %s is not running: %w", acc, err)
	}
	defer in.Release()
	if !alive() {
		return chela.Errorf(chela.CodeUnavailable, "this process may have lost the account %s; try again", acc)
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the channel panicked: %v: %w", p, channel.ErrAmbiguous)
		}
	}()
	err = f(ctx, in.Channel)
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("no answer within %s: %w", a.o.Limit, channel.ErrAmbiguous)
	}
	return err
}

// Thread creates a thread in a chat and returns its address.
func (a *Actor) Thread(ctx context.Context, at chela.Address, name string) (chela.Address, error) {
	acc := channel.Account{Channel: at.Channel, ID: at.Account}
	err := a.call(ctx, acc, func(ctx context.Context, ch channel.Channel) error {
		x, err := ability[channel.Threader](ch, action.Request{Action: action.Thread}, target{account: acc, address: at})
		if err == nil {
			at, err = x.Thread(ctx, at, name)
		}
		return err
	})
	return at, err
}

// act carries out an action that is one call of the channel.
func (a *Actor) act(ctx context.Context, c caller, r action.Request, p target) (action.Result, error) {
	if r.Message == "" && (r.Action == action.React || r.Action == action.Pin) {
		id, err := a.answered(ctx, c, p)
		if err != nil {
			return action.Result{}, err
		}
		r.Message = id
	}
	res := p.result(r.Action, action.Done, "")
	if r.Message != "" {
		res.IDs = []string{r.Message}
	}
	err := a.call(ctx, p.account, func(ctx context.Context, ch channel.Channel) error {
		text, err := do(ctx, ch, r, p, &res)
		res.Text = text
		return err
	})
	switch refused, _ := errors.AsType[*channel.Error](err); {
	case err == nil:
		return res, nil
	case errors.Is(err, channel.ErrGone):
		what := cmp.Or(r.Message, "the chat")
		if r.Message != "" {
			what = "message " + r.Message
		}
		return res, chela.Errorf(chela.CodeNotFound, "%s of %s does not exist, or was deleted: %w", what, p, err)
	case errors.Is(err, channel.ErrAmbiguous) && r.Action != action.Read:
		res.Status = action.Unknown
		res.Text = fmt.Sprintf("It is unknown whether the action %s in %s was carried out (%v). Do not repeat it.",
			r.Action, p, err)
		return res, nil
	case refused != nil && refused.RetryAfter > 0:
		return res, chela.Errorf(chela.CodeUnavailable, "%s in %s: %s asks to wait %s: %w", r.Action, p, p.account.Channel,
			humanize.Span(refused.RetryAfter), err)
	case refused != nil && refused.Permanent:
		return res, chela.Errorf(chela.CodeInvalid, "%s in %s: %w", r.Action, p, err)
	case chela.CodeOf(err) != chela.CodeInternal || ctx.Err() != nil:
		return res, err
	}
	return res, chela.Errorf(chela.CodeUnavailable, "%s in %s: %w", r.Action, p, err)
}

// do calls the method of a channel for an action, and returns what it did in a sentence.
func do(ctx context.Context, ch channel.Channel, r action.Request, p target, res *action.Result) (string, error) {
	to, id := p.address, r.Message
	switch r.Action {
	case action.React:
		x, err := ability[channel.Reactor](ch, r, p)
		if err == nil {
			err = x.React(ctx, to, id, r.Emoji)
		}
		if r.Emoji == "" {
			return fmt.Sprintf("Removed the reaction from message %s in %s.", id, p), err
		}
		return fmt.Sprintf("Reacted with %s to message %s in %s.", r.Emoji, id, p), err
	case action.Edit:
		x, err := ability[channel.Editor](ch, r, p)
		if err == nil {
			err = x.Edit(ctx, to, id, r.Text)
		}
		return fmt.Sprintf("Changed message %s in %s.", id, p), err
	case action.Delete:
		x, err := ability[channel.Deleter](ch, r, p)
		if err == nil {
			err = x.Delete(ctx, to, id)
		}
		return fmt.Sprintf("Deleted message %s in %s.", id, p), err
	case action.Pin, action.Unpin:
		x, err := ability[channel.Pinner](ch, r, p)
		if err == nil {
			err = x.Pin(ctx, to, id, r.Action == action.Pin)
		}
		return fmt.Sprintf("%sned message %s in %s.", strings.ToUpper(string(r.Action[:1]))+string(r.Action[1:]), id, p), err
	case action.Thread:
		x, err := ability[channel.Threader](ch, r, p)
		if err == nil {
			p.address, err = x.Thread(ctx, to, r.Name)
		}
		res.To, res.Thread = p.id(), p.address.Thread
		return fmt.Sprintf("Created the thread %q: %s.", r.Name, p), err
	case action.Read:
		x, err := ability[channel.Reader](ch, r, p)
		if err == nil {
			res.Messages, err = x.Read(ctx, to, r.Limit)
		}
		return fmt.Sprintf("%s in %s.", humanize.Many(len(res.Messages), "message"), p), err
	}
	return "", unsupported(r.Action, p.account)
}

// ability returns a channel with an ability that the action of r needs.
func ability[A any](ch channel.Channel, r action.Request, p target) (A, error) {
	x, ok := ch.(A)
	if !ok {
		return x, unsupported(r.Action, p.account)
	}
	return x, nil
}

// answered returns the id of the message that the run of the caller answers, if it is in
// that chat.
func (a *Actor) answered(ctx context.Context, c caller, p target) (string, error) {
	items, err := store.Get(ctx, a.o.Store, func(r store.Reader) ([]queue.Item, error) {
		if c.Run == "" {
			return nil, nil
		}
		first, err := r.Queue().Get(string(c.Run)) // the item that started the run
		if err != nil && !errors.Is(err, chela.ErrNotFound) {
			return nil, err
		}
		more, err := r.Queue().OfRun(c.Run)
		return append([]queue.Item{first}, more...), err
	})
	if err != nil {
		return "", err
	}
	for i := len(items) - 1; i >= 0; i-- {
		if in := items[i].Inbound; items[i].Kind == queue.Message && in.Address == p.address && in.ID != "" {
			return in.ID, nil
		}
	}
	return "", chela.Errorf(chela.CodeInvalid, "messageId is missing: no message of %s is being answered", p)
}
