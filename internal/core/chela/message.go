package chela

import (
	"strings"
	"time"
)

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

// ParsePeer parses a chat as people write it: kind:id:topic:thread, of which everything
// except the id is optional. Without a kind, Peer.Kind is empty.
func ParsePeer(s string) (p Peer, thread string) {
	p.ID = strings.TrimSpace(s)
	if word, rest, ok := strings.Cut(p.ID, ":"); ok {
		if kind := PeerKindOf(word); kind != "" {
			p.Kind, p.ID = kind, rest
		}
	}
	const topic = ":topic:"
	if i := strings.LastIndex(p.ID, topic); i >= 0 {
		p.ID, thread = p.ID[:i], p.ID[i+len(topic):]
	}
	return p, thread
}

// PeerKindOf returns the kind that a word before the id of a chat names; "": none.
func PeerKindOf(word string) PeerKind {
	switch word {
	case "user", "direct", "dm", "uuid", "username":
		return Direct
	case "group", "chat", "chat_id", "conversation":
		return Group
	case "channel", "room":
		return Room
	}
	return ""
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

// Private reports whether one person reads what is sent to a, and not a group.
func (a Address) Private() bool { return a.Local() || a.Peer.Kind == Direct }

// Sender is the person who wrote a message. ID is the immutable id on the platform and
// the only field used for decisions; Name is for display.
type Sender struct {
	ID   string `json:"id,omitempty"`
	Name string `json:"name,omitempty"`
	Bot  bool   `json:"bot,omitempty"` // a program on the platform
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

	// Source is where the channel gets the content from, such as the platform's id of a
	// file. The content is fetched after the message was admitted; Bytes is then the size
	// that the platform announced, 0: unknown.
	Source string `json:"source,omitempty"`

	// Say is what a recording says that is to be made before it is sent.
	Say string `json:"say,omitempty"`

	// Text is what a program or a model read in the content: a transcript, a
	// description, or the text of a document. By names what read it. Problem is why
	// there is no Text; both are empty if the content was not to be read.
	Text    string `json:"text,omitempty"`
	By      string `json:"by,omitempty"`
	Problem string `json:"problem,omitempty"`
}

// Size returns the size in bytes.
func (m Media) Size() int {
	if m.Ref != "" || m.Lost != "" || m.Source != "" {
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
	Quote   Quote      `json:"quote,omitzero"`    // what that message says, if the platform told
	Mode    string     `json:"mode,omitempty"`    // queue mode for this message only; empty: the session's
	Think   string     `json:"think,omitempty"`   // thinking level for the run this message starts
	Fast    string     `json:"fast,omitempty"`    // fast mode for that run: off, on, auto
	Model   string     `json:"model,omitempty"`   // model for that run; set by a client
	Time    time.Time  `json:"time"`

	// For the run that this message starts: how much its system prompt contains (see
	// prompt.Mode), and whether the workspace's files are left out of it.
	PromptMode string `json:"promptMode,omitempty"`
	Light      bool   `json:"light,omitempty"`

	// Prompt is what a client adds to the system prompt of that run. Earlier is what was
	// said before the message, in a conversation that the client keeps itself.
	Prompt  string `json:"prompt,omitempty"`
	Earlier string `json:"earlier,omitempty"`

	// Digest identifies what a client sent, so that it is told if it uses an ID for two
	// messages; empty: it is not compared.
	Digest string `json:"digest,omitempty"`

	// Reaction is the emoji that the sender set on the message ReplyTo of the account. The
	// message has no text then, and starts no run.
	Reaction string `json:"reaction,omitempty"`

	Group     string `json:"group,omitempty"`     // title of the group, for display
	Forwarded string `json:"forwarded,omitempty"` // name of the author, if the sender forwarded the message

	// What the platform knows for the routing; empty: none, or unknown.
	Guild string   `json:"guild,omitempty"` // the server that contains the conversation
	Team  string   `json:"team,omitempty"`  // the workspace that contains it
	Roles []string `json:"roles,omitempty"` // the roles of the sender in the guild

	// Task marks a message whose run is a task in the background, for the end of which its
	// sender waits.
	Task bool `json:"task,omitempty"`
	// Edited marks a message whose text was changed after it was sent:
	// commands in it are ignored.
	Edited bool `json:"edited,omitempty"`
	// Mentioned marks a group message that addresses the agent.
	Mentioned bool `json:"mentioned,omitempty"`
	// Overheard marks a message of a group that does not address the agent. It is context
	// of the next one that does.
	Overheard bool `json:"overheard,omitempty"`
	// Unread marks a message whose recordings have not been transcribed yet. It waits
	// until they are.
	Unread bool `json:"unread,omitempty"`

	// Seen is the state of the conversation that the sender saw. The message is
	// refused if the state has changed since.
	Seen Seen `json:"-"`
}

// Quote is what the message says to which another one is a reply.
type Quote struct {
	Sender Sender `json:"sender,omitzero"`
	Text   string `json:"text,omitempty"`
}

// Seen is a state of a conversation. The zero Seen matches any state.
type Seen struct {
	Transcript string  // id of the transcript; "": unspecified
	Last       *string // id of its last entry, "" if empty; nil: unspecified
	Earlier    bool    // Last may also be an older entry
}
