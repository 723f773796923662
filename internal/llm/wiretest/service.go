package wiretest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Service is a service of the Chat Completions format that has its own ways.
type Service struct {
	Name  string
	Hosts []string // its domains; none: people run it, where they like

	// Takes are fields beyond those that every compatible server takes:
	// "reasoning_effort", "messages.reasoning_content".
	Takes []string
	// Refuses are fields of the format that it does not take.
	Refuses []string
	// Rules are what else it wants.
	Rules []Rule

	// How it answers.
	Thought Thought
	Usage   Usage
	Refusal func(status int, kind, message string) (int, []byte) // the status and body of an error
}

// Rule reports why a request is refused; nil: by this rule it is not.
type Rule func(r *Request) *Refusal

// Request is what a rule looks at.
type Request struct {
	*openaiRequest
	Header http.Header
}

// Thought is where an answer holds its thinking.
type Thought string

// The places.
const (
	ThoughtContent Thought = "reasoning_content"
	ThoughtShort   Thought = "reasoning"
	ThoughtDetails Thought = "reasoning_details" // and reasoning
	ThoughtParts   Thought = "parts"             // of the content
	ThoughtTags    Thought = "tags"              // around it, in the content
)

// Usage is where an answer tells what it used.
type Usage string

// The places.
const (
	UsageLast    Usage = "last"    // an event of its own, behind the reason to stop
	UsageFinish  Usage = "finish"  // beside the reason to stop
	UsageGroq    Usage = "x_groq"  // beside it, in an object
	UsageTimings Usage = "timings" // beside it, in other words
)

// At returns the service at a host; nil: none of those.
func At(host string) *Service {
	for i := range Services {
		for _, domain := range Services[i].Hosts {
			if host == domain || strings.HasSuffix(host, "."+domain) {
				return &Services[i]
			}
		}
	}
	return nil
}

// Named returns the service of the name, which there must be.
func Named(name string) *Service {
	i := slices.IndexFunc(Services[:], func(s Service) bool { return s.Name == name })
	return &Services[i]
}

// Valid reports why the service would refuse a request.
func (s *Service) Valid(h http.Header, body []byte) error {
	r, err := validOpenAI(body)
	if err != nil {
		return err
	}
	var sent map[string]json.RawMessage
	if err := json.Unmarshal(body, &sent); err != nil {
		return err
	}
	for _, field := range s.Refuses {
		if sent[field] != nil {
			return &Refusal{field, "extra inputs are not permitted"}
		}
	}
	if field := given(r.openaiOwn, s.Takes); field != "" {
		return &Refusal{field, "extra inputs are not permitted"}
	}
	if r.Messages[0].Role == "developer" && !slices.Contains(s.Takes, "developer") {
		return &Refusal{"messages.0.role", "unexpected role developer"}
	}
	if err := r.foreign(s.Takes); err != nil {
		return err
	}
	for _, rule := range s.Rules {
		if no := rule(&Request{r, h}); no != nil {
			return no
		}
	}
	return nil
}

func refuse(field, format string, args ...any) *Refusal {
	return &Refusal{field, fmt.Sprintf(format, args...)}
}

// at is the field of a message.
func at(i int, field string) string { return fmt.Sprintf("messages.%d.%s", i, field) }

// shortIDs wants ids of exactly n letters and digits.
func shortIDs(n int) Rule {
	bad := func(id string) bool {
		return len(id) != n || strings.ContainsFunc(id, func(c rune) bool {
			return !(c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z')
		})
	}
	return func(r *Request) *Refusal {
		for i := range r.Messages {
			m := &r.Messages[i]
			if m.Role == "tool" && bad(m.CallID) {
				return refuse(at(i, "tool_call_id"), "tool call id was %s but must be a-z, A-Z, 0-9, with a length of %d", m.CallID, n)
			}
			for _, c := range m.calls() {
				if bad(c.ID) {
					return refuse(at(i, "tool_calls.id"), "tool call id was %s but must be a-z, A-Z, 0-9, with a length of %d", c.ID, n)
				}
			}
		}
		return nil
	}
}

func (m *openaiMessage) calls() []openaiCall {
	if m.Calls == nil {
		return nil
	}
	return *m.Calls
}

// answeredFirst wants an answer between results and what the user says next.
func answeredFirst(r *Request) *Refusal {
	for i := 1; i < len(r.Messages); i++ {
		if r.Messages[i].Role == "user" && r.Messages[i-1].Role == "tool" {
			return refuse(at(i, "role"), "unexpected role 'user' after role 'tool'")
		}
	}
	return nil
}

// alternate wants the user and the model to take turns, as templates of models
// do. Calls and their results do not count.
func alternate(r *Request) *Refusal {
	want := "user"
	for i := range r.Messages {
		m := &r.Messages[i]
		if m.Role != "user" && m.Role != "assistant" || len(m.calls()) > 0 {
			continue
		}
		if m.Role != want {
			return refuse(at(i, "role"), "conversation roles must alternate user/assistant/user/assistant/...")
		}
		want = "user"
		if m.Role == "user" {
			want = "assistant"
		}
	}
	return nil
}

// coolest bounds the temperature.
func coolest(most float64) Rule {
	return func(r *Request) *Refusal {
		if r.Temperature != nil && *r.Temperature > most {
			return refuse("temperature", "input should be less than or equal to %v", most)
		}
		return nil
	}
}

// told wants a model that thinks, whose id begins so, to be told how much; it
// takes only some words for it.
func told(prefix string, words ...string) Rule {
	return func(r *Request) *Refusal {
		switch {
		case !strings.HasPrefix(r.Model, prefix), r.Thinking != nil && r.Thinking.Type == "disabled":
		case r.Effort == nil:
			return refuse("reasoning_effort", "this model thinks: field required")
		case !slices.Contains(words, *r.Effort):
			return refuse("reasoning_effort", "must be one of %s", strings.Join(words, ", "))
		}
		return nil
	}
}
