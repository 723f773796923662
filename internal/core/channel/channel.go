// Package channel defines the contract of a messaging channel. A channel only
// transfers messages. Access control, queueing and retries are implemented
// elsewhere.
//
// Optional abilities are one-method interfaces found by type assertion:
// [Editor], [Deleter], [Typer], [Reactor], [Prober], [Finder]. Package channeltest
// contains the conformance suite and an in-memory implementation.
package channel

import (
	"context"
	"errors"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/lease"
)

// Sink accepts a message that a channel received. The channel advances its cursor
// (or acknowledges the webhook) only after Sink returned nil: the message is then
// on disk. A channel may deliver a message repeatedly; it is accepted once.
type Sink func(context.Context, chela.Inbound) error

// Channel is one configured account on a messaging platform.
//
// Run receives messages until ctx ends or the connection fails permanently; it
// reconnects by itself. Send sends one part and returns when the platform
// confirmed it. Send is called from one goroutine at a time per address.
//
// Where the platform supports it, sending the same Part.Key repeatedly creates
// one message. Send returns an *[Error] when the platform rejected the message,
// and an error that wraps [ErrAmbiguous] when the message may have been sent.
type Channel interface {
	Run(ctx context.Context, sink Sink) error
	Send(ctx context.Context, p Part) (Receipt, error)
}

// Instance is the running instance of an account, for a few calls.
type Instance struct {
	Channel Channel
	Lease   lease.Lease // of the account, which this process holds; the writes of a delivery check it
	Release func()      // is called after the last call
}

// Part is one message to send.
type Part struct {
	Key     string // the same for every attempt
	Address chela.Address
	ReplyTo string
	Text    string
	Media   []chela.Media
}

// Receipt is the platform's confirmation of a sent message.
type Receipt struct {
	ID   string // the platform's message id
	Time time.Time
}

// Editor changes the text of a sent message. The error wraps [ErrGone] if the
// message no longer exists.
type Editor interface {
	Edit(ctx context.Context, a chela.Address, id, text string) error
}

// Deleter deletes a sent message. The error wraps [ErrGone] if the message no
// longer exists.
type Deleter interface {
	Delete(ctx context.Context, a chela.Address, id string) error
}

// Typer shows a typing indicator, which lasts a few seconds.
type Typer interface {
	Typing(ctx context.Context, a chela.Address) error
}

// Reactor sets an emoji reaction on a message; the empty emoji removes it.
type Reactor interface {
	React(ctx context.Context, a chela.Address, id, emoji string) error
}

// Prober checks that the account works.
type Prober interface {
	Probe(ctx context.Context) error
}

// Finder looks up the message that was sent with a key, to resolve an ambiguous
// outcome. It reports false if there is none.
type Finder interface {
	Find(ctx context.Context, a chela.Address, key string) (Receipt, bool, error)
}

// Limits are the limits of a platform.
type Limits struct {
	Text int            // maximum length of a message, in the unit of Size; 0: 4000
	Size func(rune) int // length of a rune; nil: 1
	Edit time.Duration  // minimum interval between edits of one message; 0: 1 s
}

// Errors of channels.
var (
	// ErrAmbiguous says that the platform may have accepted the message.
	ErrAmbiguous = errors.New("outcome unknown: the connection broke after the message was sent")
	// ErrGone says that the message or the chat does not exist.
	ErrGone = errors.New("gone")
)

// Error is a rejection by the platform.
type Error struct {
	Permanent  bool          // a retry cannot succeed
	RetryAfter time.Duration // requested by the platform; 0: not specified
	Err        error
}

// Error returns the cause's text.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
