package llmtest

import (
	"encoding/json"

	"github.com/chela-ai/chela/internal/core/llm"
)

// ollamaLines returns the lines of a step in Ollama's format, which has no signatures.
func ollamaLines(request []byte, s *Step) [][]byte {
	var all [][]byte
	send := func(o object) { all = append(all, append(encode(o), '\n')) }
	message := func(m object) {
		m["role"] = "assistant"
		if m["content"] == nil {
			m["content"] = ""
		}
		send(object{"model": modelOf(request), "created_at": "2026-01-02T03:04:05Z", "message": m, "done": false})
	}
	for i := range s.Parts {
		switch p := &s.Parts[i]; p.Kind {
		case llm.PartThinking:
			for _, c := range chunks(p.Text, s.Chunk) {
				message(object{"thinking": c})
			}
		case llm.PartCall:
			call := object{"name": p.Call.Name, "arguments": object{}}
			if args := []byte(argsOf(p.Call)); json.Valid(args) {
				call["arguments"] = json.RawMessage(args)
			}
			message(object{"tool_calls": []any{object{"id": p.Call.ID, "function": call}}})
		default:
			for _, c := range chunks(p.Text, s.Chunk) {
				message(object{"content": c})
			}
		}
	}
	if f := &s.Fault; f.Error {
		send(object{"error": f.kind() + ": " + f.message()})
		return all
	}
	end := object{
		"model":          modelOf(request),
		"created_at":     "2026-01-02T03:04:06Z",
		"message":        object{"role": "assistant", "content": ""},
		"done":           true,
		"done_reason":    "stop",
		"total_duration": 5,
	}
	if s.stop() == llm.StopLength {
		end["done_reason"] = "length"
	}
	if u := s.usage(len(request)); !s.Fault.NoUsage {
		end["prompt_eval_count"], end["eval_count"] = u.Prompt(), u.Output
	}
	send(end)
	return all
}
