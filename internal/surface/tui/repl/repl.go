// Package repl is the line-based conversation: it reads messages line by line,
// prints the answers, asks for approvals, and stops the current run on an
// interrupt. It is used without a terminal and with chat --plain.
package repl

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
	"github.com/chela-ai/chela/internal/surface/tui/attach"
	"github.com/chela-ai/chela/internal/surface/tui/feed"
	"github.com/chela-ai/chela/wire"
)

// Errors of a conversation.
var (
	// ErrInterrupted reports that the person stopped the conversation.
	ErrInterrupted = errors.New("interrupted")
	// ErrReported is a failure that was already reported to the person.
	ErrReported = errors.New("reported")
)

// Options configures a conversation.
type Options struct {
	Client      *client.Client
	Session     string        // full session key
	Yes         bool          // allow every action that needs approval
	Interactive bool          // a person can answer questions
	Prompt      bool          // print a prompt; requires Interactive
	Input       <-chan string // lines that were typed; closed at the end of input
	Printer     Printer
	// Wait is how long to wait at the end of the input, without a person, for the results
	// of subagents. 0: not at all.
	Wait time.Duration
}

// Chat is a line-based conversation. Use [New]. One goroutine at a time may use it.
type Chat struct {
	client      *client.Client
	session     string
	feed        *feed.Feed
	printer     Printer
	yes         bool
	lines       <-chan string
	ended       bool     // the input has ended
	kept        []string // lines that were typed while no message was expected, in order
	single      bool     // only one message is sent, see Once
	interactive bool
	showPrompt  bool
	stop        chan os.Signal  // interrupts
	asked       []wire.Approval // unanswered, in order
	last        time.Time       // time of the last interrupt

	wait    time.Duration
	running map[string]bool // runs of the session that have started and not ended
	held    []feed.Step     // of background work, to be told before the next message
}

// New returns a conversation.
func New(o Options) *Chat {
	c := &Chat{
		client: o.Client, session: o.Session, feed: feed.New(o.Session), printer: o.Printer, yes: o.Yes, lines: o.Input,
		interactive: o.Interactive, showPrompt: o.Interactive && o.Prompt, stop: make(chan os.Signal, 1),
		running: map[string]bool{},
	}
	if !o.Interactive {
		c.wait = o.Wait
	}
	return c
}

// Lines returns a channel with the lines of r, closed at its end. The reading
// goroutine may run until the process exits, because a read from a terminal
// cannot be canceled.
func Lines(r io.Reader) <-chan string {
	out := make(chan string)
	go func() {
		defer close(out)
		in := bufio.NewReader(r)
		for {
			s, err := in.ReadString('\n')
			if s != "" {
				out <- strings.TrimRight(s, "\r\n")
			}
			if err != nil {
				return
			}
		}
	}()
	return out
}

// Run sends each line and waits for its answer, until the input ends or the
// line is /quit. Results of background work are told between the answers. Without a
// person it waits for them at the end of the input. It returns an error if the last
// message was not answered, or if that wait took too long.
func (c *Chat) Run(ctx context.Context) error {
	signal.Notify(c.stop, os.Interrupt)
	defer signal.Stop(c.stop)
	var failed error
	for {
		line, ok, err := c.next(ctx)
		if err != nil {
			return err
		}
		if !ok {
			return cmp.Or(failed, c.awaitResults(ctx))
		}
		switch strings.TrimSpace(line) {
		case "":
			continue
		case "/quit", "/exit", "／quit", "／exit":
			return failed
		}
		failed = nil
		if err := c.answer(ctx, line); err != nil {
			if !errors.Is(err, ErrReported) {
				return err
			}
			failed = err
		}
	}
}

// prompt prints a prompt, if prompts are enabled.
func (c *Chat) prompt(s string) {
	if c.showPrompt {
		fmt.Fprint(c.printer.Err, c.printer.Styles.Accent.Paint(s))
	}
}

// next waits for the next message. While an approval is pending, input lines may be
// answers to it instead.
func (c *Chat) next(ctx context.Context) (string, bool, error) {
	events, asking := c.client.Events(), true
	for {
		if len(c.asked) == 0 && (len(c.kept) > 0 || c.ended) {
			line, ok := c.Kept()
			if ok {
				c.prompt("› ")
				c.echo(line)
			}
			c.tellHeld()
			return line, ok, nil
		}
		lines := c.lines
		if len(c.asked) > 0 {
			lines = nil
		} else if asking {
			c.prompt("› ")
		}
		asking = len(c.asked) > 0
		select {
		case line, ok := <-lines:
			c.tellHeld()
			return line, ok, nil
		case line, ok := <-c.decisions():
			if err := c.decide(ctx, line, ok); err != nil {
				return "", false, err
			}
		case e, ok := <-events:
			if !ok {
				return "", false, c.client.Err()
			}
			if _, err := c.background(ctx, e); err != nil {
				return "", false, err
			}
		case <-c.stop:
			return "", false, ErrInterrupted
		case <-ctx.Done():
			return "", false, ErrInterrupted
		}
	}
}

// maxReconnects is how many attempts to reconnect may fail in a row. Then the
// conversation ends, since there may be no person to end it.
const maxReconnects = 12

// answer sends a message and shows the run until it ends.
func (c *Chat) answer(ctx context.Context, line string) error {
	text, files, err := attach.ParseLine(line)
	if err != nil {
		fmt.Fprintln(c.printer.Err, c.printer.Styles.Bad.Paint("✗ not sent: "+ansi.Line(err.Error())))
		return ErrReported
	}
	run := rand.Text()
	c.feed.Own(run)
	if _, err := c.client.Chat(ctx,
		wire.ChatSend{SessionKey: c.session, Message: text, Attachments: files, IdempotencyKey: run}); err != nil {
		return err
	}
	return c.await(ctx, run)
}

// await shows the run until it ends.
func (c *Chat) await(ctx context.Context, run string) error {
	for {
		select {
		case e, ok := <-c.client.Events():
			if !ok {
				return c.client.Err()
			}
			if done, err := c.event(ctx, run, e); done || err != nil {
				return err
			}
		case line, ok := <-c.typed():
			if err := c.decide(ctx, line, ok); err != nil {
				return err
			}
		case <-c.stop:
			if time.Since(c.last) < 2*time.Second {
				return ErrInterrupted
			}
			c.last = time.Now()
			if _, err := c.client.Abort(ctx, c.session, ""); err != nil {
				return err
			}
		case <-ctx.Done():
			return ErrInterrupted
		}
	}
}

// event handles an event and reports whether it ended the run.
func (c *Chat) event(ctx context.Context, run string, e wire.Event) (bool, error) {
	switch e.Name {
	case client.EventLost:
		var o client.Outage
		if e.Decode(&o) == nil && o.Attempt == 0 {
			c.printer.Warn("connection lost; reconnecting")
		} else if o.Attempt == maxReconnects {
			return false, errors.New(o.Reason)
		}
	case client.EventReset:
		c.feed.Reset()
		c.AskPending(ctx)
		return c.missed(ctx, run)
	}
	for _, s := range c.steps(e) {
		if done, err := c.show(ctx, run, s); done || err != nil {
			return done, err
		}
	}
	return false, nil
}

// steps returns the steps of an event, and notes which runs are in progress.
func (c *Chat) steps(e wire.Event) []feed.Step {
	steps := c.feed.Steps(e)
	for _, s := range steps {
		switch s.Kind {
		case feed.RunStarted:
			c.running[s.Run] = true
		case feed.RunEnded, feed.Suspended:
			delete(c.running, s.Run)
		}
	}
	return steps
}

// show shows a step and reports whether it ended the run.
func (c *Chat) show(ctx context.Context, run string, s feed.Step) (bool, error) {
	if err := c.approve(ctx, s); err != nil {
		return false, err
	}
	if s.Run != run && s.Kind == feed.RunEnded && s.End.Text == "" {
		return false, nil // a run of another client, or one that was merged into this run
	}
	c.printer.Step(s)
	if s.Kind != feed.RunEnded || s.Run != run {
		return false, nil
	}
	if s.End.State != wire.StateFinal || s.End.Stop == wire.StopUnable {
		return true, ErrReported
	}
	return true, nil
}

// missed reports whether a run, or the one that took the message with that id, has ended.
// It shows the answer if the event with it was missed.
func (c *Chat) missed(ctx context.Context, run string) (bool, error) {
	var w wire.AgentWaited
	if err := c.client.Repeat(ctx, wire.MethodAgentWait, wire.AgentWait{RunID: run, TimeoutMs: 1}, &w); err != nil {
		return false, err
	}
	if w.Status == wire.StatusTimeout {
		return false, nil
	}
	end := feed.End{State: wire.StateFinal, Error: w.Error, Stop: w.Stop}
	if w.Status != wire.StatusOK {
		end.State = wire.StateError
	}
	taken := cmp.Or(w.TakenBy, run)
	switch {
	case !c.feed.Ended(taken):
		c.feed.MarkEnded(taken) // the event of its end is no step any more
		delete(c.running, taken)
	case end.State == wire.StateError || end.Stop == wire.StopUnable:
		return true, ErrReported
	default:
		return true, nil
	}
	if w.Reply != nil {
		end.Text = w.Reply.Text
	}
	return c.show(ctx, run, feed.Step{Kind: feed.RunEnded, Run: run, End: end})
}

// approve handles approval requests. With Yes, a request of this session or of its
// subagents is allowed. Otherwise the person is asked if there is one; if not,
// requests of this client's runs and of their subagents are denied, because nobody
// would answer them.
func (c *Chat) approve(ctx context.Context, s feed.Step) error {
	switch {
	case s.Kind == feed.ApprovalResolved:
		c.decidedElsewhere(s.Approval.ID, s.Text)
		return nil
	case s.Kind != feed.ApprovalRequested:
		return nil
	case c.yes && (s.Approval.Request.SessionKey == c.session || s.Approval.Request.AskedKey == c.session):
		c.printer.Note("allowed (--yes): " + ansi.Line(s.Approval.Request.Command))
		return c.resolve(ctx, s.Approval.ID, wire.AllowOnce)
	case slices.ContainsFunc(c.asked, func(a wire.Approval) bool { return a.ID == s.Approval.ID }):
		return nil
	case c.interactive && !c.dropEarly():
		c.asked = append(c.asked, s.Approval)
		if len(c.asked) == 1 {
			c.question()
		}
		return nil
	case c.owns(s.Approval):
		why := "there is no terminal"
		if c.ended {
			why = "the input has ended"
		}
		c.printer.Warn("denied without asking: " + why + " (use --yes to allow): " + ansi.Line(s.Approval.Request.Command))
		return c.resolve(ctx, s.Approval.ID, wire.DenyUnasked)
	}
	return nil
}

// owns reports whether an approval is for a run of this client, or for a subagent that
// was started from one.
func (c *Chat) owns(a wire.Approval) bool {
	return c.feed.Owns(a.Request.RunID) || a.Request.RootRunID != "" && c.feed.Owns(a.Request.RootRunID)
}

// decidedElsewhere removes an approval that another client decided, so that the
// next line is not taken as the answer to it.
func (c *Chat) decidedElsewhere(id, decision string) {
	for i, a := range c.asked {
		if a.ID != id {
			continue
		}
		if i == 0 {
			fmt.Fprintln(c.printer.Err)
		}
		_, words := feed.Decided(decision)
		c.printer.Note("decided elsewhere: " + ansi.Line(words))
		c.asked = append(c.asked[:i], c.asked[i+1:]...)
		if i == 0 && len(c.asked) > 0 {
			c.question()
		}
		return
	}
}

// question shows the first pending approval.
func (c *Chat) question() {
	c.printer.Line()
	r, p := c.asked[0].Request, c.printer.Styles
	fmt.Fprintln(c.printer.Err, p.Warn.Paint("? "+ansi.Line(r.Tool)+" needs approval: ")+p.Dim.Paint(ansi.Line(r.Reason)))
	for line := range strings.Lines(ansi.Clean(r.Command)) {
		fmt.Fprintln(c.printer.Err, "  "+strings.TrimRight(line, "\n"))
	}
	fmt.Fprint(c.printer.Err, p.Warn.Paint(choices(r.Once)))
}

// typed returns the channel of lines that a person types while an answer is awaited; nil
// without a person, whose lines are messages for later.
func (c *Chat) typed() <-chan string {
	if !c.interactive {
		return nil
	}
	return c.lines
}

// decisions returns the channel of answers to an approval; nil if none is
// pending.
func (c *Chat) decisions() <-chan string {
	if len(c.asked) == 0 {
		return nil
	}
	return c.lines
}

// dropEarly says that a line was not sent that was typed before the first question about
// a single message: it was meant for what comes after this program. It reports whether
// the input has ended.
func (c *Chat) dropEarly() (ended bool) {
	if !c.single || len(c.asked) > 0 {
		return false
	}
	select {
	case line, ok := <-c.lines:
		if ok && strings.TrimSpace(line) != "" {
			c.printer.Warn("not sent, it was typed before the question: " + ansi.Line(line))
		}
		c.interactive = ok
		return !ok
	default:
		return false
	}
}

// Keep keeps a line that is no answer as a message for later.
func (c *Chat) Keep(line string) {
	if strings.TrimSpace(line) != "" {
		c.kept = append(c.kept, line)
	}
}

// Kept returns the first line that was typed while no message was expected, and forgets
// it.
func (c *Chat) Kept() (string, bool) {
	if len(c.kept) == 0 {
		return "", false
	}
	line := c.kept[0]
	c.kept = c.kept[1:]
	return line, true
}

// echo shows a line that is sent later than it was typed.
func (c *Chat) echo(line string) {
	if c.showPrompt {
		fmt.Fprintln(c.printer.Err, ansi.Line(line))
	}
}

// choices returns the possible answers. With once, those that last are not among
// them.
func choices(once bool) string {
	if once {
		return "[y] once  [n] no: "
	}
	return "[y] once  [s] this session  [a] always  [n] no: "
}

// parseDecision parses a typed answer. It returns "" if the answer is invalid.
func parseDecision(line string, once bool) string {
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return wire.AllowOnce
	case "n", "no":
		return wire.Deny
	case "s", "session":
		if !once {
			return wire.AllowSession
		}
	case "a", "always":
		if !once {
			return wire.AllowAlways
		}
	}
	return ""
}

// decide handles a typed line while no message is expected. A line that is no answer to a
// question is kept as a message. The end of input denies the request.
func (c *Chat) decide(ctx context.Context, line string, ok bool) error {
	if !ok {
		c.interactive, c.lines, c.ended = false, nil, true
		for _, a := range c.asked {
			if err := c.resolve(ctx, a.ID, wire.DenyUnasked); err != nil {
				return err
			}
		}
		c.asked = nil
		return nil
	}
	if len(c.asked) == 0 {
		c.Keep(line)
		return nil
	}
	once := c.asked[0].Request.Once
	d := parseDecision(line, once)
	if d == "" {
		if strings.TrimSpace(line) != "" && parseDecision(line, false) == "" {
			c.Keep(line)
			c.printer.Warn("not an answer, kept for later: " + ansi.Line(line))
		}
		fmt.Fprint(c.printer.Err, c.printer.Styles.Warn.Paint(choices(once)))
		return nil
	}
	id := c.asked[0].ID
	c.asked = c.asked[1:]
	err := c.resolve(ctx, id, d)
	if len(c.asked) > 0 {
		c.question()
	}
	return err
}

// resolve sends a decision. It is not an error if another client was faster.
func (c *Chat) resolve(ctx context.Context, id, decision string) error {
	err := c.client.Call(ctx, wire.MethodApprovalResolve, wire.ApprovalResolve{ID: id, Decision: decision}, nil)
	if e, ok := errors.AsType[*wire.Error](err); ok {
		c.printer.Warn(ansi.Line(e.Message))
		return nil
	}
	return err
}

// AskPending asks about approvals that are already pending, and drops questions that are
// not pending any more. With Yes, it allows those of this session and of its subagents
// instead.
func (c *Chat) AskPending(ctx context.Context) {
	var all []wire.Approval
	if c.client.Call(ctx, wire.MethodApprovalList, wire.None{}, &all) != nil {
		return
	}
	for _, old := range slices.Clone(c.asked) {
		if !slices.ContainsFunc(all, func(a wire.Approval) bool { return a.ID == old.ID }) {
			c.decidedElsewhere(old.ID, "while the connection was lost")
		}
	}
	for _, a := range all {
		if c.approve(ctx, feed.Step{Kind: feed.ApprovalRequested, Run: a.Request.RunID, Approval: a}) != nil {
			return // the connection is lost, which the conversation reports
		}
	}
}
