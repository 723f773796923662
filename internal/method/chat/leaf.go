package chat

import (
	"context"
	"errors"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/queue"
	"github.com/chela-ai/chela/internal/session"
	"github.com/chela-ai/chela/internal/store"
	"github.com/chela-ai/chela/wire"
)

// errLeaf says that a message was written to something else than there is now.
var errLeaf = wire.Errorf(wire.InvalidRequest, "active branch changed; review and retry").
	With(map[string]any{"reason": "active-leaf-changed"})

// current refuses a message whose writer saw another conversation than the one
// that is there. A message that was taken before is not looked at again.
func (m methods) current(ctx context.Context, key chela.SessionKey, in wire.ChatSend) error {
	if in.SessionID == "" && !in.Leaf.Set {
		return nil
	}
	return m.o.Store.View(ctx, func(r store.Reader) error {
		if _, err := r.Queue().Get(in.IdempotencyKey); !errors.Is(err, chela.ErrNotFound) {
			return err
		}
		meta, err := r.Sessions().Get(key)
		if errors.Is(err, chela.ErrNotFound) {
			meta, err = session.Meta{}, nil
		}
		if err != nil {
			return err
		}
		if in.SessionID != "" && meta.ID != "" && in.SessionID != meta.ID {
			return errLeaf
		}
		if !in.Leaf.Set || in.QueueMode == string(queue.Steer) {
			return nil
		}
		return leaf(r.Sessions(), meta.ID, in.Leaf.Value, in.SessionID != "")
	})
}

// leaf refuses an entry that is not the transcript's last; with within set, one
// that is not in it.
func leaf(r session.Reader, id, want string, within bool) error {
	last, err := lastID(r, id)
	if err != nil || last == want {
		return err
	}
	if !within || want == "" {
		return errLeaf
	}
	_, err = locate(r, id, want)
	if errors.Is(err, chela.ErrNotFound) {
		return errLeaf
	}
	return err
}

// lastID returns the id of a transcript's last entry; "" for an empty one.
func lastID(r session.Reader, id string) (string, error) {
	entries, err := r.Last(id, 1)
	if err != nil || len(entries) == 0 {
		return "", err
	}
	return entries[0].ID, nil
}

// locate returns the position of an entry, or chela.ErrNotFound. It looks from
// the end: what is asked for is mostly near it.
func locate(r session.Reader, id, entry string) (int64, error) {
	const step = 500
	n, err := r.Count(id)
	if err != nil {
		return 0, err
	}
	for end := int64(n); end > 0; end -= step {
		after := max(0, end-step)
		entries, err := r.Entries(id, after, int(end-after))
		if err != nil {
			return 0, err
		}
		for i := range entries {
			if entries[i].ID == entry {
				return entries[i].Seq, nil
			}
		}
	}
	return 0, chela.ErrNotFound
}
