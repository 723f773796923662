package llmtest

import (
	"encoding/json"
	"fmt"

	"github.com/chela-ai/chela/internal/core/llm"
)

// object is JSON whose keys are sorted when it is encoded.
type object = map[string]any

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("llmtest: a step that is no JSON: %v", err))
	}
	return b
}

// errorJSON is the body of an HTTP error.
func errorJSON(w Wire, f *Fault) []byte {
	e := object{"type": f.kind(), "message": f.message()}
	switch w {
	case Gemini:
		return encode(object{"error": object{"code": f.Status, "status": f.kind(), "message": f.message()}})
	case OpenAI, Responses:
		return encode(object{"error": e})
	case Ollama:
		return encode(object{"error": f.message()})
	}
	return encode(object{"type": "error", "error": e})
}

// modelOf returns the model of a request.
func modelOf(request []byte) string {
	var r struct {
		Model string `json:"model"`
	}
	_ = json.Unmarshal(request, &r) // validated before
	return r.Model
}

// isFast reports whether a request asks for the faster tier.
func isFast(request []byte) bool {
	var r struct {
		Speed string `json:"speed"`
		Tier  string `json:"service_tier"`
	}
	_ = json.Unmarshal(request, &r) // validated before
	return r.Speed == "fast" || r.Tier == "priority" || r.Tier == "fast"
}

// anthropicEvents returns the events of a step in the Messages format.
func anthropicEvents(request []byte, s *Step) [][]byte {
	var all [][]byte
	add := func(kind string, o object) {
		o["type"] = kind
		all = append(all, fmt.Appendf(nil, "event: %s\ndata: %s\n\n", kind, encode(o)))
	}
	u := s.usage(len(request))
	start := object{
		"id": "msg_scripted", "type": "message", "role": "assistant", "model": modelOf(request),
		"content": []any{}, "stop_reason": nil, "stop_sequence": nil,
	}
	if !s.Fault.NoUsage {
		start["usage"] = object{
			"input_tokens": u.Input, "output_tokens": 1,
			"cache_read_input_tokens": u.CacheRead, "cache_creation_input_tokens": u.CacheWrite,
		}
	}
	if usage, ok := start["usage"].(object); ok && isFast(request) {
		usage["speed"] = map[bool]string{true: "fast", false: "standard"}[s.Usage == nil || s.Usage.Fast]
	}
	add("message_start", object{"message": start})
	for i := range s.Parts {
		block, deltas := anthropicBlock(&s.Parts[i], s.Chunk)
		add("content_block_start", object{"index": i, "content_block": block})
		if i == 0 {
			add("ping", object{})
		}
		for _, d := range deltas {
			add("content_block_delta", object{"index": i, "delta": d})
		}
		add("content_block_stop", object{"index": i})
	}
	if f := &s.Fault; f.Error {
		add("error", object{"error": object{"type": f.kind(), "message": f.message()}})
		return all
	}
	end := object{"delta": object{"stop_reason": anthropicStop(s.stop()), "stop_sequence": nil}}
	if !s.Fault.NoUsage {
		end["usage"] = object{"output_tokens": u.Output}
	}
	add("message_delta", end)
	add("message_stop", object{})
	return all
}

func anthropicStop(r llm.StopReason) string {
	switch r {
	case llm.StopEnd:
		return "end_turn"
	case llm.StopLength:
		return "max_tokens"
	case llm.StopTools:
		return "tool_use"
	}
	return string(r) // refusal, or a service's own value
}

func anthropicBlock(p *llm.Part, chunk int) (block object, deltas []object) {
	switch {
	case p.Kind == llm.PartCall:
		for _, c := range chunks(argsOf(p.Call), chunk) {
			deltas = append(deltas, object{"type": "input_json_delta", "partial_json": c})
		}
		return object{"type": "tool_use", "id": p.Call.ID, "name": p.Call.Name, "input": object{}}, deltas
	case p.Redacted != "":
		return object{"type": "redacted_thinking", "data": p.Redacted}, nil
	case p.Kind == llm.PartThinking:
		for _, c := range chunks(p.Text, chunk) {
			deltas = append(deltas, object{"type": "thinking_delta", "thinking": c})
		}
		for _, c := range chunks(p.Signature, chunk) {
			deltas = append(deltas, object{"type": "signature_delta", "signature": c})
		}
		return object{"type": "thinking", "thinking": "", "signature": ""}, deltas
	}
	for _, c := range chunks(p.Text, chunk) {
		deltas = append(deltas, object{"type": "text_delta", "text": c})
	}
	return object{"type": "text", "text": ""}, deltas
}
