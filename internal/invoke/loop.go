package invoke

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/internal/tool"
)

// LoopOptions says when a run that repeats itself is stopped. The zero value is
// on, with the defaults.
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
}

// Validate reports thresholds that cannot work: each must be above the one
// before it, and the history must reach the critical one.
func (o LoopOptions) Validate() error {
	o = o.filled()
	switch {
	case o.WarningThreshold < 2:
		return fmt.Errorf("loop detection: warningThreshold %d: want at least 2", o.WarningThreshold)
	case o.CriticalThreshold <= o.WarningThreshold:
		return fmt.Errorf("loop detection: criticalThreshold %d must be above warningThreshold %d", o.CriticalThreshold, o.WarningThreshold)
	case o.BreakerThreshold <= o.CriticalThreshold:
		return fmt.Errorf("loop detection: globalCircuitBreakerThreshold %d must be above criticalThreshold %d", o.BreakerThreshold, o.CriticalThreshold)
	case o.HistorySize < o.CriticalThreshold:
		return fmt.Errorf("loop detection: historySize %d must reach criticalThreshold %d", o.HistorySize, o.CriticalThreshold)
	}
	return nil
}

func (o LoopOptions) on() bool { return isTrue(o.Enabled) }

func isTrue(b *bool) bool { return b == nil || *b }

// filled returns o with its defaults; all of them when o is not valid.
func (o LoopOptions) filled() LoopOptions {
	set := func(n *int, v int) {
		if *n == 0 {
			*n = v
		}
	}
	set(&o.HistorySize, 30)
	set(&o.WarningThreshold, 10)
	set(&o.CriticalThreshold, 20)
	set(&o.BreakerThreshold, 30)
	return o
}

// history is what a run's last calls were and gave. It is safe for concurrent
// use.
type history struct {
	mu      sync.Mutex
	o       LoopOptions
	past    []outcome // oldest first, at most o.HistorySize
	stale   int       // outcomes in a row that brought nothing new, with what was blocked
	turn    int       // model calls so far
	blocked int       // turn in which a call was blocked; -1: none yet
}

// outcome is a call and what it gave.
type outcome struct {
	call   string // digest of tool and arguments
	tool   string
	poll   bool // it only looks whether something has changed
	result string
}

func newHistory(o LoopOptions) *history {
	if o.Validate() != nil {
		o = LoopOptions{Detectors: o.Detectors}
	}
	return &history{o: o.filled(), blocked: -1}
}

// next notes that a new batch begins.
func (h *history) next() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.turn++
}

// judge says whether a call may run: text is why not, stop that the run ends.
// The first loop blocks the rest of its batch, so that the model can do
// something else; a loop after that ends the run.
func (h *history) judge(call, name string) (text string, stop bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stale >= h.o.BreakerThreshold {
		return fmt.Sprintf("stopped: the last %d tool calls brought nothing new", h.stale), true
	}
	if h.blocked == h.turn {
		h.stale++
		return "blocked with the rest of its batch, because another call of it repeats itself", false
	}
	what, n := h.loopLocked(call)
	if n < h.o.CriticalThreshold {
		return "", false
	}
	if h.blocked >= 0 {
		return fmt.Sprintf("stopped: %s %s again, after it was told to do something else", name, what), true
	}
	h.blocked = h.turn
	h.stale++
	return fmt.Sprintf("blocked: %s %s %d times with the same result. It will not change: try something else, or say what you have and ask the person", name, what, n), false
}

// record adds an outcome, and returns a warning for it if it is due.
func (h *history) record(o outcome) string {
	h.mu.Lock()
	defer h.mu.Unlock()
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
	return fmt.Sprintf("[Warning: %s %s %d times with the same result. If this leads nowhere, try something else.]", o.tool, what, n)
}

// loopLocked returns how often the call has been made in vain, and in which
// way.
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
		return "was called in turn with another call", m
	}
	return what, n
}

// repeatsLocked counts the last outcomes of the call that are all the same.
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

// pingPongLocked counts the last outcomes when they are two calls in turn, one
// of them this one, each with the same result every time.
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

// outcome is the call with its result, without what differs each time.
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

// stable returns details without the tool's volatile keys.
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

// polls reports whether the arguments ask how something is that runs elsewhere.
func polls(args json.RawMessage) bool {
	var a struct {
		Action string `json:"action"`
	}
	return bytes.Contains(args, []byte(`"action"`)) && json.Unmarshal(args, &a) == nil && (a.Action == "poll" || a.Action == "log" || a.Action == "wait")
}
