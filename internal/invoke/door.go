package invoke

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chela-ai/chela/internal/approval"
	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/hook"
	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/internal/policy"
	"github.com/chela-ai/chela/internal/session"
	"github.com/chela-ai/chela/internal/tool"
	"github.com/chela-ai/chela/internal/usage"
)

// Options is what a Door works with. The zero value works.
type Options struct {
	Log    *slog.Logger // nil: nothing is logged
	Before []hook.Before
	After  []hook.After
	// Redact takes known secrets out of what tools give; nil: nothing is known.
	Redact func(string) string
	// Keep takes the pictures out of what tools give and leaves references to
	// them, which are stored; nil: results carry them.
	Keep func(llm.Part) llm.Part
}

// Ledger records what happens to the calls of one run, on disk. It is safe for
// concurrent use.
type Ledger interface {
	// Start records that the call is about to have the effect. It fails with a
	// chela.CodeConflict error when the call may not begin (any more).
	Start(ctx context.Context, c llm.ToolCall, e tool.Effect) error
	// Decision returns the call's approval request; the zero Request when
	// nobody was asked.
	Decision(ctx context.Context, c llm.ToolCall) (approval.Request, error)
	// Always reports whether a plan with this hash was allowed always.
	Always(ctx context.Context, toolName, hash string) (bool, error)
	// Suspend asks for a decision about the plan.
	Suspend(ctx context.Context, c llm.ToolCall, p tool.Plan) error
	// Ended takes what became of the call, which is to be on disk no later than
	// its result. It is not called for one that waits for a decision.
	Ended(c llm.ToolCall, o session.Outcome)
}

// Scope is whose calls a View carries out, and under which rules.
type Scope struct {
	Agent     chela.AgentID
	Session   chela.SessionKey // empty: outside any session, without loop detection
	Run       chela.RunID
	Dir       string          // the agent's workspace, absolute
	Principal chela.Principal // the zero Principal may use no tool
	Tools     tool.Set
	Policy    policy.Pipeline // which of them are offered; the zero Pipeline: all
	Budget    usage.Budget
	Loop      LoopOptions
	Ledger    Ledger           // nil: nothing is recorded, and what must ask is refused
	Alone     bool             // nobody is asked; what must ask is refused
	Started   time.Time        // of the run, for the budget of time
	Spent     func() usage.Sum // of the run's model calls so far; nil: nothing
	MaxResult int              // characters of one result; 0: 64,000
}

// Door is the one way to run a tool. It is safe for concurrent use.
type Door struct {
	log     *slog.Logger
	hooks   *hook.Chain
	redact  func(string) string // never nil
	keep    func(llm.Part) llm.Part
	schemas schemas
	last    atomic.Pointer[telling]

	mu    sync.Mutex
	said  map[chela.AgentID]string // what the rules about tools last did
	runs  map[chela.RunID]*state
	order []chela.RunID // of runs, oldest first
}

// maxRuns bounds the runs whose state a Door keeps. One that comes back after
// more than that begins to count anew.
const maxRuns = 1024

// New returns a Door.
func New(o Options) *Door {
	d := &Door{log: o.Log, redact: o.Redact, keep: o.Keep, runs: make(map[chela.RunID]*state), said: make(map[chela.AgentID]string)}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	if d.redact == nil {
		d.redact = func(s string) string { return s }
	}
	d.hooks = hook.New(d.log, o.Before, o.After)
	return d
}

// Wait returns when the After hooks have been told of every call that ended, or
// with ctx.
func (d *Door) Wait(ctx context.Context) { d.hooks.Wait(ctx) }

// state is what a run's calls have in common.
type state struct {
	tally tally
	loop  *history // nil: no detection
}

// For returns the door as one run sees it. Views of the same run count
// together.
func (d *Door) For(s Scope) *View {
	return &View{d: d, s: s, tools: d.offered(s), state: d.state(s)}
}

func (d *Door) state(s Scope) *state {
	fresh := func() *state {
		st := &state{}
		if s.Session != "" && s.Loop.on() {
			st.loop = newHistory(s.Loop)
		}
		return st
	}
	if s.Run == "" {
		return fresh()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if st := d.runs[s.Run]; st != nil {
		return st
	}
	if len(d.order) >= maxRuns {
		delete(d.runs, d.order[0])
		d.order = d.order[1:]
	}
	st := fresh()
	d.runs[s.Run] = st
	d.order = append(d.order, s.Run)
	return st
}

// View is the tools of one run. It is safe for concurrent use.
type View struct {
	d     *Door
	s     Scope
	tools tool.Set // of the scope's those that are offered
	state *state
}

// Specs returns what the model is told of, sorted by name; only tools that
// only read when readOnly is set. Nobody changes it.
func (v *View) Specs(readOnly bool) []llm.ToolSpec {
	tools := v.tools
	if readOnly {
		tools = tools.Filter(func(sp tool.Spec) bool { return sp.Effect <= tool.Reads })
	}
	return v.d.told(tools.Specs())
}

// Parallel reports whether the call may overlap with other parallel calls.
func (v *View) Parallel(c llm.ToolCall) bool {
	t, ok := v.lookup(c.Name)
	return ok && t.Spec().Parallel
}

// Turn notes that a model call begins: what it asks for is one batch.
func (v *View) Turn() {
	if h := v.state.loop; h != nil {
		h.next()
	}
}

// offers reports whether the run has a tool of that name.
func (v *View) offers(name string) bool {
	_, ok := v.tools.Get(name)
	return ok
}

// lookup returns the tool that name means, which is the one of that name, or
// the only one whose name differs in case and dashes.
func (v *View) lookup(name string) (tool.Tool, bool) {
	for _, n := range [...]string{name, policy.Name(name)} {
		if t, ok := v.tools.Get(n); ok {
			return t, true
		}
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
