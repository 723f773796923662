package runner

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/window"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// failureText returns a sentence for the person about a failed run, with what can be
// done about it. An error that was not written for people is logged.
func (r *Runner) failureText(e *Execution, err error) string {
	if _, logged := errors.AsType[*panicError](err); isInternal(err) && !logged {
		r.o.Log.Error("run failed", "session", e.run.Session, "run", e.run.ID, "err", err)
	}
	return failureText(err)
}

// isInternal reports whether the text of an error is for the log only.
func isInternal(err error) bool {
	_, model := errors.AsType[*llm.Error](err)
	_, models := errors.AsType[*llm.Exhausted](err)
	_, small := errors.AsType[*window.TooSmall](err)
	return err != nil && !model && !models && !small && !overBudget(err) && chela.IsInternal(err)
}

// failureText is [Runner.failureText] without the log.
func failureText(err error) string {
	if isInternal(err) {
		return chela.PeopleText(err)
	}
	if x, ok := errors.AsType[*llm.Exhausted](err); ok {
		return exhaustedText(x)
	}
	e, ok := errors.AsType[*llm.Error](err)
	if !ok {
		text := cmp.Or(errorText(err), "the model gave no answer")
		if hint := chela.HintOf(err); hint != "" {
			text += " (in a terminal: " + hint + ")"
		}
		return text
	}
	who := e.Provider + "/" + e.Model
	switch e.Class {
	case llm.ClassAuth:
		return fmt.Sprintf("%s refused the key: %s (set one with: chela config set models.providers.%s.apiKey …)", who,
			oneLine(e.Message, 200), e.Provider)
	case llm.ClassBilling:
		return fmt.Sprintf("the account at %s has no credit: %s", e.Provider, oneLine(e.Message, 200))
	case llm.ClassRate:
		if e.RetryAfter > 0 {
			return fmt.Sprintf("%s limits the rate; try again in %s", who, humanize.Span(e.RetryAfter))
		}
		return fmt.Sprintf("%s limits the rate; try again in a minute", who)
	case llm.ClassOverload:
		return fmt.Sprintf("%s is overloaded; try again in a minute", who)
	case llm.ClassContext:
		if n := llm.NamedLimit(e.Message); n > 0 && n < window.MinWindow {
			return (&window.TooSmall{Window: window.Size{Tokens: n, Source: window.SourceProvider}, Model: who}).Error()
		}
		return fmt.Sprintf("the conversation is too long for %s; start a new one with /new", who)
	case llm.ClassNoModel:
		return fmt.Sprintf("%s does not exist or may not be used; /model list shows the others", who)
	case llm.ClassTimeout:
		return strings.TrimSuffix(fmt.Sprintf("%s did not answer in time: %s", who, oneLine(e.Message, 200)), ": ")
	case llm.ClassNetwork:
		what := "failed to answer"
		if e.Unreached {
			what = "cannot be reached"
		}
		return fmt.Sprintf("%s %s: %s", who, what, cmp.Or(oneLine(e.Message, 400), errorText(e.Err), "the connection broke"))
	}
	return fmt.Sprintf("%s refused the request: %s", who, oneLine(e.Message, 300))
}

// exhaustedText says that no model answered, why, and when to try again.
func exhaustedText(x *llm.Exhausted) string {
	var who []string
	for _, a := range x.Attempts { // several keys may have failed for the same reason
		if s := fmt.Sprintf("%s/%s (%s)", a.Provider, a.Model, reasonText(a.Err)); !slices.Contains(who, s) {
			who = append(who, s)
		}
	}
	text := "no model answered: " + strings.Join(who, ", ")
	if wait := time.Until(x.Retry); wait > 0 {
		text += fmt.Sprintf("; try again in %s", humanize.Span(wait))
	}
	return text
}

// reasonText returns in a few words why a model did not answer.
func reasonText(err error) string {
	if c := llm.ClassOf(err); c != "" {
		return string(c)
	}
	return oneLine(failureText(err), 80)
}

// errorText returns the text of an error in one line; "" for nil.
func errorText(err error) string {
	if err == nil {
		return ""
	}
	return oneLine(err.Error(), 400)
}

// oneLine returns s in one line, cut after most characters, so that it can be part of a
// line of the prompt.
func oneLine(s string, most int) string { return humanize.Truncate(humanize.OneLine(s), most) }
