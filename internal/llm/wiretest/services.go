package wiretest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// Services are those whose ways are known.
var Services = [...]Service{
	{
		Name: "openrouter", Hosts: []string{"openrouter.ai"},
		Takes:   []string{"reasoning", "messages.reasoning_details", "messages.cache_control"},
		Rules:   []Rule{attributed, routed, detailed},
		Thought: ThoughtDetails, Usage: UsageLast, Refusal: nested,
	},
	{
		Name: "groq", Hosts: []string{"groq.com"},
		Takes:   []string{"reasoning_effort", "max_completion_tokens", "parallel_tool_calls", "service_tier"},
		Refuses: []string{"max_tokens"}, // deprecated there
		Rules: []Rule{
			told("qwen/", "none", "default"), told("openai/gpt-oss", "low", "medium", "high"),
		},
		Thought: ThoughtTags, Usage: UsageGroq, Refusal: plain,
	},
	{
		Name: "deepseek", Hosts: []string{"deepseek.com"},
		Takes:   []string{"thinking", "reasoning_effort", "messages.reasoning_content"},
		Rules:   []Rule{switchedOn, told("deepseek-v4-pro", "high", "max"), givenBack},
		Thought: ThoughtContent, Usage: UsageFinish, Refusal: plain,
	},
	{
		Name: "mistral", Hosts: []string{"mistral.ai"},
		Takes:   []string{"reasoning_effort", "parallel_tool_calls"},
		Refuses: []string{"stream_options"},
		Rules:   []Rule{shortIDs(9), answeredFirst, coolest(1.5), told("mistral-small", "none", "high"), warm},
		Thought: ThoughtParts, Usage: UsageFinish, Refusal: detail,
	},
	{
		Name: "vllm", Takes: []string{"reasoning_effort", "chat_template_kwargs", "max_completion_tokens", "parallel_tool_calls"},
		Rules:   []Rule{alternate, templated},
		Thought: ThoughtShort, Usage: UsageLast, Refusal: bare,
	},
	{
		Name: "llamacpp", Takes: []string{"reasoning_effort", "chat_template_kwargs", "parallel_tool_calls"},
		Rules:   []Rule{alternate, templated},
		Thought: ThoughtContent, Usage: UsageTimings, Refusal: coded,
	},
	{
		Name: "lmstudio", Takes: []string{"reasoning_effort"},
		Rules:   []Rule{alternate, told("openai/gpt-oss", "low", "medium", "high")},
		Thought: ThoughtTags, Usage: UsageTimings, Refusal: text,
	},
	{
		Name: "ollama", Takes: []string{"reasoning_effort"},
		Rules:   []Rule{contentOfCalls, told("qwen3", "none", "low", "medium", "high")},
		Thought: ThoughtShort, Usage: UsageLast, Refusal: plain,
	},
}

// attributed wants to know which application asks.
func attributed(r *Request) *Refusal {
	for _, name := range []string{"HTTP-Referer", "X-Title"} {
		if r.Header.Get(name) == "" {
			return refuse(name, "the header is missing")
		}
	}
	return nil
}

// routed wants the level in an object.
func routed(r *Request) *Refusal {
	switch t := r.Reasoning; {
	case t == nil && strings.HasSuffix(r.Model, ":thinking"):
		return refuse("reasoning", "this model thinks: field required")
	case t != nil && t.Effort == "" && t.Enabled == nil:
		return refuse("reasoning", "neither effort nor enabled")
	}
	return nil
}

// detailed wants the thinking back that led to the last calls.
func detailed(r *Request) *Refusal {
	if r.Reasoning == nil || !strings.HasPrefix(r.Model, "anthropic/") {
		return nil
	}
	for i := len(r.Messages) - 1; i >= 0; i-- {
		if m := &r.Messages[i]; m.Role == "assistant" {
			if len(m.calls()) > 0 && len(m.Details) == 0 {
				return refuse(at(i, "reasoning_details"), "expected `thinking` or `redacted_thinking`, but found `tool_use`")
			}
			return nil
		}
	}
	return nil
}

// switchedOn wants to be told whether to think at all.
func switchedOn(r *Request) *Refusal {
	if r.Thinking == nil || r.Thinking.Type != "enabled" && r.Thinking.Type != "disabled" {
		return refuse("thinking", "want the type enabled or disabled")
	}
	return nil
}

// givenBack wants the thinking of each answer back while it thinks.
func givenBack(r *Request) *Refusal {
	for i := range r.Messages {
		if m := &r.Messages[i]; m.Role == "assistant" && m.Thought == nil && r.Thinking.Type == "enabled" {
			return refuse(at(i, "reasoning_content"), "the reasoning_content in the thinking mode must be passed back to the API")
		}
	}
	return nil
}

// warm wants what thinks to have a temperature of its own.
func warm(r *Request) *Refusal {
	if r.Effort != nil && *r.Effort == "high" && r.Temperature != nil {
		return refuse("temperature", "not with reasoning_effort high")
	}
	return nil
}

// templated wants a model with a switch in its template to be told.
func templated(r *Request) *Refusal {
	if _, ok := r.Template["enable_thinking"].(bool); !ok && strings.HasPrefix(r.Model, "Qwen/") {
		return refuse("chat_template_kwargs", "the template wants enable_thinking")
	}
	return nil
}

// contentOfCalls wants content to be a text, also where there is none.
func contentOfCalls(r *Request) *Refusal {
	for i := range r.Messages {
		if c := r.Messages[i].Content; len(c) == 0 || string(c) == "null" {
			return refuse(at(i, "content"), "invalid message content type: <nil>")
		}
	}
	return nil
}

// The shapes of errors.

func body(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("wiretest: an error that is no JSON: %v", err))
	}
	return b
}

type object = map[string]any

// plain is the format's own shape.
func plain(status int, kind, message string) (int, []byte) {
	return status, body(object{"error": object{"message": message, "type": kind, "param": nil, "code": nil}})
}

// coded has the status as its code.
func coded(status int, kind, message string) (int, []byte) {
	return status, body(object{"error": object{"code": status, "message": message, "type": kind}})
}

// nested is a router's: the words of the service behind it are inside.
func nested(status int, kind, message string) (int, []byte) {
	inner := body(object{"type": "error", "error": object{"type": kind, "message": message}})
	return status, body(object{"error": object{
		"message": "Provider returned error", "code": status, "metadata": object{"raw": string(inner), "provider_name": "Somebody"},
	}})
}

// detail is of a service that checks fields before anything else.
func detail(status int, kind, message string) (int, []byte) {
	if status != http.StatusBadRequest {
		return status, body(object{"object": "error", "message": message, "type": kind, "param": nil, "code": "1000"})
	}
	field, words, _ := strings.Cut(message, ": ")
	return http.StatusUnprocessableEntity, body(object{"object": "error", "type": "invalid_request_error", "param": nil, "code": nil, "message": object{
		"detail": []any{object{"type": "extra_forbidden", "loc": []any{"body", field}, "msg": words}},
	}})
}

// bare has no object around it.
func bare(status int, kind, message string) (int, []byte) {
	return status, body(object{"object": "error", "message": message, "type": kind, "param": nil, "code": status})
}

// text is a text alone.
func text(status int, _, message string) (int, []byte) {
	return status, body(object{"error": message})
}
