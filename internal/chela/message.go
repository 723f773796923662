package chela

import "time"

// PeerKind says what kind of place a peer is.
type PeerKind string

// The kinds of peers.
const (
	Direct PeerKind = "direct" // one person
	Group  PeerKind = "group"  // several people
	Room   PeerKind = "channel"
)

// Peer is the other side of a conversation: a person or a group.
type Peer struct {
	Kind PeerKind `json:"kind,omitempty"`
	ID   string   `json:"id,omitempty"` // the platform's immutable id, never a display name
}

// Address says where a message came from or where an answer goes. It is
// comparable; two messages with equal addresses share a reply target.
type Address struct {
	Channel string    `json:"channel,omitempty"` // "telegram", or "local" for clients of the gateway
	Account AccountID `json:"account,omitempty"`
	Peer    Peer      `json:"peer,omitzero"`
	Thread  string    `json:"thread,omitempty"`
}

// LocalChannel is the channel name of clients that speak the gateway protocol
// (terminal, web page). They read the event stream and the history; nothing is
// delivered to them through the outbox.
const LocalChannel = "local"

// Local reports whether answers to a are read from the event stream instead of
// being delivered.
func (a Address) Local() bool { return a.Channel == "" || a.Channel == LocalChannel }

// Sender is the person who wrote a message. ID is the platform's immutable
// id and the only field that decides anything; Name is for display.
type Sender struct {
	ID   string `json:"id,omitempty"`
	Name string `json:"name,omitempty"`
}

// Media is an attachment of a message. One that is kept elsewhere has a Ref in
// the place of Data; Bytes is then its size, and that of one whose content is
// lost.
type Media struct {
	Name  string `json:"name,omitempty"` // file name as the sender gave it; not to be trusted as a path
	Type  string `json:"type"`           // MIME type
	Data  []byte `json:"data,omitempty"`
	Ref   string `json:"ref,omitempty"`
	Bytes int    `json:"bytes,omitempty"`
	Lost  string `json:"lost,omitempty"` // why its content was not taken; empty: it was
}

// Size returns the size in bytes.
func (m Media) Size() int {
	if m.Ref != "" || m.Lost != "" {
		return m.Bytes
	}
	return len(m.Data)
}

// Inbound is a message on its way in, from a channel or a client. It becomes
// work only through inbound.Admit.
type Inbound struct {
	// ID is the platform's message id, or the client's idempotency key. With
	// Address it is the key under which the message is taken at most once.
	ID      string     `json:"id"`
	Address Address    `json:"address"`
	Session SessionKey `json:"session,omitempty"` // named by a client that may; empty: routed by Address
	Sender  Sender     `json:"sender,omitzero"`
	Text    string     `json:"text"`
	Media   []Media    `json:"media,omitempty"`
	ReplyTo string     `json:"replyTo,omitempty"` // id of the message this one answers
	Mode    string     `json:"mode,omitempty"`    // queue mode for this message only; empty: the session's
	Think   string     `json:"think,omitempty"`   // thinking level for the run this message starts
	Time    time.Time  `json:"time"`

	// Edited marks a message whose text was changed after it was sent:
	// commands in it are ignored.
	Edited bool `json:"edited,omitempty"`
	// Mentioned says that a group message addresses the agent.
	Mentioned bool `json:"mentioned,omitempty"`

	// Seen is what the writer saw of the conversation. The message is refused
	// when that is not so any more at the moment in which it is taken.
	Seen Seen `json:"-"`
}

// Seen is how far a conversation had come. The zero Seen says nothing.
type Seen struct {
	Transcript string  // id of the transcript; "": not said
	Last       *string // id of its last entry, "" when there was none; nil: not said
	Earlier    bool    // an entry before the last one is as good
}
