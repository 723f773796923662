// Package channel defines the contract of a messaging channel. A channel only
// transfers messages. Access control, queueing, retries and the splitting of long texts
// are implemented elsewhere.
//
// Optional abilities are small interfaces found by [As]: [Editor], [Deleter], [Typer],
// [Reactor], [Prober], [Finder], [Fetcher], [Poller], [Pinner], [Threader], [Reader],
// [Directory], [Menuer], [Poster]. Package channeltest contains the conformance
// suite and an in-memory implementation.
package channel

import (
	"context"
	"errors"
	"net/http"
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
	Text    string // Markdown; the channel shows it as its platform can
	Media   []chela.Media
	Buttons [][]Button // below the text, in rows; a platform without buttons gets none
}

// Button and Style are those of package chela.
type (
	Button = chela.Button
	Style  = chela.ButtonStyle
)

// The styles of buttons.
const (
	Primary = chela.Primary
	Success = chela.Success
	Danger  = chela.Danger
)

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

// Fetcher gets the content of an attachment that the channel announced with
// Media.Source. The result has Data instead of Source. Content of more than most bytes
// is not read to its end; the error says so.
type Fetcher interface {
	Fetch(ctx context.Context, m chela.Media, most int) (chela.Media, error)
}

// Poller sends a poll.
type Poller interface {
	Poll(ctx context.Context, p Poll) (Receipt, error)
}

// Poll is a question with 2 to 12 answers to choose from.
type Poll struct {
	Key      string // as Part.Key
	Address  chela.Address
	Question string
	Options  []string
	Multiple bool          // several answers may be chosen
	Public   bool          // everybody sees who chose what
	Open     time.Duration // 0: until it is closed by hand
}

// Pinner pins a message in its chat, or unpins it. The error wraps [ErrGone] if the
// message does not exist.
type Pinner interface {
	Pin(ctx context.Context, a chela.Address, id string, pinned bool) error
}

// Threader creates a thread in a chat and returns its address.
type Threader interface {
	Thread(ctx context.Context, a chela.Address, name string) (chela.Address, error)
}

// Reader returns the last messages of a chat, oldest first, at most n. Those of the
// account itself are marked.
type Reader interface {
	Read(ctx context.Context, a chela.Address, n int) ([]Message, error)
}

// Message is a message that stands in a chat.
type Message struct {
	ID     string
	Sender chela.Sender
	Own    bool // of the account itself
	Text   string
	Time   time.Time
}

// Directory finds people and chats by their names. An empty query finds all, at most n.
type Directory interface {
	Search(ctx context.Context, kind chela.PeerKind, query string, n int) ([]Entry, error)
}

// Entry is a person or a chat of a [Directory].
type Entry struct {
	Peer   chela.Peer
	Name   string
	Handle string // such as a user name, without @; empty: none
}

// Menuer shows people which commands there are.
type Menuer interface {
	Menu(ctx context.Context, commands []Command) error
}

// Command is an entry of a menu.
type Command struct {
	Name string // without the slash
	Doc  string // in a few words
}

// Poster receives messages that the platform posts to the gateway.
type Poster interface {
	// Path returns the path below the gateway's address at which posts are received; "":
	// the account receives none.
	Path() string
	// ServeHTTP answers a post. It is called for requests to Path while Run runs. The
	// channel authenticates a request before it reads the body to its end, and answers
	// with status 200 only after the message was accepted.
	http.Handler
}

// Limits are the limits of a platform.
type Limits struct {
	Text int            // maximum length of a message, in the unit of Size; 0: 4000
	Size func(rune) int // length of a rune; nil: 1
	Edit time.Duration  // minimum interval between edits of one message; 0: 1 s

	// Buttons says that messages have buttons. Elsewhere their labels are part of the text.
	Buttons bool
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
