// Package approval defines the requests for a person's decision about a tool call
// before the call has an effect. A [Request] is bound to the hash of one resolved
// plan, is used once, and expires. Only [Resolve] decides a request.
package approval

import (
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
)

// Decision is the state of a request: pending, or the decision about it.
type Decision string

// The decisions. The values are those of the gateway protocol, except AllowSession,
// which the protocol does not have.
const (
	Pending      Decision = ""
	AllowOnce    Decision = "allow-once"
	AllowSession Decision = "allow-session" // this plan, in this session, until revoked
	AllowAlways  Decision = "allow-always"  // this plan, in all sessions of this agent, until revoked
	Deny         Decision = "deny"
	Expired      Decision = "expired"
	Withdrawn    Decision = "withdrawn" // the run was stopped
	Revoked      Decision = "revoked"   // was AllowSession or AllowAlways before
)

// Allows reports whether d lets the call run.
func (d Decision) Allows() bool { return d == AllowOnce || d.Standing() }

// Standing reports whether d lets later calls with the same plan run too.
func (d Decision) Standing() bool { return d == AllowSession || d == AllowAlways }

// Lifetime is the time after which a pending request expires.
const Lifetime = 30 * time.Minute

// Request is a request for a decision about a tool call.
type Request struct {
	ID      string           `json:"id"`
	Session chela.SessionKey `json:"sessionKey"`
	Run     chela.RunID      `json:"runId"`
	Call    string           `json:"callId"` // session.Call.ID
	Tool    string           `json:"tool"`
	Text    string           `json:"text"`   // the whole plan, as displayed
	Reason  string           `json:"reason"` // why a decision is needed
	Hash    string           `json:"hash"`   // of the plan; the call runs only if its plan has this hash
	// additional rights that the plan needs beyond those of its run; part of Hash
	Rights []string `json:"rights,omitempty"`
	Once   bool     `json:"once,omitempty"` // only AllowOnce and Deny are possible
	// the result of the call without Rights, if it ran before; not displayed
	Ran string `json:"ran,omitempty"`
	// the session whose chat displays the request: the root of the tree; empty: Session
	Asked     chela.SessionKey `json:"asked,omitempty"`
	Root      chela.RunID      `json:"root,omitempty"` // the root of the tree of runs; empty: Run
	Requester chela.Principal  `json:"requester"`
	Created   time.Time        `json:"createdAt"`
	Expires   time.Time        `json:"expiresAt"`
	Decision  Decision         `json:"decision,omitempty"`
	By        string           `json:"by,omitempty"`  // the principal that decided
	Via       string           `json:"via,omitempty"` // the credential of By
	Decided   time.Time        `json:"decidedAt,omitzero"`
}

// EventPayload marks the request as the data of an event.
func (Request) EventPayload() {}

// Reader reads requests.
type Reader interface {
	// Get returns a request, or chela.ErrNotFound.
	Get(id string) (Request, error)
	// Pending returns the undecided requests of a session, or of all sessions for
	// the empty key, oldest first.
	Pending(chela.SessionKey) ([]Request, error)
	// Decided returns at most n requests that are no longer pending, newest first.
	// If before is not empty, only requests older than the one with that id are
	// returned.
	Decided(before string, n int) ([]Request, error)
	// Always returns the requests for a tool that were allowed always, in all
	// sessions of an agent, oldest first. An empty agent or tool matches all.
	Always(agent chela.AgentID, tool string) ([]Request, error)
	// Standing returns the requests for a tool whose decision applies to further
	// calls in the session, oldest first: those allowed for the session, and those
	// allowed always for its agent.
	Standing(key chela.SessionKey, tool string) ([]Request, error)
}

// Table reads and writes requests in a transaction.
type Table interface {
	Reader
	// Put stores a request by its id.
	Put(Request) error
}
