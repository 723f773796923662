package chelatest

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/store"
)

// withoutSync returns a store that does not sync. It is for tests that make many
// commits and need no durability.
func withoutSync(s store.Store) store.Store { return unsynced{s} }

type unsynced struct{ store.Store }

func (u unsynced) Update(ctx context.Context, _ store.Sync, f func(store.Tx) error) error {
	return u.Store.Update(ctx, store.Ordered, f)
}

const cyclesEnv = "CHELA_TEST_KILLS" // number of kills; set by `make kill`

// thorough reports whether tests that try things at random do so at full size and with a
// new seed, and fail if too little has happened by chance. `make kill` has them do so.
func thorough() bool { return os.Getenv(cyclesEnv) != "" }

// killCount returns how often a test kills: n times, or as often as `make kill` says.
func killCount(t testing.TB, n int) int {
	t.Helper()
	if s := os.Getenv(cyclesEnv); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// randomSeed returns the seed of what a test tries at random: always the same one, except
// in a thorough run.
func randomSeed(t testing.TB) uint64 {
	t.Helper()
	seed := uint64(1)
	if thorough() {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", seed)
	return seed
}
