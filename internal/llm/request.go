package llm

import (
	"context"
	"encoding/json"
	"iter"
)

// Provider is a service that answers requests.
//
// Stream begins the call when the iterator is first ranged over and may be
// ranged over once. It honours ctx at every wait: a cancelled ctx ends the
// stream with ctx's error. It is safe for concurrent use. Errors are *[Error]
// wherever the service said what is wrong. Fakes are in llmtest.
type Provider interface {
	Stream(ctx context.Context, r *Request) iter.Seq2[Event, error]
}

// Request is one call of a model. A provider must not change it.
type Request struct {
	Model    string     // id as the provider knows it, without the provider's name
	System   []Block    // system prompt; a cache marker may stand at the end of a block
	Messages []*Message // valid: see session.Compile
	Tools    []ToolSpec // sorted by name; nil: no tools field is sent at all

	MaxTokens   int     // 0: the dialect's default for the model
	Thinking    Level   // "" or "off": none
	Temperature float64 // used when HasTemperature
	HasTemp     bool

	Cache   string          // prompt cache retention: "", "none", "short", "long"
	Session string          // stable id of the conversation, for providers that route by it
	Params  json.RawMessage // object merged into the request body last; nil: none
}

// Block is a piece of the system prompt.
type Block struct {
	Text  string
	Cache bool // everything up to the end of this block stays the same between turns
}

// ToolSpec is what a model is told of a tool. Its schema is immutable once it is
// in a request: services keep what they made of it.
type ToolSpec struct {
	Name        string
	Description string
	Schema      json.RawMessage // JSON Schema of the arguments: an object schema
	Strict      *bool           // whether the service is to hold the model to it; nil: it is not told
}

// Level is how much a model may think.
type Level string

// The levels, rising.
const (
	Off      Level = "off"
	Minimal  Level = "minimal"
	Low      Level = "low"
	Medium   Level = "medium"
	High     Level = "high"
	XHigh    Level = "xhigh"
	Adaptive Level = "adaptive"
	Max      Level = "max"
)

// Levels lists all levels, rising.
var Levels = [...]Level{Off, Minimal, Low, Medium, High, XHigh, Adaptive, Max}

// EventKind says what an event of a stream is.
type EventKind int

// The kinds of events.
const (
	TextDelta     EventKind = iota + 1 // Text is new text
	ThinkingDelta                      // Text is new thinking
	CallStart                          // Call has id and name; Index says which call of this message
	CallDelta                          // Text is a piece of the arguments of call Index
	Restart                            // forget what came before
	Done                               // Message and Usage are complete
	Spent                              // a call ended without an answer, and others may follow; Usage is what it used
)

// Event is one step of an answer.
type Event struct {
	Kind    EventKind
	Text    string
	Index   int
	Call    *ToolCall
	Message *Message  // on Done: the whole assistant message, with Stop, Provider and Model
	Usage   Usage     // on Done and Spent; with an error: what the call used as far as the service said
	By      *Model    // with Usage: the model that answered in place of the one that was asked; nil: that one
	Tried   []Attempt // on Done, with By: who did not answer
	Note    string    // on Done: what the person is to know of how the answer came about; "": nothing
}

// Usage counts tokens of one call, in every provider's case in these terms:
// Input excludes what came from or went to the cache.
type Usage struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cacheRead,omitempty"`
	CacheWrite int64 `json:"cacheWrite,omitempty"`
	Estimated  bool  `json:"estimated,omitempty"` // not reported by the provider
}

// Prompt returns the size of the prompt in tokens: what fills the context.
func (u Usage) Prompt() int64 { return u.Input + u.CacheRead + u.CacheWrite }

// Total returns all tokens of the call.
func (u Usage) Total() int64 { return u.Prompt() + u.Output }

// Add returns the sum of u and v.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		Input: u.Input + v.Input, Output: u.Output + v.Output,
		CacheRead: u.CacheRead + v.CacheRead, CacheWrite: u.CacheWrite + v.CacheWrite,
		Estimated: u.Estimated || v.Estimated,
	}
}
