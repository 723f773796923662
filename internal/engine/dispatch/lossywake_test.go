package dispatch_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/tool"
)

// lossy is a store that loses all wakes but the first, and counts reads.
type lossy struct {
	store.Store
	views atomic.Int64
}

func (d *lossy) View(ctx context.Context, f func(store.Reader) error) error {
	d.views.Add(1)
	return d.Store.View(ctx, f)
}

func (d *lossy) Wakes(ctx context.Context, kind store.TopicKind) <-chan store.Topic {
	all, out := d.Store.Wakes(ctx, kind), make(chan store.Topic, 1)
	go func() {
		defer close(out)
		first := true
		for t := range all {
			if first {
				out <- t
			}
			first = false
		}
	}()
	return out
}

// TestLostWake sends a message during many rounds of tools. The run finds it
// without a wake, and does not read the queue in transactions of its own.
func TestLostWake(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const rounds = 10
		var h *harness
		d := new(lossy)
		var calls, views int64
		counted := make(chan struct{})
		look := newTool("look", tool.Reads, func(context.Context, tool.Call) (tool.Result, error) {
			switch calls++; calls {
			case 1:
				synctest.Wait() // until the dispatcher has read what it reads at the beginning
				views = d.views.Load()
			case rounds - 1:
				views = d.views.Load() - views
				close(counted)
				h.send("m2", "and this", mode("steer"))
			}
			return tool.Text("seen"), nil
		})
		heard := 0 // number of the model call with the message
		h = newHarness(t, llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
			if last := r.Messages[len(r.Messages)-1]; last.Role == llm.RoleUser && n > 0 {
				heard = n
			}
			if n < rounds {
				return llmtest.Call(fmt.Sprint("c", n), "look", `{}`)
			}
			return llmtest.Say("done")
		}), look)
		h.wrap = func(s store.Store) store.Store { d.Store = s; return d }
		h.open()
		id := h.send("m1", "look around")
		<-counted // h.wait reads, too
		if r := h.wait(id); r.State != run.OK {
			t.Errorf("run is %s: %s", r.State, r.Error)
		}
		if heard != rounds-1 {
			t.Errorf("the message was sent with model call %d, want %d: the one after it arrived", heard, rounds-1)
		}
		if views > 0 {
			t.Errorf("%d reads in %d rounds, want none", views, rounds-2)
		}
	})
}
