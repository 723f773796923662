package llmtest

import (
	"fmt"

	"github.com/chela-ai/chela/internal/core/llm"
)

// responsesEvents returns the events of a step in the Responses format.
func responsesEvents(request []byte, s *Step) [][]byte {
	var all [][]byte
	add := func(kind string, o object) {
		o["type"], o["sequence_number"] = kind, len(all)
		all = append(all, fmt.Appendf(nil, "event: %s\ndata: %s\n\n", kind, encode(o)))
	}
	output := []any{} // the complete items
	head := func(status string) object {
		o := object{
			"id": "resp_scripted", "object": "response", "created_at": 1, "model": modelOf(request), "status": status,
			"output": output, "usage": nil, "error": nil,
		}
		if isFast(request) {
			o["service_tier"] = map[bool]string{true: "priority", false: "default"}[s.Usage == nil || s.Usage.Fast]
		}
		return o
	}
	add("response.created", object{"response": head("in_progress")})
	add("response.in_progress", object{"response": head("in_progress")})
	for i := range s.Parts {
		output = append(output, responsesItem(&s.Parts[i], i, s.Chunk, add))
	}
	if f := &s.Fault; f.Error {
		o := head("failed")
		o["error"] = object{"code": f.kind(), "message": f.message()}
		add("response.failed", object{"response": o})
		return all
	}
	o, kind := head("completed"), "response.completed"
	switch s.stop() {
	case llm.StopLength:
		kind, o["status"], o["incomplete_details"] = "response.incomplete", "incomplete",
			object{"reason": "max_output_tokens"}
	case llm.StopRefusal:
		kind, o["status"], o["incomplete_details"] = "response.incomplete", "incomplete", object{"reason": "content_filter"}
	}
	if u := s.usage(len(request)); !s.Fault.NoUsage {
		o["usage"] = object{
			"input_tokens": u.Prompt(), "input_tokens_details": object{"cached_tokens": u.CacheRead},
			"output_tokens": u.Output, "output_tokens_details": object{"reasoning_tokens": 0}, "total_tokens": u.Total(),
		}
	}
	add(kind, object{"response": o})
	return all
}

// responsesItem adds the events of a part and returns the complete item.
func responsesItem(p *llm.Part, index, chunk int, add func(kind string, o object)) object {
	item := object{"id": fmt.Sprintf("item_%d", index), "status": "in_progress"}
	send := func(kind string, o object) {
		o["item_id"], o["output_index"] = item["id"], index
		add(kind, o)
	}
	deltas := func(kind, text string, more object) {
		for _, c := range chunks(text, chunk) {
			o := object{"delta": c}
			for k, v := range more {
				o[k] = v
			}
			send(kind, o)
		}
	}
	added := func() { add("response.output_item.added", object{"output_index": index, "item": item}) }
	switch p.Kind {
	case llm.PartThinking:
		item["type"], item["summary"] = "reasoning", []any{}
		added()
		part := object{"type": "summary_text", "text": ""}
		send("response.reasoning_summary_part.added", object{"summary_index": 0, "part": part})
		deltas("response.reasoning_summary_text.delta", p.Text, object{"summary_index": 0})
		item["summary"], item["encrypted_content"] = []any{object{"type": "summary_text", "text": p.Text}}, p.Signature
	case llm.PartCall:
		item["type"], item["call_id"], item["name"], item["arguments"] = "function_call", p.Call.ID, p.Call.Name, ""
		added()
		deltas("response.function_call_arguments.delta", argsOf(p.Call), nil)
		item["arguments"] = argsOf(p.Call)
		send("response.function_call_arguments.done", object{"arguments": item["arguments"]})
	default:
		item["type"], item["role"], item["content"] = "message", "assistant", []any{}
		added()
		part := object{"type": "output_text", "text": "", "annotations": []any{}}
		send("response.content_part.added", object{"content_index": 0, "part": part})
		deltas("response.output_text.delta", p.Text, object{"content_index": 0})
		item["content"] = []any{object{"type": "output_text", "text": p.Text, "annotations": []any{}}}
		send("response.output_text.done", object{"content_index": 0, "text": p.Text})
	}
	item["status"] = "completed"
	add("response.output_item.done", object{"output_index": index, "item": item})
	return item
}
