package modelapi

import (
	"encoding/json"
	"strings"

	"github.com/chela-ai/chela/internal/core/llm"
)

// responses is the form of OpenAI's responses.
type responses struct{}

// responsesRequest is the body of POST /v1/responses. Members that only influence how a
// model writes are ignored.
type responsesRequest struct {
	Model        string `json:"model"`
	Input        input  `json:"input"`
	Instructions string `json:"instructions"`
	Stream       bool   `json:"stream"`
	User         string `json:"user"`
	Previous     string `json:"previous_response_id"`

	Text struct {
		Format json.RawMessage `json:"format"`
	} `json:"text"`
	Top          json.RawMessage `json:"top_logprobs"`
	Tools        json.RawMessage `json:"tools"`
	Choice       json.RawMessage `json:"tool_choice"`
	Background   json.RawMessage `json:"background"`
	Conversation json.RawMessage `json:"conversation"`
	Prompt       json.RawMessage `json:"prompt"`
}

// input is a message of the user, or a list of items.
type input []item

// item is an element of an input.
type item struct {
	Type string `json:"type"`
	message
	Name      string          `json:"name"`      // function_call
	Arguments string          `json:"arguments"` // function_call
	Output    json.RawMessage `json:"output"`    // function_call_output
}

// UnmarshalJSON accepts a string, a list of items, or null.
func (in *input) UnmarshalJSON(b []byte) error {
	if b[0] == '"' {
		var text content
		err := text.UnmarshalJSON(b)
		*in = input{{message: message{Role: "user", Content: text}}}
		return err
	}
	return json.Unmarshal(b, (*[]item)(in))
}

// messages returns the items as messages.
func (in input) messages() ([]message, error) {
	var out []message
	for _, it := range in {
		text := ""
		switch it.Type {
		case "", "message":
			it.message.Name = it.Name
			out = append(out, it.message)
			continue
		case "reasoning", "item_reference":
			continue
		case "function_call":
			text = "[called " + it.Name + " with " + it.Arguments + "]"
			it.Role = "assistant"
		case "function_call_output":
			it.Role = "tool"
			if text = string(it.Output); strings.HasPrefix(text, `"`) {
				_ = json.Unmarshal(it.Output, &text) // it is valid
			}
		default:
			return nil, invalid("input", "items of the type %q are not supported: send messages", clip(it.Type))
		}
		out = append(out, message{Role: it.Role, Content: content{{leaf: leaf{Type: "text", Text: text}}}})
	}
	return out, nil
}

func (responses) names() names {
	return names{path: "/v1/responses", key: "responses", id: "resp_", session: "openresponses"}
}

func (responses) parse(body []byte) (*request, error) {
	var in responsesRequest
	if err := decode(body, &in); err != nil {
		return nil, err
	}
	if err := refuse(map[string]bool{
		"text.format":  given(in.Text.Format) && kindOf(in.Text.Format) != "text",
		"top_logprobs": given(in.Top),
		"tools":        given(in.Tools) && kindOf(in.Choice) != "none",
		"background":   given(in.Background),
		"conversation": given(in.Conversation),
		"prompt":       given(in.Prompt),
	}); err != nil {
		return nil, err
	}
	list, err := in.Input.messages()
	if err != nil {
		return nil, err
	}
	r := &request{model: in.Model, stream: in.Stream, user: in.User, previous: in.Previous}
	if in.Instructions != "" {
		r.system = []string{in.Instructions}
	}
	return r, r.converse(list)
}

func (responses) fault(f *fault) any { return openaiFault(f) }

// response returns the response in a state, with what it contains so far.
func (responses) response(x *exchange, status string, output []object) object {
	return object{
		"id":                 x.id,
		"object":             "response",
		"created_at":         x.created.Unix(),
		"status":             status,
		"background":         false,
		"error":              nil,
		"incomplete_details": nil,
		"instructions":       nil,
		"max_output_tokens":  nil,
		"metadata":           object{},
		"model":              x.model,
		"output":             output,

		"parallel_tool_calls":  true,
		"previous_response_id": orNull(x.previous),
		"reasoning":            object{"effort": nil, "summary": nil},

		"store":       true,
		"temperature": nil,
		"text":        object{"format": object{"type": "text"}},
		"tool_choice": "auto",
		"tools":       []object{},
		"top_p":       nil,

		"truncation": "disabled",
		"usage":      nil,
		"user":       orNull(x.user),
	}
}

// part returns the content of a message.
func (responses) part(text string) object {
	return object{"type": "output_text", "text": text, "annotations": []object{}, "logprobs": []object{}}
}

// item returns the message of the answer.
func (responses) item(x *exchange, status string, parts ...object) object {
	if parts == nil {
		parts = []object{}
	}
	return object{
		"id":      "msg_" + strings.TrimPrefix(string(x.id), "resp_"),
		"type":    "message",
		"role":    "assistant",
		"status":  status,
		"content": parts,
	}
}

// whole returns the complete response with text, which may be more than that of the answer.
func (f responses) whole(x *exchange, a answer, text string) object {
	status := "completed"
	reason := map[llm.StopReason]string{llm.StopLength: "max_output_tokens", llm.StopRefusal: "content_filter"}[a.stop]
	if reason != "" {
		status = "incomplete"
	}
	r := f.response(x, status, []object{f.item(x, status, f.part(text))})
	if reason != "" {
		r["incomplete_details"] = object{"reason": reason}
	}
	r["usage"] = object{
		"input_tokens":          a.usage.Prompt(),
		"input_tokens_details":  object{"cached_tokens": a.usage.CacheRead},
		"output_tokens":         a.usage.Output,
		"output_tokens_details": object{"reasoning_tokens": 0},
		"total_tokens":          a.usage.Total(),
	}
	return r
}

func (f responses) answer(x *exchange, a answer) any { return f.whole(x, a, a.text) }

func (responses) stream(x *exchange, out *events) stream { return &responsesStream{x: x, out: out} }

// responsesStream writes the events of a response.
type responsesStream struct {
	responses
	x    *exchange
	out  *events
	n    int // events sent
	text strings.Builder
}

// send sends an event.
func (s *responsesStream) send(kind string, more object) {
	more["type"], more["sequence_number"] = kind, s.n
	s.n++
	s.out.send(kind, more)
}

// inItem sends an event about the message.
func (s *responsesStream) inItem(kind string, more object) {
	more["item_id"], more["output_index"], more["content_index"] = s.item(s.x, "")["id"], 0, 0
	s.send(kind, more)
}

func (s *responsesStream) start() {
	s.send("response.created", object{"response": s.response(s.x, "in_progress", []object{})})
	s.send("response.in_progress", object{"response": s.response(s.x, "in_progress", []object{})})
	s.send("response.output_item.added", object{"output_index": 0, "item": s.item(s.x, "in_progress")})
	s.inItem("response.content_part.added", object{"part": s.part("")})
}

func (s *responsesStream) delta(text string) {
	s.text.WriteString(text)
	s.inItem("response.output_text.delta", object{"delta": text, "logprobs": []object{}})
}

func (s *responsesStream) end(a answer) {
	text := s.text.String()
	r := s.whole(s.x, a, text)
	status, _ := r["status"].(string)
	s.inItem("response.output_text.done", object{"text": text, "logprobs": []object{}})
	s.inItem("response.content_part.done", object{"part": s.part(text)})
	s.send("response.output_item.done", object{"output_index": 0, "item": s.item(s.x, status, s.part(text))})
	s.send("response."+status, object{"response": r})
	s.out.done()
}

func (s *responsesStream) fail(f *fault) {
	r := s.response(s.x, "failed", []object{})
	r["error"] = object{"code": "server_error", "message": f.text}
	s.send("response.failed", object{"response": r})
	s.out.done()
}
