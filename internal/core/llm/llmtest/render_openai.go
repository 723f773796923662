package llmtest

import (
	"fmt"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/wiretest"
)

// stream builds a response in the Chat Completions format.
type stream struct {
	model string
	chunk int
	at    wiretest.Service // its response format
	calls int
	tier  string // that answers; "": not said
	all   [][]byte
}

// openaiEvents returns the events of a step in the Chat Completions format of a
// service, or the standard format if it is nil.
func openaiEvents(request []byte, s *Step, at *wiretest.Service) [][]byte {
	f, u := &s.Fault, s.usage(len(request))
	w := &stream{model: modelOf(request), chunk: s.Chunk,
		at: wiretest.Service{Thought: wiretest.ThoughtContent, Usage: wiretest.UsageLast}}
	if at != nil {
		w.at = *at
	}
	if isFast(request) {
		w.tier = map[bool]string{true: "priority", false: "default"}[s.Usage == nil || s.Usage.Fast]
	}
	if f.Whole {
		return [][]byte{encode(openaiWhole(w.model, s, u))}
	}
	w.choice(object{"role": "assistant", "content": ""}, nil, nil)
	for i := range s.Parts {
		w.part(&s.Parts[i], i)
	}
	if f.Error {
		w.send(object{"error": object{"type": f.kind(), "message": f.message()}})
		return w.all
	}
	w.end(openaiStop(s.stop()), u, !f.NoUsage)
	return append(w.all, []byte("data: [DONE]\n\n"))
}

func (w *stream) send(o object) { w.all = append(w.all, fmt.Appendf(nil, "data: %s\n\n", encode(o))) }

// choice sends a delta. more is added to the event.
func (w *stream) choice(delta object, finish any, more object) {
	o := openaiHead(w.model, "chat.completion.chunk")
	o["choices"] = []any{object{"index": 0, "delta": delta, "finish_reason": finish}}
	if w.tier != "" {
		o["service_tier"] = w.tier
	}
	for k, v := range more {
		o[k] = v
	}
	w.send(o)
}

func (w *stream) part(p *llm.Part, i int) {
	switch p.Kind {
	case llm.PartThinking:
		w.thought(p, i)
	case llm.PartCall:
		call := func(o object) { o["index"] = w.calls; w.choice(object{"tool_calls": []any{o}}, nil, nil) }
		call(object{"id": p.Call.ID, "type": "function", "function": object{"name": p.Call.Name, "arguments": ""}})
		for _, c := range chunks(argsOf(p.Call), w.chunk) {
			call(object{"function": object{"arguments": c}})
		}
		w.calls++
	default:
		for _, c := range chunks(p.Text, w.chunk) {
			w.choice(object{"content": c}, nil, nil)
		}
	}
}

// thought sends thinking where the service puts it.
func (w *stream) thought(p *llm.Part, i int) {
	text := p.Text
	if w.at.Thought == wiretest.ThoughtTags {
		text = "<think>\n" + text + "</think>\n\n"
	}
	detail := func(o object) object { o["type"], o["index"] = "reasoning.text", i; return o }
	for _, c := range chunks(text, w.chunk) {
		switch w.at.Thought {
		case wiretest.ThoughtTags:
			w.choice(object{"content": c}, nil, nil)
		case wiretest.ThoughtShort:
			w.choice(object{"reasoning": c}, nil, nil)
		case wiretest.ThoughtParts:
			w.choice(object{"content": []any{object{"type": "thinking", "thinking": []any{object{"type": "text", "text": c}}}}},
				nil, nil)
		case wiretest.ThoughtDetails:
			w.choice(object{"reasoning": c,
				"reasoning_details": []any{detail(object{"text": c, "format": "anthropic-claude-v1"})}}, nil, nil)
		default:
			w.choice(object{"reasoning_content": c}, nil, nil)
		}
	}
	if w.at.Thought == wiretest.ThoughtDetails && p.Signature != "" {
		w.choice(object{"reasoning_details": []any{detail(object{"signature": p.Signature})}}, nil, nil)
	}
}

// end sends the finish reason, and the usage where the service puts it.
func (w *stream) end(reason string, u llm.Usage, counted bool) {
	more := object{}
	switch {
	case !counted:
	case w.at.Usage == wiretest.UsageFinish:
		more["usage"] = openaiUsage(u)
	case w.at.Usage == wiretest.UsageGroq:
		more["x_groq"] = object{"id": "req_scripted", "usage": openaiUsage(u)}
	case w.at.Usage == wiretest.UsageTimings:
		more["timings"] = object{"prompt_n": u.Input, "cache_n": u.CacheRead, "predicted_n": u.Output, "predicted_ms": 1.5}
	}
	w.choice(object{}, reason, more)
	if counted && w.at.Usage == wiretest.UsageLast {
		o := openaiHead(w.model, "chat.completion.chunk")
		o["choices"], o["usage"] = []any{}, openaiUsage(u)
		w.send(o)
	}
}

func openaiHead(model, kind string) object {
	return object{"id": "chatcmpl-scripted", "object": kind, "created": 1, "model": model}
}

func openaiUsage(u llm.Usage) object {
	return object{
		"prompt_tokens": u.Prompt(), "completion_tokens": u.Output, "total_tokens": u.Total(),
		"prompt_tokens_details": object{"cached_tokens": u.CacheRead},
	}
}

func openaiStop(r llm.StopReason) string {
	switch r {
	case llm.StopEnd:
		return "stop"
	case llm.StopTools:
		return "tool_calls"
	case llm.StopRefusal:
		return "content_filter"
	}
	return string(r) // length, or a service's own value
}

func openaiWhole(model string, s *Step, u llm.Usage) object {
	message := object{"role": "assistant", "content": nil}
	var calls []any
	for i := range s.Parts {
		p := &s.Parts[i]
		switch p.Kind {
		case llm.PartText:
			message["content"] = p.Text
		case llm.PartThinking:
			message["reasoning_content"] = p.Text
		case llm.PartCall:
			calls = append(calls, object{
				"id": p.Call.ID, "type": "function",
				"function": object{"name": p.Call.Name, "arguments": argsOf(p.Call)},
			})
		}
	}
	if calls != nil {
		message["tool_calls"] = calls
	}
	o := openaiHead(model, "chat.completion")
	o["choices"] = []any{object{"index": 0, "message": message, "finish_reason": openaiStop(s.stop())}}
	if !s.Fault.NoUsage {
		o["usage"] = openaiUsage(u)
	}
	return o
}
