package chelatest

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/wire"
)

// TestMaxConcurrent sends messages to several sessions at the same time, also of
// different agents.
func TestMaxConcurrent(t *testing.T) {
	for _, c := range []struct {
		sessions []string
		most     int
		took     time.Duration // of runs that take a minute each
	}{
		{[]string{"agent:main:a", "agent:main:b"}, 2, time.Minute},
		{[]string{"agent:main:a", "agent:main:b"}, 1, 2 * time.Minute},
		{[]string{"agent:main:a", "agent:other:b"}, 1, 2 * time.Minute},
		{[]string{"agent:main:a", "agent:main:b", "agent:other:c"}, 2, 2 * time.Minute},
	} {
		t.Run(fmt.Sprintf("LANE-01 %d sessions and maxConcurrent %d", len(c.sessions), c.most), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				model := llmtest.ScriptFunc(func(int, *llm.Request) llmtest.Step {
					step := llmtest.Say("done")
					step.Delay = time.Minute
					return step
				})
				g := Start(t, Options{Model: model, Config: Config{
					"agents.defaults": fmt.Appendf(nil, `{"maxConcurrent": %d}`, c.most),
					"agents.list":     []byte(`[{"id": "main"}, {"id": "other"}]`),
				}})
				cl := g.Client()
				begun := time.Now()
				var runs []string
				for _, s := range c.sessions {
					runs = append(runs, cl.Send(s, "hi"))
				}
				synctest.Wait()
				if n := len(model.Requests()); n != c.most {
					t.Errorf("%d runs at once, want %d", n, c.most)
				}
				for _, id := range runs {
					var w wire.AgentWaited
					cl.must(wire.MethodAgentWait, wire.AgentWait{RunID: id, TimeoutMs: 600_000}, &w)
					if w.Status != wire.StatusOK {
						t.Errorf("a run ended %s: %s", w.Status, w.Error)
					}
				}
				if took := time.Since(begun); took < c.took || took > c.took+time.Second {
					t.Errorf("took %s, want %s", took, c.took)
				}
				cl.Close()
				g.Stop()
			})
		})
	}
}
