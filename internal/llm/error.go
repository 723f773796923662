package llm

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Class is what an error means for what to do next.
type Class string

// The classes.
const (
	ClassAuth     Class = "auth"
	ClassRate     Class = "rate_limit"
	ClassOverload Class = "overloaded"
	ClassBilling  Class = "billing"
	ClassFormat   Class = "format"           // the request is refused; never counts against a key
	ClassContext  Class = "context_overflow" // the prompt is too long
	ClassNetwork  Class = "network"          // no or a broken answer
	ClassTimeout  Class = "timeout"
	ClassNoModel  Class = "model_not_found"
)

// Error is what a provider answered instead of a message, or what kept it
// from answering.
type Error struct {
	Class      Class
	Provider   string
	Model      string
	Status     int           // HTTP status; 0: none
	Message    string        // the provider's words, one line, without secrets
	RetryAfter time.Duration // 0: not said
	Err        error         // the cause; may be nil
}

// Error returns "provider/model: class: message".
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Provider)
	if e.Model != "" {
		b.WriteString("/" + e.Model)
	}
	fmt.Fprintf(&b, ": %s", e.Class)
	if e.Status != 0 {
		fmt.Fprintf(&b, " (http %d)", e.Status)
	}
	if e.Message != "" {
		b.WriteString(": " + e.Message)
	} else if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ClassOf returns the class of the first *Error in err's chain, "" if none.
func ClassOf(err error) Class {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Class
	}
	return ""
}

// Attempt is a call that did not give an answer.
type Attempt struct {
	Provider string
	Model    string
	Key      string // the id of the key, which is not secret; "": it was not asked
	Err      error
}

// Exhausted says that nobody of those that could be asked answered. Its cause
// is why the first did not.
type Exhausted struct {
	Attempts []Attempt // in order; at least one
	Retry    time.Time // when the first of them may be asked again; zero: now
}

// Error names each attempt and its class.
func (x *Exhausted) Error() string {
	var b strings.Builder
	for i, a := range x.Attempts {
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "%s/%s: %s", a.Provider, a.Model, cause(a.Err))
	}
	return "no model answered: " + b.String()
}

// cause is an attempt's error, short.
func cause(err error) string {
	if c := ClassOf(err); c != "" {
		return string(c)
	}
	return err.Error()
}

// Unwrap returns why the first attempt failed.
func (x *Exhausted) Unwrap() error { return x.Attempts[0].Err }

// overflowWords mark a refused request as too long, in the words of the
// providers that have no code for it.
var overflowWords = [...]string{
	"context length", "context_length", "context window", "maximum context", "prompt is too long",
	"input is too long", "request_too_large", "too many tokens", "exceeds the model's maximum",
	"available context size", "exceed_context_size", "context the overflows", "too large for model with",
}

// modelWords mark a refused request as one for a model that there is not.
var modelWords = [...]string{
	"model_not_found", "model not exist", "invalid model", "not a valid model", "decommissioned", "model_decommissioned",
}

// billingWords mark an error as a matter of money.
var billingWords = [...]string{
	"insufficient credit", "credit balance", "insufficient_quota", "insufficient balance", "payment required", "billing",
}

// Classify returns the class of an HTTP answer from its status and, where the
// status alone does not tell, from the provider's error type and message.
func Classify(status int, kind, message string) Class {
	text := strings.ToLower(kind + " " + message)
	has := func(words []string) bool {
		for _, w := range words {
			if strings.Contains(text, w) {
				return true
			}
		}
		return false
	}
	switch {
	case status == 402, (status == 400 || status == 403 || status == 429) && has(billingWords[:]):
		return ClassBilling
	case status == 401, status == 403:
		return ClassAuth
	case status == 429:
		return ClassRate
	case status == 529, status == 503, strings.Contains(text, "overloaded"):
		return ClassOverload
	case status == 408:
		return ClassTimeout
	case status == 413, (status == 400 || status == 422 || status == 500 || status == 0) && has(overflowWords[:]):
		return ClassContext
	case status == 404, (status == 400 || status == 422) && has(modelWords[:]):
		return ClassNoModel
	case status >= 500, status == 0:
		return ClassNetwork
	}
	return ClassFormat
}
