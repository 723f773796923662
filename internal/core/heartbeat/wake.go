package heartbeat

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/backoff"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// Mode is when a wake starts a run.
type Mode string

// The modes.
const (
	Now Mode = "now" // as soon as the session is free, even if the agent has no interval
	// NextTick is together with the next tick of the agent's interval. Without an
	// interval the wake has no effect; its event waits for the session's next run.
	NextTick Mode = "next-heartbeat"
)

// Reasons that Chela itself gives. Others are free text, such as "cron:<id>".
const (
	ReasonInterval = "interval"   // a tick of the interval
	ReasonWake     = "wake"       // a client
	ReasonExec     = "exec-event" // a background command
	ReasonManual   = "manual"     // a person
	ReasonRetry    = "retry"
)

// Wake is a request for a heartbeat of a session.
type Wake struct {
	Agent   chela.AgentID    `json:"agentId"`
	Session chela.SessionKey `json:"sessionKey"`
	Reason  string           `json:"reason"` // at most MaxReason characters
	Mode    Mode             `json:"mode"`
	// Principal has the rights of the run. Of merged wakes it is the one with fewer
	// rights.
	Principal chela.Principal `json:"principal"`
	At        time.Time       `json:"requestedAt"` // of the latest of the merged requests

	// Due is the earliest time of the run. Tries counts how often the session was busy.
	Due   time.Time `json:"dueAt,omitzero"`
	Tries int       `json:"tries,omitempty"`
	// Tick is the tick of the interval that the wake stands for, and Base the one before;
	// zero: none.
	Tick time.Time `json:"tickAt,omitzero"`
	Base time.Time `json:"baseAt,omitzero"`
}

// Limits of wakes.
const (
	MergeWithin = 250 * time.Millisecond // in which requests merge before the run starts
	MinGap      = 30 * time.Second       // between the starts of two heartbeats of a session
	MaxReason   = 200
	MaxWakes    = 1000 // pending ones
)

// Defer returns the wake after its session was busy at now. Each delay is longer than the
// one before, up to 30 seconds.
func (w Wake) Defer(now time.Time) Wake {
	w.Tries++
	w.Due = now.Add(backoff.Policy{First: time.Second, Max: 30 * time.Second}.Delay(w.Tries, 1))
	return w
}

// Table reads and writes heartbeats in a transaction.
type Table interface {
	Reader
	// PutWake inserts or replaces the pending wake of a session.
	PutWake(Wake) error
	// DeleteWake removes the pending wake of a session, if there is one.
	DeleteWake(chela.SessionKey) error
	// PutState inserts or replaces the state of an agent.
	PutState(State) error
	// DeleteState removes the state of an agent, if there is one.
	DeleteState(chela.AgentID) error
}

// Reader reads heartbeats.
type Reader interface {
	// Wakes returns the pending wakes, the one with the earliest Due first.
	Wakes() ([]Wake, error)
	// Wake returns the pending wake of a session, or chela.ErrNotFound.
	Wake(chela.SessionKey) (Wake, error)
	// States returns the states of all agents, ordered by id.
	States() ([]State, error)
	// State returns the state of an agent. An agent without one has the zero State with
	// its id.
	State(chela.AgentID) (State, error)
}

// Request stores a wake, or merges it with the pending wake of its session. It is called
// in the transaction that also puts the event into the queue (see queue.NewEvent). The
// transaction has to wake store.TopicHeartbeat.
//
// Without Session the wake is for the main session of Agent; without Agent it is for the
// agent of Session. Reason, Mode and Principal are required. Due, Tries and Tick are set
// by Request and by the engine.
func Request(t Table, w Wake) error {
	w.Session = cmp.Or(w.Session, chela.MainSession(cmp.Or(w.Agent, chela.DefaultAgent)))
	w.Agent = cmp.Or(w.Agent, w.Session.Agent())
	w.Reason = humanize.Truncate(strings.Join(strings.Fields(w.Reason), " "), MaxReason)
	switch {
	case w.Reason == "":
		return errors.New("heartbeat: a wake without a reason")
	case w.Mode != Now && w.Mode != NextTick:
		return chela.Errorf(chela.CodeInvalid, "heartbeat: unknown wake mode %q", w.Mode)
	case len(w.Principal.ID) == 0:
		return errors.New("heartbeat: a wake without a principal")
	}
	w.Due = w.At.Add(MergeWithin)
	have, err := t.Wake(w.Session)
	if errors.Is(err, chela.ErrNotFound) {
		all, err := t.Wakes()
		if err != nil {
			return err
		}
		if len(all) >= MaxWakes {
			return chela.Errorf(chela.CodeUnavailable, "heartbeat: %d wakes are pending", len(all))
		}
		return t.PutWake(w)
	}
	if err != nil {
		return err
	}
	return t.PutWake(have.merge(w))
}

// merge returns the wake that stands for the pending wake and a later request.
func (w Wake) merge(next Wake) Wake {
	out := w
	if w.Mode == NextTick && next.Mode == Now {
		out.Mode, out.Due, out.Tries = Now, next.Due, next.Tries
	}
	if priority(next.Reason) >= priority(w.Reason) {
		out.Reason = next.Reason
	}
	if next.Tick.After(w.Tick) {
		out.Tick, out.Base = next.Tick, next.Base
	}
	out.At, out.Principal = next.At, narrower(w.Principal, next.Principal)
	return out
}

// priority orders reasons: a wake has the reason with the highest one, and of several the
// latest.
func priority(reason string) int {
	kind, _, _ := strings.Cut(reason, ":")
	switch kind {
	case ReasonRetry:
		return 0
	case ReasonInterval:
		return 1
	case ReasonManual, ReasonExec, "hook":
		return 3
	}
	return 2
}

// narrower returns the principal with fewer rights. If each has rights that the other does
// not have, the result has the common ones.
func narrower(a, b chela.Principal) chela.Principal {
	switch {
	case a.Covers(b):
		return b
	case b.Covers(a):
		return a
	}
	out := a
	out.Scopes = nil
	for _, s := range append(slices.Clone(a.Scopes), b.Scopes...) {
		if a.May(s) && b.May(s) && !slices.Contains(out.Scopes, s) {
			out.Scopes = append(out.Scopes, s)
		}
	}
	return out
}
