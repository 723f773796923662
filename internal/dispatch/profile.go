package dispatch

import (
	"context"
	"iter"
	"time"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/invoke"
	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/internal/pairing"
	"github.com/chela-ai/chela/internal/policy"
	"github.com/chela-ai/chela/internal/queue"
	"github.com/chela-ai/chela/internal/run"
	"github.com/chela-ai/chela/internal/session"
	"github.com/chela-ai/chela/internal/store"
	"github.com/chela-ai/chela/internal/tool"
	"github.com/chela-ai/chela/internal/usage"
)

// Profile is what a run works with. A run keeps the one it began with, whatever
// the configuration becomes meanwhile. It is not changed after it was given.
type Profile struct {
	Provider llm.Provider
	Model    llm.Model
	System   func(Facts) []llm.Block // the system prompt: stable blocks first
	Tools    tool.Set
	Policy   func(chela.Principal) policy.Pipeline // which of them a run of somebody is offered; nil: all
	Dir      string                                // the agent's workspace, absolute
	Queue    queue.Policy
	Budget   usage.Budget
	Loop     invoke.LoopOptions

	Lane      string        // "": main
	Timeout   time.Duration // of a whole run; 0: none
	MaxLoops  int           // attempts of one run; 0: 24
	MaxRounds int           // rounds of tool calls; 0: no bound
	MaxCalls  int           // tool calls; 0: no bound
	MaxTokens int           // of one answer; 0: the dialect's default
	Think     llm.Level     // when neither message nor session say one
	Verbose   string        // likewise: off, on, full
	Usage     string        // likewise: off, tokens, full
	Cache     string        // prompt cache retention
}

// Facts are what the changing part of the system prompt says.
type Facts struct {
	Session session.Meta
	Run     run.Run
	Model   llm.Model
	Tools   []llm.ToolSpec // that the run is offered
	Think   llm.Level
	Now     time.Time
}

// Ended is told of a run that is about to end. The outer part computes; the
// function that it returns (nil: nothing) writes in the commit that ends the
// run: what is owed to a channel, a parent run, a job.
type Ended func(run.Run) func(store.Tx) error

// ProfileFunc resolves what a session's next run works with.
type ProfileFunc func(session.Meta) (*Profile, error)

// profile is what a new run of the session works with. Where none can be made,
// as of a model that is gone, the run's one answer is why.
func (c *Conductor) profile(m session.Meta) *Profile {
	p, err := c.o.Profile(m)
	if err != nil {
		return &Profile{Provider: unusable{err}, System: func(Facts) []llm.Block { return nil }}
	}
	return p
}

// unusable is a model that cannot be asked.
type unusable struct{ why error }

func (u unusable) Stream(context.Context, *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) { yield(llm.Event{}, u.why) }
}

const (
	defaultMaxLoops = 24
	maxResumes      = 3             // attempts of a run across crashes
	resumeWithin    = 2 * time.Hour // older runs are closed instead of resumed
	mainLane        = "main"
)

// think returns the level in force: the message's, the session's, the
// profile's, lowered to what the model takes.
func (p *Profile) think(m session.Meta, r run.Run) llm.Level {
	for _, l := range [...]string{r.Think, m.Think, string(p.Think)} {
		if l == "" {
			continue
		}
		return p.Model.Level(llm.Level(l))
	}
	return llm.Off
}

// principalOf returns who the items of a run are carried out for: the one that
// all of them share, or nobody.
func principalOf(items []queue.Item) chela.Principal {
	var p chela.Principal
	for i, it := range items {
		switch {
		case i == 0:
			p = it.Principal
		case it.Principal.ID != p.ID:
			return chela.Principal{}
		case it.Kind == queue.Message:
			p.Scopes = pairing.Meet(p.Scopes, it.Principal.Scopes)
		}
	}
	return p
}
