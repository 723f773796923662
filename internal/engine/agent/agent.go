package agent

import (
	"context"
	"time"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/tool"
)

// Request is the input of a run. A run may continue an earlier one: Open contains
// the calls of the last assistant message that have no result yet.
type Request struct {
	Model  llm.Provider
	Prompt llm.Request // Messages is the conversation, including the message to answer; the loop sets Tools
	Tools  Tools       // nil: none

	// Open are executed before the first model call. A result replaces the
	// placeholder for it in Prompt.Messages, if there is one.
	Open []llm.ToolCall

	// Steer returns the messages that arrived for the run since the last call,
	// oldest first. They are already in the transcript. It is called before each
	// sequential tool call, once before a parallel group, and before each model
	// call, but not while open calls are executed; nil: no messages arrive.
	Steer func(context.Context) ([]*llm.Message, error)

	// Fit is called before each model call with the conversation, and returns the one to
	// send from now on, which may be the same. An error ends the run as Failed. nil: the
	// conversation is sent as it is.
	Fit func(context.Context, []*llm.Message) ([]*llm.Message, error)

	// MaxRounds limits the rounds of tool calls, MaxCalls the single calls; 0: no
	// limit. At a limit the model is called once more, without tools, with a note
	// to answer now.
	MaxRounds int
	MaxCalls  int

	// EarlierRounds and EarlierCalls are those that the run made before it was
	// continued. They count towards the limits.
	EarlierRounds int
	EarlierCalls  int

	// ReadOnlyFirst withholds tools that do more than read from the first
	// model call, because the outcome of an earlier call is unknown.
	ReadOnlyFirst bool
}

// Tools executes the tool calls of a run. Implementations are safe for concurrent
// use.
type Tools interface {
	// Specs returns the tools as they are described to the model, sorted by name;
	// only tools that read if readOnly is set.
	Specs(readOnly bool) []llm.ToolSpec
	// Parallel reports whether the call may overlap with other parallel calls.
	Parallel(llm.ToolCall) bool
	// Invoke executes a call. A failure of the tool is a result. Errors are that
	// of ctx, tool.ErrSuspended, and tool.ErrStop (with a result). After any
	// other error the run ends as Failed, and the call has no result.
	Invoke(ctx context.Context, c llm.ToolCall, update func(string)) (tool.Result, error)
}

// Turner is an optional interface of Tools. Turn is called when a model call
// starts; the tool calls that it requests are one batch.
type Turner interface {
	Turn()
}

// Kind is the kind of an event.
type Kind int

// The kinds of events.
const (
	TurnStart Kind = iota + 1 // a model call starts; Round counts from 1
	Text                      // Delta is new text of the answer
	Thinking                  // Delta is new thinking
	// the deltas of this turn are void and the answer starts again; Usage is that of an empty answer
	Restarted
	Assistant  // Message is complete; Usage is that of the model call
	Steered    // Messages were added to the run
	ToolStart  // Call starts
	ToolUpdate // Delta is new output of Call
	ToolEnd    // Call, with the arguments that were used, has Result
	End        // the last event
	Spent      // a model call ended without an answer; Usage is its usage
)

// Event is one step of a run.
type Event struct {
	Kind     Kind
	Round    int
	Delta    string
	Message  *llm.Message
	Messages []*llm.Message
	Usage    llm.Usage
	Call     llm.ToolCall
	Result   *llm.Message // on ToolEnd: the result of Call, as the model gets it
	Details  []byte       // on ToolEnd: for surfaces
	Ran      []byte       // on ToolEnd: the arguments that were used, if they differ from the requested ones
	Duration time.Duration
	Skipped  bool // on ToolEnd: Call was not executed
	Partial  bool // on Assistant: truncated by an abort; Message has the text so far and no calls

	// On Assistant, on Spent, and on Restarted with a Usage, if another model than
	// the requested one answered: that model and the failed attempts.
	By    *llm.Model
	Tried []llm.Attempt
	Note  string // on Assistant: a notice for the person about the answer

	Reason Reason // on End
	Err    error  // on End: the cause if Reason is Failed, Stopped or Aborted
}

// Reason is the reason why a run ended.
type Reason string

// The reasons.
const (
	Done      Reason = "done"      // the model answered; the last Assistant event has the text
	Suspended Reason = "suspended" // a call waits for a decision
	Yielded   Reason = "yielded"   // the run waits for its children, see tool.Result.Yield
	Stopped   Reason = "stopped"   // tool.ErrStop: a budget is spent or a loop was detected
	Aborted   Reason = "aborted"   // ctx ended
	Failed    Reason = "failed"    // a model call or the ledger failed; Err is often an *llm.Error
)

// Texts that the loop writes.
const (
	// SkippedText is the result of calls that a person's message cancelled.
	SkippedText = "Skipped due to queued user message."
	// OvertakenText is the result of calls before which only events arrived, such as the
	// result of a subagent.
	OvertakenText = "Not run: the event below arrived first. Call the tool again if it is still needed."
	// OverLimitText is the result of calls beyond Request.MaxCalls.
	OverLimitText = "Not run: the limit of tool calls for this turn is reached."
	// NoToolsText is the result of calls in a run without tools.
	NoToolsText = "Not run: no tools are available here."
	// NotRunText is the result of calls after one that stopped the run.
	NotRunText = "Not run: the turn was stopped."
	// CutText is the result of calls in an answer that reached the output limit.
	CutText = "Not run: your answer was cut off by the output limit, so a part of it is missing, and nothing of it was run. Send it again in smaller parts, for example a long file in several calls."
	// RefusedText is the result of calls in an answer that the service ended.
	RefusedText = "Not run: the service refused to go on with your answer, so a part of it is missing, and nothing of it was run."
	// WithheldText is the result of calls that Request.ReadOnlyFirst withheld.
	WithheldText = "Not run: the outcome of an earlier call is unknown, so only tools that read are available now. Check the current state first, then call the tool again if it is still needed."
)
