// Package talk is a conversation in lines: what is typed is answered in turn,
// what asks for approval is asked of who sits there, and an interrupt stops what
// is in progress.
package talk

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/tui/ansi"
	"github.com/chela-ai/chela/internal/tui/attach"
	"github.com/chela-ai/chela/internal/tui/feed"
	"github.com/chela-ai/chela/internal/tui/lines"
	"github.com/chela-ai/chela/wire"
)

// Errors of a conversation.
var (
	// ErrInterrupted says that the person stopped it.
	ErrInterrupted = errors.New("interrupted")
	// ErrReported is a failure of which everything is said already.
	ErrReported = errors.New("reported")
)

// Options is what a conversation is made of.
type Options struct {
	Client  *client.Client
	Session string        // its whole key
	Yes     bool          // allow what asks
	Person  bool          // somebody sits there and can be asked
	Prompt  bool          // and is invited to type
	Lines   <-chan string // what is typed; closed at the end of input
	Print   lines.Printer // where it is shown
}

// Talk is a conversation in lines. Use [New].
type Talk struct {
	link    *client.Client
	session string
	feed    *feed.Feed
	print   lines.Printer
	yes     bool
	lines   <-chan string
	person  bool
	invite  bool
	stop    chan os.Signal  // interrupts
	asked   []wire.Approval // that wait for an answer
	last    time.Time       // of the last interrupt
}

// New begins a conversation.
func New(o Options) *Talk {
	return &Talk{
		link: o.Client, session: o.Session, feed: feed.New(o.Session), print: o.Print, yes: o.Yes, lines: o.Lines,
		person: o.Person, invite: o.Person && o.Prompt, stop: make(chan os.Signal, 1),
	}
}

// Lines gives the lines of r and is closed at its end. It ends with the
// process: a read from a terminal cannot be stopped.
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

// Run has each line answered in turn, until the input ends or somebody says
// /quit. It fails when the last message was not answered.
func (t *Talk) Run(ctx context.Context) error {
	signal.Notify(t.stop, os.Interrupt)
	defer signal.Stop(t.stop)
	var failed error
	for {
		line, ok, err := t.next(ctx)
		if err != nil {
			return err
		}
		if !ok {
			return failed
		}
		switch strings.TrimSpace(line) {
		case "":
			continue
		case "/quit", "/exit":
			return failed
		}
		failed = nil
		if err := t.answer(ctx, line); err != nil {
			if !errors.Is(err, ErrReported) {
				return err
			}
			failed = err
		}
	}
}

// prompt invites a person to type.
func (t *Talk) prompt(s string) {
	if t.invite {
		fmt.Fprint(t.print.Err, t.print.Styles.Accent.Paint(s))
	}
}

// next waits for a line while nothing is in progress. While something is asked,
// a line is the answer to that.
func (t *Talk) next(ctx context.Context) (string, bool, error) {
	events, asking := t.link.Events(), true
	for {
		lines := t.lines
		if len(t.asked) > 0 {
			lines = nil
		} else if asking {
			t.prompt("› ")
		}
		asking = len(t.asked) > 0
		select {
		case line, ok := <-lines:
			return line, ok, nil
		case line, ok := <-t.decisions():
			if err := t.decide(ctx, line, ok); err != nil || !ok {
				return "", false, err
			}
		case e, ok := <-events:
			if !ok {
				return "", false, t.link.Err()
			}
			for _, s := range t.feed.Take(e) {
				if err := t.approve(ctx, s); err != nil {
					return "", false, err
				}
			}
		case <-t.stop:
			return "", false, ErrInterrupted
		case <-ctx.Done():
			return "", false, ErrInterrupted
		}
	}
}

// attempts is how often in a row connecting may fail before a conversation in
// lines ends: nobody may be there to end it.
const attempts = 12

// answer sends a message and shows what happens until it is answered.
func (t *Talk) answer(ctx context.Context, line string) error {
	text, files, err := attach.Line(line)
	if err != nil {
		fmt.Fprintln(t.print.Err, t.print.Styles.Bad.Paint("✗ not sent: "+ansi.Line(err.Error())))
		return ErrReported
	}
	run := rand.Text()
	t.feed.Own(run)
	if _, err := t.link.Chat(ctx, wire.ChatSend{SessionKey: t.session, Message: text, Attachments: files, IdempotencyKey: run}); err != nil {
		return err
	}
	return t.await(ctx, run)
}

// await shows what happens until the run has ended.
func (t *Talk) await(ctx context.Context, run string) error {
	for {
		select {
		case e, ok := <-t.link.Events():
			if !ok {
				return t.link.Err()
			}
			if done, err := t.event(ctx, run, e); done || err != nil {
				return err
			}
		case line, ok := <-t.decisions():
			if err := t.decide(ctx, line, ok); err != nil {
				return err
			}
		case <-t.stop:
			if time.Since(t.last) < 2*time.Second {
				return ErrInterrupted
			}
			t.last = time.Now()
			if _, err := t.link.Abort(ctx, t.session, ""); err != nil {
				return err
			}
		case <-ctx.Done():
			return ErrInterrupted
		}
	}
}

// event shows what an event tells and reports whether it ended the run.
func (t *Talk) event(ctx context.Context, run string, e wire.Event) (bool, error) {
	switch e.Name {
	case client.EventLost:
		var o client.Outage
		if e.Decode(&o) == nil && o.Attempt == 0 {
			t.print.Warn("connection lost; connecting again")
		} else if o.Attempt == attempts {
			return false, errors.New(o.Reason)
		}
	case client.EventReset:
		t.feed.Rejoin()
		return t.missed(ctx, run)
	}
	for _, s := range t.feed.Take(e) {
		if done, err := t.take(ctx, run, s); done || err != nil {
			return done, err
		}
	}
	return false, nil
}

// take shows a step and reports whether it ended the run.
func (t *Talk) take(ctx context.Context, run string, s feed.Step) (bool, error) {
	if err := t.approve(ctx, s); err != nil {
		return false, err
	}
	if s.Run != run && s.Kind == feed.Ended && s.End.Text == "" {
		return false, nil // of somebody else, or absorbed by this one
	}
	t.print.Step(s)
	if s.Kind != feed.Ended || s.Run != run {
		return false, nil
	}
	if s.End.State != wire.StateFinal {
		return true, ErrReported
	}
	return true, nil
}

// missed reports whether the run ended while there was no connection, and
// shows its answer.
func (t *Talk) missed(ctx context.Context, run string) (bool, error) {
	var w wire.Waited
	if err := t.link.Repeat(ctx, wire.MethodAgentWait, wire.AgentWait{RunID: run, TimeoutMs: 1}, &w); err != nil {
		return false, err
	}
	if w.Status == wire.StatusTimeout {
		return false, nil
	}
	end := feed.End{State: wire.StateFinal, Error: w.Error}
	if w.Status != wire.StatusOK {
		end.State = wire.StateError
	}
	if w.Reply != nil {
		end.Text = w.Reply.Text
	}
	return t.take(ctx, run, feed.Step{Kind: feed.Ended, Run: run, End: end})
}

// approve deals with a call that asks: it is allowed when everything is, shown
// to a person when there is one, and refused otherwise, since nobody else will
// answer for this run.
func (t *Talk) approve(ctx context.Context, s feed.Step) error {
	switch {
	case s.Kind == feed.Decided:
		t.settled(s.Approval.ID, s.Text)
		return nil
	case s.Kind != feed.Asked:
		return nil
	case t.yes && s.Approval.Request.SessionKey == t.session:
		t.print.Note("allowed (--yes): " + ansi.Line(s.Approval.Request.Command))
		return t.resolve(ctx, s.Approval.ID, wire.AllowOnce)
	case t.person:
		t.asked = append(t.asked, s.Approval)
		if len(t.asked) == 1 {
			t.question()
		}
		return nil
	case t.feed.Owns(s.Run):
		t.print.Warn("refused, nobody is here to be asked (--yes allows): " + ansi.Line(s.Approval.Request.Command))
		return t.resolve(ctx, s.Approval.ID, wire.Deny)
	}
	return nil
}

// settled forgets a question that was answered elsewhere: what is typed next is
// no answer to it.
func (t *Talk) settled(id, decision string) {
	for i, a := range t.asked {
		if a.ID != id {
			continue
		}
		if i == 0 {
			fmt.Fprintln(t.print.Err)
		}
		t.print.Note("decided elsewhere: " + ansi.Line(decision))
		t.asked = append(t.asked[:i], t.asked[i+1:]...)
		if i == 0 && len(t.asked) > 0 {
			t.question()
		}
		return
	}
}

// question shows the first call that waits for the person.
func (t *Talk) question() {
	t.print.Line()
	r, p := t.asked[0].Request, t.print.Styles
	fmt.Fprintln(t.print.Err, p.Warn.Paint("? may "+ansi.Line(r.Tool)+" do this? ")+p.Dim.Paint(ansi.Line(r.Reason)))
	for line := range strings.Lines(ansi.Clean(r.Command)) {
		fmt.Fprintln(t.print.Err, "  "+strings.TrimRight(line, "\n"))
	}
	fmt.Fprint(t.print.Err, p.Warn.Paint(choices(r.Once)))
}

// decisions is where answers to a question come from; nil: there is none.
func (t *Talk) decisions() <-chan string {
	if len(t.asked) == 0 {
		return nil
	}
	return t.lines
}

// choices are the answers to a question; once, it is not allowed always.
func choices(once bool) string {
	if once {
		return "[y] once  [n] no: "
	}
	return "[y] once  [a] always  [n] no: "
}

// decision returns what a typed answer says; "": nothing.
func decision(line string, once bool) string {
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return wire.AllowOnce
	case "n", "no":
		return wire.Deny
	case "a", "always":
		if !once {
			return wire.AllowAlways
		}
	}
	return ""
}

// decide takes a typed answer. The end of input is a no.
func (t *Talk) decide(ctx context.Context, line string, ok bool) error {
	once := t.asked[0].Request.Once
	d := decision(line, once)
	switch {
	case !ok:
		t.person, t.lines, d = false, nil, wire.Deny
	case d == "":
		fmt.Fprint(t.print.Err, t.print.Styles.Warn.Paint(choices(once)))
		return nil
	}
	id := t.asked[0].ID
	t.asked = t.asked[1:]
	err := t.resolve(ctx, id, d)
	if len(t.asked) > 0 {
		t.question()
	}
	return err
}

// resolve decides a call. One that was decided meanwhile is no error.
func (t *Talk) resolve(ctx context.Context, id, decision string) error {
	err := t.link.Call(ctx, wire.MethodApprovalResolve, wire.ApprovalResolve{ID: id, Decision: decision}, nil)
	if e, ok := errors.AsType[*wire.Error](err); ok {
		t.print.Warn(ansi.Line(e.Message))
		return nil
	}
	return err
}

// Pending asks what was left unanswered before.
func (t *Talk) Pending(ctx context.Context) {
	var all []wire.Approval
	if !t.person || t.link.Call(ctx, wire.MethodApprovalList, wire.None{}, &all) != nil || len(all) == 0 {
		return
	}
	t.asked = all
	t.question()
}
