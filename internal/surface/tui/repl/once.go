package repl

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

// Question is a message with its options.
type Question struct {
	Message string
	Files   []wire.Attachment
	Think   string        // thinking level; "": the level of the session
	Timeout time.Duration // maximum duration of the run; 0: no limit
}

// Answer is the result of a [Question].
type Answer struct {
	RunID      string      `json:"runId"`
	Session    string      `json:"sessionKey"`
	Text       string      `json:"text"`
	Model      string      `json:"model,omitempty"`
	DurationMs int64       `json:"durationMs,omitempty"`
	Usage      *wire.Usage `json:"usage,omitempty"`
	Stop       string      `json:"stopReason,omitempty"`
	Error      string      `json:"error,omitempty"`
}

// Once sends one message and returns the answer. It handles approval requests
// meanwhile, and stops the run on an interrupt or timeout.
func (c *Chat) Once(ctx context.Context, q Question) (Answer, error) {
	signal.Notify(c.stop, os.Interrupt)
	defer signal.Stop(c.stop)
	run := rand.Text()
	c.feed.Own(run)
	c.single = true
	out := Answer{RunID: run, Session: c.session}

	var timeout <-chan time.Time
	if q.Timeout > 0 {
		timeout = time.After(q.Timeout)
	}
	var res wire.AgentResult
	done := make(chan error, 1)
	go func() {
		p := wire.AgentRun{
			Message:        q.Message,
			IdempotencyKey: run,
			SessionKey:     c.session,
			Thinking:       q.Think,
			Attachments:    q.Files,
		}
		err := c.client.Await(ctx, wire.MethodAgent, p, nil, &res)
		for errors.Is(err, client.ErrLost) { // safe to repeat: the key makes it idempotent
			err = c.client.Await(ctx, wire.MethodAgent, p, nil, &res)
		}
		done <- err
	}()
	events := c.client.Events()
	for {
		select {
		case err := <-done:
			return out.with(res), err
		case e, ok := <-events:
			if !ok {
				events = nil // done gets the error
				continue
			}
			if err := c.progress(ctx, e); err != nil {
				return out, err
			}
		case line, ok := <-c.decisions():
			if err := c.decide(ctx, line, ok); err != nil {
				return out, err
			}
		case <-timeout:
			c.abort(ctx, run)
			return out, fmt.Errorf("no answer within %v; the run was stopped", q.Timeout)
		case <-c.stop:
			c.abort(ctx, run)
			return out, ErrInterrupted
		case <-ctx.Done():
			return out, ErrInterrupted
		}
	}
}

// progress handles an event that arrives before the answer.
func (c *Chat) progress(ctx context.Context, e wire.Event) error {
	for _, s := range c.feed.Steps(e) {
		if err := c.approve(ctx, s); err != nil {
			return err
		}
		if c.feed.Owns(s.Run) && s.Tool.ID != "" {
			c.printer.Step(s)
		}
	}
	return nil
}

// abort stops a run, as far as that is possible.
func (c *Chat) abort(ctx context.Context, run string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_, _ = c.client.Abort(ctx, c.session, run) // the caller gives up in any case
}

// with returns a with the result of the run.
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
	a.DurationMs, a.Usage, a.Stop = m.DurationMs, m.Agent.Usage, m.Stop
	a.Model = strings.Trim(m.Agent.Provider+"/"+m.Agent.Model, "/")
	return a
}
