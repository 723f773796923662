package dispatch

import (
	"context"
	"errors"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/pairing"
	"github.com/chela-ai/chela/internal/queue"
	"github.com/chela-ai/chela/internal/store"
)

// errTakenBack says that a message is not to be carried out any more: its
// device was revoked.
var errTakenBack = errors.New("a message was taken back")

// stand returns errTakenBack unless who sent the items may still act.
func stand(tx store.Tx, items []queue.Item) error {
	for _, it := range items {
		gone, err := revoked(tx, it)
		if err != nil {
			return err
		}
		if gone {
			return errTakenBack
		}
	}
	return nil
}

// revoked reports whether the item's device lost its grant.
func revoked(tx store.Tx, it queue.Item) (bool, error) {
	who, err := pairing.Current(tx.Devices(), it.Principal)
	return who.ID != it.Principal.ID, err
}

// takeBack cancels the waiting messages of a session whose devices lost their
// grant.
func (c *Conductor) takeBack(ctx context.Context, key chela.SessionKey) error {
	var cancelled []queue.Item
	err := c.o.Store.Update(ctx, store.Ordered, func(tx store.Tx) error {
		cancelled = nil
		items, err := tx.Queue().Waiting(key)
		if err != nil {
			return err
		}
		for _, it := range items {
			gone, err := revoked(tx, it)
			if err != nil {
				return err
			}
			if gone {
				it.Note = "the device was revoked"
				cancelled = append(cancelled, it)
			}
		}
		return tx.Queue().Set(queue.Cancelled, cancelled...)
	})
	if err != nil {
		return err
	}
	for _, it := range cancelled {
		c.absorbed(it)
	}
	return nil
}
