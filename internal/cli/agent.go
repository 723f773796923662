package cli

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/tui/ansi"
	"github.com/chela-ai/chela/wire"
)

// agentFlags is what `chela agent` is told.
type agentFlags struct {
	message string
	session string
	think   string
	timeout time.Duration
	json    bool
	yes     bool
}

func (c *console) agent() *cobra.Command {
	var f agentFlags
	cmd := &cobra.Command{
		Use:   "agent -m TEXT",
		Short: "Have one message answered",
		Long: "Have one message answered and print the answer. The exit code is 0 only when\n" +
			"there is one. With -m - the message is read from standard input.",
		Example: "  chela agent -m 'what is in this directory?'\n  git diff | chela agent -m - --json",
		Args:    exactly(0),
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.ask(cmd.Context(), f) },
	}
	fs := cmd.Flags()
	fs.StringVarP(&f.message, "message", "m", "", "the message `TEXT`; -: read it from standard input")
	fs.StringVar(&f.session, "session", "main", "the session `KEY`")
	fs.StringVar(&f.think, "think", "", "how much the model thinks: `LEVEL` off, low, medium or high")
	fs.DurationVar(&f.timeout, "timeout", 0, "stop after `DURATION`; 0: as long as it takes")
	fs.BoolVar(&f.json, "json", false, "print one JSON object")
	fs.BoolVarP(&f.yes, "yes", "y", false, "allow everything that asks")
	return cmd
}

// answered is what --json prints.
type answered struct {
	RunID      string      `json:"runId"`
	Session    string      `json:"sessionKey"`
	Text       string      `json:"text"`
	Model      string      `json:"model,omitempty"`
	DurationMs int64       `json:"durationMs,omitempty"`
	Usage      *wire.Usage `json:"usage,omitempty"`
	Error      string      `json:"error,omitempty"`
}

// ask has a message answered.
func (c *console) ask(ctx context.Context, f agentFlags) error {
	if f.message == "-" {
		b, err := io.ReadAll(c.in)
		if err != nil {
			return fmt.Errorf("message: %w", err)
		}
		f.message = string(b)
	}
	if strings.TrimSpace(f.message) == "" {
		return usageError{hinted{errors.New("there is no message"), c.command("agent -m 'hello'")}}
	}
	return c.with(ctx, func(l *link) error {
		t, err := c.newTalk(l, f.session, f.yes)
		if err != nil {
			return err
		}
		t.print.Quiet = !isTerminal(c.err)
		t.person = t.person && !t.print.Quiet
		if t.person {
			t.lines = readLines(c.in)
		}
		out, err := t.once(ctx, f)
		return c.answer(out, err, f.json)
	})
}

// answer prints what was answered.
func (c *console) answer(out answered, err error, asJSON bool) error {
	if !asJSON {
		if err == nil && out.Text != "" {
			fmt.Fprintln(c.out, strings.TrimRight(ansi.Clean(out.Text), "\n"))
		}
		return err
	}
	if err != nil {
		out.Error = said(err)
	}
	if perr := c.printJSON(out); perr != nil {
		return perr
	}
	if err != nil && !errors.Is(err, errInterrupted) {
		return errReported
	}
	return err
}

// printJSON prints v as one indented object.
func (c *console) printJSON(v any) error {
	e := json.NewEncoder(c.out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// once has one message answered, deals with what asks meanwhile, and stops the
// run when the person or the time says so.
func (t *talk) once(ctx context.Context, f agentFlags) (answered, error) {
	signal.Notify(t.stop, os.Interrupt)
	defer signal.Stop(t.stop)
	run := rand.Text()
	t.feed.Own(run)
	out := answered{RunID: run, Session: t.session}

	var timeout <-chan time.Time
	if f.timeout > 0 {
		timeout = time.After(f.timeout)
	}
	var res wire.AgentResult
	done := make(chan error, 1)
	go func() {
		p := wire.AgentRun{Message: f.message, IdempotencyKey: run, SessionKey: t.session, Thinking: f.think}
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
			return out, fmt.Errorf("no answer in %v: the run was stopped", f.timeout)
		case <-t.stop:
			t.abort(ctx, run)
			return out, errInterrupted
		case <-ctx.Done():
			return out, errInterrupted
		}
	}
}

// aside shows what happens on the way to the answer.
func (t *talk) aside(ctx context.Context, e wire.Event) error {
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
func (t *talk) abort(ctx context.Context, run string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_, _ = t.link.Abort(ctx, t.session, run) // we leave in any case
}

// with returns a with the result of its run.
func (a answered) with(r wire.AgentResult) answered {
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
