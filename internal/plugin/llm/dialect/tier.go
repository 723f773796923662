package dialect

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/llm"
)

// Tiers decides which requests ask for the faster tier of a service. The zero Tiers is
// that of a service without one.
type Tiers struct {
	// Has reports whether the service has a faster tier for a model; nil: for none.
	Has func(model string) bool

	mu   sync.Mutex
	slow map[string]time.Time // by model: until when the tier is not asked for
}

// Times for which the faster tier is not asked for again, and a limit of what is remembered.
const (
	refusedTier = time.Hour   // it was refused for this model or account
	fullTier    = time.Minute // it was out of capacity, at least
	maxTiers    = 256
)

// Speed is the name of the tier that answered, in a response. It is empty for values of
// other types, which compatible services may send.
type Speed string

// UnmarshalJSON ignores what is not a string.
func (s *Speed) UnmarshalJSON(b []byte) error {
	_ = json.Unmarshal(b, (*string)(s))
	return nil
}

// fill returns the request without Fast if the service would not accept it.
func (t *Tiers) fill(r *llm.Request) *llm.Request {
	if !r.Fast || t.Has != nil && t.Has(r.Model) && !t.isSlow(r.Model) {
		return r
	}
	return withoutFast(r)
}

func withoutFast(r *llm.Request) *llm.Request {
	own := *r
	own.Fast = false
	return &own
}

func (t *Tiers) isSlow(model string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return time.Now().Before(t.slow[model])
}

// without returns the request for the usual tier, and a note for the user, if the service
// refused the faster one or has no capacity there. It returns nil if the error has another
// cause. The tier is then not asked for during some time, because changing it loses the
// cache of some services.
func (t *Tiers) without(r *llm.Request, e *llm.Error) (retry *llm.Request, note string) {
	if e == nil || !r.Fast || e.Status < 400 || e.Status >= 500 {
		return nil, ""
	}
	pause := refusedTier
	switch {
	case e.Status == http.StatusTooManyRequests:
		pause, note = max(fullTier, min(e.RetryAfter, refusedTier)),
			"the fast tier of the service has no capacity now; answered at the usual speed"
	case namesTier(e.Message):
		note = "the service refused its fast tier; answered at the usual speed: " + e.Message
	default:
		return nil, ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.slow == nil || len(t.slow) >= maxTiers {
		t.slow = map[string]time.Time{}
	}
	t.slow[r.Model] = time.Now().Add(pause)
	return withoutFast(r), note
}

// namesTier reports whether an error message is about the faster tier.
func namesTier(message string) bool {
	message = strings.ToLower(message)
	for _, word := range []string{"service_tier", "service tier", "speed", "fast mode"} {
		if strings.Contains(message, word) {
			return true
		}
	}
	return false
}
