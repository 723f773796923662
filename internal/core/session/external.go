package session

import "github.com/chela-ai/chela/internal/core/chela"

// External is the coding agent that answers in a session instead of a model. The agent is
// a program with a conversation of its own; the session keeps what both said.
type External struct {
	Agent string `json:"agent"` // its name in the configuration
	Dir   string `json:"cwd"`   // where it works, absolute
	// Remote is the id of its own conversation; empty: none has begun.
	Remote string `json:"agentSessionId,omitempty"`
	// Prompted is the last run whose message it was sent. What was sent once is never
	// sent again, because the agent may have acted on it.
	Prompted chela.RunID `json:"promptedRun,omitempty"`
	// By is the id of the principal whose agent it is: messages of others do not go to it,
	// unless they are those of the owner. Empty: anybody's do.
	By string `json:"by,omitempty"`
	// Once says that the agent is ended with the first answer.
	Once bool `json:"oneshot,omitempty"`
	// Mode is the mode that a person chose, of those that the agent offers; empty: its own.
	Mode string `json:"mode,omitempty"`
}
