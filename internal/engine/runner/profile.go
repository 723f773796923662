package runner

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/hook"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/policy"
	"github.com/chela-ai/chela/internal/core/prompt"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/subagent"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/core/usage"
	"github.com/chela-ai/chela/internal/core/window"
	"github.com/chela-ai/chela/internal/engine/invoke"
)

// Profile is what a run works with. A run uses the same profile until it ends,
// also when the configuration changes meanwhile. It is immutable.
type Profile struct {
	Provider llm.Provider // chooses a credential at each call
	Model    llm.Model
	Window   window.Size              // of the model, in this session; see also Execution.window
	Prompt   prompt.Input             // the system prompt, as far as the run does not determine it
	Files    *prompt.Workspace        // the files in the prompt; nil: none
	Types    func() []subagent.Type   // agent types for the prompt; nil: none
	MaxDepth int                      // of subagents; above it, the prompt has no types
	Skills   func() string            // list of skills for the prompt; nil: none
	Env      func() map[string]string // variables of commands; nil: none
	// ChildSkills is set if the prompt of subagents lists the skills, too.
	ChildSkills bool
	Startup     prompt.Startup                // the notes that a new conversation begins with
	Hints       func(channel string) []string // what the prompt says about a channel; nil: nothing
	Chat        func(chela.Address) string    // what the prompt says in a chat; nil: nothing
	Tools       tool.Set
	Catalog     policy.Catalog                        // of the tools
	Policy      func(chela.Principal) policy.Pipeline // which tools a principal may use; nil: all
	// ForkPolicy is the Policy of the session that the session was forked from; nil: it
	// was not forked.
	ForkPolicy func(chela.Principal) policy.Pipeline
	Dir        string // the agent's workspace, absolute
	// Home makes Dir again if somebody removed it since the start; nil: nothing is made.
	Home func(context.Context)
	// Sandbox returns the sandbox of the session, whose Workspace is Dir, as it is
	// for a principal; nil: the session is not sandboxed.
	Sandbox func(chela.Principal) *sandbox.Session
	Budget  usage.Budget
	Limits  usage.Limits    // of money
	Ladder  []string        // steps if a model call does not fit a limit, for example StepCheaper
	Cheaper func() *Profile // for StepCheaper; nil, or its result is: there is no cheaper model
	Loop    invoke.LoopOptions
	Answer  run.Answer // which answers are silent

	// Reads reports whether attachments have to be read for the model, and Read returns
	// them as they were read; its error is that of the context. nil: none are read.
	Reads func(run.Run, []chela.Media) bool
	Read  func(context.Context, run.Run, []chela.Media) ([]chela.Media, error)

	Timeout     time.Duration // of a whole run; 0: none
	MaxAttempts int           // of one run; 0: 24
	MaxRounds   int           // rounds of tool calls; 0: unlimited
	MaxCalls    int           // tool calls; 0: unlimited
	MaxTokens   int           // of one answer; 0: the dialect's default
	MaxHistory  int           // messages of the history that are sent; 0: all
	MaxResult   int           // characters of a tool's result; 0: by the window
	Pruning     window.Pruning
	Caches      bool      // the model's provider caches prompts, so that they are pruned when its cache has expired
	Think       llm.Level // used when neither message nor session set one
	Fast        llm.Fast  // likewise
	Compaction  Compaction
	Verbose     string // likewise: off, on, full
	Reasoning   string // likewise: off, on, stream
	Usage       string // likewise: off, tokens, full
	Cache       string // prompt cache retention
	// Deaf is set if nothing can be said to the model while it answers: messages that
	// arrive wait for the end of the run.
	Deaf bool

	For Settings // the session settings that it was resolved for
	Gen uint64   // the generation of the configuration that it was resolved from
}

// Settings are the settings of a session that a profile depends on.
type Settings struct {
	Model, Think, Verbose, Usage, Elevated string
}

// SettingsOf returns the settings of a session.
func SettingsOf(m session.Meta) Settings {
	return Settings{Model: m.Model, Think: m.Think, Verbose: m.Verbose, Usage: m.Usage, Elevated: m.Elevated}
}

// Profiles resolves profiles from the configuration. It is safe for concurrent
// use.
type Profiles interface {
	// Resolve returns the profile of a run that is about to begin or to resume.
	// It may do I/O and is never called in a transaction. Its error becomes the
	// answer of the run.
	Resolve(context.Context, session.Meta, run.Run) (*Profile, error)
	// Ready is Resolve without I/O, for use in a transaction. It reports false
	// when something would have to be read or awaited.
	Ready(session.Meta, run.Run) (*Profile, bool)
	// Policy returns the queue policy of a session for messages from an address.
	// It does no I/O.
	Policy(session.Meta, chela.Address) queue.Policy
	// Sends reports whether what a session says is sent to a chat. It does no I/O.
	Sends(session.Meta, chela.Address) bool
	// Gen returns the generation of the configuration, which increases with each
	// change. It does no I/O.
	Gen() uint64
}

// resolve returns the profile for a run. An error of Resolve becomes a profile
// whose model fails with it, so that it is reported as the run's answer. resolve
// itself fails only when ctx ends.
func (r *Runner) resolve(ctx context.Context, m session.Meta, draft run.Run, items ...queue.Item) (*Profile, error) {
	gen := r.o.Profiles.Gen()
	draft, err := r.chooseModel(ctx, draft, items)
	if err != nil {
		return nil, err
	}
	p, err := r.o.Profiles.Resolve(ctx, m, draft)
	if err == nil {
		return p, nil
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return &Profile{
		Provider: unusable{err}, For: SettingsOf(m), Gen: gen,
	}, nil
}

// checkProfile returns ErrChanged unless the profile was resolved for the settings of
// the session and from the configuration in force.
func (r *Runner) checkProfile(p *Profile, m session.Meta) error {
	if p.Gen != r.o.Profiles.Gen() || p.For != SettingsOf(m) {
		return ErrChanged
	}
	return nil
}

// guarded is a model that is called only while the process holds its leases, and for
// which money is reserved.
type guarded struct {
	llm.Provider
	r *Runner
	e *Execution
}

func (g guarded) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
	if !g.e.alive() {
		return unusable{errNotAlive}.Stream(ctx, req)
	}
	if h := g.r.o.Hooks; h.LLMInput.Any() {
		sent := slices.Clone(req.Messages)
		if req.Note != "" {
			sent = append(sent, llm.User(req.Note))
		}
		h.LLMInput.Notify(ctx, hook.LLMInput{
			Context: g.e.hookContext(), Model: g.e.profile.Model.Ref(), System: slices.Clone(req.System), Messages: sent,
		})
	}
	g.e.asked = req
	return g.r.paid(ctx, g.e, g.Provider, req)
}

// unusable is a model that cannot be asked.
type unusable struct{ err error }

func (u unusable) Stream(context.Context, *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) { yield(llm.Event{}, u.err) }
}

// think returns the thinking level of a run: the message's, the session's or the
// profile's, lowered to what the model supports.
func (p *Profile) think(m session.Meta, row run.Run) llm.Level {
	for _, l := range [...]string{row.Overrides.Think, m.Think, string(p.Think)} {
		if l != "" {
			return p.Model.Level(llm.Level(l))
		}
	}
	return llm.Off
}

// fast reports whether the requests of a run ask for the faster tier of the service: as the
// message, the session or the profile says. With auto, they do if a person waits for the
// answer.
func (e *Execution) fast() bool {
	switch llm.Fast(cmp.Or(e.run.Overrides.Fast, e.meta.Fast, string(e.profile.Fast))) {
	case llm.FastOn:
		return true
	case llm.FastAuto:
		return e.run.Origin.Kind == chela.OriginPerson && !e.meta.IsChild()
	}
	return false
}
