package hook

import (
	"context"
	"encoding/json"
	"time"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/llm"
)

// Call is a call of a tool as hooks see it.
type Call struct {
	Agent   chela.AgentID
	Session chela.SessionKey // empty: outside any session
	Run     chela.RunID
	ID      string
	Tool    string
	Args    json.RawMessage // as they would be used, or were
}

// Verdict is what a Before says. The zero Verdict has no opinion.
type Verdict struct {
	Block  bool
	Ask    bool            // a person must allow the call; without a decision it is denied
	Reason string          // of Block or Ask, for the model and the person
	Args   json.RawMessage // to be used instead; nil: as they are
}

// Budget is how long a hook may take that does not say otherwise.
const Budget = 15 * time.Second

// Before is asked before a call. Func is safe for concurrent use.
type Before struct {
	Name     string
	Priority int           // the highest is asked first
	Timeout  time.Duration // 0: Budget
	Quick    bool          // Func returns at once: nothing measures its time
	Func     func(context.Context, Call) (Verdict, error)
}

// Done is what became of a call whose tool has run.
type Done struct {
	Content []llm.Part
	Details json.RawMessage
	IsError bool
	Err     error // the tool's; nil: it had none
	Took    time.Duration
}

// After is told of calls whose tools have run. Func is called for one call at
// a time, unless it goes on when its time is over.
type After struct {
	Name     string
	Failures bool          // told of those only that failed
	Timeout  time.Duration // 0: Budget
	Quick    bool          // Func returns at once: it is called before the call goes on
	Func     func(context.Context, Call, Done) error
}
