package runtext

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// Failure returns a sentence for the person about a failed run, with what can be
// done about it.
func Failure(err error) string {
	e, ok := errors.AsType[*llm.Error](err)
	if !ok {
		return cmp.Or(Error(err), "the model gave no answer")
	}
	if x, ok := errors.AsType[*llm.Exhausted](err); ok {
		return exhausted(x)
	}
	who := e.Provider + "/" + e.Model
	switch e.Class {
	case llm.ClassAuth:
		return fmt.Sprintf("%s refused the key: %s (set one with: chela config set models.providers.%s.apiKey …)", who, Line(e.Message, 200), e.Provider)
	case llm.ClassBilling:
		return fmt.Sprintf("the account at %s has no credit: %s", e.Provider, Line(e.Message, 200))
	case llm.ClassRate:
		if e.RetryAfter > 0 {
			return fmt.Sprintf("%s limits the rate; try again in %s", who, humanize.Span(e.RetryAfter))
		}
		return fmt.Sprintf("%s limits the rate; try again in a minute", who)
	case llm.ClassOverload:
		return fmt.Sprintf("%s is overloaded; try again in a minute", who)
	case llm.ClassContext:
		return fmt.Sprintf("the conversation is too long for %s; start a new one with /new", who)
	case llm.ClassNoModel:
		return fmt.Sprintf("%s does not exist or may not be used; /model list shows the others", who)
	case llm.ClassTimeout:
		return fmt.Sprintf("%s did not answer in time", who)
	case llm.ClassNetwork:
		return fmt.Sprintf("%s cannot be reached: %s", who, cmp.Or(Line(e.Message, 400), Error(e.Err), "the connection broke"))
	}
	return fmt.Sprintf("%s refused the request: %s", who, Line(e.Message, 300))
}

// exhausted says that no model answered, why, and when to try again.
func exhausted(x *llm.Exhausted) string {
	var who []string
	for _, a := range x.Attempts { // several keys may have failed for the same reason
		if s := fmt.Sprintf("%s/%s (%s)", a.Provider, a.Model, Reason(a.Err)); !slices.Contains(who, s) {
			who = append(who, s)
		}
	}
	text := "no model answered: " + strings.Join(who, ", ")
	if wait := time.Until(x.Retry); wait > 0 {
		text += fmt.Sprintf("; try again in %s", humanize.Span(wait))
	}
	return text
}

// Reason returns in a few words why a model did not answer.
func Reason(err error) string {
	if c := llm.ClassOf(err); c != "" {
		return string(c)
	}
	return Line(Error(err), 80)
}

// Error returns the text of an error in one line; "" for nil.
func Error(err error) string {
	if err == nil {
		return ""
	}
	return Line(err.Error(), 400)
}
