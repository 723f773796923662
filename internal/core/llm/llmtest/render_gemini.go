package llmtest

import (
	"encoding/json"
	"fmt"

	"github.com/chela-ai/chela/internal/core/llm"
)

// geminiEvents returns the events of a step in the Gemini format. The signature of thinking
// is that of the call after it.
func geminiEvents(request []byte, s *Step) [][]byte {
	var all [][]byte
	send := func(o object) {
		o["modelVersion"] = "scripted"
		all = append(all, fmt.Appendf(nil, "data: %s\n\n", encode(o)))
	}
	part := func(p object) {
		send(object{"candidates": []any{object{"index": 0, "content": object{"role": "model", "parts": []any{p}}}}})
	}
	signature := ""
	for i := range s.Parts {
		switch p := &s.Parts[i]; p.Kind {
		case llm.PartThinking:
			for _, c := range chunks(p.Text, s.Chunk) {
				part(object{"text": c, "thought": true})
			}
			signature = p.Signature
		case llm.PartCall:
			call := object{"id": p.Call.ID, "name": p.Call.Name}
			if args := []byte(argsOf(p.Call)); json.Valid(args) {
				call["args"] = json.RawMessage(args)
			}
			o := object{"functionCall": call}
			if signature != "" {
				o["thoughtSignature"], signature = signature, ""
			}
			part(o)
		default:
			for _, c := range chunks(p.Text, s.Chunk) {
				part(object{"text": c})
			}
		}
	}
	if f := &s.Fault; f.Error {
		e := object{"code": 503, "status": "UNAVAILABLE", "message": f.message()}
		if f.Kind == "rate_limit_error" {
			e["code"], e["status"] = 429, "RESOURCE_EXHAUSTED"
		}
		send(object{"error": e})
		return all
	}
	end := object{"candidates": []any{object{"index": 0, "finishReason": geminiStop(s.stop())}}}
	if u := s.usage(len(request)); !s.Fault.NoUsage {
		end["usageMetadata"] = object{
			"promptTokenCount": u.Prompt(), "cachedContentTokenCount": u.CacheRead,
			"candidatesTokenCount": u.Output, "totalTokenCount": u.Total(),
		}
	}
	send(end)
	return all
}

func geminiStop(r llm.StopReason) string {
	switch r {
	case llm.StopLength:
		return "MAX_TOKENS"
	case llm.StopRefusal:
		return "SAFETY"
	}
	return "STOP" // also for calls
}
