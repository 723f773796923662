//go:build linux

package native

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/sandbox"
)

// TestLevelAgain tries again after a minute whether there is a sandbox, and at once
// after one could not be made.
func TestLevelAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tries, works := 0, false
		tr := trial{run: func(context.Context) (sandbox.Level, []sandbox.Effect) {
			tries++
			return sandbox.Level{Name: "test", Complete: works}, nil
		}}
		check := func(complete bool, want int) {
			t.Helper()
			if l := tr.Level(t.Context()); l.Complete != complete || tries != want {
				t.Errorf("complete %t after %d tries, want %t after %d", l.Complete, tries, complete, want)
			}
		}
		check(false, 1)
		works = true
		time.Sleep(retryTime / 2)
		check(false, 1)
		time.Sleep(retryTime)
		check(true, 2)
		works = false
		time.Sleep(24 * time.Hour)
		check(true, 2)
		tr.Reset()
		check(false, 3)
	})
}
