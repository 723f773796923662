// Package subagent defines the children of sessions. A [Child] is a session that a
// run started for a task. Its runs are ordinary runs, limited by the bounds of the
// session (session.Bounds). The record of the child outlives them: it says to whom
// the result is owed.
//
// A child is open from the commit that spawns it until the commit in which its last
// run ends. That commit closes the record and puts the announcement, a queue item
// for the requester, with the key [Child.AnnounceKey]. Closing is final, so that a
// child is announced at most once, and a child that was stopped is never announced.
package subagent

import (
	"cmp"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/queue"
)

// Child is the record of a child.
type Child struct {
	ID        chela.RunID      `json:"runId"`           // of its first run
	Session   chela.SessionKey `json:"childSessionKey"` // its own session
	Requester chela.SessionKey `json:"requesterSessionKey"`
	Parent    chela.RunID      `json:"parentRunId,omitempty"` // the run that spawned it
	Root      chela.RunID      `json:"rootRunId,omitempty"`   // of the tree of runs
	Principal chela.Principal  `json:"principal"`             // whose rights it has
	Address   chela.Address    `json:"requesterOrigin,omitzero"`
	Thread    chela.Address    `json:"boundThread,omitzero"` // the chat that is focused on it; its result goes there

	Task     string        `json:"task"`
	Label    string        `json:"label"`
	Name     string        `json:"taskName,omitempty"`  // chosen by the model, for targets
	Type     string        `json:"agentType,omitempty"` // empty: general
	Model    string        `json:"model,omitempty"`     // provider/model; empty: the agent's
	Timeout  time.Duration `json:"runTimeoutNs,omitempty"`
	Cleanup  Cleanup       `json:"cleanup"`
	Files    []string      `json:"attachments,omitempty"` // names of the files in FilesFolder
	Retain   bool          `json:"retainAttachments,omitempty"`
	Created  time.Time     `json:"createdAt"`
	Ended    time.Time     `json:"endedAt,omitzero"`   // zero: open
	Archived time.Time     `json:"cleanedAt,omitzero"` // its session was archived or deleted

	Outcome chela.Outcome `json:"outcome,omitempty"` // of the last run
	// Silent is why the result was not announced; empty: it was.
	Silent  Silence   `json:"suppressAnnounceReason,omitempty"`
	Result  string    `json:"result,omitempty"` // the last answer
	Error   string    `json:"error,omitempty"`  // one sentence for people, if it failed
	Tokens  llm.Usage `json:"usage,omitzero"`   // of its session
	NanoUSD int64     `json:"nanoUSD,omitempty"`
	Priced  bool      `json:"priced,omitempty"`
}

// Cleanup is what happens to the session of a child that has ended.
type Cleanup string

// The values of [Cleanup].
const (
	Keep   Cleanup = "keep"   // archived after a while
	Delete Cleanup = "delete" // deleted as soon as its result was taken
)

// Silence is why the result of a child is not announced.
type Silence string

// The values of [Silence].
const (
	Stopped Silence = "killed"  // somebody stopped the child
	Skipped Silence = "skipped" // the child answered run.AnnounceSkip
	Lost    Silence = "lost"    // its session does not exist any more
)

// namespace is the namespace of the ids of children.
var namespace = uuid.MustParse("5f0c7a0e-3d0b-4a37-9d0e-6d2f3b7a8f11")

// IDOf returns the id of the child of a tool call. It depends only on the id of the
// call, so that a repeated call finds the child that exists.
func IDOf(call string) chela.RunID {
	return chela.RunID(uuid.NewSHA1(namespace, []byte(call)).String())
}

// MovedUp is appended to the key of an announcement that is moved to the session above.
const MovedUp = ":up"

// AnnounceKey returns the key of the queue item that announces the child's result.
func (c Child) AnnounceKey() string { return "announce:" + string(c.ID) }

// ReplyAddress returns the address to which the requester answers the child's result.
func (c Child) ReplyAddress() chela.Address { return cmp.Or(c.Thread, c.Address) }

// Open reports whether the child exists and has not ended.
func (c Child) Open() bool { return c.ID != "" && c.Ended.IsZero() }

// Reader reads children.
type Reader interface {
	// Get returns a child by id, or chela.ErrNotFound.
	Get(chela.RunID) (Child, error)
	// In returns the child whose session has the key, or chela.ErrNotFound.
	In(chela.SessionKey) (Child, error)
	// Of returns the children of a requester that are not archived, oldest first.
	Of(requester chela.SessionKey) ([]Child, error)
	// Open returns the open children of a requester, or of all sessions for the
	// empty key, oldest first.
	Open(requester chela.SessionKey) ([]Child, error)
	// Tree returns the number of children of a tree of runs that are not archived.
	Tree(root chela.RunID) (int, error)
	// Recent returns at most n children of all sessions, newest first.
	Recent(n int) ([]Child, error)
	// Ended returns the children that ended before t and are not archived, oldest
	// first.
	Ended(t time.Time) ([]Child, error)
}

// Lookup returns the child whose session has the key; the zero Child if it is not the
// session of a child.
func Lookup(r Reader, key chela.SessionKey) (Child, error) {
	c, err := r.In(key)
	if errors.Is(err, chela.ErrNotFound) {
		return Child{}, nil
	}
	return c, err
}

// Release takes a chat from the child whose session has the key, if it is bound to it.
func Release(t Table, key chela.SessionKey, a chela.Address) error {
	c, err := Lookup(t, key)
	if err != nil || c.ID == "" || c.Thread != a {
		return err
	}
	c.Thread = chela.Address{}
	return t.Put(c)
}

// Table reads and writes children in a transaction.
type Table interface {
	Reader
	// Put inserts or replaces a child by id.
	Put(Child) error
	// Prune deletes archived children that ended before t and returns their number.
	Prune(t time.Time) (int, error)
}

// List is the children that a session may see.
type List struct {
	Role     Role             // of the session
	Of       chela.SessionKey // the requester of the children
	Children []Child          // oldest first
}

// Message is a message to a child.
type Message struct {
	ID string // of its queue item; a second one with the same id changes nothing
	// Principal is on whose behalf it is sent: the one whose rights the child has, or
	// the owner.
	Principal chela.Principal
	Target    string // see [Find]
	Text      string
	Mode      queue.Mode // queue.Steer joins a run in progress; queue.Followup waits for its end
}

// Status returns the state of the child for lists: running, done, error, timeout or
// killed.
func (c Child) Status() string {
	switch {
	case c.Open():
		return "running"
	case c.Silent == Stopped:
		return "killed"
	case c.Outcome == chela.OutcomeOK:
		return "done"
	}
	return string(c.Outcome)
}

// Runtime returns how long the child has existed, or did until it ended.
func (c Child) Runtime(now time.Time) time.Duration {
	if !c.Open() {
		now = c.Ended
	}
	return now.Sub(c.Created)
}
