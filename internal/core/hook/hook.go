package hook

import (
	"context"
	"encoding/json"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
)

// Call describes a tool call to a hook.
type Call struct {
	Agent   chela.AgentID
	Session chela.SessionKey // empty: outside any session
	Run     chela.RunID
	ID      string
	Tool    string
	Args    json.RawMessage // the arguments that the tool gets
}

// Verdict is the answer of a Before hook. The zero Verdict lets the call pass
// unchanged.
type Verdict struct {
	Block  bool
	Ask    bool            // a person must approve the call; without a decision it is denied
	Reason string          // for Block or Ask; shown to the model and the person
	Args   json.RawMessage // replaces the arguments; nil: unchanged
}

// Budget is the default time limit of a hook.
const Budget = 15 * time.Second

// Before is a hook that runs before a call. Func is safe for concurrent use.
type Before struct {
	Name     string
	Priority int           // the highest runs first
	Timeout  time.Duration // 0: Budget
	Quick    bool          // Func returns immediately: it runs without a time limit
	Func     func(context.Context, Call) (Verdict, error)
}

// Done is the outcome of a call whose tool has run.
type Done struct {
	Content []llm.Part
	Details json.RawMessage
	IsError bool
	Err     error // returned by the tool
	Took    time.Duration
}

// After is a hook that runs after a call. Func is called for one call at a time,
// unless it ignores its time limit and continues to run.
type After struct {
	Name     string
	Failures bool          // only called for failed calls
	Timeout  time.Duration // 0: Budget
	Quick    bool          // Func returns immediately: it is called synchronously
	Func     func(context.Context, Call, Done) error
}
