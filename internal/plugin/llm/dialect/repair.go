package dialect

import (
	"errors"
	"iter"
	"log/slog"
	"strings"
	"sync"

	"github.com/chela-ai/chela/internal/core/llm"
)

// Repairs repeats requests that a service refuses because of a field, in another form,
// and remembers the form that it accepts. Q says in which form a request is made. It
// is safe for concurrent use.
type Repairs[Q any] struct {
	// Fix changes q as an error message demands, which is in lower case. It reports
	// false if it cannot.
	Fix func(q *Q, message string) bool
	Log *slog.Logger // nil: nothing is logged

	mu      sync.Mutex
	learned map[string]Q // by model
}

const (
	maxRepairs = 3   // of a call: an error names one field, so that several may follow each other
	maxLearned = 256 // models
)

// Stream makes a call of a model in a form, or in the one that was learned, with
// stream. If the service refuses it, the call is made again in another form.
func (x *Repairs[Q]) Stream(model string, q Q, stream func(Q) iter.Seq2[llm.Event, error]) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		x.mu.Lock()
		if known, ok := x.learned[model]; ok {
			q = known
		}
		x.mu.Unlock()
		for n := 0; ; n++ {
			again := false
			// The caller sees the error of the last attempt only: a refused one ends here, and
			// has yielded nothing before.
			for e, err := range stream(q) {
				if again = n < maxRepairs && x.repair(&q, err); again {
					break
				}
				if n > 0 && err == nil && e.Kind == llm.Done {
					x.learn(model, q)
				}
				if !yield(e, err) {
					return
				}
			}
			if !again {
				return
			}
		}
	}
}

// repair changes q after an error, and reports whether it did. A refused request has
// no events.
func (x *Repairs[Q]) repair(q *Q, err error) bool {
	e, ok := errors.AsType[*llm.Error](err)
	if !ok || e.Class != llm.ClassFormat || e.Status < 400 || e.Status >= 500 || !x.Fix(q, strings.ToLower(e.Message)) {
		return false
	}
	if x.Log != nil {
		x.Log.Info("the service refused a field; the request is made in another form", "provider", e.Provider,
			"model", e.Model, "err", e.Message)
	}
	return true
}

func (x *Repairs[Q]) learn(model string, q Q) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.learned == nil || len(x.learned) >= maxLearned {
		x.learned = map[string]Q{}
	}
	x.learned[model] = q
}

// Demands reports whether an error message, in lower case, says that something is
// missing, rather than that it is not accepted.
func Demands(message string) bool {
	for _, word := range []string{"missing", "must be passed", "passed back", "is required", "field required", "requires ",
		"must be provided", "must include", "must have"} {
		if strings.Contains(message, word) {
			return true
		}
	}
	return false
}

// Refuses reports whether an error message, in lower case, says that something is not
// accepted.
func Refuses(message string) bool {
	for _, word := range []string{
		"unsupported", "not support", "n't support", "not permitted", "not allowed", "unexpected", "unknown", "unrecognized",
		"extra", "no such", "not accept", "additional propert", "deprecated", "invalid",
	} {
		if strings.Contains(message, word) {
			return true
		}
	}
	return false
}

// Mentions reports whether an error message, in lower case, has the name of a field as
// a word.
func Mentions(message, field string) bool {
	part := func(c byte) bool { return c == '_' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }
	for rest := message; ; {
		before, after, ok := strings.Cut(rest, field)
		if !ok {
			return false
		}
		if (before == "" || !part(before[len(before)-1])) && (after == "" || !part(after[0])) {
			return true
		}
		rest = after
	}
}
