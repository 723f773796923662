package agent_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/engine/agent"
)

// TestRandomRuns checks the invariants of runs with random models, tools, steering
// messages, limits and aborts.
func TestRandomRuns(t *testing.T) {
	for seed := range uint64(400) {
		synctest.Test(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 7))
			m := &script{steps: steps(rnd)}
			k := randomKit(rnd)
			r := request(m, k)
			r.MaxRounds, r.MaxCalls = rnd.IntN(5), rnd.IntN(9)
			r.ReadOnlyFirst = rnd.IntN(4) == 0
			r.Steer = func(context.Context) ([]*llm.Message, error) {
				switch rnd.IntN(8) {
				case 0:
					return []*llm.Message{llm.User("faster"), llm.User("please")}, nil
				case 1:
					if rnd.IntN(5) == 0 {
						return nil, errors.New("no rows")
					}
				}
				return nil, nil
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			after := time.Hour // aborts a model that hangs
			if rnd.IntN(2) == 0 {
				after = time.Duration(rnd.IntN(9000)) * time.Millisecond
			}
			time.AfterFunc(after, cancel)
			o := observer{t: t, msgs: slices.Clone(r.Prompt.Messages)}
			for e := range agent.Run(ctx, r) {
				o.see(e)
			}
			o.finish(m)
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
			time.Sleep(2 * time.Hour) // abandoned goroutines end
		})
	}
}

// steps returns up to six random answers. The last one has text.
func steps(rnd *rand.Rand) []step {
	var ss []step
	for range rnd.IntN(6) {
		switch rnd.IntN(10) {
		case 0:
			ss = append(ss, say(""))
		case 1:
			ss = append(ss, fail(&llm.Error{Class: llm.ClassNetwork}))
		case 2:
			ss = append(ss, hang("half a"))
		default:
			var calls []string
			for i := range 1 + rnd.IntN(6) {
				calls = append(calls, fmt.Sprintf("%s:%d-%d", []string{"p1", "p2", "r", "w"}[rnd.IntN(4)], len(ss), i))
			}
			ss = append(ss, use(calls...))
		}
	}
	return append(ss, say("done"))
}

// randomKit returns tools with random delays and outcomes.
func randomKit(rnd *rand.Rand) *kit {
	k := tools("p1", "p2", "r", "w")
	for name := range k.do {
		delay, how := time.Duration(rnd.IntN(3000))*time.Millisecond, rnd.IntN(12)
		k.do[name] = func(ctx context.Context, update func(string)) (tool.Result, error) {
			update("started")
			ignores := how == 0
			select {
			case <-time.After(delay):
			case <-ctx.Done():
				if !ignores {
					return tool.Result{}, ctx.Err()
				}
				time.Sleep(time.Minute)
			}
			update("half")
			switch how {
			case 1:
				panic("oh")
			case 2:
				return tool.Text("stop"), fmt.Errorf("budget: %w", tool.ErrStop)
			case 3:
				return tool.Result{}, tool.ErrSuspended
			case 4:
				return tool.Result{}, errors.New("the ledger is gone")
			}
			return tool.Text("did it"), nil
		}
	}
	return k
}

// observer checks the events of a run.
type observer struct {
	t       *testing.T
	msgs    []*llm.Message
	open    []llm.ToolCall  // calls of the last message without a result, in order
	started map[string]bool // those that have started
	last    agent.Event
}

func (o *observer) see(e agent.Event) {
	if o.last.Kind == agent.End {
		o.t.Errorf("%q after the end", line(e))
	}
	o.last = e
	switch e.Kind {
	case agent.TurnStart:
		if len(o.open) > 0 {
			o.t.Errorf("a model call while %d calls have no result", len(o.open))
		}
	case agent.Assistant:
		o.msgs, o.open, o.started = append(o.msgs, e.Message), e.Message.Calls(), map[string]bool{}
	case agent.Steered:
		o.msgs = append(o.msgs, e.Messages...)
	case agent.ToolStart:
		if o.started[e.Call.ID] || o.index(e.Call) < 0 {
			o.t.Errorf("start of %s, which has started or was not requested", e.Call.ID)
		}
		o.started[e.Call.ID] = true
	case agent.ToolUpdate:
		if !o.started[e.Call.ID] || o.index(e.Call) < 0 {
			o.t.Errorf("output of %s, which is not running", e.Call.ID)
		}
	case agent.ToolEnd:
		at := o.index(e.Call)
		if at < 0 || e.Skipped == o.started[e.Call.ID] {
			o.t.Errorf("end of %s: open at %d, skipped %v, started %v", e.Call.ID, at, e.Skipped, o.started[e.Call.ID])
		}
		o.open = slices.Delete(o.open, 0, at+1) // earlier calls get no result
		o.msgs = append(o.msgs, e.Result)
	}
}

func (o *observer) index(c llm.ToolCall) int {
	return slices.IndexFunc(o.open, func(p llm.ToolCall) bool { return p.ID == c.ID })
}

// finish checks the end of the run and the requests to the model.
func (o *observer) finish(m *script) {
	if o.last.Kind != agent.End || o.last.Reason == "" {
		o.t.Errorf("the last event is %q", line(o.last))
	}
	if hasErr := o.last.Err != nil; hasErr != slices.Contains([]agent.Reason{agent.Failed, agent.Aborted, agent.Stopped},
		o.last.Reason) {
		o.t.Errorf("ended %s with error %v", o.last.Reason, o.last.Err)
	}
	for i := range m.reqs {
		if err := llmtest.Validate(&m.reqs[i]); err != nil {
			o.t.Errorf("request %d: %v", i, err)
		}
		for j, sent := range m.reqs[i].Messages {
			if j < len(o.msgs) && sent != o.msgs[j] && sent.PlainText() != llm.LimitText {
				o.t.Errorf("request %d: message %d is not from an event", i, j)
			}
		}
	}
}
