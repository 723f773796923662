package channels

import (
	"context"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/admission"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/outbox"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/wire"
)

func (o Options) guests(ctx context.Context, _ rpc.Peer, in wire.GuestsGet) (wire.Guests, error) {
	out := wire.Guests{
		Requests: []wire.Guest{}, Guests: []wire.Guest{}, Owned: o.Owned != nil && o.Owned(),
		Limits: wire.GuestLimits{Pending: admission.MaxPending, TTL: admission.TTL.Milliseconds()},
	}
	list, err := store.Get(ctx, o.Store, func(r store.Reader) ([]admission.Guest, error) { return r.Guests().List() })
	if err != nil {
		return out, err
	}
	for _, g := range list {
		if in.Channel != "" && in.Channel != g.Channel || in.Account != "" && in.Account != string(g.Account) {
			continue
		}
		v := wire.Guest{
			Channel:  g.Channel,
			Account:  string(g.Account),
			ID:       g.ID,
			Name:     g.Name,
			Request:  g.Code,
			Asked:    wire.At(g.Asked),
			Admitted: wire.At(g.Admitted),
		}
		switch {
		case !g.Admitted.IsZero():
			out.Guests = append(out.Guests, v)
		case g.Pending(time.Now()):
			out.Requests = append(out.Requests, v)
		}
	}
	return out, nil
}

func (o Options) approve(ctx context.Context, _ rpc.Peer, in wire.GuestRequest) (wire.GuestDecided, error) {
	out := wire.GuestDecided{Notice: wire.GuestNotRequested, Owner: wire.GuestNotRequested}
	var g admission.Guest
	err := o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
		var err error
		now := time.Now()
		if g, err = admission.Approve(tx.Guests(), in.Channel, chela.AccountID(in.Account), in.Request, now); err != nil ||
			!in.Notify {
			return err
		}
		tx.Wake(store.Topic{Kind: store.TopicOutbox})
		return tx.Outbox().Put(outbox.Row{
			Key:     strings.Join([]string{"admitted", g.Channel, string(g.Account), g.ID, in.Request}, "\x1f"),
			Address: g.Address, Created: now, State: outbox.Pending, Text: "You are admitted. What can I do for you?",
		})
	})
	out.Request = in.Request
	if err != nil {
		return out, unknown(err)
	}
	out.ID = g.ID
	if in.Notify {
		out.Notice = wire.GuestNotified
	}
	if in.Owner {
		out.Owner = o.own(ctx, g)
	}
	return out, nil
}

// own makes the guest the owner if there is none.
func (o Options) own(ctx context.Context, g admission.Guest) string {
	if o.Own == nil {
		return wire.GuestOwnerCannotBeSet
	}
	switch did, err := o.Own(ctx, g.Channel+":"+g.ID); {
	case err != nil:
		return wire.GuestOwnerCannotBeSet
	case did:
		return wire.GuestOwnerConfigured
	}
	return wire.GuestOwnerExists
}

func (o Options) dismiss(ctx context.Context, _ rpc.Peer, in wire.GuestRequest) (wire.GuestDecided, error) {
	out := wire.GuestDecided{Request: in.Request}
	err := o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
		g, err := admission.Deny(tx.Guests(), in.Channel, chela.AccountID(in.Account), in.Request, time.Now())
		if err == nil {
			out.ID = g.ID
		}
		return err
	})
	return out, unknown(err)
}

// unknown returns no error for a request that is not known: the result says so.
func unknown(err error) error {
	if chela.CodeOf(err) == chela.CodeNotFound {
		return nil
	}
	return err
}

func (o Options) remove(ctx context.Context, _ rpc.Peer, in wire.GuestRemove) (wire.GuestDecided, error) {
	var out wire.GuestDecided
	err := o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
		list, err := tx.Guests().List()
		if err != nil {
			return err
		}
		for _, g := range list {
			if g.Channel != in.Channel || g.ID != in.ID || in.Account != "" && in.Account != string(g.Account) ||
				g.Admitted.IsZero() {
				continue
			}
			if err := tx.Guests().Delete(g.Channel, g.Account, g.ID); err != nil {
				return err
			}
			out.ID = g.ID
		}
		return nil
	})
	return out, err
}
