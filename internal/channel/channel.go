// Package channel is the contract of a messaging surface. A channel moves
// messages and nothing else: who may write, what becomes work, and what is
// sent again is decided elsewhere.
//
// More ability is an optional one-method interface, found by assertion:
// [Editor], [Deleter], [Typer], [Reactor], [Prober], [Finder]. The conformance
// suite is package channeltest; its fake is the in-memory implementation.
package channel

import (
	"context"
	"errors"
	"time"

	"github.com/chela-ai/chela/internal/chela"
)

// Sink takes a message that a channel received. The channel moves its cursor
// (or answers the webhook) only after Sink returned nil: the message is then
// on disk. It may offer a message again; it is taken once.
type Sink func(context.Context, chela.Inbound) error

// Channel is one configured account on a messaging surface.
//
// Run receives until ctx ends or the connection is beyond repair; it
// reconnects by itself. Send sends one part and returns when the platform
// confirmed it. Send is called from one goroutine at a time per address.
//
// Where the platform can do it, one Part.Key is one message, however often it
// is sent. Send's error is an *[Error] when the channel knows what it means;
// [ErrAmbiguous] in its chain says that the message may have been taken.
type Channel interface {
	Run(ctx context.Context, sink Sink) error
	Send(ctx context.Context, p Part) (Receipt, error)
}

// Part is one message to send.
type Part struct {
	Key     string // the same for every attempt
	Address chela.Address
	ReplyTo string
	Text    string
	Media   []chela.Media
}

// Receipt is what the platform said of a message that it took.
type Receipt struct {
	ID   string // the platform's message id
	Time time.Time
}

// Editor changes a message that was sent. [ErrGone] in the error's chain says
// that it is not there any more.
type Editor interface {
	Edit(ctx context.Context, a chela.Address, id, text string) error
}

// Deleter removes a message that was sent.
type Deleter interface {
	Delete(ctx context.Context, a chela.Address, id string) error
}

// Typer shows that an answer is being written. It lasts a few seconds.
type Typer interface {
	Typing(ctx context.Context, a chela.Address) error
}

// Reactor puts an emoji on a message; the empty emoji takes it away.
type Reactor interface {
	React(ctx context.Context, a chela.Address, id, emoji string) error
}

// Prober checks that the account works.
type Prober interface {
	Probe(ctx context.Context) error
}

// Finder looks for a message that was sent under a key: the way out of an
// ambiguous outcome. It reports false when there is none.
type Finder interface {
	Find(ctx context.Context, a chela.Address, key string) (Receipt, bool, error)
}

// Limits are what a platform allows.
type Limits struct {
	Text int            // characters of one message, in the platform's unit; 0: 4000
	Size func(rune) int // characters of a rune in that unit; nil: 1
	Edit time.Duration  // least time between edits of one message; 0: 1 s
}

// Errors of channels.
var (
	// ErrAmbiguous says that the platform may have taken the message.
	ErrAmbiguous = errors.New("outcome unknown: the connection broke after the message was handed over")
	// ErrGone says that the message or the chat does not exist.
	ErrGone = errors.New("gone")
)

// Error is a platform's refusal.
type Error struct {
	Permanent  bool          // sending again cannot help
	RetryAfter time.Duration // 0: not said
	Err        error
}

// Error returns the cause's text.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
