package llmtest

import (
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/core/llm"
)

// Step is one answer of a scripted model. The zero Step is an empty answer,
// which real models sometimes give.
type Step struct {
	Parts []llm.Part     // content, in order
	Stop  llm.StopReason // "": determined by Parts
	Usage *llm.Usage     // nil: a quarter of the number of characters; Fast matters if the request asks for it
	Chunk int            // bytes of text per delta; 0: 24

	Delay time.Duration // before the answer
	Gap   time.Duration // before each delta except the first
	Fault Fault
}

// Fault is what fails in an answer. The zero Fault is no failure.
type Fault struct {
	Status     int    // HTTP status to answer with
	Kind       string // the service's name of the error; "": one that fits Status
	Message    string // error text; "": a default
	RetryAfter string // Retry-After header

	Error bool          // the stream ends after Parts with an error event (Kind, Message)
	Hang  Hang          // the response stops there until the client disconnects
	Ping  time.Duration // interval of keep-alives after the headers: while it hangs, or during Step.Delay

	// The remaining fields apply to servers, not to scripts.
	Drip    time.Duration               // delay between two bytes of the body
	NoUsage bool                        // usage is not reported
	Cut     bool                        // the body is truncated to CutAt bytes
	CutAt   int                         // see Cut
	Abort   bool                        // the connection breaks at the end instead of closing normally
	Whole   bool                        // one JSON response instead of a stream; OpenAI's format only
	Body    func(body []byte) []byte    // modifies the complete body
	Header  func(set func(k, v string)) // modifies the headers
}

// Hang is the position at which an answer stops.
type Hang int

// Positions of a hang.
const (
	HangNever   Hang = iota
	HangHeaders      // before the headers
	HangBody         // after the headers
	HangMiddle       // in the middle of an event
	HangEnd          // at the end of the body (see Cut); servers only
)

// Say returns a step that answers with a text.
func Say(text string) Step { return Step{Parts: []llm.Part{llm.Text(text)}} }

// Think returns s with thinking in front.
func Think(thought, signature string, s Step) Step {
	t := llm.Part{Kind: llm.PartThinking, Text: thought, Signature: signature}
	s.Parts = append([]llm.Part{t}, s.Parts...)
	return s
}

// Call returns a step with one tool call. args may be invalid JSON.
func Call(id, name, args string) Step { return Calls(ToolCall(id, name, args)) }

// Calls returns a step with tool calls in one message.
func Calls(calls ...llm.ToolCall) Step {
	var s Step
	for _, c := range calls {
		s.Parts = append(s.Parts, llm.Part{Kind: llm.PartCall, Call: &c})
	}
	return s
}

// ToolCall returns a call as a dialect decodes it: invalid JSON in args goes to
// Raw.
func ToolCall(id, name, args string) llm.ToolCall {
	if !json.Valid([]byte(args)) {
		return llm.ToolCall{ID: id, Name: name, Args: json.RawMessage("{}"), Raw: args}
	}
	return llm.ToolCall{ID: id, Name: name, Args: json.RawMessage(args)}
}

// Status returns a step that fails with an HTTP status.
func Status(status int, message string) Step {
	return Step{Fault: Fault{Status: status, Message: message}}
}

// stop returns the stop reason of s.
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

// usage returns the usage of s for a prompt of that many bytes.
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

// message returns the error text of the fault.
func (f *Fault) message() string {
	if f.Message == "" {
		return fmt.Sprintf("scripted fault %d", f.Status)
	}
	return f.Message
}

// argsOf returns the arguments as the model wrote them.
func argsOf(c *llm.ToolCall) string {
	if c.Raw != "" {
		return c.Raw
	}
	return string(c.Args)
}

// chunks splits text into pieces of about n bytes, between characters.
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
