package gemini

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/plugin/llm/dialect"
)

// body encodes the request. What changes with each turn is last, so that successive
// requests of a conversation have the same prefix, which the service caches by itself.
func (p *Provider) body(r *llm.Request, no omitted) (*dialect.Body, error) {
	o, err := dialect.NewObject(r.Params, "contents", "model")
	if err != nil {
		return nil, err
	}
	r = p.adapter.Adapt(r)
	model := p.model(r.Model)
	o.Nested("generationConfig", func(o *dialect.Object) {
		if r.MaxTokens > 0 {
			o.Int("maxOutputTokens", r.MaxTokens)
		}
		if r.HasTemperature {
			o.Float("temperature", r.Temperature)
		}
		if !no.thinking {
			o.Raw("thinkingConfig", thinking(r, model))
		}
	})
	if len(r.Tools) > 0 {
		o.Piece("tools", p.tools.Encode(r.Tools, dialect.SameTools, encodeTools))
	}
	if system := p.system.Encode(r.System, slices.Equal[[]llm.Block], encodeSystem); len(system) > 0 {
		o.Piece("systemInstruction", system)
	}
	body := o.Body("contents")
	e := encoder{provider: p.name, model: r.Model, images: dialect.SupportsImages(model)}
	if !e.add(body, r.Messages, r.Note) {
		return nil, dialect.ErrNoMessages
	}
	return body, nil
}

// levels are the levels of a model that thinks by level and of which no others are known.
var levels = [...]llm.Level{llm.Low, llm.High}

// thinking returns the thinkingConfig of a request; "": none. Models from version 3 have
// levels, those before a budget of tokens.
func thinking(r *llm.Request, m llm.Model) string {
	off := r.Thinking == "" || r.Thinking == llm.Off
	switch {
	case m.ID != "" && len(m.Levels) == 0:
		return ""
	case off && thinksUnasked(r.Model):
		return `{"thinkingBudget":0}`
	case off:
		return ""
	case !hasLevels(r.Model):
		return `{"includeThoughts":true,"thinkingBudget":` + strconv.Itoa(budget(r.Thinking, r.Model)) + `}`
	}
	level := dialect.Nearest(r.Thinking, dialect.LevelsOf(m, levels[:]))
	if level == llm.Adaptive {
		return `{"includeThoughts":true}`
	}
	return `{"includeThoughts":true,"thinkingLevel":` + strconv.Quote(string(level)) + `}`
}

// thinksUnasked reports whether a model thinks unless the budget is 0. That of the larger
// models cannot be 0.
func thinksUnasked(model string) bool { return strings.Contains(model, "gemini-2.5-flash") }

// hasLevels reports whether a model is of version 3 or later, of Google's own.
func hasLevels(model string) bool {
	_, version, ok := strings.Cut(model, "gemini-")
	return ok && version != "" && version[0] >= '3' && version[0] <= '9'
}

// budget returns the number of thinking tokens of a level; -1: the model decides.
func budget(l llm.Level, model string) int {
	most := 24576
	if strings.Contains(model, "pro") {
		most = 32768
	}
	switch l {
	case llm.Minimal:
		return 1024
	case llm.Low:
		return 4096
	case llm.Medium:
		return 10000
	case llm.High:
		return 16000
	case llm.Adaptive:
		return -1
	}
	return most
}

func encodeTools(tools []llm.ToolSpec) []byte {
	b := []byte(`[{"functionDeclarations":[`)
	for i, t := range tools {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '{')
		if t.Description != "" {
			b = append(dialect.AppendString(append(b, `"description":`...), t.Description), ',')
		}
		b = dialect.AppendString(append(b, `"name":`...), t.Name)
		if hasProperties(t.Schema) { // an object without properties is refused
			b = dialect.AppendSchema(append(b, `,"parameters":`...), t.Schema)
		}
		b = append(b, '}')
	}
	return append(b, `]}]`...)
}

func hasProperties(schema json.RawMessage) bool {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	return json.Unmarshal(schema, &s) == nil && len(s.Properties) > 0
}

// encodeSystem returns the system instruction, or nothing if it is empty.
func encodeSystem(blocks []llm.Block) []byte {
	var parts []byte
	for _, s := range blocks {
		parts = appendText(parts, s.Text)
	}
	if parts == nil {
		return nil
	}
	return append(append([]byte(`{"parts":[`), parts...), `]}`...)
}
