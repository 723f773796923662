package llmtest

import (
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/llm"
)

// Step is one answer of a scripted model. The zero Step answers nothing at
// all, as models sometimes do.
type Step struct {
	Parts []llm.Part     // what it says, in order
	Stop  llm.StopReason // "": from Parts
	Usage *llm.Usage     // nil: a quarter of the characters
	Chunk int            // bytes of text in one delta; 0: 24

	Delay time.Duration // before the answer begins
	Gap   time.Duration // before each delta but the first
	Fault Fault
}

// Fault is what goes wrong. The zero Fault is: nothing.
type Fault struct {
	Status     int    // the HTTP status that is answered instead
	Kind       string // the service's name for the error; "": one that fits Status
	Message    string // its words; "": some
	RetryAfter string // the header

	Error bool          // after Parts the stream ends with an error event (Kind, Message)
	Hang  Hang          // nothing more comes from there on, until the client goes
	Ping  time.Duration // while it hangs after the headers, a keep-alive at this interval

	// The rest is of servers, not of scripts.
	Drip    time.Duration               // between two bytes of the body
	NoUsage bool                        // usage is not reported
	Cut     bool                        // the body ends after CutAt bytes
	CutAt   int                         // see Cut
	Abort   bool                        // where it ends, the connection breaks; else it ends in good order
	Whole   bool                        // one JSON answer instead of a stream; of OpenAI's format only
	Body    func(body []byte) []byte    // the last word on the body
	Header  func(set func(k, v string)) // the last word on the headers
}

// Hang is a place where an answer stops.
type Hang int

// The places.
const (
	HangNever   Hang = iota
	HangHeaders      // before the headers
	HangBody         // behind the headers
	HangMiddle       // in the middle of an event
	HangEnd          // where the body ends (see Cut); of servers only
)

// Say answers with a text.
func Say(text string) Step { return Step{Parts: []llm.Part{llm.Text(text)}} }

// Think answers with a thought and then what s answers.
func Think(thought, signature string, s Step) Step {
	t := llm.Part{Kind: llm.PartThinking, Text: thought, Signature: signature}
	s.Parts = append([]llm.Part{t}, s.Parts...)
	return s
}

// Call answers with one tool call. args that is no JSON is what the model
// wrote all the same.
func Call(id, name, args string) Step { return Calls(ToolCall(id, name, args)) }

// Calls answers with tool calls, all in one message.
func Calls(calls ...llm.ToolCall) Step {
	var s Step
	for _, c := range calls {
		s.Parts = append(s.Parts, llm.Part{Kind: llm.PartCall, Call: &c})
	}
	return s
}

// ToolCall returns a call as a dialect gives it: args that is no JSON is Raw.
func ToolCall(id, name, args string) llm.ToolCall {
	if !json.Valid([]byte(args)) {
		return llm.ToolCall{ID: id, Name: name, Args: json.RawMessage("{}"), Raw: args}
	}
	return llm.ToolCall{ID: id, Name: name, Args: json.RawMessage(args)}
}

// Status answers with an HTTP error.
func Status(status int, message string) Step {
	return Step{Fault: Fault{Status: status, Message: message}}
}

// stop returns why s stops.
func (s *Step) stop() llm.StopReason {
	if s.Stop != "" {
		return s.Stop
	}
	for i := range s.Parts {
		if s.Parts[i].Kind == llm.PartCall {
			return llm.StopTools
		}
	}
	return llm.StopEnd
}

// usage returns what s uses for a prompt of that many bytes.
func (s *Step) usage(prompt int) llm.Usage {
	if s.Usage != nil {
		return *s.Usage
	}
	n := 0
	for i := range s.Parts {
		n += len(s.Parts[i].Text)
		if c := s.Parts[i].Call; c != nil {
			n += len(c.Name) + len(argsOf(c))
		}
	}
	return llm.Usage{Input: int64(prompt+3) / 4, Output: int64(n+3) / 4}
}

// message returns s as a message.
func (s *Step) message(provider, model string) *llm.Message {
	return &llm.Message{
		Role: llm.RoleAssistant, Parts: s.Parts, Stop: s.stop(), Provider: provider, Model: model,
	}
}

// kind returns the service's name for the fault's error.
func (f *Fault) kind() string {
	if f.Kind != "" {
		return f.Kind
	}
	switch f.Status {
	case 0, 529:
		return "overloaded_error"
	case 401:
		return "authentication_error"
	case 402:
		return "billing_error"
	case 403:
		return "permission_error"
	case 404:
		return "not_found_error"
	case 413:
		return "request_too_large"
	case 429:
		return "rate_limit_error"
	}
	if f.Status < 500 {
		return "invalid_request_error"
	}
	return "api_error"
}

// message returns the words of the fault.
func (f *Fault) message() string {
	if f.Message == "" {
		return fmt.Sprintf("scripted fault %d", f.Status)
	}
	return f.Message
}

// argsOf returns the arguments as the model writes them.
func argsOf(c *llm.ToolCall) string {
	if c.Raw != "" {
		return c.Raw
	}
	return string(c.Args)
}

// chunks cuts text into pieces of about n bytes, between characters.
func chunks(text string, n int) []string {
	if n <= 0 {
		n = 24
	}
	var all []string
	for len(text) > n {
		i := n
		for i < len(text) && !utf8.RuneStart(text[i]) {
			i++
		}
		all, text = append(all, text[:i]), text[i:]
	}
	if text != "" {
		all = append(all, text)
	}
	return all
}
