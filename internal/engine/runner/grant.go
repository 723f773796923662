package runner

import (
	"context"
	"fmt"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/pairing"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/store"
)

// errRevoked reports that the device that sent an item was revoked.
var errRevoked = fmt.Errorf("the device that sent a message was revoked: %w", ErrChanged)

// checkGrants returns errRevoked unless the senders of all items may still act.
func checkGrants(tx store.Tx, items []queue.Item) error {
	for _, it := range items {
		gone, err := revoked(tx, it)
		if err != nil {
			return err
		}
		if gone {
			return errRevoked
		}
	}
	return nil
}

// revoked reports whether the item's device lost its grant.
func revoked(tx store.Tx, it queue.Item) (bool, error) {
	who, err := pairing.Current(tx.Devices(), it.Principal)
	return who.ID != it.Principal.ID, err
}

// cancelRevoked cancels the waiting items of a session whose devices lost their
// grant.
func (r *Runner) cancelRevoked(ctx context.Context, key chela.SessionKey) error {
	var cancelled []queue.Item
	err := r.o.Store.Update(ctx, store.Ordered, func(tx store.Tx) error {
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
	if err == nil {
		r.PublishAbsorbed(cancelled...)
	}
	return err
}
