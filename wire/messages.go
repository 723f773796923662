package wire

import "encoding/json"

// Methods that act on chats of messaging channels.
const (
	MethodSend          = "send"
	MethodPoll          = "poll"
	MethodMessageAction = "message.action"
)

// Send holds the parameters of send.
type Send struct {
	To        string   `json:"to"`
	Message   string   `json:"message,omitempty"`   // Markdown
	MediaURL  string   `json:"mediaUrl,omitempty"`  // data:…, or media:… of a file that the gateway has
	MediaURLs []string `json:"mediaUrls,omitempty"` // likewise
	Buffer    []byte   `json:"buffer,omitempty"`    // the content of a file
	Filename  string   `json:"filename,omitempty"`  // its name
	Type      string   `json:"contentType,omitempty"`
	Channel   string   `json:"channel,omitempty"` // "": that of To, or the only one
	Account   string   `json:"accountId,omitempty"`
	ReplyTo   string   `json:"replyToId,omitempty"`
	Thread    string   `json:"threadId,omitempty"`
	Key       string   `json:"idempotencyKey"`
}

// Poll holds the parameters of poll.
type Poll struct {
	To        string   `json:"to"`
	Question  string   `json:"question"`
	Options   []string `json:"options"`
	Most      int      `json:"maxSelections,omitempty"` // more than 1: several may be chosen
	Seconds   int      `json:"durationSeconds,omitempty"`
	Hours     int      `json:"durationHours,omitempty"`
	Anonymous *bool    `json:"isAnonymous,omitempty"` // nil: true
	Thread    string   `json:"threadId,omitempty"`
	Channel   string   `json:"channel,omitempty"`
	Account   string   `json:"accountId,omitempty"`
	Key       string   `json:"idempotencyKey"`
}

// MessageAction holds the parameters of message.action. Params is a [MessageParams]. OpenClaw
// has other names for some of its properties, which are accepted, too.
type MessageAction struct {
	Channel string          `json:"channel"` // "": that of the target, or the only one
	Action  string          `json:"action"`
	Params  json.RawMessage `json:"params"`
	Reply   *MessageReply   `json:"reply,omitempty"`
	Account string          `json:"accountId,omitempty"`
	Key     string          `json:"idempotencyKey,omitempty"`
	Owner   *bool           `json:"senderIsOwner,omitempty"`          // false is refused
	Origin  string          `json:"conversationReadOrigin,omitempty"` // OriginOperator; others are refused
}

// OriginOperator is the origin of a call whose client reads conversations itself.
const OriginOperator = "direct-operator"

// MessageReply is the message to which an action replies.
type MessageReply struct {
	ReplyTo string `json:"replyToId"`
	Source  string `json:"source,omitempty"`
	Mode    string `json:"mode,omitempty"`
}

// MessageParams says what an action does. Which properties are used depends on the action.
type MessageParams struct {
	To        string            `json:"to,omitempty"`
	Targets   []string          `json:"targets,omitempty"`
	Channel   string            `json:"channel,omitempty"`
	Account   string            `json:"accountId,omitempty"`
	Message   string            `json:"message,omitempty"`
	Media     []string          `json:"media,omitempty"` // as Send.MediaURLs
	Files     []MessageFile     `json:"files,omitempty"`
	Buttons   [][]MessageButton `json:"buttons,omitempty"`
	ReplyTo   string            `json:"replyTo,omitempty"`
	Thread    string            `json:"threadId,omitempty"`
	MessageID string            `json:"messageId,omitempty"`
	Emoji     string            `json:"emoji,omitempty"`
	Remove    bool              `json:"remove,omitempty"`
	Question  string            `json:"question,omitempty"`
	Options   []string          `json:"options,omitempty"`
	Multiple  bool              `json:"multiple,omitempty"`
	Public    bool              `json:"public,omitempty"`
	Seconds   int               `json:"pollDurationSeconds,omitempty"`
	Hours     float64           `json:"pollDurationHours,omitempty"`
	Name      string            `json:"name,omitempty"`
	Query     string            `json:"query,omitempty"`
	Kind      string            `json:"kind,omitempty"` // of search: user, group or channel
	Limit     int               `json:"limit,omitempty"`
	DryRun    bool              `json:"dryRun,omitempty"`
}

// MessageFile is a file that is sent.
type MessageFile struct {
	Name string `json:"filename,omitempty"`
	Type string `json:"contentType,omitempty"` // "": it is found out
	Data []byte `json:"buffer"`
}

// MessageButton is a button below a message.
type MessageButton struct {
	Label string `json:"label"`
	Data  string `json:"data,omitempty"` // sent by a person who presses it; 1 to 64 bytes
	URL   string `json:"url,omitempty"`  // opened instead
	Style string `json:"style,omitempty"`
}

// States of a [MessageResult].
const (
	MessageDone    = "done"
	MessageSent    = "sent"
	MessageQueued  = "queued"  // it will be sent
	MessageFailed  = "failed"  // it was refused, or given up
	MessageUnknown = "unknown" // the connection was lost; it must not be repeated
	MessagePlanned = "planned" // of a dry run
	MessagePartial = "partial" // of a broadcast, whose targets differ
)

// MessageResult is the result of send, poll and message.action.
type MessageResult struct {
	RunID     string           `json:"runId,omitempty"` // the idempotency key
	OK        bool             `json:"ok"`              // it did not fail, and its outcome is known
	Action    string           `json:"action"`
	Status    string           `json:"status"`
	Text      string           `json:"text"` // for people
	Channel   string           `json:"channel,omitempty"`
	Account   string           `json:"accountId,omitempty"`
	To        string           `json:"to,omitempty"`
	MessageID string           `json:"messageId,omitempty"` // the first one of MessageIDs
	IDs       []string         `json:"messageIds,omitempty"`
	Thread    string           `json:"threadId,omitempty"`
	DryRun    bool             `json:"dryRun,omitempty"`
	Messages  []ChannelMessage `json:"messages,omitempty"` // oldest first
	Entries   []DirectoryEntry `json:"entries,omitempty"`
	Targets   []MessageResult  `json:"results,omitempty"` // of a broadcast, in the order of its targets
}

// ChannelMessage is a message that stands in a chat of a channel.
type ChannelMessage struct {
	ID     string `json:"id"`
	Sender string `json:"senderId,omitempty"`
	Name   string `json:"senderName,omitempty"`
	Own    bool   `json:"own,omitempty"` // of the account itself
	Text   string `json:"text"`
	Time   Millis `json:"timestamp"`
}

// DirectoryEntry is a person or a chat of a channel.
type DirectoryEntry struct {
	ID     string `json:"id"`
	Kind   string `json:"kind"` // user, group, channel
	Name   string `json:"name"`
	Handle string `json:"handle,omitempty"` // without @
}
