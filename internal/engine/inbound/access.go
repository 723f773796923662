package inbound

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/admission"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/outbox"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// enter decides whether the principal of a message may write, and returns it with the
// scopes that it has. Clients of the gateway need the scope to write. People on channels
// are admitted by the rules of the account; those who are named may also change settings.
// A stranger may get a code, after which nothing else happens.
func (g *Gate) enter(ctx context.Context, who chela.Principal,
	in *chela.Inbound) (chela.Principal, admission.Verdict, error) {
	refused := func(why string) error {
		return chela.Errorf(chela.CodeForbidden, "%s may not write here: %s", who.ID, why)
	}
	switch {
	case who.May(chela.ScopeWrite):
		who, err := g.o.Access(who, *in)
		return who, admission.Verdict{Outcome: admission.Admit, Named: true, Unprompted: g.unprompted(*in)}, err
	case in.Address.Local() || in.Sender.ID == "":
		return who, admission.Verdict{}, refused("the scope is missing")
	}
	rules := g.o.Rules(in.Address)
	guest, err := g.guest(ctx, *in)
	if err != nil {
		return who, admission.Verdict{}, err
	}
	v := rules.Decide(*in, guest)
	switch v.Outcome {
	case admission.Stranger:
		if err := g.ask(ctx, *in); err != nil {
			return who, v, fmt.Errorf("ask to admit %s: %w", in.Sender.ID, err)
		}
		return who, v, refused("nobody has admitted the sender yet")
	case admission.Refuse:
		return who, v, refused(v.Reason)
	}
	if in.Reaction != "" && rules.NoReactions {
		return who, v, refused("reactions are off (reactionNotifications)")
	}
	if in.Sender.Bot && !g.bots.hears(*in, time.Now()) {
		return who, v, refused(fmt.Sprintf("the program wrote more than %d messages in %s; it is not heard for %s",
			maxBotMessages, botTime, botTime))
	}
	if v.Named {
		who.Scopes = []chela.Scope{chela.ScopeRead, chela.ScopeWrite}
	}
	if !rules.Quotes(*in) {
		in.Quote.Text = ""
	}
	who, err = g.o.Access(who, *in)
	return who, v, err
}

// guest reports whether the sender of a direct message was admitted.
func (g *Gate) guest(ctx context.Context, in chela.Inbound) (bool, error) {
	a := in.Address
	if a.Peer.Kind == chela.Group || a.Peer.Kind == chela.Room {
		return false, nil
	}
	v, err := store.Get(ctx, g.o.Store, func(r store.Reader) (admission.Guest, error) {
		return r.Guests().Get(a.Channel, a.Account, in.Sender.ID)
	})
	if errors.Is(err, chela.ErrNotFound) {
		return false, nil
	}
	return !v.Admitted.IsZero(), err
}

// ask gives a stranger a code that the owner can approve. The request and the answer are
// one commit.
func (g *Gate) ask(ctx context.Context, in chela.Inbound) error {
	if in.Edited || in.Sender.Bot {
		return nil
	}
	g.clean(&in)
	now := time.Now()
	return g.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
		v, created, err := admission.Ask(tx.Guests(), in, now)
		if err != nil || !created {
			return err
		}
		tx.Wake(store.Topic{Kind: store.TopicOutbox})
		return tx.Outbox().Put(outbox.Row{
			Key:     strings.Join([]string{"admission", v.Channel, string(v.Account), v.ID, v.Code}, "\x1f"),
			Address: in.Address, Created: now, State: outbox.Pending,
			Text: fmt.Sprintf("This is the private assistant of somebody else, so I answer only people whom they admit.\n\nYour id: `%s`\nYour code: `%s`\n\nThe owner can admit you within an hour with: `chela pairing approve %s %s`",
				v.ID, v.Code, v.Channel, v.Code),
		})
	})
}

// react tells the agent, in its next run, about the reaction of a person to one of its
// messages. Other reactions are ignored.
func (g *Gate) react(ctx context.Context, k call) error {
	in := k.in
	return g.o.Store.Update(ctx, store.Ordered, func(tx store.Tx) error {
		row, err := tx.Outbox().SentAs(in.Address, in.ReplyTo)
		if errors.Is(err, chela.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		if row.Session != "" { // that of the thread, which platforms do not tell
			k.key = row.Session
		}
		it := k.item(time.Now())
		it.Kind, it.Next = queue.Event, true
		who := strings.Join(strings.Fields(cmp.Or(in.Sender.Name, in.Sender.ID)), " ")
		it.Inbound.Text = fmt.Sprintf("%s reacted with %s to your message %q.", who,
			strings.Join(strings.Fields(in.Reaction), " "), humanize.Truncate(row.Text, 100))
		return store.Enqueue(tx, it)
	})
}

// unprompted reports whether the messages of a group are answered without a mention.
func (g *Gate) unprompted(in chela.Inbound) bool {
	c, _ := g.o.Rules(in.Address).ChatOf(in.Address, in.Guild)
	return c.Unprompted != nil && *c.Unprompted
}

// overhear stores a message of a group that does not address the agent. It joins the next
// run of the session as context. most is how many of them are kept.
func (g *Gate) overhear(ctx context.Context, k call, most int) error {
	if most <= 0 || k.in.Edited {
		return nil
	}
	for i, m := range k.in.Media { // nothing is fetched for a message that nobody asked about
		k.in.Media[i] = chela.Media{Name: m.Name, Type: m.Type, Bytes: m.Size(),
			Lost: "not fetched, because the message did not address you"}
	}
	it := k.item(time.Now())
	it.Kind, it.Next, it.Inbound.Overheard = queue.Event, true, true
	return g.o.Store.Update(ctx, store.Ordered, func(tx store.Tx) error {
		r, err := tx.Queue().Put(it)
		if err != nil || !r.New {
			return err
		}
		waiting, err := tx.Queue().Waiting(k.key)
		if err != nil {
			return err
		}
		var heard []queue.Item
		for _, w := range waiting {
			if w.Inbound.Overheard {
				heard = append(heard, w)
			}
		}
		for _, old := range heard[:max(0, len(heard)-most)] {
			old.Note = fmt.Sprintf("more than %d messages of the chat were waiting", most)
			if err := tx.Queue().Set(queue.Dropped, old); err != nil {
				return err
			}
		}
		return nil
	})
}
