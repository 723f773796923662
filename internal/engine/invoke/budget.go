package invoke

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// callCounts counts the calls of a run. It is safe for concurrent use.
type callCounts struct {
	mu     sync.Mutex
	calls  int
	failed int            // consecutive failures
	same   map[string]int // calls by their key
}

// call counts a call and returns the number of calls.
func (t *callCounts) call() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls++
	return t.calls
}

// maxKeys is the number of different calls that a callCounts counts.
const maxKeys = 4096

// repeat counts a call by its key and returns the number of calls with that key.
func (t *callCounts) repeat(key string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.same == nil || len(t.same) >= maxKeys {
		t.same = make(map[string]int)
	}
	t.same[key]++
	return t.same[key]
}

// ended counts the outcome of a call and returns the number of consecutive
// failures.
func (t *callCounts) ended(failed bool) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if failed {
		t.failed++
	} else {
		t.failed = 0
	}
	return t.failed
}

// spent returns the message for the person that a budget is spent.
func spent(what, key string) string {
	return fmt.Sprintf("stopped: the budget of this run is spent: %s. Say \"continue\" to start another run; the limit is agents.defaults.budget.%s", what, key)
}

// checkBudget counts the call and compares the usage of the run with its budget.
func (k *call) checkBudget(context.Context) *verdict {
	s, b := &k.v.s, &k.v.s.Budget
	if n := k.v.state.callCounts.call(); b.ToolCalls > 0 && n > b.ToolCalls {
		return k.halt("budget", spent(fmt.Sprintf("%d tool calls", b.ToolCalls), "toolCalls"))
	}
	if b.Time > 0 && !s.Started.IsZero() && time.Since(s.Started) >= b.Time {
		return k.halt("budget", spent(b.Time.String()+" of work", "minutes"))
	}
	if s.Spent == nil {
		return nil
	}
	used := s.Spent()
	if b.Tokens > 0 && used.Tokens.Total() >= b.Tokens {
		return k.halt("budget", spent(fmt.Sprintf("%d of %d tokens", used.Tokens.Total(), b.Tokens), "tokens"))
	}
	return nil
}

// checkRepeats limits the number of identical calls. Polling is not limited here,
// because loop detection checks whether its results change.
func (k *call) checkRepeats(context.Context) *verdict {
	b := &k.v.s.Budget
	if b.Identical <= 0 || polls(k.args) || k.v.state.callCounts.repeat(k.key()) <= b.Identical {
		return nil
	}
	return k.halt("budget", spent(fmt.Sprintf("%d calls of %s with the same arguments", b.Identical, k.name()),
		"identicalCalls"))
}

// checkFailures ends the run after too many consecutive failures. The outcome of
// the call itself does not change.
func (k *call) checkFailures(failed bool) error {
	b := &k.v.s.Budget
	if n := k.v.state.callCounts.ended(failed); b.Failures <= 0 || n < b.Failures {
		return nil
	}
	return stopped(spent(fmt.Sprintf("%d tool calls in a row failed", b.Failures), "failures"))
}
