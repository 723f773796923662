package chelatest

import (
	"context"
	"os"

	"github.com/chela-ai/chela/internal/core/store"
)

// withoutSync returns a store that does not sync. It is for tests that make many
// commits and need no durability.
func withoutSync(s store.Store) store.Store { return unsynced{s} }

type unsynced struct{ store.Store }

func (u unsynced) Update(ctx context.Context, _ store.Sync, f func(store.Tx) error) error {
	return u.Store.Update(ctx, store.Ordered, f)
}

const cyclesEnv = "CHELA_TEST_KILLS" // number of kills; `make kill` uses more

// thorough reports whether tests that try things at random run at full size, as
// `make kill` has them do.
func thorough() bool { return os.Getenv(cyclesEnv) != "" }
