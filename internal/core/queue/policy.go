package queue

import (
	"cmp"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/run"
)

// Mode determines what happens to a message while the session has a run in progress.
type Mode string

// The modes. In an idle session a message in any mode starts a run.
const (
	Collect      Mode = "collect"       // wait; waiting messages with the same target share one later run
	Followup     Mode = "followup"      // wait; each message gets a separate later run
	Steer        Mode = "steer"         // join the run in progress
	SteerBacklog Mode = "steer-backlog" // join the run in progress, and also get a later run
	Interrupt    Mode = "interrupt"     // end the run in progress and start another
)

// Modes lists the modes.
var Modes = [...]Mode{Steer, Followup, Collect, SteerBacklog, Interrupt}

// ParseMode parses a mode. "queue" is an old name of steer.
func ParseMode(s string) (Mode, bool) {
	switch m := Mode(strings.ToLower(s)); m {
	case Collect, Followup, Steer, SteerBacklog, Interrupt:
		return m, true
	case "queue":
		return Steer, true
	case "steer+backlog":
		return SteerBacklog, true
	}
	return "", false
}

// Drop determines which messages are dropped if more than the cap are waiting.
type Drop string

// The values of [Drop].
const (
	Summarize Drop = "summarize" // the oldest; the next run gets a list of them
	DropOld   Drop = "old"
	DropNew   Drop = "new"
)

// ParseDrop parses a Drop value.
func ParseDrop(s string) (Drop, bool) {
	switch d := Drop(strings.ToLower(s)); d {
	case Summarize, DropOld, DropNew:
		return d, true
	case "summarise":
		return Summarize, true
	}
	return "", false
}

// DefaultCap is the maximum number of waiting messages if a policy sets no cap.
const DefaultCap = 20

// Policy determines how a session handles messages. The zero Policy collects messages
// with the default cap and without delays.
type Policy struct {
	Mode     Mode          // "": collect; a message's own Inbound.Mode takes precedence
	Debounce time.Duration // time without messages before several waiting messages are collected
	Cap      int           // maximum number of waiting messages; < 1: DefaultCap
	Drop     Drop          // "": summarize

	// Inbound is the time after a channel message during which further messages of
	// the same sender are joined to it. An attachment ends the wait. Messages of local
	// clients are not delayed.
	Inbound time.Duration
}

// Prefs are the queue settings of a session; zero fields are inherited.
type Prefs struct {
	Mode     string        `json:"mode,omitempty"`
	Debounce time.Duration `json:"debounceNs,omitempty"`
	Cap      int           `json:"cap,omitempty"`
	Drop     string        `json:"drop,omitempty"`
}

// With returns the policy with the settings of a session applied.
func (p Policy) With(q Prefs) Policy {
	if q.Mode != "" {
		p.Mode = Mode(q.Mode)
	}
	if q.Debounce != 0 {
		p.Debounce = q.Debounce
	}
	if q.Cap != 0 {
		p.Cap = q.Cap
	}
	if q.Drop != "" {
		p.Drop = Drop(q.Drop)
	}
	return p
}

// Effective returns the policy with its defaults filled in.
func (p Policy) Effective() Policy {
	if m, ok := ParseMode(string(p.Mode)); ok {
		p.Mode = m
	} else {
		p.Mode = Collect
	}
	if p.Cap < 1 {
		p.Cap = DefaultCap
	}
	p.Drop = cmp.Or(p.Drop, Summarize)
	return p
}

// modeOf returns the mode of an item. Messages that are not from a person get a separate
// run, except that those of another session may steer, and only messages of persons
// interrupt.
func (p Policy) modeOf(it Item) Mode {
	m := p.Mode
	if own, ok := ParseMode(it.Inbound.Mode); ok {
		m = own
	}
	switch {
	case it.toSession() && (m == Steer || m == SteerBacklog):
		return m
	case it.Kind == Message && !it.fromPerson():
		return Followup
	case m == Interrupt && it.Kind != Message:
		return Collect
	}
	return m
}

// toSession reports whether the item is a message of another session, which gets the
// answer.
func (it Item) toSession() bool {
	return it.Kind == Message && it.Overrides.Deliver.Mode == run.DeliverSession
}

// fromPerson reports whether a person wrote the item.
func (it Item) fromPerson() bool { return it.Kind == Message && it.Origin.Kind == chela.OriginPerson }
