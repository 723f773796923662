package invoke

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// tally counts what a run has done. It is safe for concurrent use.
type tally struct {
	mu     sync.Mutex
	calls  int
	failed int            // in a row
	same   map[string]int // calls by what they would do
}

// call counts a call, and returns how many there are.
func (t *tally) call() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls++
	return t.calls
}

// maxKeys bounds the calls that a tally tells apart.
const maxKeys = 4096

// again counts a call by what it would do, and returns how many there are.
func (t *tally) again(key string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.same == nil || len(t.same) >= maxKeys {
		t.same = make(map[string]int)
	}
	t.same[key]++
	return t.same[key]
}

// ended counts how a call ended, and returns how many have failed since one
// did not.
func (t *tally) ended(failed bool) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if failed {
		t.failed++
	} else {
		t.failed = 0
	}
	return t.failed
}

// spent says that a budget is. It is the one message that the person gets.
func spent(what, key string) string {
	return fmt.Sprintf("stopped: the budget of this run is spent: %s. Say \"go on\" for another one; the limit is agents.defaults.budget.%s", what, key)
}

// afford counts the call and holds what the run has used against its budget.
func (k *call) afford(context.Context) *verdict {
	s, b := &k.v.s, &k.v.s.Budget
	if n := k.v.state.tally.call(); b.ToolCalls > 0 && n > b.ToolCalls {
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
	if b.NanoUSD > 0 && used.NanoUSD >= b.NanoUSD {
		return k.halt("budget", spent(fmt.Sprintf("$%.4f of $%.4f", float64(used.NanoUSD)/1e9, float64(b.NanoUSD)/1e9), "usd"))
	}
	return nil
}

// repeat counts the call among those that are the same. Looking again and again
// how something is that runs elsewhere is no mistake: loop detection sees
// whether it has changed.
func (k *call) repeat(context.Context) *verdict {
	b := &k.v.s.Budget
	if b.Identical <= 0 || polls(k.args) || k.v.state.tally.again(k.key()) <= b.Identical {
		return nil
	}
	return k.halt("budget", spent(fmt.Sprintf("%d calls of %s with the same arguments", b.Identical, k.name()), "identicalCalls"))
}

// failing ends the run when too many calls have failed, one after the other. What
// was decided about this one stays.
func (k *call) failing(failed bool) error {
	b := &k.v.s.Budget
	if n := k.v.state.tally.ended(failed); b.Failures <= 0 || n < b.Failures {
		return nil
	}
	return stopped(spent(fmt.Sprintf("%d tool calls in a row failed", b.Failures), "failures"))
}
