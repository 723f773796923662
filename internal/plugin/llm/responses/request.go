package responses

import (
	"slices"
	"strconv"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/plugin/llm/dialect"
)

// minTokens is the least that the service accepts as the limit of an answer.
const minTokens = 16

// body encodes the request. What changes with each turn is last, so that successive
// requests of a conversation have the same prefix.
func (p *Provider) body(r *llm.Request, no omitted) (*dialect.Body, error) {
	o, err := dialect.NewObject(r.Params, "model", "input", "stream", "previous_response_id")
	if err != nil {
		return nil, err
	}
	r = p.adapter.Adapt(r)
	model := p.model(r.Model)
	thinks := model.ID == "" || len(model.Levels) > 0
	o.String("model", r.Model)
	o.Raw("stream", "true")
	if p.home {
		o.Raw("store", "false")
	}
	if p.home && thinks && !no.encrypted && !no.reasoning {
		o.Raw("include", `["reasoning.encrypted_content"]`)
	}
	if r.Fast {
		o.String("service_tier", "priority")
	}
	if r.MaxTokens > 0 {
		o.Int("max_output_tokens", max(r.MaxTokens, minTokens))
	}
	if r.HasTemperature && !no.temperature && allowsTemperature(model) {
		o.Float("temperature", r.Temperature)
	}
	if !no.reasoning {
		o.Nested("reasoning", func(o *dialect.Object) { reasoning(o, r.Thinking, model, !no.summary) })
	}
	if p.home && !no.cacheKey && r.Session != "" && r.Cache != "none" {
		o.String("prompt_cache_key", dialect.CallID(r.Session, 64))
	}
	if len(r.Tools) > 0 {
		o.Piece("tools", p.tools.Encode(r.Tools, dialect.SameTools, encodeTools))
	}
	if system := p.system.Encode(r.System, slices.Equal[[]llm.Block], encodeSystem); len(system) > 0 {
		o.Piece("instructions", system)
	}
	body := o.Body("input")
	e := encoder{provider: p.name, model: r.Model, images: dialect.SupportsImages(model),
		thoughts: !no.encrypted && !no.reasoning}
	if !e.add(body, r.Messages, r.Note) {
		return nil, dialect.ErrNoMessages
	}
	return body, nil
}

// allowsTemperature reports whether a model accepts a temperature. Those that think do not.
func allowsTemperature(m llm.Model) bool {
	if allowed := m.Compat.SupportsTemperature; allowed != nil {
		return *allowed
	}
	return len(m.Levels) == 0
}

// levels are the assumed levels of an unknown model.
var levels = [...]llm.Level{llm.Minimal, llm.Low, llm.Medium, llm.High}

// reasoning adds the thinking configuration for a level. A level that the model does not
// support is replaced by the nearest one.
func reasoning(o *dialect.Object, want llm.Level, m llm.Model, summary bool) {
	if want == "" || want == llm.Off || m.ID != "" && len(m.Levels) == 0 {
		return
	}
	if l := dialect.Nearest(want, dialect.LevelsOf(m, levels[:])); l != llm.Adaptive {
		o.String("effort", string(l))
	}
	if summary {
		o.String("summary", "auto")
	}
}

func encodeTools(tools []llm.ToolSpec) []byte {
	b := []byte{'['}
	for i, t := range tools {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '{')
		if t.Description != "" {
			b = append(dialect.AppendString(append(b, `"description":`...), t.Description), ',')
		}
		b = dialect.AppendString(append(b, `"name":`...), t.Name)
		b = dialect.AppendSchema(append(b, `,"parameters":`...), t.Schema)
		// Without the field, the service makes schemas strict where it can.
		b = strconv.AppendBool(append(b, `,"strict":`...), t.Strict != nil && *t.Strict)
		b = append(b, `,"type":"function"}`...)
	}
	return append(b, ']')
}

// encodeSystem returns the system prompt, or nothing if it is empty.
func encodeSystem(blocks []llm.Block) []byte {
	text := dialect.System(blocks)
	if text == "" {
		return nil
	}
	return dialect.AppendString(nil, text)
}
