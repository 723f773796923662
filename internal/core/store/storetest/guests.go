package storetest

import (
	"errors"
	"testing"

	"github.com/chela-ai/chela/internal/core/admission"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/store"
)

// testGuests reads and writes the people who are admitted on channels.
func testGuests(t *testing.T, s store.Store) {
	guest := func(channel, account, id string, n int) admission.Guest {
		return admission.Guest{
			Channel: channel, Account: chela.AccountID(account), ID: id, Name: "Eve 世界", Code: "ABCDEFGH", Asked: at(n),
			Address: chela.Address{Channel: channel, Account: chela.AccountID(account),
				Peer: chela.Peer{Kind: chela.Direct, ID: id}},
		}
	}
	list := func() []admission.Guest {
		return get(t, s, func(r store.Reader) ([]admission.Guest, error) { return r.Guests().List() })
	}
	same(t, "nobody", list(), nil)
	a, b, c := guest("telegram", "default", "7", 9), guest("telegram", "work", "7", 1), guest("irc", "default", "7", 2)
	update(t, s, func(tx store.Tx) error { return each(tx.Guests().Put, a, b, c) })
	same(t, "guests", list(), []admission.Guest{a, b, c})
	b.Code, b.Admitted = "", at(3)
	update(t, s, func(tx store.Tx) error {
		return errors.Join(tx.Guests().Put(b), tx.Guests().Delete("telegram", "default", "7"),
			tx.Guests().Delete("telegram", "default", "none"))
	})
	same(t, "after a change", list(), []admission.Guest{b, c})
	same(t, "one", get(t, s, func(r store.Reader) (admission.Guest, error) {
		return r.Guests().Get("telegram", "work", "7")
	}), b)
	_, err := store.Get(t.Context(), s,
		func(r store.Reader) (admission.Guest, error) { return r.Guests().Get("telegram", "default", "7") })
	if !errors.Is(err, chela.ErrNotFound) {
		t.Errorf("a deleted guest: %v", err)
	}
}
