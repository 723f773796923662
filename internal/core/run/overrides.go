package run

import (
	"slices"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
)

// Overrides replaces settings of the session for one run. Zero fields have no effect.
type Overrides struct {
	Model string `json:"model,omitempty"` // provider/model
	Think string `json:"think,omitempty"` // thinking level
	// Fast, Verbose, Reasoning and Elevated have the values of the session's settings.
	Fast      string `json:"fast,omitempty"`
	Verbose   string `json:"verbose,omitempty"`
	Reasoning string `json:"reasoning,omitempty"`
	Elevated  string `json:"elevated,omitempty"`
	Exec      Exec   `json:"exec,omitzero"`

	Lane       string        `json:"lane,omitempty"`
	Timeout    time.Duration `json:"timeoutNs,omitempty"`
	Tools      Tools         `json:"tools,omitzero"`
	Prompt     string        `json:"prompt,omitempty"`     // appended to the system prompt
	PromptMode string        `json:"promptMode,omitempty"` // a prompt.Mode; empty: that of the session
	Context    Context       `json:"context,omitempty"`
	Deliver    Delivery      `json:"deliver,omitzero"`
	// Shared says that others than one person read the answer, although the run has no
	// address of a group: it gets no private notes.
	Shared bool `json:"shared,omitempty"`
}

// Context determines how much of the conversation a run gets.
type Context string

// The values of [Context].
const (
	ContextFull  Context = ""      // the whole conversation
	ContextLight Context = "light" // without the workspace's bootstrap files
	ContextFresh Context = "fresh" // a new transcript
	ContextBare  Context = "bare"  // a new transcript, without the bootstrap files
)

// Light reports whether the bootstrap files are left out.
func (c Context) Light() bool { return c == ContextLight || c == ContextBare }

// Fresh reports whether the run begins a new transcript.
func (c Context) Fresh() bool { return c == ContextFresh || c == ContextBare }

// Tools permits and denies tools. Its lists contain names, groups and patterns. The zero
// Tools permits every tool.
type Tools struct {
	Allow []string `json:"allow,omitempty"` // empty: every tool
	Deny  []string `json:"deny,omitempty"`  // takes precedence over Allow
}

// IsZero reports whether t permits every tool.
func (t Tools) IsZero() bool { return len(t.Allow) == 0 && len(t.Deny) == 0 }

// Equal reports whether t and u have the same lists.
func (t Tools) Equal(u Tools) bool {
	return slices.Equal(t.Allow, u.Allow) && slices.Equal(t.Deny, u.Deny)
}

// Permits reports whether t permits the tool. match reports whether one of the patterns
// matches the name.
func (t Tools) Permits(name string, match func(patterns []string, name string) bool) bool {
	if len(t.Deny) > 0 && match(t.Deny, name) {
		return false
	}
	return len(t.Allow) == 0 || match(t.Allow, name)
}

// Delivery is the target of the answer of a run.
type Delivery struct {
	Mode    DeliveryMode  `json:"mode,omitempty"`
	Address chela.Address `json:"address,omitzero"` // of DeliverTo
	Last    bool          `json:"last,omitempty"`   // of DeliverTo: use the last address of the session instead
	Next    bool          `json:"next,omitempty"`   // of DeliverMain: the event starts no run
}

// DeliveryMode is the kind of a Delivery.
type DeliveryMode string

// The modes of delivery.
const (
	DeliverReply   DeliveryMode = ""        // to the address of the answered message
	DeliverTo      DeliveryMode = "to"      // to Delivery.Address, or the session's last address
	DeliverNowhere DeliveryMode = "nowhere" // the answer is only stored in the transcript
	DeliverSession DeliveryMode = "session" // to the session that sent the message
	DeliverMain    DeliveryMode = "main"    // to the main session of the agent, as an event
)

// IsZero reports whether o replaces no setting.
func (o Overrides) IsZero() bool { return o.Equal(Overrides{}) }

// Equal reports whether o and p replace the same settings with the same values.
func (o Overrides) Equal(p Overrides) bool {
	return o.Model == p.Model && o.Think == p.Think && o.Fast == p.Fast && o.Verbose == p.Verbose && o.Reasoning ==
		p.Reasoning && o.Elevated == p.Elevated && o.Exec == p.Exec && o.Lane == p.Lane && o.Timeout == p.Timeout &&
		o.Tools.Equal(p.Tools) && o.Prompt == p.Prompt && o.PromptMode == p.PromptMode && o.Context == p.Context &&
		o.Deliver == p.Deliver && o.Shared == p.Shared
}
