package message

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/action"
	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/outbox"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/kit/chunk"
)

// Options configures an Actor. All fields are required unless stated otherwise.
type Options struct {
	Store   store.Store
	Publish func(chela.Event)

	// Accounts returns the configured accounts, ordered by channel.
	Accounts func() []channel.Account
	// Acquire returns the running instance of an account.
	Acquire func(ctx context.Context, name string, account chela.AccountID) (channel.Instance, error)
	// Track returns a function that reports whether this process has certainly held its
	// leases since.
	Track func() (alive func() bool)

	// Chunks returns how a text is split for an address.
	Chunks func(chela.Address) chunk.Options
	// Await returns rows of the outbox once all of them are final, or in their current state
	// when ctx ends.
	Await func(ctx context.Context, keys ...string) ([]outbox.Row, error)

	// Sends reports whether what a session says is sent to a chat; nil: [session.SendAlways].
	Sends func(session.Meta, chela.Address) bool

	Wait  time.Duration // how long to wait for the outcome of a delivery; 0: 10 s
	Limit time.Duration // of one call of a channel; 0: 30 s
}

// Actor carries out actions. It is safe for concurrent use.
type Actor struct {
	o    Options
	done memo
}

// New returns an Actor.
func New(o Options) *Actor {
	o.Wait, o.Limit = cmp.Or(o.Wait, 10*time.Second), cmp.Or(o.Limit, 30*time.Second)
	if o.Sends == nil {
		o.Sends = session.SendAlways
	}
	return &Actor{o: o}
}

// Do carries out an action. An error says that nothing was done. If the outcome is not known,
// the Result says so.
func (a *Actor) Do(ctx context.Context, r action.Request) (action.Result, error) {
	if err := r.Check(); err != nil {
		return action.Result{}, err
	}
	c, err := a.caller(ctx, r.From)
	if err != nil {
		return action.Result{}, err
	}
	switch r.Action {
	case action.Broadcast:
		return a.broadcast(ctx, c, r)
	case action.Search:
		return a.lookUp(ctx, c, r)
	}
	p, err := a.target(ctx, c, r, r.To)
	if err != nil {
		return action.Result{}, err
	}
	switch {
	case r.Dry:
		return p.result(r.Action, action.Planned, "Nothing was done. It would "+plan(r, p)), nil
	case r.Action == action.Send, r.Action == action.Poll:
		list, err := a.post(ctx, c, r, []target{p})
		if err != nil {
			return action.Result{}, err
		}
		return list[0], nil
	case r.Key == "" || r.Action == action.Read:
		return a.act(ctx, c, r, p)
	}
	return a.done.do(ctx, chela.PrincipalFrom(ctx).ID+"\x1f"+r.Key,
		func() (action.Result, error) { return a.act(ctx, c, r, p) })
}

// caller is who requests an action.
type caller struct {
	action.Origin
	here  chela.Address // where the answer of its run goes; local if there is no run
	owner bool          // its run has the rights of the owner
}

// person reports whether the caller is a client, and not a run.
func (c *caller) person() bool { return c.Session == "" }

func (a *Actor) caller(ctx context.Context, from action.Origin) (caller, error) {
	c := caller{Origin: from, owner: true}
	if from.Run == "" {
		return c, nil
	}
	r, err := store.Get(ctx, a.o.Store, func(r store.Reader) (run.Run, error) { return r.Runs().Get(from.Run) })
	if errors.Is(err, chela.ErrNotFound) { // the call was not made by a run
		return c, nil
	}
	c.here, c.owner = r.Address, r.Principal.IsOwner()
	return c, err
}

// plan describes on one line what a request would do.
func plan(r action.Request, p target) string {
	switch r.Action {
	case action.Send:
		return "send to " + p.String() + ": " + summary(r)
	case action.Poll:
		return "send a poll to " + p.String() + ": " + strings.ReplaceAll(r.Poll.String(), "\n", " ")
	case action.Read:
		return "read the last messages of " + p.String()
	case action.Thread:
		return "create the thread " + r.Name + " in " + p.String()
	case action.Edit:
		return "change message " + r.Message + " in " + p.String() + " to: " + summary(r)
	}
	what := "message " + r.Message
	if r.Message == "" {
		what = "the message that is answered"
	}
	return string(r.Action) + ": " + what + " in " + p.String()
}
