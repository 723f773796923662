package chela

import "time"

// PeerKind is the kind of a peer.
type PeerKind string

// The kinds of peers.
const (
	Direct PeerKind = "direct"  // one person
	Group  PeerKind = "group"   // several people
	Room   PeerKind = "channel" // a public room, such as a Slack channel
)

// Peer is the other side of a conversation: a person or a group.
type Peer struct {
	Kind PeerKind `json:"kind,omitempty"`
	ID   string   `json:"id,omitempty"` // the platform's immutable id, never a display name
}

// Address is the source of a message or the target of an answer. It is comparable; two
// messages with equal addresses have the same reply target.
type Address struct {
	Channel string    `json:"channel,omitempty"` // "telegram", or "local" for clients of the gateway
	Account AccountID `json:"account,omitempty"`
	Peer    Peer      `json:"peer,omitzero"`
	Thread  string    `json:"thread,omitempty"`
}

// LocalChannel is the channel name of clients that use the gateway protocol (terminal,
// web page). They read the event stream and the history; the outbox delivers nothing to
// them.
const LocalChannel = "local"

// Local reports whether answers to a are read from the event stream instead of
// being delivered.
func (a Address) Local() bool { return a.Channel == "" || a.Channel == LocalChannel }

// Sender is the person who wrote a message. ID is the immutable id on the platform and
// the only field used for decisions; Name is for display.
type Sender struct {
	ID   string `json:"id,omitempty"`
	Name string `json:"name,omitempty"`
}

// Media is an attachment of a message. An attachment stored in a file has Ref instead of
// Data. Bytes is the size if Ref or Lost is set.
type Media struct {
	Name  string `json:"name,omitempty"` // file name given by the sender; not trusted as a path
	Type  string `json:"type"`           // MIME type
	Data  []byte `json:"data,omitempty"`
	Ref   string `json:"ref,omitempty"`
	Bytes int    `json:"bytes,omitempty"`
	Lost  string `json:"lost,omitempty"` // why the content was not accepted; empty: accepted
}

// Size returns the size in bytes.
func (m Media) Size() int {
	if m.Ref != "" || m.Lost != "" {
		return m.Bytes
	}
	return len(m.Data)
}

// Inbound is a message received from a channel or a client. Only inbound.Admit accepts
// it.
type Inbound struct {
	// ID is the platform's message id, or the client's idempotency key. A message
	// with the same ID and Address is accepted at most once.
	ID      string     `json:"id"`
	Address Address    `json:"address"`
	Session SessionKey `json:"session,omitempty"` // set by a client with the permission; empty: routed by Address
	Sender  Sender     `json:"sender,omitzero"`
	Text    string     `json:"text"`
	Media   []Media    `json:"media,omitempty"`
	ReplyTo string     `json:"replyTo,omitempty"` // id of the message to which this is a reply
	Mode    string     `json:"mode,omitempty"`    // queue mode for this message only; empty: the session's
	Think   string     `json:"think,omitempty"`   // thinking level for the run this message starts
	Time    time.Time  `json:"time"`

	// What the platform knows for the routing; empty: none, or unknown.
	Guild string   `json:"guild,omitempty"` // the server that contains the conversation
	Team  string   `json:"team,omitempty"`  // the workspace that contains it
	Roles []string `json:"roles,omitempty"` // the roles of the sender in the guild

	// Task marks a message whose run is a task in the background.
	Task bool `json:"task,omitempty"`
	// Edited marks a message whose text was changed after it was sent:
	// commands in it are ignored.
	Edited bool `json:"edited,omitempty"`
	// Mentioned marks a group message that addresses the agent.
	Mentioned bool `json:"mentioned,omitempty"`

	// Seen is the state of the conversation that the sender saw. The message is
	// refused if the state has changed since.
	Seen Seen `json:"-"`
}

// Seen is a state of a conversation. The zero Seen matches any state.
type Seen struct {
	Transcript string  // id of the transcript; "": unspecified
	Last       *string // id of its last entry, "" if empty; nil: unspecified
	Earlier    bool    // Last may also be an older entry
}
