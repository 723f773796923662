package talk

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/wire"
)

// Question is one message.
type Question struct {
	Message string
	Files   []wire.Attachment
	Think   string        // how much the model thinks; "": as the session says
	Timeout time.Duration // after which the run is stopped; 0: as long as it takes
}

// Answer is what became of a question.
type Answer struct {
	RunID      string      `json:"runId"`
	Session    string      `json:"sessionKey"`
	Text       string      `json:"text"`
	Model      string      `json:"model,omitempty"`
	DurationMs int64       `json:"durationMs,omitempty"`
	Usage      *wire.Usage `json:"usage,omitempty"`
	Error      string      `json:"error,omitempty"`
}

// Once has one message answered, deals with what asks meanwhile, and stops the
// run when the person or the time says so.
func (t *Talk) Once(ctx context.Context, q Question) (Answer, error) {
	signal.Notify(t.stop, os.Interrupt)
	defer signal.Stop(t.stop)
	run := rand.Text()
	t.feed.Own(run)
	out := Answer{RunID: run, Session: t.session}

	var timeout <-chan time.Time
	if q.Timeout > 0 {
		timeout = time.After(q.Timeout)
	}
	var res wire.AgentResult
	done := make(chan error, 1)
	go func() {
		p := wire.AgentRun{Message: q.Message, IdempotencyKey: run, SessionKey: t.session, Thinking: q.Think, Attachments: q.Files}
		err := t.link.Await(ctx, wire.MethodAgent, p, nil, &res)
		for errors.Is(err, client.ErrLost) { // the key keeps it from being taken twice
			err = t.link.Await(ctx, wire.MethodAgent, p, nil, &res)
		}
		done <- err
	}()
	events := t.link.Events()
	for {
		select {
		case err := <-done:
			return out.with(res), err
		case e, ok := <-events:
			if !ok {
				events = nil // done says why
				continue
			}
			if err := t.aside(ctx, e); err != nil {
				return out, err
			}
		case line, ok := <-t.decisions():
			if err := t.decide(ctx, line, ok); err != nil {
				return out, err
			}
		case <-timeout:
			t.abort(ctx, run)
			return out, fmt.Errorf("no answer in %v: the run was stopped", q.Timeout)
		case <-t.stop:
			t.abort(ctx, run)
			return out, ErrInterrupted
		case <-ctx.Done():
			return out, ErrInterrupted
		}
	}
}

// aside shows what happens on the way to the answer.
func (t *Talk) aside(ctx context.Context, e wire.Event) error {
	for _, s := range t.feed.Take(e) {
		if err := t.approve(ctx, s); err != nil {
			return err
		}
		if t.feed.Owns(s.Run) && s.Tool.ID != "" {
			t.print.Step(s)
		}
	}
	return nil
}

// abort stops a run; that it cannot be stopped changes nothing for who gives
// up.
func (t *Talk) abort(ctx context.Context, run string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_, _ = t.link.Abort(ctx, t.session, run) // we leave in any case
}

// with returns a with the result of its run.
func (a Answer) with(r wire.AgentResult) Answer {
	if r.Result == nil {
		return a
	}
	var texts []string
	for _, p := range r.Result.Payloads {
		texts = append(texts, p.Text)
	}
	a.Text = strings.Join(texts, "\n\n")
	m := r.Result.Meta
	a.DurationMs, a.Usage = m.DurationMs, m.Agent.Usage
	a.Model = strings.Trim(m.Agent.Provider+"/"+m.Agent.Model, "/")
	return a
}
