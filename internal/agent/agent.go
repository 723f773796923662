package agent

import (
	"context"
	"time"

	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/internal/tool"
)

// Request is what a run needs. It may start anywhere in a run: Open are the
// calls of the last assistant message that have no result yet.
type Request struct {
	Model  llm.Provider
	Prompt llm.Request // Messages is the conversation so far, with the message to answer; Tools is set by the loop
	Tools  Tools       // nil: none

	// Open are carried out before the model is asked. A result takes the place
	// of the message that stands for it in Prompt.Messages, if there is one.
	Open []llm.ToolCall

	// Steer returns what arrived for the run since it was asked last, oldest
	// first; nil: nothing ever arrives. What it returns is in the transcript
	// already. It is asked before each sequential tool call, once before a
	// parallel group, and before each model call; while open calls are carried
	// out it is not asked.
	Steer func(context.Context) ([]*llm.Message, error)

	// MaxRounds bounds the rounds of tool calls, MaxCalls the single calls; 0:
	// no bound. At a bound the model is asked once more, without tools, with a
	// note to answer now.
	MaxRounds int
	MaxCalls  int

	// ReadOnlyFirst withholds tools that do more than read until one model
	// call has passed: the outcome of a call before this run is unknown.
	ReadOnlyFirst bool
}

// Tools is the tool door as the loop sees it. Implementations are safe for
// concurrent use.
type Tools interface {
	// Specs returns what the model is told of, sorted by name; only tools
	// that only read when readOnly is set.
	Specs(readOnly bool) []llm.ToolSpec
	// Parallel reports whether the call may overlap with other parallel calls.
	Parallel(llm.ToolCall) bool
	// Invoke carries a call out. A failure of the tool is a result; errors
	// are ctx's own, tool.ErrSuspended, and tool.ErrStop (with a result). Any
	// other error says that the run cannot go on: it ends as Failed, and the
	// call has no result.
	Invoke(ctx context.Context, c llm.ToolCall, update func(string)) (tool.Result, error)
}

// Turner is a Tools that is told when a model call begins: the calls that it
// asks for are one batch.
type Turner interface {
	Turn()
}

// Kind says what an event is.
type Kind int

// The kinds of events.
const (
	TurnStart  Kind = iota + 1 // a model call begins; Round counts from 1
	Text                       // Delta is new text of the answer
	Thinking                   // Delta is new thinking
	Restarted                  // the deltas of this turn are void, the answer begins again; Usage is what a void, empty answer used
	Assistant                  // Message is complete, Usage is what the call used
	Steered                    // Messages were taken into the run
	ToolStart                  // Call begins
	ToolUpdate                 // Delta is new output of Call
	ToolEnd                    // Call, with the arguments that were used, has Result
	End                        // the last event
	Spent                      // a model call ended without an answer; Usage is what it used all the same
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
	Result   *llm.Message // on ToolEnd: the message that answers Call, as it goes to the model
	Details  []byte       // on ToolEnd: for surfaces
	Ran      []byte       // on ToolEnd: the arguments that were used, when they are not those that were asked for
	Duration time.Duration
	Skipped  bool // on ToolEnd: Call was not run
	Partial  bool // on Assistant: cut by an abort; it holds what had arrived and no calls

	// On Assistant, on Spent, and on Restarted with a Usage, when another model
	// answered in place of the one that was asked: which, and who did not answer.
	By    *llm.Model
	Tried []llm.Attempt
	Note  string // on Assistant: what the person is to know of how the answer came about

	Reason Reason // on End
	Err    error  // on End: why, when Reason is Failed, Stopped or Aborted
}

// Reason says why a run ended.
type Reason string

// The reasons.
const (
	Done      Reason = "done"      // the model answered; the last Assistant event has the text
	Suspended Reason = "suspended" // a call waits for a decision
	Stopped   Reason = "stopped"   // tool.ErrStop: a budget is spent, or a loop
	Aborted   Reason = "aborted"   // ctx ended
	Failed    Reason = "failed"    // the model could not be asked; Err is often an *llm.Error
)

// Texts that the loop itself writes.
const (
	// SkippedText answers calls that a steering message made void.
	SkippedText = "Skipped due to queued user message."
	// LimitText is the note of the closing call.
	LimitText = "The limit of tool calls for this turn is reached. Answer now with what you have, and say what is missing."
	// OverLimitText answers calls of a group beyond Request.MaxCalls.
	OverLimitText = "Not run: the limit of tool calls for this turn is reached."
	// NoToolsText answers calls of a run that has no tools.
	NoToolsText = "Not run: there are no tools here."
	// NotRunText answers the calls that follow one that stopped the run.
	NotRunText = "Not run: the turn was stopped."
	// WithheldText answers calls of tools that Request.ReadOnlyFirst withheld.
	WithheldText = "Not run: until it is clear what happened before, only tools that read are available. Look first; ask again then if it is still needed."
)
