package storetest

import (
	"errors"
	"testing"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/node"
	"github.com/chela-ai/chela/internal/core/store"
)

// testInvocations reads and writes calls of nodes.
func testInvocations(t *testing.T, s store.Store) {
	invocation := func(key string, sent int) node.Invocation {
		return node.Invocation{Key: key, Node: "n1", Command: "camera.snap", Sum: "世界", Sent: at(sent)}
	}
	a, b := invocation("a", 1), invocation("b", 3)
	update(t, s, func(tx store.Tx) error {
		return errors.Join(tx.Invocations().Put(a), tx.Invocations().Put(b))
	})
	read := func(key string) node.Invocation {
		return get(t, s, func(r store.Reader) (node.Invocation, error) { return r.Invocations().Get(key) })
	}
	same(t, "an invocation", read("a"), a)
	b.Done = true
	update(t, s, func(tx store.Tx) error { return tx.Invocations().Put(b) })
	same(t, "a replaced invocation", read("b"), b)
	update(t, s, func(tx store.Tx) error { return tx.Invocations().Prune(at(3)) })
	same(t, "a younger invocation", read("b"), b)
	_, err := store.Get(t.Context(), s, func(r store.Reader) (node.Invocation, error) { return r.Invocations().Get("a") })
	if !errors.Is(err, chela.ErrNotFound) {
		t.Errorf("a pruned invocation: %v", err)
	}
}
