package invoke

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/tool"
)

// LoopOptions configures loop detection. In the zero value it is enabled with the
// defaults.
type LoopOptions struct {
	Enabled           *bool `json:"enabled,omitempty"`                       // nil: true
	HistorySize       int   `json:"historySize,omitempty"`                   // 0: 30
	WarningThreshold  int   `json:"warningThreshold,omitempty"`              // 0: 10
	CriticalThreshold int   `json:"criticalThreshold,omitempty"`             // 0: 20
	BreakerThreshold  int   `json:"globalCircuitBreakerThreshold,omitempty"` // 0: 30
	Detectors         struct {
		GenericRepeat       *bool `json:"genericRepeat,omitempty"`
		KnownPollNoProgress *bool `json:"knownPollNoProgress,omitempty"`
		PingPong            *bool `json:"pingPong,omitempty"`
	} `json:"detectors,omitzero"` // each nil: true

	// PostCompaction ends a run whose first calls after its conversation was compacted
	// are all the same, with the same result.
	PostCompaction struct {
		Enabled    *bool `json:"enabled,omitempty"`    // nil: true
		WindowSize int   `json:"windowSize,omitempty"` // the number of these calls; 0: 3
	} `json:"postCompactionGuard,omitzero"`
}

// Validate checks the thresholds: each must be above the previous one, and the
// history must be at least as long as the critical one.
func (o LoopOptions) Validate() error {
	o = o.filled()
	switch {
	case o.WarningThreshold < 2:
		return fmt.Errorf("loop detection: warningThreshold %d: want at least 2", o.WarningThreshold)
	case o.CriticalThreshold <= o.WarningThreshold:
		return fmt.Errorf("loop detection: criticalThreshold %d must be above warningThreshold %d",
			o.CriticalThreshold, o.WarningThreshold)
	case o.BreakerThreshold <= o.CriticalThreshold:
		return fmt.Errorf("loop detection: globalCircuitBreakerThreshold %d must be above criticalThreshold %d",
			o.BreakerThreshold, o.CriticalThreshold)
	case o.HistorySize < o.CriticalThreshold:
		return fmt.Errorf("loop detection: historySize %d must be at least criticalThreshold %d",
			o.HistorySize, o.CriticalThreshold)
	}
	return nil
}

func (o LoopOptions) on() bool { return isTrue(o.Enabled) }

func isTrue(b *bool) bool { return b == nil || *b }

// filled returns o with the defaults for zero fields.
func (o LoopOptions) filled() LoopOptions {
	o.HistorySize = cmp.Or(o.HistorySize, 30)
	o.WarningThreshold = cmp.Or(o.WarningThreshold, 10)
	o.CriticalThreshold = cmp.Or(o.CriticalThreshold, 20)
	o.BreakerThreshold = cmp.Or(o.BreakerThreshold, 30)
	return o
}

// history is the last calls of a run with their results. It is safe for concurrent
// use.
type history struct {
	mu      sync.Mutex
	o       LoopOptions
	past    []outcome // oldest first, at most o.HistorySize
	stale   int       // consecutive calls without a new outcome, including blocked ones
	guard   []outcome // since a compaction, if all of them are equal; nil: no guard
	stuck   string    // the tool of a call that was repeated after a compaction
	turn    int       // model calls so far
	blocked int       // turn in which a call was blocked; -1: none
}

// outcome is a call with its result.
type outcome struct {
	call   string // digest of tool and arguments
	tool   string
	poll   bool   // see polls
	result string // digest of the result
}

func newHistory(o LoopOptions) *history {
	if o.Validate() != nil {
		o = LoopOptions{Detectors: o.Detectors, PostCompaction: o.PostCompaction}
	}
	return &history{o: o.filled(), blocked: -1}
}

// next starts a new batch.
func (h *history) next() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.turn++
}

// judge decides whether a call may run. If it may not, text is the reason, and
// stop is set if the run must end. The first loop blocks the rest of its batch, so
// that the model can try something else. The next loop ends the run.
func (h *history) judge(call, name string) (text string, stop bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stuck != "" {
		return fmt.Sprintf("%s: %s was called again and again with the same result after the conversation was compacted",
			compactionLoop, h.stuck), true
	}
	if h.stale >= h.o.BreakerThreshold {
		return fmt.Sprintf("stopped: the last %d tool calls had no new results", h.stale), true
	}
	if h.blocked == h.turn {
		h.stale++
		return "blocked with the rest of its batch, because another call of the batch is a loop", false
	}
	what, n := h.loopLocked(call)
	if n < h.o.CriticalThreshold {
		return "", false
	}
	if h.blocked >= 0 {
		return fmt.Sprintf("stopped: %s %s even after it was blocked", name, what), true
	}
	h.blocked = h.turn
	h.stale++
	return fmt.Sprintf(
		"blocked: %s %s %d times with the same result. Try something else, or report what you have and ask the person", name,
		what, n), false
}

// compactionLoop is why a run ends that a compaction did not get out of a loop.
const compactionLoop = "compaction_loop_persisted"

// guardWindow is how many equal calls after a compaction are a loop.
const guardWindow = 3

// compacted arms the guard for the next calls.
func (h *history) compacted() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if isTrue(h.o.PostCompaction.Enabled) {
		h.guard = []outcome{}
	}
}

// record adds an outcome and returns a warning if the calls look like a loop.
func (h *history) record(o outcome) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.guard == nil:
	case len(h.guard) > 0 && h.guard[0] != o || o.poll:
		h.guard = nil
	default:
		if h.guard = append(h.guard, o); len(h.guard) >= cmp.Or(h.o.PostCompaction.WindowSize, guardWindow) {
			h.stuck = o.tool
		}
	}
	known := slices.ContainsFunc(h.past, func(p outcome) bool { return p.call == o.call && p.result == o.result })
	if known {
		h.stale++
	} else {
		h.stale = 0
	}
	if len(h.past) >= h.o.HistorySize {
		h.past = slices.Delete(h.past, 0, len(h.past)-h.o.HistorySize+1)
	}
	h.past = append(h.past, o)
	what, n := h.loopLocked(o.call)
	if n < h.o.WarningThreshold {
		return ""
	}
	return fmt.Sprintf("[Warning: %s %s %d times with the same result. If this makes no progress, try something else.]",
		o.tool, what, n)
}

// loopLocked returns how often the call was made without a new result, and a
// description of the loop.
func (h *history) loopLocked(call string) (what string, n int) {
	d := &h.o.Detectors
	repeats, poll := h.repeatsLocked(call)
	switch {
	case poll && isTrue(d.KnownPollNoProgress):
		what, n = "has polled", repeats
	case isTrue(d.GenericRepeat):
		what, n = "was called", repeats
	}
	if m := h.pingPongLocked(call); isTrue(d.PingPong) && m > n {
		return "was called alternately with another call", m
	}
	return what, n
}

// repeatsLocked counts the last outcomes of the call that are equal.
func (h *history) repeatsLocked(call string) (n int, poll bool) {
	last := ""
	for _, p := range slices.Backward(h.past) {
		if p.call != call {
			continue
		}
		if n > 0 && p.result != last {
			break
		}
		last, poll = p.result, p.poll
		n++
	}
	return n, poll
}

// pingPongLocked counts the last outcomes if they alternate between this call and
// another one, each with equal results.
func (h *history) pingPongLocked(call string) int {
	n := len(h.past)
	if n < 4 || h.past[n-1].call == h.past[n-2].call || h.past[n-1].call != call && h.past[n-2].call != call {
		return 0
	}
	count := 2
	for i := n - 3; i >= 0 && h.past[i] == h.past[i+2]; i-- {
		count++
	}
	if count < 4 {
		return 0
	}
	return count
}

// outcome returns the call with its result, without volatile details.
func (k *call) outcome(res tool.Result) outcome {
	parts := []string{fmt.Sprint(res.IsError), k.stable(res.Details)}
	for _, p := range res.Content {
		switch p.Kind {
		case llm.PartText:
			parts = append(parts, p.Text)
		case llm.PartImage:
			parts = append(parts, p.Ref, string(p.Data))
		}
	}
	return outcome{call: k.key(), tool: k.name(), poll: polls(k.args), result: digest(parts...)}
}

// stable returns the details without the volatile keys of the tool.
func (k *call) stable(details json.RawMessage) string {
	var m map[string]json.RawMessage
	if len(k.spec.Volatile) == 0 || json.Unmarshal(details, &m) != nil {
		return string(details)
	}
	for _, name := range k.spec.Volatile {
		delete(m, name)
	}
	b, err := json.Marshal(m)
	if err != nil {
		return ""
	}
	return string(b)
}

// polls reports whether the arguments query the state of something in the
// background. Repeating such a call is normal.
func polls(args json.RawMessage) bool {
	var a struct {
		Action string `json:"action"`
	}
	return bytes.Contains(args, []byte(`"action"`)) && json.Unmarshal(args, &a) == nil &&
		(a.Action == "poll" || a.Action == "log" || a.Action == "wait")
}
