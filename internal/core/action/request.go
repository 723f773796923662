package action

import (
	"fmt"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/outbox"
)

// Limits of requests.
const (
	MaxText    = 100_000 // bytes of a text
	MaxTargets = 50      // chats of a broadcast
	MaxList    = 100     // messages and entries that are listed
	MaxButtons = 25      // of a message
	maxData    = 64      // bytes of a button's data
	maxLabel   = 100     // bytes of a button's label
	minOptions = 2       // of a poll
	maxOptions = 12
	maxOpen    = 32 * 24 * time.Hour // of a poll
)

// Request is an action to carry out. Text is Markdown.
type Request struct {
	Action Action

	To      string   // a chat: an id, or a name in the channel's directory; "": that of the run
	Targets []string // of Broadcast
	Channel string   // "": that of To, or the only one
	Account string   // "": that of the chat, or the usual one
	Thread  string

	Text    string
	Media   []chela.Media // in files; see media.Files.Store
	Buttons [][]chela.Button
	ReplyTo string
	Poll    outbox.Poll

	Message string // id of the message that is changed; of React and Pin, "": the one that the run answers
	Emoji   string // of React; "": the reaction is removed
	Name    string // of the thread
	Query   string // of Search; "": everybody
	Kind    chela.PeerKind
	Limit   int // of Read and Search; 0: 20

	Dry bool // only report what would be done

	// Key makes a repeated request have its effect once; "": each request has it.
	Key  string
	From Origin
}

// Origin is the run that makes a request. The zero Origin is a person's client.
type Origin struct {
	Run     chela.RunID
	Session chela.SessionKey
	Agent   chela.AgentID
	Cross   CrossContext
}

// CrossContext is whether runs of a chat on a channel may send to other chats.
type CrossContext struct {
	Within *bool `json:"allowWithinProvider"` // on the same channel; nil: yes
	Across bool  `json:"allowAcrossProviders"`
}

// Check returns an error if the request is not complete, or is too large.
func (r *Request) Check() error {
	if r.Limit == 0 {
		r.Limit = 20
	}
	switch r.Action {
	case Send, Broadcast:
		if strings.TrimSpace(r.Text) == "" && len(r.Media) == 0 {
			return invalid("message: there is neither text nor a file to send")
		}
		if r.Action == Broadcast && (len(r.Targets) == 0 || len(r.Targets) > MaxTargets) {
			return invalid("targets: want 1 to %d chats", MaxTargets)
		}
	case Poll:
		return checkPoll(r.Poll)
	case Edit:
		if strings.TrimSpace(r.Text) == "" {
			return invalid("message: the new text is missing")
		}
	case Thread:
		if strings.TrimSpace(r.Name) == "" {
			return invalid("name: the name of the thread is missing")
		}
	case Read, Search:
		if r.Limit < 1 || r.Limit > MaxList {
			return invalid("limit: want 1 to %d", MaxList)
		}
	}
	if len(r.Text) > MaxText {
		return invalid("message: %d bytes is too long; the limit is %d", len(r.Text), MaxText)
	}
	if r.Message == "" && (r.Action == Edit || r.Action == Delete || r.Action == Unpin) {
		return invalid("messageId is missing: the id of the message to %s", r.Action)
	}
	return checkButtons(r.Buttons)
}

func checkPoll(p outbox.Poll) error {
	if strings.TrimSpace(p.Question) == "" {
		return invalid("question: the question of the poll is missing")
	}
	if n := len(p.Options); n < minOptions || n > maxOptions {
		return invalid("options: a poll has %d to %d options, not %d", minOptions, maxOptions, n)
	}
	for i, o := range p.Options {
		if strings.TrimSpace(o) == "" {
			return invalid("options: option %d is empty", i+1)
		}
	}
	if p.Open < 0 || p.Open > maxOpen {
		return invalid("a poll is open for at most %d hours", int(maxOpen.Hours()))
	}
	return nil
}

func checkButtons(rows [][]chela.Button) error {
	n := 0
	for _, row := range rows {
		for _, b := range row {
			n++
			switch {
			case strings.TrimSpace(b.Label) == "" || len(b.Label) > maxLabel:
				return invalid("buttons: button %d: want a label of 1 to %d bytes", n, maxLabel)
			case (b.Data == "") == (b.URL == ""):
				return invalid("buttons: button %q: want either data or url", b.Label)
			case len(b.Data) > maxData:
				return invalid("buttons: button %q: its data has %d bytes; the limit is %d", b.Label, len(b.Data), maxData)
			case b.URL != "" && !strings.HasPrefix(b.URL, "https://") && !strings.HasPrefix(b.URL, "http://"):
				return invalid("buttons: button %q: want a url that begins with https://", b.Label)
			}
			switch b.Style {
			case "", "secondary", chela.Primary, chela.Success, chela.Danger:
			default:
				return invalid("buttons: button %q: unknown style %q; use primary, success or danger", b.Label, b.Style)
			}
		}
	}
	if n > MaxButtons {
		return invalid("buttons: %d buttons are too many; the limit is %d", n, MaxButtons)
	}
	return nil
}

func invalid(format string, args ...any) error {
	return chela.Errorf(chela.CodeInvalid, format, args...)
}

// Status is what became of a request.
type Status string

// The statuses.
const (
	Done    Status = "done"    // the platform confirmed it
	Sent    Status = "sent"    // likewise, of a message
	Queued  Status = "queued"  // the message will be sent
	Failed  Status = "failed"  // it was refused, or given up
	Unknown Status = "unknown" // the connection was lost; it must not be repeated
	Planned Status = "planned" // of a dry run
	Partial Status = "partial" // of a broadcast, whose targets differ
)

// Result is what became of a request.
type Result struct {
	Action  Action
	Channel string
	Account chela.AccountID
	To      string // the id of the chat, with its thread
	Status  Status
	Text    string   // for people and models
	IDs     []string // of the messages that were sent, or of the message that was changed
	Parts   int      // of a message that was sent

	Messages []channel.Message // of Read, oldest first
	Entries  []channel.Entry   // of Search
	Thread   string            // of Thread
	Targets  []Result          // of Broadcast, in the order of the request
}

// Bad reports whether the request was not carried out, or may not have been.
func (r Result) Bad() bool { return r.Status == Failed || r.Status == Unknown }

// Where returns "channel:chat".
func (r Result) Where() string { return fmt.Sprintf("%s:%s", r.Channel, r.To) }
