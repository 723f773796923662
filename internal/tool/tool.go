package tool

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/llm"
)

// Effect says what a call can do to the world.
type Effect int

// The effects, rising.
const (
	Reads  Effect = iota // observes; may be repeated at any time
	Writes               // changes files of the workspace or state of Chela
	Acts                 // does something that cannot be seen from here: runs a command, sends, spends
)

// String returns "reads", "writes" or "acts".
func (e Effect) String() string {
	return [...]string{"reads", "writes", "acts"}[min(max(e, 0), 2)]
}

// Spec describes a tool.
type Spec struct {
	Name        string          // lower case, unique in a set
	Label       string          // short name for people: "Run command"
	Description string          // for the model
	Schema      json.RawMessage // JSON Schema (2020-12) of the arguments: an object schema
	Effect      Effect          // of a call, unless a Plan says otherwise
	Parallel    bool            // calls may overlap with other parallel calls
	OwnerOnly   bool            // only for principals that hold every scope
	// Aliases are other names of arguments that models use for this tool: "dir" →
	// "path". An alias is taken when its target is absent. The door knows itself
	// what differs in case, dashes and underscores, and what models say to every
	// tool: file_path, old_text, chat_id.
	Aliases map[string]string
	// Volatile are keys of Result.Details that differ between equal outcomes
	// (durations, process ids): loop detection leaves them out.
	Volatile []string
}

// Call is one use of a tool.
type Call struct {
	ID      string
	Args    json.RawMessage // valid against the schema
	Agent   chela.AgentID
	Session chela.SessionKey
	Run     chela.RunID
	Dir     string       // the agent's workspace, absolute
	Plan    *Plan        // what the tool's Planner said, when it is one
	Update  func(string) // new output while the call runs; never nil, may be called from any goroutine

	// Offered reports whether the run has a tool; nil: it has all.
	Offered func(name string) bool
}

// Result is what a call gave.
type Result struct {
	Content []llm.Part      // text and images for the model
	Details json.RawMessage // for surfaces; never sent to a model; nil: none
	IsError bool
	// Args is what the tool was run with when that is not what was asked for.
	// The door sets it.
	Args json.RawMessage
}

// Text returns a result of one text part.
func Text(s string) Result { return Result{Content: []llm.Part{llm.Text(s)}} }

// Tool is something that a model can call.
//
// Run is safe for concurrent use, honours ctx, and leaves nothing running when
// it returns but what its result says. An error is told to the model as the call's result, except ctx's
// own error, which means that the run was aborted.
type Tool interface {
	Spec() Spec
	Run(ctx context.Context, c Call) (Result, error)
}

// Planner is a Tool that says first what it would do.
//
// Plan changes nothing and is repeatable. An error is the call's result: the
// tool is not run.
type Planner interface {
	Plan(ctx context.Context, c Call) (Plan, error)
}

// Plan says exactly what a call would do.
type Plan struct {
	Effect Effect
	Ask    bool   // a person must allow it first
	Deny   string // why it is never run; empty: it may be
	Reason string // why a person is asked
	Text   string // the whole plan for people, never cut
	Hash   string // identifies the plan; an approval is bound to it
	Once   bool   // an approval holds for this call alone, and is never remembered
	Alone  bool   // it may run without an answer where there is nobody to ask
	Value  any    // the tool's own resolved plan, for Run
}

// Errors of a call that the door and the loop branch on.
var (
	// ErrSuspended says that the call waits for a decision: it has no result
	// yet, the other calls of its group end, and the run stops.
	ErrSuspended = errors.New("the call waits for an approval")
	// ErrStop says that the run must end now: a budget is spent or a loop was
	// detected twice. The call has a result.
	ErrStop = errors.New("the run must end")
)
