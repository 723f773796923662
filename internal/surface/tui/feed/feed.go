package feed

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/task"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
	"github.com/chela-ai/chela/internal/surface/tui/attach"
	"github.com/chela-ai/chela/wire"
)

// Kind says what a [Step] is.
type Kind int

// The kinds of steps.
const (
	UserMessage       Kind = iota + 1 // Text is a message that a person sent from another client
	RunStarted                        // a run starts or continues
	Thinking                          // Text is the complete thinking so far
	Text                              // Text is the complete message so far
	TextEnded                         // the message is complete; the next Text starts another one
	ToolStarted                       // Tool is set
	ToolOutput                        // Tool is set, Text is new output
	ToolEnded                         // Tool is set
	Suspended                         // the run waits for an approval
	Notice                            // Text is a notice for the person
	RunEnded                          // End is set
	ApprovalRequested                 // Approval is set
	ApprovalResolved                  // Approval is set, Text is the decision
	Stopping                          // the gateway is stopping; Text is the reason
	SessionChanged                    // Session is set: its model, label or size may have changed
	PlanChanged                       // Plan is set; without steps there is no plan any more
	SubagentChanged                   // Task is set: a subagent of the session
)

// Step is one step of a conversation.
type Step struct {
	Kind     Kind
	Run      string
	Text     string
	Tool     Tool
	End      End
	Approval wire.Approval
	Session  *wire.Session
	Plan     wire.Plan
	Task     wire.Task
}

// Tool is a tool call.
type Tool struct {
	ID     string
	Name   string
	Label  string // one-line description
	Output string // set by ToolEnded
	Failed bool   // the call, or the command that it ran
	Absent bool   // the call only looked for what does not exist, which is no failure
	Exit   string // how the command failed; "": it did not, or there is none
	Took   time.Duration
}

// Ended returns t with the result of the call.
func (t Tool) Ended(output string, failed bool, details json.RawMessage) Tool {
	t.Output, t.Exit = output, tool.CommandFailed(details)
	t.Failed = failed || t.Exit != ""
	if t.Failed && looks(t.Name) && strings.HasSuffix(t.Reason(), " does not exist") {
		t.Failed, t.Absent = false, true
	}
	return t
}

// looks reports whether a tool only looks.
func looks(name string) bool {
	return slices.Contains([]string{"read", "ls", "grep", "find", "memory_get"}, name)
}

// Decided returns the mark of a decision about an approval, and what it is called. An
// unknown one has no mark.
func Decided(decision string) (mark, words string) {
	switch decision {
	case wire.AllowOnce:
		return "✓", "allowed once"
	case wire.AllowSession:
		return "✓", "allowed for this session"
	case wire.AllowAlways:
		return "✓", "allowed always"
	case wire.Deny, wire.DenyUnasked:
		return "✗", "denied"
	case wire.ApprovalExpired:
		return "✗", "expired without an answer"
	case wire.ApprovalWithdrawn:
		return "✗", "withdrawn, the run was stopped"
	}
	return "", decision
}

// HeadLines is how many lines of output are shown of a command that failed.
const HeadLines = 3

// Head returns up to most of the first lines of the output of a command that failed, and
// the number of lines after them. What the tool adds for the model is not among them.
func (t Tool) Head(most int) (lines []string, more int) {
	text := strings.TrimRight(ansi.Clean(t.Output), "\n ")
	if i := strings.LastIndexByte(text, '\n') + 1; strings.HasPrefix(text[i:], "[") && strings.HasSuffix(text, "]") {
		text = strings.TrimRight(text[:i], "\n ")
	}
	for l := range strings.SplitSeq(text, "\n") {
		if strings.TrimSpace(l) != "" {
			lines = append(lines, l)
		}
	}
	n := min(most, len(lines))
	return lines[:n], len(lines) - n
}

// Reason returns why the call failed, on one line, as people are told.
func (t Tool) Reason() string {
	if t.Exit != "" {
		return t.Exit
	}
	return cmp.Or(tool.Reason(t.Output), "failed")
}

// End is how a run ended.
type End struct {
	State  string // wire.StateFinal, StateAborted, StateError
	Text   string // the complete answer; may be empty
	Error  string
	Model  string // the model that failed
	Stop   string // stop reason, such as wire.StopLimit
	Footer string
}

// Hint returns what a person can do about a run that failed; "": its error says it.
func (e End) Hint() string {
	if e.Stop == wire.StopLimit || strings.Contains(e.Error, "/retry") {
		return ""
	}
	return "the failed message is not run again: /retry sends it, /model chooses a model"
}

// Feed follows the events of one session.
type Feed struct {
	Session string // session key
	ID      string // id of the session that Seq belongs to
	Seq     int64  // sequence number of the last stored message seen

	own       map[string]bool  // runs whose messages were sent by this client
	ended     map[string]bool  // runs that have ended: their late events are no steps
	tools     map[string]Tool  // calls in progress, by their ids
	streaming map[string]bool  // runs with a message in progress
	lastSeq   map[string]int64 // last event that the history contains, by run
}

// New returns a Feed for the session with the given key.
func New(session string) *Feed {
	return &Feed{
		Session:   session,
		own:       map[string]bool{},
		ended:     map[string]bool{},
		tools:     map[string]Tool{},
		streaming: map[string]bool{},
		lastSeq:   map[string]int64{},
	}
}

// Own records that this client sent the message that starts the run, so that
// no UserMessage step is needed for it.
func (f *Feed) Own(run string) { f.own[run] = true }

// Owns reports whether this client sent the message that started the run.
func (f *Feed) Owns(run string) bool { return f.own[run] }

// Reset discards the progress of all runs. A restarted engine numbers events
// from the beginning.
func (f *Feed) Reset() {
	clear(f.lastSeq)
	clear(f.streaming)
	clear(f.tools)
}

// Ended reports whether the end of the run was seen.
func (f *Feed) Ended(run string) bool { return f.ended[run] }

// MarkEnded records that the run has ended and is shown completely.
func (f *Feed) MarkEnded(run string) { f.ended[run] = true }

// Resume records that the run is shown up to its event seq, and whether a
// message was in progress then.
func (f *Feed) Resume(run string, seq int64, open bool) {
	f.lastSeq[run] = seq
	if open {
		f.streaming[run] = true
	}
}

// Steps returns the steps of an event. Approvals of other sessions are
// included, because a person may decide them from any session.
func (f *Feed) Steps(e wire.Event) []Step {
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
		return decode(e, func(a wire.Approval) []Step {
			return []Step{{Kind: ApprovalRequested, Run: a.Request.RunID, Approval: a}}
		})
	case wire.EventApprovalResolved:
		return decode(e, func(a wire.ApprovalResolved) []Step {
			return []Step{{Kind: ApprovalResolved, Run: a.Request.RunID, Text: a.Decision, Approval: wire.Approval{ID: a.ID,
				Request: a.Request}}}
		})
	case wire.EventTask:
		return decode(e, f.task)
	case wire.EventProgressChanged:
		return decode(e, f.progress)
	case wire.EventShutdown:
		return decode(e, func(s wire.Shutdown) []Step { return []Step{{Kind: Stopping, Text: s.Reason}} })
	}
	return nil
}

// decode calls f with the payload. It ignores a payload that it cannot decode,
// which may come from a later protocol version.
func decode[T any](e wire.Event, f func(T) []Step) []Step {
	var v T
	if e.Decode(&v) != nil {
		return nil
	}
	return f(v)
}

func (f *Feed) chat(c wire.Chat) []Step {
	if c.SessionKey != f.Session || f.ended[c.RunID] {
		return nil
	}
	text := ""
	if c.Message != nil {
		text = c.Message.Text()
	}
	if c.State == wire.StateDelta {
		if c.Seq <= f.lastSeq[c.RunID] || text == "" && !f.streaming[c.RunID] {
			return nil
		}
		f.streaming[c.RunID] = true
		return []Step{{Kind: Text, Run: c.RunID, Text: text}}
	}
	f.ended[c.RunID] = true
	delete(f.streaming, c.RunID)
	end := End{State: c.State, Text: text, Error: c.ErrorMessage, Stop: c.Stop}
	if c.Message != nil {
		end.Footer = c.Message.Meta.Footer
	}
	if d := c.ErrorDetail; d != nil {
		end.Model = strings.Trim(d.Provider+"/"+d.Model, "/")
	}
	return []Step{{Kind: RunEnded, Run: c.RunID, End: end}}
}

// After returns what is left to show of an answer when a text has been shown: the
// paragraphs that follow it, or the whole answer if it does not begin with the text.
func After(shown, answer string) string {
	shown = strings.TrimSpace(shown)
	if rest, ok := strings.CutPrefix(strings.TrimSpace(answer), shown+"\n\n"); ok && shown != "" {
		return rest
	}
	return answer
}

func (f *Feed) agent(a wire.Agent) []Step {
	if a.SessionKey != f.Session || f.ended[a.RunID] || a.Seq <= f.lastSeq[a.RunID] && a.RunID != "" {
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
	case wire.StreamPlan:
		var p wire.Plan
		if json.Unmarshal(a.Data, &p) == nil {
			return []Step{{Kind: PlanChanged, Run: a.RunID, Plan: p}}
		}
	case wire.StreamNotice:
		var n wire.Notice
		if json.Unmarshal(a.Data, &n) == nil {
			return []Step{{Kind: Notice, Run: a.RunID, Text: n.Text}}
		}
	}
	return nil
}

func (f *Feed) lifecycle(run, phase string) []Step {
	switch phase {
	case wire.PhaseStart, wire.PhaseResume:
		return []Step{{Kind: RunStarted, Run: run}}
	case wire.PhaseModel:
		return f.close(run)
	case wire.PhaseSuspended:
		return append(f.close(run), Step{Kind: Suspended, Run: run})
	}
	return nil
}

// close ends the message in progress.
func (f *Feed) close(run string) []Step {
	if !f.streaming[run] {
		return nil
	}
	delete(f.streaming, run)
	return []Step{{Kind: TextEnded, Run: run}}
}

func (f *Feed) tool(run string, t wire.ToolStep) []Step {
	c, known := f.tools[t.CallID]
	if !known {
		c = Tool{ID: t.CallID, Name: t.Name, Label: chela.CallTitle(t.Name, "", t.Args)}
	}
	if t.Meta != "" {
		c.Label = t.Meta
	}
	switch t.Phase {
	case wire.PhaseStart:
		if known { // it was suspended for an approval
			return nil
		}
		f.tools[t.CallID] = c
		return append(f.close(run), Step{Kind: ToolStarted, Run: run, Tool: c})
	case wire.PhaseUpdate:
		return []Step{{Kind: ToolOutput, Run: run, Tool: c, Text: output(t.Partial)}}
	case wire.PhaseResult:
		delete(f.tools, t.CallID)
		var details json.RawMessage
		if t.Result != nil {
			details = t.Result.Details
		}
		c = c.Ended(output(t.Result), t.IsError, details)
		c.Took = time.Duration(t.Ms) * time.Millisecond
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

// message returns messages of other clients. The assistant's messages arrive as
// chat events.
func (f *Feed) message(m wire.SessionMessage) []Step {
	if m.SessionKey != f.Session {
		return nil
	}
	f.ID, f.Seq = m.SessionID, m.Seq
	run := RunOf(m.Message)
	if m.Message.Role != wire.RoleUser || f.own[run] {
		return nil
	}
	return []Step{{Kind: UserMessage, Run: run, Text: attach.Text(m.Message)}}
}

// RunOf returns the id of the run that a person's message started, or "" if it
// is unknown.
func RunOf(m wire.Message) string {
	run, _ := strings.CutSuffix(m.IdempotencyKey, ":user")
	return run
}

func (f *Feed) task(c wire.TaskChanged) []Step {
	if c.Task.Kind != string(task.Subagent) || c.Task.SessionKey != f.Session {
		return nil
	}
	return []Step{{Kind: SubagentChanged, Task: c.Task}}
}

// progress returns the end of a plan that another client removed. The plan of a run is in
// its own event.
func (f *Feed) progress(c wire.ProgressChanged) []Step {
	if c.SessionKey != f.Session || c.Revision != nil {
		return nil
	}
	return []Step{{Kind: PlanChanged}}
}

func (f *Feed) changed(c wire.SessionsChanged) []Step {
	if c.SessionKey != f.Session || c.Row == nil {
		return nil
	}
	steps := []Step{{Kind: SessionChanged, Session: c.Row}}
	if c.Reason == wire.ChangeReset {
		steps = append(steps, Step{Kind: PlanChanged})
	}
	return steps
}
