package invoke

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chela-ai/chela/internal/core/approval"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/hook"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/policy"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/core/usage"
)

// Options configures an Executor. The zero value works.
type Options struct {
	Log   *slog.Logger // nil: nothing is logged
	Hooks *hook.Points // nil: there are none
	// Redact removes known secrets from results; nil: results are not changed.
	Redact func(string) string
	// StoreImage stores an image of a result and returns a part that refers to
	// it; nil: results contain their images.
	StoreImage func(llm.Part) llm.Part
	// StoreOutput stores the text of a result that is too long to be sent, and
	// returns a reference to it; nil: the middle of such a text is lost.
	StoreOutput func(text string) (ref string, err error)
}

// Ledger records the calls of one run on disk. It is safe for concurrent use.
type Ledger interface {
	// Call returns the record of the call as it was when the run was started or
	// resumed, with its id and the rights it was granted.
	Call(c llm.ToolCall) (session.Call, error)
	// Start records that the call is about to have the effect. It is not called
	// for calls that can be repeated, unless they were approved. A
	// chela.CodeConflict error says that the call must not start.
	Start(ctx context.Context, c llm.ToolCall, e tool.Effect) error
	// Decision returns the call's approval request; the zero Request if there is
	// none.
	Decision(ctx context.Context, c llm.ToolCall) (approval.Request, error)
	// Always reports whether a plan with this hash is always allowed.
	Always(ctx context.Context, toolName, hash string) (bool, error)
	// Suspend requests an approval of the plan, for a call that has not started or
	// one that was blocked after it started. The record gets the plan's rights.
	Suspend(ctx context.Context, c llm.ToolCall, p tool.Plan) error
	// Ended takes the outcome of the call, which must be on disk no later than
	// its result. It is not called for a suspended call.
	Ended(c llm.ToolCall, o session.Outcome)
}

// Scope says for whom a View executes calls, and under which rules.
type Scope struct {
	Agent      chela.AgentID
	Session    chela.SessionKey
	Run        chela.RunID              // empty: a single call, without loop detection
	Dir        string                   // the agent's workspace, absolute
	Folder     string                   // in Dir, where commands start; empty: Dir
	Sandbox    *sandbox.Session         // nil: the session is not sandboxed
	Exec       run.Exec                 // restricts commands
	Env        func() map[string]string // variables of commands outside of a sandbox, called for each; nil: none
	Principal  chela.Principal          // the zero Principal may use no tool
	Requester  *hook.Requester          // the Principal, for hooks
	Transcript string                   // id of the transcript, for hooks
	Tools      tool.Set
	Policy     policy.Pipeline // which of the tools are allowed; the zero Pipeline: all
	// that the model is told of; calls of those that are not allowed are refused; nil: the allowed
	// ones
	Shown *tool.Set
	// what the model is told of a call of a tool that is in Shown and not allowed; "": that only its
	// requester may use it
	Withheld   string
	Budget     usage.Budget
	Loop       LoopOptions
	Ledger     Ledger           // nil: nothing is recorded, and calls that need an approval are denied
	ReadOnly   bool             // calls that could change something are refused
	Private    bool             // only the person reads the answer
	Awaited    bool             // somebody waits for the end of the run, and may read nothing after it
	Unattended bool             // nobody can be asked: calls that need an approval are denied
	Started    time.Time        // start of the run, for its time budget
	Spent      func() usage.Sum // usage of the run's model calls so far; nil: none
	Earlier    int              // calls that the run made before this process carried it out
	MaxResult  int              // maximum length of a result in characters; 0: 64,000
}

// Executor is the only way to run a tool. It is safe for concurrent use.
type Executor struct {
	log        *slog.Logger
	hooks      *hook.Points
	redact     func(string) string // never nil
	storeImage func(llm.Part) llm.Part

	storeOutput func(text string) (string, error)

	schemas schemas
	specs   atomic.Pointer[specCache]

	mu     sync.Mutex
	logged map[chela.AgentID]string // tools that the policy last removed, as logged
	runs   map[chela.RunID]*runState
	order  []chela.RunID // keys of runs, oldest first
}

// maxRuns is the number of runs whose state an Executor retains. The counters of
// an older run start from zero again.
const maxRuns = 1024

// New returns an Executor.
func New(o Options) *Executor {
	x := &Executor{
		log: o.Log, redact: o.Redact, storeImage: o.StoreImage, storeOutput: o.StoreOutput,
		runs: make(map[chela.RunID]*runState), logged: make(map[chela.AgentID]string),
	}
	if x.log == nil {
		x.log = slog.New(slog.DiscardHandler)
	}
	if x.redact == nil {
		x.redact = func(s string) string { return s }
	}
	if x.hooks = o.Hooks; x.hooks == nil {
		x.hooks = hook.New(x.log)
	}
	return x
}

// Wait returns when the hooks that observe have processed all events, or when ctx
// ends.
func (x *Executor) Wait(ctx context.Context) { x.hooks.Wait(ctx) }

// runState is the state shared by the calls of a run.
type runState struct {
	callCounts callCounts
	loop       *history // nil: no loop detection
}

// Redact returns a text without known secrets.
func (x *Executor) Redact(text string) string { return x.redact(text) }

// For returns a View for the scope. Views of the same run share their counters.
func (x *Executor) For(s Scope) *View {
	return &View{x: x, s: s, tools: x.allowed(s), state: x.state(s)}
}

func (x *Executor) state(s Scope) *runState {
	if s.Run == "" {
		return &runState{}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if st := x.runs[s.Run]; st != nil {
		return st
	}
	if len(x.order) >= maxRuns {
		delete(x.runs, x.order[0])
		x.order = x.order[1:]
	}
	st := &runState{callCounts: callCounts{calls: s.Earlier}}
	if s.Loop.on() {
		st.loop = newHistory(s.Loop)
	}
	x.runs[s.Run] = st
	x.order = append(x.order, s.Run)
	return st
}

// Compacted says that the conversation of a run was shortened. If the run then only
// repeats a call with the same result, it is caught in a loop, and ends.
func (x *Executor) Compacted(id chela.RunID) {
	x.mu.Lock()
	st := x.runs[id]
	x.mu.Unlock()
	if st != nil && st.loop != nil {
		st.loop.compacted()
	}
}

// View executes the tool calls of one run. It is safe for concurrent use.
type View struct {
	x     *Executor
	s     Scope
	tools tool.Set // those of the scope that are allowed
	state *runState
}

// Specs returns the tools as they are described to the model, sorted by name;
// only tools that read if readOnly is set. Callers must not modify the slice.
func (v *View) Specs(readOnly bool) []llm.ToolSpec {
	tools := v.tools
	if v.s.Shown != nil {
		tools = *v.s.Shown
	}
	if readOnly {
		tools = tools.Filter(func(sp tool.Spec) bool { return sp.Effect <= tool.Reads })
	}
	return v.x.modelSpecs(tools.Specs())
}

// Parallel reports whether the call may overlap with other parallel calls.
func (v *View) Parallel(c llm.ToolCall) bool {
	t, ok := v.lookup(c.Name)
	return ok && t.Spec().Parallel
}

// Turn marks the start of a model call. The calls it requests are one batch.
func (v *View) Turn() {
	if h := v.state.loop; h != nil {
		h.next()
	}
}

// hasTool reports whether the run has a tool with the name.
func (v *View) hasTool(name string) bool {
	_, ok := v.tools.Get(name)
	return ok
}

// lookup returns the tool with the name, or the only tool whose name differs from
// it just in case, dashes and underscores.
func (v *View) lookup(name string) (tool.Tool, bool) {
	if t, ok := v.tools.Find(name); ok {
		return t, true
	}
	var found tool.Tool
	for _, n := range v.tools.Names() {
		if fold(n) != fold(name) {
			continue
		}
		if found != nil {
			return nil, false
		}
		found, _ = v.tools.Get(n)
	}
	return found, found != nil
}
