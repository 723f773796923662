package llm

import (
	"encoding/json"
	"strings"
	"sync/atomic"

	"github.com/chela-ai/chela/internal/core/chela"
)

// Role is the author of a message.
type Role string

// Roles. The system prompt is not a message: see [Request.System].
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "toolResult" // one message per result
)

// PartKind is the kind of a part.
type PartKind string

// Kinds of parts.
const (
	PartText     PartKind = "text"
	PartImage    PartKind = "image"
	PartThinking PartKind = "thinking"
	PartCall     PartKind = "toolCall"
)

// Part is a part of a message's content. Kind determines which fields are set.
type Part struct {
	Kind PartKind `json:"type"`
	Text string   `json:"text,omitempty"` // text, or thinking, which may be hidden and empty

	// Signature authenticates a thinking part to the provider that made it, or the thinking
	// that led to a call. Redacted is the encrypted form if the provider hides the text.
	Signature string `json:"signature,omitempty"`
	Redacted  string `json:"redacted,omitempty"`

	// Image: its type and content. An image that is stored elsewhere has Ref
	// instead of Data, and its size in Bytes.
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
	// Args is a JSON value, normally an object. It is never empty in a message
	// from a provider.
	Args json.RawMessage `json:"arguments"`
	// Raw is the model's output if it was not valid JSON (truncated or
	// malformed); Args is then {}. Package invoke tries to repair it.
	Raw string `json:"raw,omitempty"`
	// Title is the title that the tool gives to the call; see tool.Spec. It is never sent to a
	// model. Empty: the tool gives none, or the call is not of a known tool.
	Title string `json:"title,omitempty"`
}

// Label describes the call in one line for people: the name of the tool and what it
// does.
func (c *ToolCall) Label() string { return chela.CallTitle(c.Name, c.Title, c.Args) }

// StopReason is the reason why a model stopped.
type StopReason string

// Stop reasons.
const (
	StopEnd     StopReason = "stop"
	StopLength  StopReason = "length"
	StopTools   StopReason = "toolUse"
	StopRefusal StopReason = "refusal"
	StopAborted StopReason = "aborted"
	// StopUnable says that the text tells the person what could not be done. Only an
	// assistant that is no language model knows that, and Chela, where a model said nothing.
	StopUnable StopReason = "unable"
)

// Cut reports whether the service ended the message before the model did. Its last
// tool call may be incomplete, even if its arguments are valid JSON.
func (s StopReason) Cut() bool { return s == StopLength || s == StopRefusal }

// Told reports whether programs that wait for an answer are told the reason: the answer is
// not all of what was asked for.
func (s StopReason) Told() bool { return s.Cut() || s == StopUnable }

// Note returns a sentence for people about a message that was cut; "" for others.
func (s StopReason) Note() string {
	switch s {
	case StopLength:
		return "This answer is incomplete: the model reached its output limit."
	case StopRefusal:
		return "This answer may be incomplete: the service of the model refused to go on."
	}
	return ""
}

// Message is one message of a conversation. It is immutable once it is in a
// request or in the transcript.
type Message struct {
	Role  Role   `json:"role"`
	Parts []Part `json:"content"`

	// Assistant message: its origin. Thinking parts are sent only to the
	// provider that made them.
	Provider string     `json:"provider,omitempty"`
	Model    string     `json:"model,omitempty"`
	Stop     StopReason `json:"stopReason,omitempty"`

	// Tool result: the call that it belongs to.
	CallID   string `json:"toolCallId,omitempty"`
	ToolName string `json:"toolName,omitempty"`
	IsError  bool   `json:"isError,omitempty"`

	memo atomic.Pointer[memo]
}

type memo struct {
	dialect string
	enc     []byte
}

// Memo returns the message's encoding in a dialect. It calls enc once and
// stores the result in the message, so that a message is encoded once per
// conversation instead of once per request. A message stores one encoding:
// another dialect replaces it. The caller must not modify the result. Encodings
// count in [Message.Size] and so towards the byte limit that all sessions share
// (session.Cache); evicting a message frees its encoding.
func (m *Message) Memo(dialect string, enc func() []byte) []byte {
	if k := m.memo.Load(); k != nil && k.dialect == dialect {
		return k.enc
	}
	k := &memo{dialect, enc()}
	m.memo.Store(k)
	return k.enc
}

// Size estimates the memory of the message in bytes, including the stored
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

// Noted returns the text of the message, followed by the note of its stop reason.
func (m *Message) Noted() string {
	text, note := m.PlainText(), m.Stop.Note()
	if note == "" {
		return text
	}
	return strings.TrimSpace(text + "\n\n⚠️ " + note)
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
