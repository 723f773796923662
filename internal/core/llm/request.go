package llm

import (
	"context"
	"encoding/json"
	"iter"
)

// Provider is a service that answers requests.
//
// Stream makes the call when the iterator is ranged over, which may be done
// once. It observes ctx at every wait: if ctx is canceled, the stream ends with
// ctx's error. Stream is safe for concurrent use. Errors reported by the
// service are of type *[Error]. Fakes are in llmtest.
type Provider interface {
	Stream(ctx context.Context, r *Request) iter.Seq2[Event, error]
}

// ModelsOf returns the models that may answer a request to a provider for m. A provider
// that may call others has a method Models.
func ModelsOf(p Provider, m Model) []Model {
	if s, ok := p.(interface{ Models() []Model }); ok {
		return s.Models()
	}
	return []Model{m}
}

// Request is one call of a model. A provider must not modify it.
type Request struct {
	Model    string     // id as the provider knows it, without the provider's name
	System   []Block    // system prompt; a block may end with a cache marker
	Messages []*Message // valid: see session.Compile
	// Note is what the model has to know about the state of the conversation now. It
	// follows the last message, and is not part of the cached prefix; empty: none.
	Note  string
	Tools []ToolSpec // sorted by name; nil: the request has no tools field

	MaxTokens      int     // 0: the dialect's default for the model
	Ceiling        int     // of all output, thinking included, whatever else allows more; 0: none
	Thinking       Level   // "" or "off": none
	Fast           bool    // ask for the faster tier of the service; ignored where the model has none
	Temperature    float64 // used if HasTemperature
	HasTemperature bool

	Cache   string          // prompt cache retention: "", "none", "short", "long"
	Session string          // stable id of the conversation, for routing
	Params  json.RawMessage // object merged into the request body at the end; nil: none
}

// Block is a part of the system prompt. Cache marks that the prompt up to the
// end of this block does not change between turns.
type Block struct {
	Text  string
	Cache bool // everything up to the end of this block stays the same between turns
}

// ToolSpec describes a tool to a model. Its schema is immutable once it is in a
// request, because dialects cache its translation.
type ToolSpec struct {
	Name        string
	Description string
	Schema      json.RawMessage // JSON Schema of the arguments: an object schema
	Strict      *bool           // ask the service to enforce the schema; nil: not sent
}

// Level is an amount of thinking.
type Level string

// Levels of thinking, ascending.
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

// Levels lists all levels, ascending.
var Levels = [...]Level{Off, Minimal, Low, Medium, High, XHigh, Adaptive, Max}

// EventKind is the kind of an event.
type EventKind int

// Kinds of events.
const (
	TextDelta     EventKind = iota + 1 // Text is new text
	ThinkingDelta                      // Text is new thinking
	CallStart                          // Call has an id and a name; Index is its position in this message
	CallDelta                          // Text is a part of the arguments of call Index
	Restart                            // discard all events before
	Done                               // Message and Usage are complete
	Spent                              // an attempt failed and others may follow; Usage is its usage
)

// Event is one event of a stream.
type Event struct {
	Kind    EventKind
	Text    string
	Index   int
	Call    *ToolCall
	Message *Message  // on Done: the complete assistant message, with Stop, Provider and Model
	Usage   Usage     // on Done and Spent, and with an error if the service reported it
	By      *Model    // with Usage: the model that answered instead of the requested one; nil: the requested one
	Tried   []Attempt // on Done, with By: failed attempts
	Note    string    // on Done: a note for the user about how the answer was made
}

// Usage is the number of tokens of one call. Input excludes tokens read from or
// written to the cache, for all providers.
type Usage struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cacheRead,omitempty"`
	CacheWrite int64 `json:"cacheWrite,omitempty"`
	Estimated  bool  `json:"estimated,omitempty"` // not reported by the provider
	// Fast is set for a call that the faster tier of a service answered, whose tokens have
	// another price: see Model.Fast. A sum never has it.
	Fast bool `json:"fast,omitempty"`
}

// Prompt returns the size of the prompt in tokens.
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
