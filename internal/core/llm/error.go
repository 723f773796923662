package llm

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Class is the kind of an error, which determines how to proceed.
type Class string

// Classes of errors.
const (
	ClassAuth     Class = "auth"
	ClassRate     Class = "rate_limit"
	ClassOverload Class = "overloaded"
	ClassBilling  Class = "billing"
	ClassFormat   Class = "format"           // invalid request; never counts against a key
	ClassContext  Class = "context_overflow" // the prompt is too long
	ClassNetwork  Class = "network"          // no answer, or an incomplete one
	ClassTimeout  Class = "timeout"
	ClassNoModel  Class = "model_not_found"
)

// Error is the error of a call, reported by the provider or by the connection.
type Error struct {
	Class      Class
	Provider   string
	Model      string
	Status     int           // HTTP status; 0: none
	Message    string        // of the provider; one line, without secrets
	RetryAfter time.Duration // 0: not given
	Unreached  bool          // there was no connection to the service
	Err        error         // cause; may be nil
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

// Transient reports whether an error may pass by itself: the service is busy or cannot be
// reached, or it failed.
func Transient(err error) bool {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return false
	}
	switch e.Class {
	case ClassRate, ClassOverload, ClassNetwork, ClassTimeout:
		return true
	}
	return e.Status >= 500
}

// Attempt is a failed call.
type Attempt struct {
	Provider string
	Model    string
	Key      string // id of the key, not secret; "": no call was made
	Err      error
}

// Exhausted is the error of a chain whose candidates all failed. It wraps the
// first attempt's error.
type Exhausted struct {
	Attempts []Attempt // in order; at least one
	Retry    time.Time // when the first of them may be tried again; zero: now
}

// Error returns the class of each attempt.
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

// cause returns a short form of an attempt's error.
func cause(err error) string {
	if c := ClassOf(err); c != "" {
		return string(c)
	}
	return err.Error()
}

// Unwrap returns the first attempt's error.
func (x *Exhausted) Unwrap() error { return x.Attempts[0].Err }

// overflowWords identify refusals of too long prompts, for providers without a
// code for it.
var overflowWords = [...]string{
	"context length", "context_length", "context window", "maximum context", "prompt is too long",
	"input is too long", "request_too_large", "too many tokens", "exceeds the model's maximum",
	"available context size", "exceed_context_size", "context the overflows", "too large for model with",
	"too large to process",
}

// modelWords identify refusals of an unknown model.
var modelWords = [...]string{
	"model_not_found", "model not exist", "invalid model", "not a valid model", "decommissioned", "model_decommissioned",
}

// billingWords identify billing errors.
var billingWords = [...]string{
	"insufficient credit", "credit balance", "insufficient_quota", "insufficient balance", "payment required", "billing",
}

// Classify returns the class of an HTTP response from its status and, if the
// status is ambiguous, from the provider's error type and message.
func Classify(status int, kind, message string) Class {
	text := strings.ToLower(kind + " " + message)
	has := func(words []string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
	}
	switch {
	case status == 402, (status == 400 || status == 403 || status == 429) && has(billingWords[:]):
		return ClassBilling
	case status == 401, status == 403, status == 400 && strings.Contains(text, "api key not valid"):
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
