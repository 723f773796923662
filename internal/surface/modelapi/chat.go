package modelapi

import (
	"encoding/json"
	"net/http"

	"github.com/chela-ai/chela/internal/core/llm"
)

// chat is the form of OpenAI's chat completions.
type chat struct{}

// chatRequest is the body of POST /v1/chat/completions. Members that only influence how a
// model writes, such as temperature, are ignored.
type chatRequest struct {
	Model    string    `json:"model"`
	Messages []message `json:"messages"`
	Stream   bool      `json:"stream"`
	Options  struct {
		Usage bool `json:"include_usage"`
	} `json:"stream_options"`
	User string `json:"user"`

	N          json.RawMessage `json:"n"`
	Audio      json.RawMessage `json:"audio"`
	Modalities json.RawMessage `json:"modalities"`
	Logprobs   json.RawMessage `json:"logprobs"`
	Top        json.RawMessage `json:"top_logprobs"`
	Format     json.RawMessage `json:"response_format"`
	Stop       json.RawMessage `json:"stop"`
	Tools      json.RawMessage `json:"tools"`
	Choice     json.RawMessage `json:"tool_choice"`
	Functions  json.RawMessage `json:"functions"`
	Search     json.RawMessage `json:"web_search_options"`
}

func (chat) names() names {
	return names{path: "/v1/chat/completions", key: "chatCompletions", id: "chatcmpl_", session: "openai"}
}

func (chat) parse(body []byte) (*request, error) {
	var in chatRequest
	if err := decode(body, &in); err != nil {
		return nil, err
	}
	if err := refuse(map[string]bool{
		"n":               given(in.N, "1"),
		"audio":           given(in.Audio),
		"modalities":      given(in.Modalities, `["text"]`),
		"logprobs":        given(in.Logprobs),
		"top_logprobs":    given(in.Top),
		"response_format": given(in.Format) && kindOf(in.Format) != "text",
		"stop":            given(in.Stop),

		"tools":              given(in.Tools) && kindOf(in.Choice) != "none",
		"functions":          given(in.Functions),
		"web_search_options": len(in.Search) > 0 && string(in.Search) != "null",
	}); err != nil {
		return nil, err
	}
	r := &request{model: in.Model, stream: in.Stream, usage: in.Options.Usage, user: in.User}
	return r, r.converse(in.Messages)
}

func (chat) fault(f *fault) any { return openaiFault(f) }

// openaiFault returns an error in the form of OpenAI.
func openaiFault(f *fault) any {
	kind := "invalid_request_error"
	switch {
	case f.status == http.StatusUnauthorized:
		kind = "unauthorized"
	case f.status == http.StatusForbidden:
		kind = "forbidden"
	case f.status == http.StatusTooManyRequests:
		kind = "rate_limit_error"
	case f.status >= 500:
		kind = "api_error"
	}
	return object{"error": object{"message": f.text, "type": kind, "param": orNull(f.param), "code": orNull(f.code)}}
}

// finish returns why an answer ended.
func (chat) finish(s llm.StopReason) string {
	switch s {
	case llm.StopLength:
		return "length"
	case llm.StopRefusal:
		return "content_filter"
	}
	return "stop"
}

func (chat) usage(u llm.Usage) object {
	return object{
		"prompt_tokens": u.Prompt(), "completion_tokens": u.Output, "total_tokens": u.Total(),
		"prompt_tokens_details": object{"cached_tokens": u.CacheRead},
	}
}

func (c chat) answer(x *exchange, a answer) any {
	return object{
		"id": x.id, "object": "chat.completion", "created": x.created.Unix(), "model": x.model,
		"choices": []object{{
			"index": 0, "message": object{"role": "assistant", "content": a.text, "refusal": nil}, "logprobs": nil,
			"finish_reason": c.finish(a.stop),
		}},
		"usage": c.usage(a.usage),
	}
}

func (chat) stream(x *exchange, out *events) stream { return &chatStream{x: x, out: out} }

// chatStream writes chunks.
type chatStream struct {
	chat
	x   *exchange
	out *events
}

func (s *chatStream) chunk(choices ...object) object {
	c := object{
		"id":      s.x.id,
		"object":  "chat.completion.chunk",
		"created": s.x.created.Unix(),
		"model":   s.x.model,
		"choices": choices,
	}
	if choices == nil {
		c["choices"] = []object{}
	}
	if s.x.usage {
		c["usage"] = nil
	}
	return c
}

// choose sends a chunk of the answer.
func (s *chatStream) choose(delta object, finish any) {
	s.out.send("", s.chunk(object{"index": 0, "delta": delta, "logprobs": nil, "finish_reason": finish}))
}

func (s *chatStream) start() { s.choose(object{"role": "assistant", "content": ""}, nil) }

func (s *chatStream) delta(text string) { s.choose(object{"content": text}, nil) }

func (s *chatStream) end(a answer) {
	s.choose(object{}, s.finish(a.stop))
	if s.x.usage {
		c := s.chunk()
		c["usage"] = s.chat.usage(a.usage)
		s.out.send("", c)
	}
	s.out.done()
}

func (s *chatStream) fail(f *fault) {
	s.out.send("", openaiFault(f))
	s.out.done()
}
