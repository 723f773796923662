package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/sandbox"
)

// Effect classifies what a call can change.
type Effect int

// The effects, in rising order.
const (
	Reads  Effect = iota // observes only; may be repeated at any time
	Writes               // changes files of the workspace or Chela's own state
	Acts                 // has an effect outside of Chela: runs a command, sends a message, spends money
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
	Effect      Effect          // of a call, unless its Plan has another one
	Parallel    bool            // calls may overlap with other parallel calls
	OwnerOnly   bool            // only for principals that hold every scope
	Plugin      string          // id of the plug-in that it belongs to; "": it is part of Chela
	Optional    bool            // the policy must name it, its plug-in or group:plugins

	// What the configuration, the rules and people know of the tool.
	Names     []string  // other names, in lists and in calls
	Groups    []string  // names that stand for it in lists, such as "group:fs"
	Profiles  []string  // profiles that contain it in addition to those of its groups
	With      string    // name of a tool; a list that allows that one allows this one too
	Sandboxed Sandboxed // whether sandboxed sessions have it
	Subagents Subagents // which subagents have it
	InRuns    bool      // clients can only call it if gateway.tools.allow names it
	Roles     []Role
	// Title returns what a call does in one line, for people, without the name of the
	// tool. nil: the main argument, see chela.CallTitle.
	Title func(args json.RawMessage) string

	// Keyed says that a call has its effect at most once per Call.ID: a second
	// Run with the same id changes nothing and returns the result of the first.
	// After a crash, such a call is repeated like one that only reads.
	Keyed bool

	// Aliases maps other argument names that models use for this tool to the
	// name in the schema, for example "dir" to "path". An alias applies when its
	// target is absent. The executor already accepts differences in case, dashes
	// and underscores, and common alternatives such as file_path, old_text and
	// chat_id.
	Aliases map[string]string
	// Volatile lists keys of Result.Details that differ between equal outcomes
	// (durations, process ids). Loop detection ignores them.
	Volatile []string
}

// Reading is the group of the tools of subagents that change nothing. The tools only
// read, or can be restricted to that (see Call.ReadOnly).
const Reading = "group:reading"

// Extra is the group of the tools that OpenClaw has from a plug-in, and that are part of Chela:
// group:openclaw does not contain them.
const Extra = "group:extra"

// Sandboxed says whether sandboxed sessions have a tool.
type Sandboxed int

// The values of Sandboxed.
const (
	IfListed Sandboxed = iota // only if a list of the sandbox contains it
	Inside                    // by default: the tool works inside the sandbox
	Outside                   // only if alsoAllow of the sandbox contains it: the tool has effects outside of the sandbox
)

// Subagents says which subagents have a tool.
type Subagents int

// The values of Subagents.
const (
	AllSubagents Subagents = iota
	Parents                // those that may start subagents
	NoSubagents
)

// Role is what other parts of Chela need a tool for. They look for a tool with the role, not
// for its name.
type Role string

// The roles.
const (
	RunsCommands    Role = "commands"
	FollowsCommands Role = "background commands" // reports on commands in the background, and ends them
	ReadsFiles      Role = "read files"
	WritesFiles     Role = "write files"
	PatchesFiles    Role = "patch files"
	TakesNotes      Role = "notes" // the model may use it to save notes before a compaction
	ChangesSettings Role = "settings"
	KeepsPlan       Role = "plan"
	StartsSubagents Role = "start subagents"
	LeadsSubagents  Role = "lead subagents" // lists, steers and ends them
	WritesSessions  Role = "write to sessions"
	SendsMessages   Role = "send messages" // to people or other sessions
	SearchesMemory  Role = "search memory"
	ReadsMemory     Role = "read memory"
)

// Has reports whether the tool has the role.
func (s *Spec) Has(r Role) bool { return slices.Contains(s.Roles, r) }

// In reports whether the tool belongs to the group.
func (s *Spec) In(group string) bool { return slices.Contains(s.Groups, group) }

// Call is one invocation of a tool.
type Call struct {
	ID      string          // unique in the store; see Spec.Keyed
	Args    json.RawMessage // valid against the schema
	Agent   chela.AgentID
	Session chela.SessionKey
	Run     chela.RunID
	Dir     string   // the agent's workspace, absolute
	Folder  string   // in Dir, where commands start; empty: Dir
	Plan    *Plan    // the plan that was allowed, for a Planner
	Rights  []string // rights beyond the tool's default ones, sorted; see Blocked
	// ReadOnly says that the plan is refused if its effect is not Reads.
	ReadOnly bool
	Private  bool         // only the person reads what comes of it, and not a group
	Awaited  bool         // somebody waits for the end of the run, and may read nothing after it
	Update   func(string) // reports new output while the call runs; never nil, safe for concurrent use

	Sandbox *sandbox.Session // the session's sandbox, whose Workspace is Dir; nil: the session is not sandboxed

	Exec run.Exec // restricts commands

	Env map[string]string // variables for a command, which hooks added

	// Room is the number of characters of text that the result may have; the middle of a
	// longer one is removed. 0: unlimited.
	Room int

	// HasTool reports whether the run has a tool with the name; nil: it has all.
	HasTool func(name string) bool
}

// Result is the outcome of a call.
type Result struct {
	Content []llm.Part      // text and images for the model
	Details json.RawMessage // for surfaces; never sent to a model; nil: none
	IsError bool
	// Yield suspends the run after the calls of the same message, until a child of the
	// run ends.
	Yield bool
	// Args are the arguments that were used, if a hook changed those of the
	// call. The executor sets it.
	Args json.RawMessage
}

// Text returns a result with one text part.
func Text(s string) Result { return Result{Content: []llm.Part{llm.Text(s)}} }

// Detailed returns a result of one text with details for clients. Details that
// cannot be encoded as JSON are omitted.
func Detailed(s string, details any) Result {
	r := Text(s)
	r.Details, _ = json.Marshal(details)
	return r
}

// CommandFailed returns how a command failed according to the details of a result, such as
// "exit code 1"; "": the result is of no command, or it did not fail. To the tool, a
// command that failed is no error: the model gets its output.
func CommandFailed(details json.RawMessage) string {
	var d struct {
		Code       *int   `json:"exitCode"`
		Signal     string `json:"signal"`
		ExitSignal string `json:"exitSignal"`
		TimedOut   bool   `json:"timedOut"`
	}
	if json.Unmarshal(details, &d) != nil || d.Code == nil {
		return ""
	}
	switch signal := cmp.Or(d.Signal, d.ExitSignal); {
	case d.TimedOut:
		return "timed out"
	case signal != "":
		return "ended by " + signal
	case *d.Code != 0:
		return fmt.Sprintf("exit code %d", *d.Code)
	}
	return ""
}

// Tool is a function that a model can call.
//
// Run is safe for concurrent use and honors ctx. When it returns, nothing
// continues to run except what its result names. An error becomes the result
// that the model sees, with two exceptions: ctx's own error means that the run
// was aborted, and see [Blocked].
type Tool interface {
	Spec() Spec
	Run(ctx context.Context, c Call) (Result, error)
}

// Planner is a Tool that describes a call before it runs.
//
// Plan has no side effects and returns the same plan for the same call. If it
// returns an error, that is the result of the call and the tool is not run.
type Planner interface {
	Plan(ctx context.Context, c Call) (Plan, error)
}

// Plan describes exactly what a call would do.
type Plan struct {
	Effect     Effect
	Ask        bool          // a person must approve it first
	Deny       string        // why it must not run; empty: it may
	Reason     string        // why a person is asked
	Text       string        // the complete plan for people, never truncated
	Hash       string        // identifies the plan, with the call's rights; an approval is bound to it
	Rights     []string      // Call.Rights that an approval grants; set by the executor
	Once       bool          // an approval is valid for this call only and is not remembered
	Wait       time.Duration // until the request for the approval expires; 0: the usual time
	Ran        string        // the result of the call without Rights, if it ran before; set by the executor
	Unattended bool          // it may run without an approval where nobody can be asked
	Value      any           // the tool's own resolved plan, for Run
}

// Errors of a call that the executor and the agent loop branch on.
var (
	// ErrSuspended says that the call waits for a decision: it has no result
	// yet, the other calls of its group end, and the run stops.
	ErrSuspended = errors.New("the call waits for an approval")
	// ErrStop says that the run must end now because a budget is spent or a loop
	// was detected twice. The call has a result.
	ErrStop = errors.New("the run must end")
)

// Blocked is an error that Run returns when a missing right stopped the call,
// for example when the sandbox refused access to a host.
//
// If Again is set and the tool is a [Planner], the executor plans the call again
// with Rights added to Call.Rights. The new plan must have another hash. A
// person is asked to approve it: the call moves from started to waiting, and
// once approved it runs again with these rights. In all other cases the call
// ends with an error result.
type Blocked struct {
	Rights []string // the missing rights, in the tool's own notation
	Again  bool     // the call can be repeated from its beginning
	Ran    string   // what the call did and returned until it was stopped; empty: nothing
}

// Error returns a text that names the missing rights.
func (b *Blocked) Error() string {
	return "blocked: the call needs " + strings.Join(b.Rights, ", ")
}
