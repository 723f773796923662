package llmtest

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/kit/backoff"
)

// Script is a provider in this process that answers with steps. Invalid
// requests, and requests after the last step, get an error of class format and
// consume no step. Script is safe for concurrent use.
type Script struct {
	Name string // of the provider in messages and errors; "": script

	next func(n int, r *llm.Request) (Step, bool)

	mu       sync.Mutex
	requests []*llm.Request
	taken    int // consumed steps
}

var _ llm.Provider = (*Script)(nil)

// NewScript returns a provider that answers successive calls with the steps.
func NewScript(steps ...Step) *Script {
	return &Script{next: func(n int, _ *llm.Request) (Step, bool) {
		if n >= len(steps) {
			return Step{}, false
		}
		return steps[n], true
	}}
}

// ScriptFunc returns a provider that answers call n, from 0, with the step f
// returns.
func ScriptFunc(f func(n int, r *llm.Request) Step) *Script {
	return &Script{next: func(n int, r *llm.Request) (Step, bool) { return f(n, r), true }}
}

// Requests returns the requests so far.
func (s *Script) Requests() []*llm.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// record stores a copy of a request.
func (s *Script) record(r *llm.Request) {
	own := *r
	own.Messages, own.Tools, own.System = slices.Clone(r.Messages), slices.Clone(r.Tools), slices.Clone(r.System)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, &own)
}

// take returns the step for a request and its number.
func (s *Script) take(r *llm.Request) (Step, int, bool) {
	s.mu.Lock()
	n := s.taken
	s.taken++
	s.mu.Unlock()
	step, ok := s.next(n, r)
	return step, n, ok
}

// Stream implements llm.Provider.
func (s *Script) Stream(ctx context.Context, r *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		s.record(r)
		fail := func(status int, message string) {
			yield(llm.Event{}, &llm.Error{
				Class: llm.Classify(status, "", message), Provider: s.name(), Model: r.Model,
				Status: status, Message: message,
			})
		}
		if err := ctx.Err(); err != nil {
			yield(llm.Event{}, err)
			return
		}
		if err := Validate(r); err != nil {
			fail(http.StatusBadRequest, err.Error())
			return
		}
		step, n, ok := s.take(r)
		if !ok {
			fail(http.StatusBadRequest, fmt.Sprintf("the script has no step %d", n))
			return
		}
		s.play(ctx, r, step, yield)
	}
}

func (s *Script) name() string {
	if s.Name == "" {
		return "script"
	}
	return s.Name
}

// play yields the events of a step.
func (s *Script) play(ctx context.Context, r *llm.Request, step Step, yield func(llm.Event, error) bool) {
	f := &step.Fault
	if f.Hang == HangHeaders || f.Hang == HangBody {
		<-ctx.Done()
	}
	if err := backoff.Sleep(ctx, step.Delay); err != nil {
		yield(llm.Event{}, err)
		return
	}
	if f.Status != 0 {
		yield(llm.Event{}, s.fault(r, f))
		return
	}
	events := step.events()
	for i, e := range events {
		if f.Hang == HangMiddle && i == len(events)/2 {
			<-ctx.Done()
		}
		var gap time.Duration
		if i > 0 {
			gap = step.Gap
		}
		if err := backoff.Sleep(ctx, gap); err != nil {
			yield(llm.Event{}, err)
			return
		}
		if !yield(e, nil) {
			return
		}
	}
	if f.Error {
		var used llm.Usage
		if step.Usage != nil {
			used = *step.Usage
		}
		yield(llm.Event{Usage: used}, s.fault(r, f))
		return
	}
	if f.Hang != HangNever {
		<-ctx.Done()
		yield(llm.Event{}, ctx.Err())
		return
	}
	yield(llm.Event{Kind: llm.Done, Message: step.message(s.name(), r.Model), Usage: step.usage(promptSize(r))}, nil)
}

func (s *Script) fault(r *llm.Request, f *Fault) *llm.Error {
	return &llm.Error{
		Class: llm.Classify(f.Status, f.kind(), f.message()), Provider: s.name(), Model: r.Model,
		Status: f.Status, Message: f.message(), RetryAfter: backoff.ParseRetryAfter(f.RetryAfter, time.Now()),
	}
}

// events returns the deltas of the step.
func (s *Step) events() []llm.Event {
	var all []llm.Event
	calls := 0
	for i := range s.Parts {
		p := &s.Parts[i]
		switch p.Kind {
		case llm.PartText, llm.PartThinking:
			kind := llm.TextDelta
			if p.Kind == llm.PartThinking {
				kind = llm.ThinkingDelta
			}
			for _, c := range chunks(p.Text, s.Chunk) {
				all = append(all, llm.Event{Kind: kind, Text: c})
			}
		case llm.PartCall:
			all = append(all, llm.Event{
				Kind: llm.CallStart, Index: calls, Call: &llm.ToolCall{ID: p.Call.ID, Name: p.Call.Name},
			})
			for _, c := range chunks(argsOf(p.Call), s.Chunk) {
				all = append(all, llm.Event{Kind: llm.CallDelta, Index: calls, Text: c})
			}
			calls++
		}
	}
	return all
}

// promptSize returns the number of characters in a request.
func promptSize(r *llm.Request) int {
	n := 0
	for _, b := range r.System {
		n += len(b.Text)
	}
	for _, m := range r.Messages {
		for i := range m.Parts {
			n += len(m.Parts[i].Text)
			if c := m.Parts[i].Call; c != nil {
				n += len(c.Name) + len(argsOf(c))
			}
		}
	}
	return n
}
