package nodes

import (
	"context"
	"slices"

	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/talk"
	"github.com/chela-ai/chela/wire"
)

// WakeWords returns the words that wake apps.
func (r *Registry) WakeWords(ctx context.Context) ([]string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	words, err := r.wordsLocked(ctx)
	return slices.Clone(words), err
}

// wordsLocked reads the words once: only this process changes them.
func (r *Registry) wordsLocked(ctx context.Context) ([]string, error) {
	if r.words != nil {
		return r.words, nil
	}
	words, err := store.Get(ctx, r.o.Store, func(rd store.Reader) ([]string, error) { return talk.ReadWakeWords(rd) })
	if err == nil {
		r.words = words
	}
	return words, err
}

// SetWakeWords keeps other words, and tells all nodes and tell, in the order of the changes.
// It returns the words as they are kept.
func (r *Registry) SetWakeWords(ctx context.Context, words []string, tell func([]string)) ([]string, error) {
	words, err := talk.WakeWords(words)
	if err != nil {
		return nil, err
	}
	r.waking.Lock()
	defer r.waking.Unlock()
	if err := r.o.Store.Update(ctx, store.Synced,
		func(tx store.Tx) error { return talk.WriteWakeWords(tx, words) }); err != nil {
		return nil, err
	}
	r.tellNodes(words)
	tell(words)
	return slices.Clone(words), nil
}

// tellNodes puts words in force and tells the nodes that are connected.
func (r *Registry) tellNodes(words []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.words = words
	for _, links := range r.links {
		for _, l := range links {
			l.send(wire.EventWakeChanged, wire.WakeWords{Triggers: words})
		}
	}
}
