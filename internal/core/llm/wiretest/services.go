package wiretest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// Services are the services with known deviations.
var Services = [...]Service{
	{
		Name: "openrouter", Hosts: []string{"openrouter.ai"},
		Takes:   []string{"reasoning", "messages.reasoning_details", "messages.cache_control"},
		Rules:   []Rule{requireAttribution, requireReasoningObject, requireReasoningDetails},
		Thought: ThoughtDetails, Usage: UsageLast, Refusal: routerError,
	},
	{
		Name: "groq", Hosts: []string{"groq.com"},
		Takes:   []string{"reasoning_effort", "max_completion_tokens", "parallel_tool_calls", "service_tier"},
		Refuses: []string{"max_tokens"}, // deprecated there
		Rules: []Rule{
			requireEffort("qwen/", "none", "default"), requireEffort("openai/gpt-oss", "low", "medium", "high"),
		},
		Thought: ThoughtTags, Usage: UsageGroq, Refusal: openaiError,
	},
	{
		Name: "deepseek", Hosts: []string{"deepseek.com"},
		Takes:   []string{"thinking", "reasoning_effort", "messages.reasoning_content"},
		Rules:   []Rule{requireThinkingSwitch, requireEffort("deepseek-v4-pro", "high", "max"), requireThinkingSentBack},
		Thought: ThoughtContent, Usage: UsageFinish, Refusal: openaiError,
	},
	{
		Name: "mistral", Hosts: []string{"mistral.ai"},
		Takes:   []string{"reasoning_effort", "parallel_tool_calls"},
		Refuses: []string{"stream_options"},
		Rules: []Rule{callIDLength(9), assistantAfterResult, maxTemperature(1.5),
			requireEffort("mistral-small", "none", "high"), requireThinkingTemperature},
		Thought: ThoughtParts, Usage: UsageFinish, Refusal: validationError,
	},
	{
		Name: "vllm", Takes: []string{"reasoning_effort", "chat_template_kwargs", "max_completion_tokens",
			"parallel_tool_calls"},
		Rules:   []Rule{alternateRoles, requireTemplateSwitch},
		Thought: ThoughtShort, Usage: UsageLast, Refusal: flatError,
	},
	{
		Name: "llamacpp", Takes: []string{"reasoning_effort", "chat_template_kwargs", "parallel_tool_calls"},
		Rules:   []Rule{alternateRoles, requireTemplateSwitch},
		Thought: ThoughtContent, Usage: UsageTimings, Refusal: codeError,
	},
	{
		Name: "lmstudio", Takes: []string{"reasoning_effort"},
		Rules:   []Rule{alternateRoles, requireEffort("openai/gpt-oss", "low", "medium", "high")},
		Thought: ThoughtTags, Usage: UsageTimings, Refusal: textError,
	},
	{
		Name: "ollama", Takes: []string{"reasoning_effort"},
		Rules:   []Rule{requireStringContent, requireEffort("qwen3", "none", "low", "medium", "high")},
		Thought: ThoughtShort, Usage: UsageLast, Refusal: openaiError,
	},
}

// requireAttribution requires headers that identify the application.
func requireAttribution(r *Request) *Refusal {
	for _, name := range []string{"HTTP-Referer", "X-Title"} {
		if r.Header.Get(name) == "" {
			return refuse(name, "the header is missing")
		}
	}
	return nil
}

// requireReasoningObject requires the thinking level in an object.
func requireReasoningObject(r *Request) *Refusal {
	switch t := r.Reasoning; {
	case t == nil && strings.HasSuffix(r.Model, ":thinking"):
		return refuse("reasoning", "this model thinks: field required")
	case t != nil && t.Effort == "" && t.Enabled == nil:
		return refuse("reasoning", "neither effort nor enabled")
	}
	return nil
}

// requireReasoningDetails requires the thinking that led to the last calls.
func requireReasoningDetails(r *Request) *Refusal {
	if r.Reasoning == nil || !strings.HasPrefix(r.Model, "anthropic/") {
		return nil
	}
	for i := len(r.Messages) - 1; i >= 0; i-- {
		if m := &r.Messages[i]; m.Role == "assistant" {
			if len(m.calls()) > 0 && len(m.Details) == 0 {
				return refuse(messageField(i, "reasoning_details"),
					"expected `thinking` or `redacted_thinking`, but found `tool_use`")
			}
			return nil
		}
	}
	return nil
}

// requireThinkingSwitch requires an explicit switch for thinking.
func requireThinkingSwitch(r *Request) *Refusal {
	if r.Thinking == nil || r.Thinking.Type != "enabled" && r.Thinking.Type != "disabled" {
		return refuse("thinking", "want the type enabled or disabled")
	}
	return nil
}

// requireThinkingSentBack requires the thinking of each answer if thinking is
// on.
func requireThinkingSentBack(r *Request) *Refusal {
	for i := range r.Messages {
		if m := &r.Messages[i]; m.Role == "assistant" && m.Thought == nil && r.Thinking.Type == "enabled" {
			return refuse(messageField(i, "reasoning_content"),
				"the reasoning_content in the thinking mode must be passed back to the API")
		}
	}
	return nil
}

// requireThinkingTemperature forbids a temperature with thinking.
func requireThinkingTemperature(r *Request) *Refusal {
	if r.Effort != nil && *r.Effort == "high" && r.Temperature != nil {
		return refuse("temperature", "not with reasoning_effort high")
	}
	return nil
}

// requireTemplateSwitch requires a switch for models whose template has one.
func requireTemplateSwitch(r *Request) *Refusal {
	if _, ok := r.Template["enable_thinking"].(bool); !ok && strings.HasPrefix(r.Model, "Qwen/") {
		return refuse("chat_template_kwargs", "the template wants enable_thinking")
	}
	return nil
}

// requireStringContent requires content to be a string, even if empty.
func requireStringContent(r *Request) *Refusal {
	for i := range r.Messages {
		if c := r.Messages[i].Content; len(c) == 0 || string(c) == "null" {
			return refuse(messageField(i, "content"), "invalid message content type: <nil>")
		}
	}
	return nil
}

// Formats of errors.

func body(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("wiretest: invalid JSON in an error: %v", err))
	}
	return b
}

type object = map[string]any

// openaiError has the standard format.
func openaiError(status int, kind, message string) (int, []byte) {
	return status, body(object{"error": object{"message": message, "type": kind, "param": nil, "code": nil}})
}

// codeError has the status as its code.
func codeError(status int, kind, message string) (int, []byte) {
	return status, body(object{"error": object{"code": status, "message": message, "type": kind}})
}

// routerError is a router's error, with the error of the upstream service
// inside.
func routerError(status int, kind, message string) (int, []byte) {
	inner := body(object{"type": "error", "error": object{"type": kind, "message": message}})
	return status, body(object{"error": object{
		"message": "Provider returned error", "code": status,
		"metadata": object{"raw": string(inner), "provider_name": "Somebody"},
	}})
}

// validationError is the error of a service that validates fields first.
func validationError(status int, kind, message string) (int, []byte) {
	if status != http.StatusBadRequest {
		return status, body(object{"object": "error", "message": message, "type": kind, "param": nil, "code": "1000"})
	}
	field, words, _ := strings.Cut(message, ": ")
	return http.StatusUnprocessableEntity, body(object{
		"object": "error",
		"type":   "invalid_request_error",
		"param":  nil,
		"code":   nil,
		"message": object{
			"detail": []any{object{"type": "extra_forbidden", "loc": []any{"body", field}, "msg": words}},
		},
	})
}

// flatError has no error object.
func flatError(status int, kind, message string) (int, []byte) {
	return status, body(object{"object": "error", "message": message, "type": kind, "param": nil, "code": status})
}

// textError is plain text.
func textError(status int, _, message string) (int, []byte) {
	return status, body(object{"error": message})
}
