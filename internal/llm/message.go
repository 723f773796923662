package llm

import (
	"encoding/json"
	"sync/atomic"
)

// Role says who wrote a message.
type Role string

// The roles. System text is not a message: it is [Request.System].
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "toolResult" // one message per result
)

// PartKind says what a part holds.
type PartKind string

// The kinds of parts.
const (
	PartText     PartKind = "text"
	PartImage    PartKind = "image"
	PartThinking PartKind = "thinking"
	PartCall     PartKind = "toolCall"
)

// Part is a piece of a message's content. Which fields are set follows from
// Kind.
type Part struct {
	Kind PartKind `json:"type"`
	Text string   `json:"text,omitempty"` // text; thinking (may be empty when it is hidden)

	// Signature proves a thinking part to the provider that made it; Redacted
	// is its encrypted form when the provider hides the text.
	Signature string `json:"signature,omitempty"`
	Redacted  string `json:"redacted,omitempty"`

	// Of an image: its type, and what it is. An image that is kept elsewhere has
	// a Ref in the place of Data; Bytes is then its size.
	MIME  string `json:"mimeType,omitempty"`
	Data  []byte `json:"data,omitempty"`
	Ref   string `json:"ref,omitempty"`
	Bytes int    `json:"bytes,omitempty"`

	Call *ToolCall `json:"call,omitempty"` // toolCall
}

// Text returns a text part.
func Text(s string) Part { return Part{Kind: PartText, Text: s} }

// Image returns an image part.
func Image(mime string, data []byte) Part {
	return Part{Kind: PartImage, MIME: mime, Data: data}
}

// Size returns the size of an image in bytes.
func (p *Part) Size() int {
	if p.Ref != "" {
		return p.Bytes
	}
	return len(p.Data)
}

// ToolCall is a model's request to run a tool.
type ToolCall struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Args is a JSON value, normally an object; never empty in a message that
	// a provider gave.
	Args json.RawMessage `json:"arguments"`
	// Raw is what the model wrote when it was no JSON (cut in the middle, or
	// malformed); Args is then {}. The tool door tries to repair it.
	Raw string `json:"raw,omitempty"`
}

// StopReason says why a model stopped.
type StopReason string

// The reasons.
const (
	StopEnd     StopReason = "stop"
	StopLength  StopReason = "length"
	StopTools   StopReason = "toolUse"
	StopRefusal StopReason = "refusal"
	StopError   StopReason = "error"
	StopAborted StopReason = "aborted"
)

// Message is one message of a conversation. It is immutable once it is in a
// request or in the transcript.
type Message struct {
	Role  Role   `json:"role"`
	Parts []Part `json:"content"`

	// Of an assistant message: who made it. Thinking parts are replayed only
	// to the provider that made them.
	Provider string     `json:"provider,omitempty"`
	Model    string     `json:"model,omitempty"`
	Stop     StopReason `json:"stopReason,omitempty"`

	// Of a tool result: which call it answers.
	CallID   string `json:"toolCallId,omitempty"`
	ToolName string `json:"toolName,omitempty"`
	IsError  bool   `json:"isError,omitempty"`

	memo atomic.Pointer[memo]
}

type memo struct {
	dialect string
	enc     []byte
}

// Memo returns enc(), kept in the message under the dialect's name, so that a
// message is encoded once for a conversation and not once for each request.
// A message keeps one encoding; asking for another dialect replaces it. The
// caller must not change the result. Messages that are dropped (see
// session.Cache) take their encodings with them.
func (m *Message) Memo(dialect string, enc func() []byte) []byte {
	if k := m.memo.Load(); k != nil && k.dialect == dialect {
		return k.enc
	}
	k := &memo{dialect, enc()}
	m.memo.Store(k)
	return k.enc
}

// Size estimates the memory that the message holds, in bytes, with its kept
// encoding.
func (m *Message) Size() int {
	n := 256
	for i := range m.Parts {
		p := &m.Parts[i]
		n += 200 + len(p.Text) + len(p.Data) + len(p.Signature) + len(p.Redacted)
		if p.Call != nil {
			n += 100 + len(p.Call.Args) + len(p.Call.Raw)
		}
	}
	if k := m.memo.Load(); k != nil {
		n += len(k.enc)
	}
	return n
}

// PlainText returns the text parts, joined.
func (m *Message) PlainText() string {
	var s string
	for i := range m.Parts {
		if m.Parts[i].Kind == PartText {
			s += m.Parts[i].Text
		}
	}
	return s
}

// Calls returns the tool calls of an assistant message, in order.
func (m *Message) Calls() []ToolCall {
	var calls []ToolCall
	for i := range m.Parts {
		if c := m.Parts[i].Call; m.Parts[i].Kind == PartCall && c != nil {
			calls = append(calls, *c)
		}
	}
	return calls
}

// User returns a user message of one text part.
func User(text string) *Message {
	return &Message{Role: RoleUser, Parts: []Part{Text(text)}}
}
