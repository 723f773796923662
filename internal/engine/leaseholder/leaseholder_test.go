package leaseholder_test

import (
	"errors"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/engine/leaseholder"
	"github.com/chela-ai/chela/internal/test/power"
)

// TestPower cuts the power after the first heartbeat: a process that relies on its
// leases is alive for others.
func TestPower(t *testing.T) {
	power.Sweep(t, func(t testing.TB, s store.Store, report func(power.Fact)) {
		h, err := leaseholder.New(t.Context(), leaseholder.Options{Store: s, ID: "a", TTL: time.Hour})
		if err != nil || !h.Track()() {
			t.Fatalf("not alive: %v", err)
		}
		report(func(r store.Reader) error {
			alive, err := r.Leases().Alive("a")
			if err == nil && !alive {
				err = errors.New("it is dead for others")
			}
			return err
		})
	})
}
