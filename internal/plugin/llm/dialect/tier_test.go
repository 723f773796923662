package dialect

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/llm"
)

// TestTiers refuses the faster tier with several errors, and checks whether the request is
// repeated without it, and how long it is then not asked for.
func TestTiers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		err   *llm.Error
		pause time.Duration // 0: the error has another cause
	}{
		{"no service error", nil, 0},
		{"named", &llm.Error{Status: 400, Message: "Unsupported value: service_tier"}, time.Hour},
		{"forbidden", &llm.Error{Status: 403, Message: "Fast mode is not enabled for this organization"}, time.Hour},
		{"another field", &llm.Error{Status: 400, Message: "max_tokens: too large"}, 0},
		{"full", &llm.Error{Status: 429, Message: "slow down"}, time.Minute},
		{"full for long", &llm.Error{Status: 429, RetryAfter: 10 * time.Minute}, 10 * time.Minute},
		{"full for very long", &llm.Error{Status: 429, RetryAfter: 24 * time.Hour}, time.Hour},
		{"overloaded", &llm.Error{Status: 529, Message: "service_tier"}, 0},
		{"in the stream", &llm.Error{Message: "service_tier"}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ts := &Tiers{Has: func(model string) bool { return model != "none" }}
				r := &llm.Request{Model: "m", Fast: true}
				if !ts.fill(r).Fast || ts.fill(&llm.Request{Model: "none", Fast: true}).Fast ||
					ts.fill(&llm.Request{Model: "m"}).Fast {
					t.Error("asked for where it is not, or not where it is")
				}
				retry, note := ts.without(r, tt.err)
				if (retry != nil) != (tt.pause > 0) || retry != nil && (retry.Fast || note == "") || !r.Fast {
					t.Fatalf("repeated with %+v and the note %q", retry, note)
				}
				if tt.pause == 0 {
					return
				}
				if again, _ := ts.without(retry, tt.err); again != nil {
					t.Error("repeated twice")
				}
				time.Sleep(tt.pause - time.Second)
				if ts.fill(r).Fast || !ts.fill(&llm.Request{Model: "other", Fast: true}).Fast {
					t.Error("asked for too early, or not for another model")
				}
				if time.Sleep(2 * time.Second); !ts.fill(r).Fast {
					t.Error("not asked for again")
				}
			})
		})
	}
	if new(Tiers).fill(&llm.Request{Model: "m", Fast: true}).Fast {
		t.Error("a service without a tier was asked for it")
	}
}
