package modelapi

import (
	"encoding/json"
	"net/http"

	"github.com/chela-ai/chela/internal/core/llm"
)

// messages is the form of Anthropic's messages.
type messages struct{}

// messagesRequest is the body of POST /v1/messages. Members that only influence how a model
// writes, such as max_tokens and thinking, are ignored.
type messagesRequest struct {
	Model    string    `json:"model"`
	Messages []message `json:"messages"`
	System   content   `json:"system"`
	Stream   bool      `json:"stream"`
	Metadata struct {
		User string `json:"user_id"`
	} `json:"metadata"`

	Tools   json.RawMessage `json:"tools"`
	Choice  json.RawMessage `json:"tool_choice"`
	Stop    json.RawMessage `json:"stop_sequences"`
	Servers json.RawMessage `json:"mcp_servers"`
	Output  struct {
		Format json.RawMessage `json:"format"`
	} `json:"output_config"`
}

func (messages) names() names {
	return names{path: "/v1/messages", key: "messages", id: "msg_", session: "anthropic"}
}

func (messages) parse(body []byte) (*request, error) {
	var in messagesRequest
	if err := decode(body, &in); err != nil {
		return nil, err
	}
	if err := refuse(map[string]bool{
		"tools": given(in.Tools) && kindOf(in.Choice) != "none", "stop_sequences": given(in.Stop),
		"mcp_servers": given(in.Servers), "output_config": given(in.Output.Format),
	}); err != nil {
		return nil, err
	}
	r := &request{model: in.Model, stream: in.Stream, user: in.Metadata.User}
	if in.System != nil {
		in.Messages = append([]message{{Role: "system", Content: in.System}}, in.Messages...)
	}
	return r, r.converse(in.Messages)
}

func (messages) fault(f *fault) any { return anthropicFault(f) }

// anthropicFault returns an error in the form of Anthropic.
func anthropicFault(f *fault) any {
	kind := "api_error"
	switch f.status {
	case http.StatusUnauthorized:
		kind = "authentication_error"
	case http.StatusForbidden:
		kind = "permission_error"
	case http.StatusNotFound:
		kind = "not_found_error"
	case http.StatusRequestEntityTooLarge:
		kind = "request_too_large"
	case http.StatusTooManyRequests:
		kind = "rate_limit_error"
	case http.StatusServiceUnavailable:
		kind = "overloaded_error"
	case http.StatusGatewayTimeout:
		kind = "timeout_error"
	default:
		if f.status < 500 {
			kind = "invalid_request_error"
		}
	}
	return object{"type": "error", "error": object{"type": kind, "message": f.text}}
}

// finish returns why an answer ended.
func (messages) finish(s llm.StopReason) string {
	switch s {
	case llm.StopLength:
		return "max_tokens"
	case llm.StopRefusal:
		return "refusal"
	}
	return "end_turn"
}

func (messages) usage(u llm.Usage) object {
	return object{
		"input_tokens": u.Input, "output_tokens": u.Output, "cache_creation_input_tokens": u.CacheWrite,
		"cache_read_input_tokens": u.CacheRead,
	}
}

// message returns a message, whose answer may not have ended.
func (m messages) message(x *exchange, content []object, stop any, u llm.Usage) object {
	return object{
		"id":            x.id,
		"type":          "message",
		"role":          "assistant",
		"model":         x.model,
		"content":       content,
		"stop_reason":   stop,
		"stop_sequence": nil,
		"usage":         m.usage(u),
	}
}

func (m messages) answer(x *exchange, a answer) any {
	content := []object{}
	if a.text != "" {
		content = append(content, object{"type": "text", "text": a.text})
	}
	return m.message(x, content, m.finish(a.stop), a.usage)
}

func (messages) stream(x *exchange, out *events) stream { return &messagesStream{x: x, out: out} }

// messagesStream writes the events of a message.
type messagesStream struct {
	messages
	x   *exchange
	out *events
}

// send sends an event.
func (s *messagesStream) send(kind string, more object) {
	more["type"] = kind
	s.out.send(kind, more)
}

func (s *messagesStream) start() {
	s.send("message_start", object{"message": s.message(s.x, []object{}, nil, llm.Usage{})})
	s.send("content_block_start", object{"index": 0, "content_block": object{"type": "text", "text": ""}})
	s.send("ping", object{})
}

func (s *messagesStream) delta(text string) {
	s.send("content_block_delta", object{"index": 0, "delta": object{"type": "text_delta", "text": text}})
}

func (s *messagesStream) end(a answer) {
	s.send("content_block_stop", object{"index": 0})
	s.send("message_delta", object{"delta": object{"stop_reason": s.finish(a.stop), "stop_sequence": nil},
		"usage": s.usage(a.usage)})
	s.send("message_stop", object{})
}

func (s *messagesStream) fail(f *fault) { s.out.send("error", anthropicFault(f)) }
