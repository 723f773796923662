package wiretest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Service is a service with the Chat Completions format and its own deviations.
type Service struct {
	Name  string
	Hosts []string // its domains; none for self-hosted servers

	// Takes are fields that it accepts in addition to those of every compatible
	// server: "reasoning_effort", "messages.reasoning_content".
	Takes []string
	// Refuses are standard fields that it rejects.
	Refuses []string
	// Rules are its further requirements.
	Rules []Rule

	// The format of its responses.
	Thought Thought
	Usage   Usage
	Refusal func(status int, kind, message string) (int, []byte) // returns the status and body of an error
}

// Rule returns why a request is rejected, or nil.
type Rule func(r *Request) *Refusal

// Request is a request as rules see it.
type Request struct {
	*openaiRequest
	Header http.Header
}

// Thought is the location of thinking in a response.
type Thought string

// Locations of thinking.
const (
	ThoughtContent Thought = "reasoning_content"
	ThoughtShort   Thought = "reasoning"
	ThoughtDetails Thought = "reasoning_details" // with reasoning
	ThoughtParts   Thought = "parts"             // parts of the content
	ThoughtTags    Thought = "tags"              // tags inside the content
)

// Usage is the location of the usage in a response.
type Usage string

// Locations of the usage.
const (
	UsageLast    Usage = "last"    // a separate event after the finish reason
	UsageFinish  Usage = "finish"  // with the finish reason
	UsageGroq    Usage = "x_groq"  // with the finish reason, in an object
	UsageTimings Usage = "timings" // with the finish reason, in another format
)

// At returns the service with the host, or nil.
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

// Named returns the service with the name. It panics if there is none.
func Named(name string) *Service {
	i := slices.IndexFunc(Services[:], func(s Service) bool { return s.Name == name })
	return &Services[i]
}

// Valid returns why the service would reject a request, or nil.
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
	if field := unknownField(r.openaiOnly, s.Takes); field != "" {
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

// messageField returns the path of a field of message i.
func messageField(i int, field string) string { return fmt.Sprintf("messages.%d.%s", i, field) }

// callIDLength requires ids of exactly n letters and digits.
func callIDLength(n int) Rule {
	bad := func(id string) bool {
		return len(id) != n || strings.ContainsFunc(id, func(c rune) bool {
			return !(c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z')
		})
	}
	return func(r *Request) *Refusal {
		for i := range r.Messages {
			m := &r.Messages[i]
			if m.Role == "tool" && bad(m.CallID) {
				return refuse(messageField(i, "tool_call_id"), "tool call id was %s but must be a-z, A-Z, 0-9, with a length of %d",
					m.CallID, n)
			}
			for _, c := range m.calls() {
				if bad(c.ID) {
					return refuse(messageField(i, "tool_calls.id"),
						"tool call id was %s but must be a-z, A-Z, 0-9, with a length of %d", c.ID, n)
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

// assistantAfterResult requires an assistant message between tool results and a
// user message.
func assistantAfterResult(r *Request) *Refusal {
	for i := 1; i < len(r.Messages); i++ {
		if r.Messages[i].Role == "user" && r.Messages[i-1].Role == "tool" {
			return refuse(messageField(i, "role"), "unexpected role 'user' after role 'tool'")
		}
	}
	return nil
}

// alternateRoles requires alternating user and assistant messages, as many chat
// templates do. Calls and their results do not count.
func alternateRoles(r *Request) *Refusal {
	want := "user"
	for i := range r.Messages {
		m := &r.Messages[i]
		if m.Role != "user" && m.Role != "assistant" || len(m.calls()) > 0 {
			continue
		}
		if m.Role != want {
			return refuse(messageField(i, "role"), "conversation roles must alternate user/assistant/user/assistant/...")
		}
		want = "user"
		if m.Role == "user" {
			want = "assistant"
		}
	}
	return nil
}

// maxTemperature limits the temperature.
func maxTemperature(limit float64) Rule {
	return func(r *Request) *Refusal {
		if r.Temperature != nil && *r.Temperature > limit {
			return refuse("temperature", "input should be less than or equal to %v", limit)
		}
		return nil
	}
}

// requireEffort requires models whose id has the prefix to have one of the
// effort levels.
func requireEffort(prefix string, words ...string) Rule {
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
