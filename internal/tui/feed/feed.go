package feed

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/tui/attach"
	"github.com/chela-ai/chela/wire"
)

// Kind says what a [Step] is.
type Kind int

// The kinds of steps.
const (
	Said      Kind = iota + 1 // a person wrote Text elsewhere
	Began                     // a run begins or goes on
	Thinking                  // Text is all of the thinking so far
	Text                      // Text is all of the message so far
	Closed                    // the message is complete; the next Text is another one
	ToolBegan                 // Tool is set
	ToolWrote                 // Tool is set, Text is new output
	ToolEnded                 // Tool is set
	Waits                     // the run waits for a decision
	Noticed                   // Text is a line for the person
	Ended                     // the run is over: End is set
	Asked                     // Approval is set
	Decided                   // Approval is set, Text is the decision
	Stopping                  // the gateway stops: Text says why
	Changed                   // the session's model, label or size may be another now: Session is set
)

// Step is something that happens in a conversation.
type Step struct {
	Kind     Kind
	Run      string
	Text     string
	Tool     Tool
	End      End
	Approval wire.Approval
	Session  *wire.Session
}

// Tool is a call of a tool.
type Tool struct {
	ID     string
	Name   string
	Label  string // one line for people
	Output string // on ToolEnded
	Failed bool
	Took   time.Duration
}

// Why returns the reason of a failure on one line, without the form that it is
// given to a model in.
func (t Tool) Why() string {
	var e struct {
		Error string `json:"error"`
	}
	why := strings.TrimSpace(t.Output)
	if json.Unmarshal([]byte(why), &e) == nil && e.Error != "" {
		why = e.Error
	}
	why, _, _ = strings.Cut(why, "\n")
	return why
}

// End is how a run ended.
type End struct {
	State   string // wire.StateFinal, StateAborted, StateError
	Text    string // the whole answer; empty when it says nothing
	Error   string
	Model   string // that failed
	Stop    string // why the run ended: wire.StopLimit, …
	Footer  string
	Command bool // the answer of a slash command
}

// Feed follows one session.
type Feed struct {
	Session string // its key
	Seq     int64  // of the last stored message that was seen

	mine  map[string]bool  // runs whose messages this surface shows itself
	known map[string]bool  // runs that have ended
	tools map[string]Tool  // calls in progress
	open  map[string]bool  // runs with a message in progress
	seen  map[string]int64 // up to which event a run is known
}

// New returns a Feed of the session with the key.
func New(session string) *Feed {
	return &Feed{Session: session, mine: map[string]bool{}, known: map[string]bool{}, tools: map[string]Tool{}, open: map[string]bool{}, seen: map[string]int64{}}
}

// Own says that the surface sent the message that the run answers, and shows
// it itself.
func (f *Feed) Own(run string) { f.mine[run] = true }

// Owns reports whether the surface sent the message that the run answers.
func (f *Feed) Owns(run string) bool { return f.mine[run] }

// Rejoin forgets how far runs are: another engine may count anew.
func (f *Feed) Rejoin() {
	clear(f.seen)
	clear(f.open)
	clear(f.tools)
}

// Over says that the surface has all of a run.
func (f *Feed) Over(run string) { f.known[run] = true }

// Resume says that the surface has what the run did up to its event seq, and
// whether a message was in progress then.
func (f *Feed) Resume(run string, seq int64, open bool) {
	f.seen[run] = seq
	if open {
		f.open[run] = true
	}
}

// Take returns what an event means for the conversation. Approvals of all
// sessions are part of it: whoever sits at a terminal may decide.
func (f *Feed) Take(e wire.Event) []Step {
	switch e.Name {
	case wire.EventChat:
		return decode(e, f.chat)
	case wire.EventAgent, wire.EventSessionTool:
		return decode(e, f.agent)
	case wire.EventSessionMessage:
		return decode(e, f.message)
	case wire.EventSessionsChanged:
		return decode(e, f.changed)
	case wire.EventApprovalRequested:
		return decode(e, func(a wire.Approval) []Step { return []Step{{Kind: Asked, Run: a.Request.RunID, Approval: a}} })
	case wire.EventApprovalResolved:
		return decode(e, func(a wire.ApprovalResolved) []Step {
			return []Step{{Kind: Decided, Run: a.Request.RunID, Text: a.Decision, Approval: wire.Approval{ID: a.ID, Request: a.Request}}}
		})
	case wire.EventShutdown:
		return decode(e, func(s wire.Shutdown) []Step { return []Step{{Kind: Stopping, Text: s.Reason}} })
	}
	return nil
}

// decode gives the payload to f; one that cannot be read is of a later version
// of the protocol.
func decode[T any](e wire.Event, f func(T) []Step) []Step {
	var v T
	if e.Decode(&v) != nil {
		return nil
	}
	return f(v)
}

func (f *Feed) chat(c wire.Chat) []Step {
	if c.SessionKey != f.Session || f.known[c.RunID] {
		return nil
	}
	text := ""
	if c.Message != nil {
		text = c.Message.Text()
	}
	if c.State == wire.StateDelta {
		if c.Seq <= f.seen[c.RunID] || text == "" && !f.open[c.RunID] {
			return nil
		}
		f.open[c.RunID] = true
		return []Step{{Kind: Text, Run: c.RunID, Text: text}}
	}
	f.known[c.RunID] = true
	delete(f.open, c.RunID)
	end := End{State: c.State, Text: text, Error: c.ErrorMessage, Stop: c.Stop}
	if c.Message != nil {
		end.Footer, end.Command = c.Message.Meta.Footer, c.Message.Meta.Kind == wire.KindCommand
	}
	if d := c.ErrorDetail; d != nil {
		end.Model = strings.Trim(d.Provider+"/"+d.Model, "/")
	}
	return []Step{{Kind: Ended, Run: c.RunID, End: end}}
}

func (f *Feed) agent(a wire.Agent) []Step {
	if a.SessionKey != f.Session || f.known[a.RunID] || a.Seq <= f.seen[a.RunID] {
		return nil
	}
	switch a.Stream {
	case wire.StreamLifecycle:
		var l wire.Lifecycle
		if json.Unmarshal(a.Data, &l) == nil {
			return f.lifecycle(a.RunID, l.Phase)
		}
	case wire.StreamThinking:
		var t wire.Assistant
		if json.Unmarshal(a.Data, &t) == nil {
			return []Step{{Kind: Thinking, Run: a.RunID, Text: t.Text}}
		}
	case wire.StreamTool:
		var t wire.ToolStep
		if json.Unmarshal(a.Data, &t) == nil {
			return f.tool(a.RunID, t)
		}
	case wire.StreamNotice:
		var n wire.Notice
		if json.Unmarshal(a.Data, &n) == nil {
			return []Step{{Kind: Noticed, Run: a.RunID, Text: n.Text}}
		}
	}
	return nil
}

func (f *Feed) lifecycle(run, phase string) []Step {
	switch phase {
	case wire.PhaseStart, wire.PhaseResume:
		return []Step{{Kind: Began, Run: run}}
	case wire.PhaseModel:
		return f.close(run)
	case wire.PhaseSuspended:
		return append(f.close(run), Step{Kind: Waits, Run: run})
	}
	return nil
}

// close ends the message in progress.
func (f *Feed) close(run string) []Step {
	if !f.open[run] {
		return nil
	}
	delete(f.open, run)
	return []Step{{Kind: Closed, Run: run}}
}

func (f *Feed) tool(run string, t wire.ToolStep) []Step {
	c, known := f.tools[t.CallID]
	if !known {
		c = Tool{ID: t.CallID, Name: t.Name, Label: chela.CallTitle(t.Name, t.Args)}
	}
	if t.Meta != "" {
		c.Label = t.Meta
	}
	switch t.Phase {
	case wire.PhaseStart:
		if known { // it waited for a decision
			return nil
		}
		f.tools[t.CallID] = c
		return append(f.close(run), Step{Kind: ToolBegan, Run: run, Tool: c})
	case wire.PhaseUpdate:
		return []Step{{Kind: ToolWrote, Run: run, Tool: c, Text: output(t.Partial)}}
	case wire.PhaseResult:
		delete(f.tools, t.CallID)
		c.Output, c.Failed, c.Took = output(t.Result), t.IsError, time.Duration(t.Ms)*time.Millisecond
		return append(f.close(run), Step{Kind: ToolEnded, Run: run, Tool: c})
	}
	return nil
}

func output(o *wire.ToolOutput) string {
	if o == nil {
		return ""
	}
	return attach.Text(wire.Message{Content: o.Content})
}

// message shows what others wrote; the assistant's messages come as text.
func (f *Feed) message(m wire.SessionMessage) []Step {
	if m.SessionKey != f.Session {
		return nil
	}
	f.Seq = m.Seq
	run := Sender(m.Message)
	if m.Message.Role != wire.RoleUser || f.mine[run] {
		return nil
	}
	return []Step{{Kind: Said, Run: run, Text: attach.Text(m.Message)}}
}

// Sender returns the run that a person's message began; "" when that is not
// known.
func Sender(m wire.Message) string {
	run, _ := strings.CutSuffix(m.IdempotencyKey, ":user")
	return run
}

func (f *Feed) changed(c wire.SessionsChanged) []Step {
	if c.SessionKey != f.Session || c.Row == nil {
		return nil
	}
	return []Step{{Kind: Changed, Session: c.Row}}
}
