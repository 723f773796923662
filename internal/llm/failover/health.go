package failover

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/llm"
)

// Rest says how long a key, or one model under it, is not asked, and why.
type Rest struct {
	Until  time.Time `json:"until"`
	Reason llm.Class `json:"reason"`
	Count  int       `json:"count"` // failures, one after the other
	Last   time.Time `json:"last"`  // the latest of them
}

// Health is what is known of keys. It is safe for concurrent use, and shared
// by all chains.
type Health struct {
	save   func([]byte)
	saving sync.Mutex // held while save runs, so that the newest state is the last one kept

	mu      sync.Mutex
	dirty   bool           // the state differs from the one that was kept
	rests   map[Place]Rest // by place
	probing map[Place]bool // places that one call tries now
	sticky  map[string]string
	order   []string // of sticky, oldest first
}

// NewHealth returns what was saved as state (nil: nothing), and calls save
// with each new state; nil: it is not kept. State that cannot be read is
// forgotten: it is worth no more than a few failed calls.
func NewHealth(state []byte, save func([]byte)) *Health {
	h := &Health{save: save, rests: map[Place]Rest{}, probing: map[Place]bool{}, sticky: map[string]string{}}
	if json.Unmarshal(state, &h.rests) != nil || h.rests == nil {
		h.rests = map[Place]Rest{}
	}
	return h
}

// Steps of rests.
var steps = [...]time.Duration{time.Minute, 5 * time.Minute, 25 * time.Minute, time.Hour}

const (
	broke     = 5 * time.Hour  // the first rest of an account without credit
	brokeMost = 24 * time.Hour // its longest
	forgiven  = 24 * time.Hour // without a failure, the count begins anew
	longest   = 24 * time.Hour // that a service may ask for
)

// Place is what rests: a key, or one model under it.
type Place struct{ Key, Model string }

// MarshalText returns "key", or "key model".
func (p Place) MarshalText() ([]byte, error) {
	return []byte(strings.TrimSpace(p.Key + " " + p.Model)), nil
}

// UnmarshalText reads what MarshalText wrote.
func (p *Place) UnmarshalText(b []byte) error {
	p.Key, p.Model, _ = strings.Cut(string(b), " ")
	return nil
}

// Rests returns what rests now.
func (h *Health) Rests() map[Place]Rest {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := map[Place]Rest{}
	now := time.Now()
	for p, r := range h.rests {
		if r.Until.After(now) {
			out[p] = r
		}
	}
	return out
}

// until returns when the key may be asked for the model; the zero time: now.
func (h *Health) until(key, model string, now time.Time) time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	var t time.Time
	for _, p := range [...]Place{{key, ""}, {key, model}} {
		r, ok := h.rests[p]
		switch {
		case !ok:
		case r.Until.After(now):
			t = later(t, r.Until)
		case h.probing[p]:
			t = later(t, now.Add(time.Nanosecond)) // rests until the probe is back
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

// begin notes that a call is made, which is a probe of what has rested, and
// returns what ends the probe.
func (h *Health) begin(key, model string) (end func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var probes []Place
	for _, p := range [...]Place{{key, ""}, {key, model}} {
		if _, ok := h.rests[p]; ok && !h.probing[p] {
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

// worked notes that the key answered.
func (h *Health) worked(key, model, session string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, k := h.rests[Place{Key: key}]
	_, m := h.rests[Place{key, model}]
	delete(h.rests, Place{Key: key})
	delete(h.rests, Place{key, model})
	h.dirty = h.dirty || k || m
	h.stickLocked(session, key)
}

// failed notes that the key did not answer, and reports whether the error says
// anything about the key.
func (h *Health) failed(key, model string, e *llm.Error, now time.Time) bool {
	p := Place{key, model}
	switch e.Class {
	case llm.ClassAuth, llm.ClassBilling:
		p = Place{Key: key}
	case llm.ClassRate, llm.ClassOverload, llm.ClassNetwork, llm.ClassTimeout:
	default:
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.rests[p]
	switch {
	case now.Sub(r.Last) > forgiven:
		r.Count = 0
	case r.Until.After(now): // it was asked for want of another, or by several at once: that is one failure
		r.Count--
	}
	rest := steps[min(r.Count, len(steps)-1)]
	if e.Class == llm.ClassBilling {
		rest = min(broke<<min(r.Count, 8), brokeMost)
	}
	if e.RetryAfter > 0 && e.Class != llm.ClassBilling {
		rest = min(e.RetryAfter, longest)
	}
	h.rests[p] = Rest{Until: later(r.Until, now.Add(rest)), Reason: e.Class, Count: r.Count + 1, Last: now}
	h.dirty = true
	return true
}

// keep saves the state if it has changed, without what is too old to matter.
// It is called when an answer has ended, so that the next key need not wait for
// the disk.
func (h *Health) keep() {
	h.saving.Lock()
	defer h.saving.Unlock()
	if b := h.changed(); b != nil && h.save != nil {
		h.save(b)
	}
}

// changed returns the state, or nil when it is the one that was kept.
func (h *Health) changed() []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.dirty {
		return nil
	}
	h.dirty = false
	maps.DeleteFunc(h.rests, func(_ Place, r Rest) bool { return time.Since(r.Last) > 2*forgiven })
	b, err := json.Marshal(h.rests)
	if err != nil {
		panic(fmt.Sprintf("failover: %v", err)) // plain fields
	}
	return b
}

// maxSticky bounds the conversations whose key is remembered.
const maxSticky = 4096

func (h *Health) stickLocked(session, key string) {
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

// favourite returns the key that answered the conversation last.
func (h *Health) favourite(session string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sticky[session]
}
