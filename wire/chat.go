package wire

import (
	"bytes"
	"encoding/json"
	"errors"
)

// ChatSend holds the parameters of chat.send. The idempotency key becomes the
// id of the run; sending again with the same key starts nothing.
type ChatSend struct {
	SessionKey     string       `json:"sessionKey"`
	Message        string       `json:"message"`
	IdempotencyKey string       `json:"idempotencyKey"`
	AgentID        string       `json:"agentId,omitempty"`
	Thinking       string       `json:"thinking,omitempty"`
	Fast           any          `json:"fastMode,omitempty"`  // true, false or auto, for this message
	QueueMode      string       `json:"queueMode,omitempty"` // steer, followup, collect, interrupt
	Attachments    []Attachment `json:"attachments,omitempty"`

	// SessionID and Leaf name the transcript and its last entry (null for
	// an empty one) that the client saw when the message was written. If
	// the transcript has moved on, the message is refused, unless it steers
	// the active run.
	SessionID string           `json:"sessionId,omitempty"`
	Leaf      Optional[string] `json:"expectedLeafEntryId,omitzero"`
}

// Attachment is a file sent with a message.
type Attachment struct {
	Type     string `json:"type,omitempty"` // image, audio, file
	MIME     string `json:"mimeType,omitempty"`
	FileName string `json:"fileName,omitempty"`
	Content  Base64 `json:"content"`
}

// Base64 is bytes encoded as base64 in JSON.
type Base64 []byte

// UnmarshalJSON also accepts a data URL.
func (b *Base64) UnmarshalJSON(raw []byte) error {
	if bytes.HasPrefix(raw, []byte(`"data:`)) {
		_, data, ok := bytes.Cut(raw, []byte(";base64,"))
		if !ok {
			return errors.New("data URL is not base64")
		}
		raw = append([]byte{'"'}, data...)
	}
	return json.Unmarshal(raw, (*[]byte)(b))
}

// ChatSent is the result of chat.send.
type ChatSent struct {
	RunID  string `json:"runId"`
	Status string `json:"status"` // StatusStarted, StatusInFlight, StatusOK, StatusError
}

// Status of a message or a run.
const (
	StatusStarted  = "started"   // queued
	StatusInFlight = "in_flight" // already known, not answered yet
	StatusAccepted = "accepted"  // first of two answers
	StatusOK       = "ok"
	StatusError    = "error"
	StatusTimeout  = "timeout"
)

// ChatAbort holds the parameters of chat.abort. Without RunID the session's run
// is aborted and its queue is cleared.
type ChatAbort struct {
	SessionKey string `json:"sessionKey"`
	RunID      string `json:"runId,omitempty"`
	AgentID    string `json:"agentId,omitempty"`
}

// ChatAborted is the result of chat.abort.
type ChatAborted struct {
	OK      bool     `json:"ok"`
	Aborted bool     `json:"aborted"`
	RunIDs  []string `json:"runIds"`
}

// ChatHistory holds the parameters of chat.history and chat.startup. Offset
// counts from the newest message; Cursor asks for the changes since an earlier
// answer.
type ChatHistory struct {
	SessionKey string   `json:"sessionKey,omitempty"`
	ShortID    string   `json:"shortId,omitempty"`  // of chat.startup, instead of SessionKey: see SessionsResolve
	SlugHint   string   `json:"slugHint,omitempty"` // goes with ShortID
	AgentID    string   `json:"agentId,omitempty"`
	SessionID  string   `json:"sessionId,omitempty"`        // an earlier transcript of the session; "": the current one
	Limit      int      `json:"limit,omitempty" min:"1"`    // messages; 0: 200
	MaxBytes   int      `json:"maxBytes,omitempty" min:"1"` // of all messages; 0: 6 MiB
	MaxChars   int      `json:"maxChars,omitempty" min:"1"` // per text; 0: no limit
	Offset     int      `json:"offset,omitempty" min:"0"`
	Cursor     string   `json:"cursor,omitempty"`
	MessageID  string   `json:"messageId,omitempty"`     // ends the page with this message's turn; overrides Offset
	Inputs     []string `json:"inputRunIds,omitempty"`   // client messages whose receipt is wanted
	Before     int64    `json:"pendingBefore,omitempty"` // pending inputs older than this
}

// History is the result of chat.history and chat.startup.
type History struct {
	SessionKey   string        `json:"sessionKey"`
	SessionID    string        `json:"sessionId,omitempty"`
	Messages     []Message     `json:"messages"`
	Activity     []Activity    `json:"activity,omitempty"`
	Pending      PendingInputs `json:"pendingInputs"`
	Receipts     []Receipt     `json:"inputReceipts,omitempty"`
	Consumptions []Receipt     `json:"inputConsumptions,omitempty"` // without State
	Cursor       string        `json:"deltaCursor,omitempty"`
	HasMore      bool          `json:"hasMore"`
	Offset       int           `json:"offset,omitempty"`
	NextOffset   int           `json:"nextOffset,omitempty"`
	Total        int           `json:"totalMessages"`
	Defaults     *SessionModel `json:"defaults,omitempty"`
	Info         *Session      `json:"sessionInfo,omitempty"`
	Thinking     string        `json:"thinkingLevel,omitempty"`
	Verbose      string        `json:"verboseLevel,omitempty"`
	InFlight     *InFlight     `json:"inFlightRun,omitempty"`
	Plan         *Plan         `json:"plan,omitempty"`     // nil: there is none
	Metadata     *ChatMetadata `json:"metadata,omitempty"` // chat.startup only
}

// Activity summarizes a message of the role RoleToolResult for clients that
// show it in one line.
type Activity struct {
	MessageID string         `json:"messageId"`
	Items     []ActivityItem `json:"items"`
}

// ActivityItem is a finished tool call.
type ActivityItem struct {
	ID     string `json:"itemId"`
	Phase  string `json:"phase"` // PhaseEnd
	Kind   string `json:"kind"`  // tool
	Title  string `json:"title"`
	Status string `json:"status"` // completed, failed
	Name   string `json:"name"`
	CallID string `json:"toolCallId"`
}

// HistoryDelta is the result of chat.history with a cursor. KindReset tells the
// client to discard its copy and to ask again without a cursor; nothing else is
// set.
type HistoryDelta struct {
	Kind         string           `json:"kind"` // KindDelta, KindReset
	Messages     []SessionMessage `json:"messages,omitzero"`
	Pending      *PendingInputs   `json:"pendingInputs,omitempty"`
	Receipts     []Receipt        `json:"inputReceipts,omitempty"`
	Consumptions []Receipt        `json:"inputConsumptions,omitempty"`
	Cursor       string           `json:"deltaCursor,omitempty"`
	Info         *Session         `json:"sessionInfo,omitempty"`
	InFlight     *InFlight        `json:"inFlightRun,omitempty"`
	Plan         *Plan            `json:"plan,omitempty"` // nil: there is none
}

// Kinds of a [HistoryDelta].
const (
	KindDelta = "delta"
	KindReset = "reset"
)

// Receipt is the state of a message a client sent.
type Receipt struct {
	RunID    string `json:"runId"`
	State    string `json:"state,omitempty"`             // InputPending, InputConsumed
	Consumed string `json:"consumedByEventId,omitempty"` // the entry that holds it
}

// States of a [Receipt].
const (
	InputPending  = "pending"
	InputConsumed = "consumed"
)

// InFlight is the active run.
type InFlight struct {
	RunID     string `json:"runId"`
	Text      string `json:"text"`
	StartedAt Millis `json:"startedAt"`
	Seq       int64  `json:"seq,omitempty"` // of the run's last event included in Text
}

// MaxPending is the maximum number of items in a [PendingInputs].
const MaxPending = 20

// PendingInputs is the queue of a session, oldest first.
type PendingInputs struct {
	Items []PendingInput `json:"items"`
	Total int            `json:"total"`
	Next  int64          `json:"nextBefore,omitempty"` // requests the items older than Items
}

// PendingInput is a queued message.
type PendingInput struct {
	ID         string  `json:"id"`
	RunID      string  `json:"runId"`
	State      string  `json:"state"` // queued
	AcceptedAt Millis  `json:"acceptedAt"`
	Message    Message `json:"message"`
}

// ChatMetadataGet holds the parameters of chat.metadata.
type ChatMetadataGet struct {
	AgentID    string `json:"agentId,omitempty"`
	SessionKey string `json:"sessionKey,omitempty"`
}

// ChatMetadata is the result of chat.metadata: the choices a client offers
// beside its message input.
type ChatMetadata struct {
	Models   []Model   `json:"models"`
	Commands []Command `json:"commands"`
	Swarm    bool      `json:"swarmEnabled"`
	Locked   bool      `json:"runtimeSelectionLocked"`
}

// ChatMessageGet holds the parameters of chat.message.get.
type ChatMessageGet struct {
	SessionKey string `json:"sessionKey"`
	AgentID    string `json:"agentId,omitempty"`
	MessageID  string `json:"messageId"`
	MaxChars   int    `json:"maxChars,omitempty" min:"1"`
}

// ChatMessage is the result of chat.message.get.
type ChatMessage struct {
	OK      bool     `json:"ok"`
	Message *Message `json:"message,omitempty"`
	Why     string   `json:"unavailableReason,omitempty"` // not_found, oversized, not_visible
}

// ChatInject holds the parameters of chat.inject: a note added to the
// transcript under the assistant's role and never sent to a model.
type ChatInject struct {
	SessionKey string `json:"sessionKey"`
	AgentID    string `json:"agentId,omitempty"`
	Message    string `json:"message"`
	Label      string `json:"label,omitempty"`
}

// ChatInjected is the result of chat.inject.
type ChatInjected struct {
	OK        bool   `json:"ok"`
	MessageID string `json:"messageId"`
}

// Roles of messages.
const (
	RoleUser       = "user"
	RoleAssistant  = "assistant"
	RoleToolResult = "toolResult"
	RoleSystem     = "system" // shown to the person, never sent to a model
)

// Message is one message of a transcript.
type Message struct {
	Role           string          `json:"role"`
	Content        Contents        `json:"content"`
	Timestamp      Millis          `json:"timestamp"`
	IdempotencyKey string          `json:"idempotencyKey,omitempty"` // of a user message: "<run id>:user"
	Provider       string          `json:"provider,omitempty"`
	Model          string          `json:"model,omitempty"`
	Usage          *Usage          `json:"usage,omitempty"`
	StopReason     string          `json:"stopReason,omitempty"`
	ToolCallID     string          `json:"toolCallId,omitempty"`
	ToolName       string          `json:"toolName,omitempty"`
	IsError        bool            `json:"isError,omitempty"`
	Details        json.RawMessage `json:"details,omitempty"`
	Abort          *Abort          `json:"openclawAbort,omitempty"` // set when the answer was aborted
	Meta           MessageMeta     `json:"__openclaw,omitzero"`
}

// Text returns the text parts, concatenated.
func (m Message) Text() string {
	var s string
	for _, c := range m.Content {
		if c.Type == ContentText {
			s += c.Text
		}
	}
	return s
}

// MessageMeta locates a message in its transcript.
type MessageMeta struct {
	ID             string `json:"id,omitempty"`
	Seq            int64  `json:"seq,omitempty"` // 1-based position in the transcript
	RunID          string `json:"runId,omitempty"`
	IdempotencyKey string `json:"idempotencyKey,omitempty"`
	SenderIsOwner  bool   `json:"senderIsOwner,omitempty"`
	Kind           string `json:"kind,omitempty"`   // notice, command, …; "": from a person or a model
	Footer         string `json:"footer,omitempty"` // in chat events: one line about usage to show below the answer
	Truncated      bool   `json:"truncated,omitempty"`
}

// KindCommand is the Kind of a slash command and its answer.
const KindCommand = "command"

// Abort says that an answer was aborted, and by whom.
type Abort struct {
	Aborted bool   `json:"aborted"`
	Origin  string `json:"origin"`
	RunID   string `json:"runId"`
}

// Types of content.
const (
	ContentText     = "text"
	ContentThinking = "thinking"
	ContentCall     = "toolCall"
	ContentImage    = "image"
)

// Content is a part of a message.
type Content struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	Thinking  string          `json:"thinking,omitempty"`
	ID        string          `json:"id,omitempty"`   // of a tool call
	Name      string          `json:"name,omitempty"` // of a tool call
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Title     string          `json:"title,omitempty"`    // of a tool call, if its tool gives one
	MIME      string          `json:"mimeType,omitempty"` // of an image
	Data      []byte          `json:"data,omitempty"`     // of an image; omitted when large
	Bytes     int             `json:"bytes,omitempty"`    // size of an image whose data was omitted
}

// TextContent returns content of one text part.
func TextContent(s string) Contents { return Contents{{Type: ContentText, Text: s}} }

// Contents is the content of a message.
type Contents []Content

// UnmarshalJSON also accepts a plain string as one text part.
func (c *Contents) UnmarshalJSON(b []byte) error {
	if len(b) == 0 || b[0] != '"' {
		return json.Unmarshal(b, (*[]Content)(c))
	}
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	*c = TextContent(s)
	return nil
}

// Usage is the token counts of a model call.
type Usage struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cacheRead"`
	CacheWrite int64 `json:"cacheWrite"`
	Total      int64 `json:"totalTokens"`
	Cost       *Cost `json:"cost,omitempty"` // nil: unknown price
}

// Cost is a price in US dollars.
type Cost struct {
	Total float64 `json:"total"`
}
