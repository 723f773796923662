package gateway_test

import (
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/wire"
)

// TestChangeReasons checks the reasons that clients get for the changes of a
// session.
func TestChangeReasons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tb := newTable(t, nil)
		c := dialTestbed(t, tb, client.Options{})
		defer c.Close()
		if err := c.Call(t.Context(), wire.MethodSessionsSubscribe, wire.None{}, nil); err != nil {
			t.Fatal(err)
		}
		for _, p := range []chela.Phase{
			chela.PhaseCreated, chela.PhaseReset, chela.PhasePatched, chela.PhaseDeleted, chela.PhaseCompacted,
			chela.PhaseQueued, chela.PhaseAbsorbed,
		} {
			tb.bus.Publish(chela.Event{Run: "r", Session: mainSession, Stream: chela.StreamSession, Phase: p})
		}
		synctest.Wait()
		var got []string
		for len(c.Events()) > 0 {
			if e := <-c.Events(); e.Name == wire.EventSessionsChanged {
				var s wire.SessionsChanged
				if err := e.Decode(&s); err != nil {
					t.Fatal(err)
				}
				got = append(got, s.Reason)
			}
		}
		want := []string{"create", "reset", "patch", "delete", "compact", "send", "agent.input.settled"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}
