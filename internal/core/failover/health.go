package failover

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/llm"
)

// Cooldown is a period during which a key, or one model with that key, is not
// called.
type Cooldown struct {
	Until  time.Time `json:"until"`
	Reason llm.Class `json:"reason"`
	Count  int       `json:"count"` // consecutive failures
	Last   time.Time `json:"last"`  // time of the last failure
}

// Health records the failures of keys. It is safe for concurrent use and shared
// by all chains.
type Health struct {
	save   func([]byte)
	saving sync.Mutex // held while save runs, so that the newest state is saved last

	mu        sync.Mutex
	dirty     bool // the state changed since it was saved
	cooldowns map[Target]Cooldown
	probing   map[Target]bool   // targets that one call is probing
	sticky    map[string]string // key per conversation
	order     []string          // keys of sticky, oldest first
}

// NewHealth returns a Health with a saved state, which may be nil. It calls
// save, unless it is nil, with each new state. Invalid state is discarded:
// losing it costs only a few failed calls.
func NewHealth(state []byte, save func([]byte)) *Health {
	h := &Health{save: save, cooldowns: map[Target]Cooldown{}, probing: map[Target]bool{}, sticky: map[string]string{}}
	if json.Unmarshal(state, &h.cooldowns) != nil || h.cooldowns == nil {
		h.cooldowns = map[Target]Cooldown{}
	}
	return h
}

// backoff is the length of the cooldown after each consecutive failure.
var backoff = [...]time.Duration{time.Minute, 5 * time.Minute, 25 * time.Minute, time.Hour}

const (
	billingCooldown    = 5 * time.Hour // first cooldown of an account without credit
	maxBillingCooldown = 24 * time.Hour
	resetAfter         = 24 * time.Hour // time without a failure after which the count is reset
	maxRetryAfter      = 24 * time.Hour // limit of a service's Retry-After
)

// Target is what a cooldown applies to: a key, or one model with that key.
type Target struct{ Key, Model string }

// MarshalText returns "key", or "key model".
func (p Target) MarshalText() ([]byte, error) {
	return []byte(strings.TrimSpace(p.Key + " " + p.Model)), nil
}

// UnmarshalText reads what MarshalText wrote.
func (p *Target) UnmarshalText(b []byte) error {
	p.Key, p.Model, _ = strings.Cut(string(b), " ")
	return nil
}

// Cooldowns returns the current cooldowns.
func (h *Health) Cooldowns() map[Target]Cooldown {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := map[Target]Cooldown{}
	now := time.Now()
	for p, r := range h.cooldowns {
		if r.Until.After(now) {
			out[p] = r
		}
	}
	return out
}

// until returns the end of the cooldown of a model with a key, or zero.
func (h *Health) until(key, model string, now time.Time) time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	var t time.Time
	for _, p := range [...]Target{{key, ""}, {key, model}} {
		r, ok := h.cooldowns[p]
		switch {
		case !ok:
		case r.Until.After(now):
			t = later(t, r.Until)
		case h.probing[p]:
			t = later(t, now.Add(time.Nanosecond)) // until the probe ends
		}
	}
	return t
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// begin records the beginning of a call. If a cooldown has ended, the call is a
// probe. end ends it.
func (h *Health) begin(key, model string) (end func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var probes []Target
	for _, p := range [...]Target{{key, ""}, {key, model}} {
		if _, ok := h.cooldowns[p]; ok && !h.probing[p] {
			h.probing[p] = true
			probes = append(probes, p)
		}
	}
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, p := range probes {
			delete(h.probing, p)
		}
	}
}

// succeeded records that the key answered.
func (h *Health) succeeded(key, model, session string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, k := h.cooldowns[Target{Key: key}]
	_, m := h.cooldowns[Target{key, model}]
	delete(h.cooldowns, Target{Key: key})
	delete(h.cooldowns, Target{key, model})
	h.dirty = h.dirty || k || m
	h.setStickyLocked(session, key)
}

// fail records a failed call. It reports whether the error counts against the
// key.
func (h *Health) fail(key, model string, e *llm.Error, now time.Time) bool {
	p := Target{key, model}
	switch e.Class {
	case llm.ClassAuth, llm.ClassBilling:
		p = Target{Key: key}
	case llm.ClassRate, llm.ClassOverload, llm.ClassNetwork, llm.ClassTimeout:
	default:
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.cooldowns[p]
	switch {
	case now.Sub(r.Last) > resetAfter:
		r.Count = 0
	case r.Until.After(now): // called for lack of another, or by concurrent calls: count one failure
		r.Count--
	}
	cooldown := backoff[min(r.Count, len(backoff)-1)]
	if e.Class == llm.ClassBilling {
		cooldown = min(billingCooldown<<min(r.Count, 8), maxBillingCooldown)
	}
	if e.RetryAfter > 0 && e.Class != llm.ClassBilling {
		cooldown = min(e.RetryAfter, maxRetryAfter)
	}
	h.cooldowns[p] = Cooldown{Until: later(r.Until, now.Add(cooldown)), Reason: e.Class, Count: r.Count + 1, Last: now}
	h.dirty = true
	return true
}

// persist saves the state if it changed, without entries that are too old. It
// is called at the end of a stream, so that the next key does not wait for the
// disk.
func (h *Health) persist() {
	h.saving.Lock()
	defer h.saving.Unlock()
	if b := h.changed(); b != nil && h.save != nil {
		h.save(b)
	}
}

// changed returns the state, or nil if it is already saved.
func (h *Health) changed() []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.dirty {
		return nil
	}
	h.dirty = false
	maps.DeleteFunc(h.cooldowns, func(_ Target, r Cooldown) bool { return time.Since(r.Last) > 2*resetAfter })
	b, err := json.Marshal(h.cooldowns)
	if err != nil {
		panic(fmt.Sprintf("failover: %v", err)) // plain fields
	}
	return b
}

// maxSticky is the maximum number of conversations whose key is remembered.
const maxSticky = 4096

func (h *Health) setStickyLocked(session, key string) {
	if session == "" {
		return
	}
	if _, known := h.sticky[session]; !known {
		h.order = append(h.order, session)
		if len(h.order) > maxSticky {
			delete(h.sticky, h.order[0])
			h.order = h.order[1:]
		}
	}
	h.sticky[session] = key
}

// preferred returns the key that last answered the conversation, or "".
func (h *Health) preferred(session string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sticky[session]
}
