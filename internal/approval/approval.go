// Package approval is a pending decision by a person before a call's effect
// happens. A [Request] is bound to the hash of one resolved plan, used once,
// and expires. [Resolve] is the only way to decide it.
package approval

import (
	"time"

	"github.com/chela-ai/chela/internal/chela"
)

// Decision is what a person said.
type Decision string

// The decisions, in the words of the gateway protocol.
const (
	Pending     Decision = ""
	AllowOnce   Decision = "allow-once"
	AllowAlways Decision = "allow-always" // this plan, from now on, for this agent
	Deny        Decision = "deny"
	Expired     Decision = "expired"
	Withdrawn   Decision = "withdrawn" // the run was stopped
	Revoked     Decision = "revoked"   // it was AllowAlways, and is not any more
)

// Allows reports whether d lets the call run.
func (d Decision) Allows() bool { return d == AllowOnce || d == AllowAlways }

// Lifetime is how long a request may be answered.
const Lifetime = 30 * time.Minute

// Request is a call that waits for a person.
type Request struct {
	ID        string           `json:"id"`
	Session   chela.SessionKey `json:"sessionKey"`
	Run       chela.RunID      `json:"runId"`
	Call      string           `json:"callId"` // session.Call.ID
	Tool      string           `json:"tool"`
	Text      string           `json:"text"`           // the whole plan, as it is shown
	Reason    string           `json:"reason"`         // why it asks
	Hash      string           `json:"hash"`           // of the plan; the call runs only with this one
	Once      bool             `json:"once,omitempty"` // AllowAlways is not offered
	Requester chela.Principal  `json:"requester"`
	Created   time.Time        `json:"createdAt"`
	Expires   time.Time        `json:"expiresAt"`
	Decision  Decision         `json:"decision,omitempty"`
	By        string           `json:"by,omitempty"`  // principal that decided
	Via       string           `json:"via,omitempty"` // its credential
	Decided   time.Time        `json:"decidedAt,omitzero"`
}

// Reader reads requests.
type Reader interface {
	// Get returns a request, or chela.ErrNotFound.
	Get(id string) (Request, error)
	// Pending returns the undecided requests, oldest first; of all sessions
	// for the empty key.
	Pending(chela.SessionKey) ([]Request, error)
	// Decided returns at most n requests that do not wait any more, the one that
	// was made last first; those made before the one of the id, when there is one.
	Decided(before string, n int) ([]Request, error)
	// Always returns the requests for a tool that were allowed always, of all
	// sessions of an agent, oldest first; of all agents or tools for empty ones.
	Always(agent chela.AgentID, tool string) ([]Request, error)
}

// Table is the requests inside a transaction.
type Table interface {
	Reader
	// Put stores a request by its id.
	Put(Request) error
}
