package anthropic

import (
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/plugin/llm/dialect"
)

// body encodes the request. What changes with each turn is last, so that
// successive requests of a conversation have the same prefix.
func (p *Provider) body(r *llm.Request, no omitted) (*dialect.Body, error) {
	o, err := dialect.NewObject(r.Params, "model", "messages", "stream")
	if err != nil {
		return nil, err
	}
	r = p.adapter.Adapt(r)
	model := p.model(r.Model)
	e := encoder{provider: p.name, images: dialect.SupportsImages(model)}
	enc := e.encode(r.Messages)
	if no.thinking {
		off := *r
		off.Thinking = llm.Off
		r = &off
	}
	t := think(r, model, replays(r.Messages, enc))
	marker := dialect.CacheMarker(r.Cache)
	if no.cache {
		marker = ""
	}

	o.String("model", r.Model)
	o.Int("max_tokens", t.maxTokens)
	o.Raw("stream", "true")
	if r.Fast {
		o.String("speed", "fast")
	}
	o.Raw("thinking", t.thinking)
	if !no.output {
		o.Raw("output_config", t.output)
	}
	if allowed := model.Compat.SupportsTemperature; r.HasTemperature && !no.temperature &&
		(allowed == nil || *allowed) && t.thinking == "" {
		o.Float("temperature", r.Temperature)
	}
	specs := r.Tools
	if len(specs) == 0 {
		if specs = calledTools(r.Messages); len(specs) > 0 {
			o.Raw("tool_choice", `{"type":"none"}`)
		}
	}
	if len(specs) > 0 {
		o.Piece("tools", p.tools.Encode(toolList{specs, marker}, sameTools, encodeTools))
	}
	if system := texts(r.System); len(system) > 0 {
		o.Piece("system", p.system.Encode(prompt{system, marker}, samePrompt, encodeSystem))
	}
	body := o.Body("messages")
	if !addMessages(body, r.Messages, enc, marker, r.Note) {
		return nil, dialect.ErrNoMessages
	}
	return body, nil
}

// calledTools returns a placeholder for each tool called in the history. The
// service rejects a history with calls if the request defines no tools.
func calledTools(msgs []*llm.Message) []llm.ToolSpec {
	var specs []llm.ToolSpec
	for _, m := range msgs {
		for _, c := range m.Calls() {
			name := dialect.ToolName(c.Name)
			at, known := slices.BinarySearchFunc(specs, name,
				func(s llm.ToolSpec, n string) int { return strings.Compare(s.Name, n) })
			if !known {
				specs = slices.Insert(specs, at, llm.ToolSpec{Name: name, Description: "Not available now."})
			}
		}
	}
	return specs
}

func encodeTools(o toolList) []byte {
	b := []byte{'['}
	for i, t := range o.tools {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '{')
		if t.Description != "" {
			b = append(dialect.AppendString(append(b, `"description":`...), t.Description), ',')
		}
		b = dialect.AppendSchema(append(b, `"input_schema":`...), t.Schema)
		b = dialect.AppendString(append(b, `,"name":`...), t.Name)
		if i == len(o.tools)-1 {
			b = append(b, o.marker...)
		}
		b = append(b, '}')
	}
	return append(b, ']')
}

// maxSystemMarkers leaves three of the four allowed markers: one for the tools and two
// for the history.
const maxSystemMarkers = 1

// texts returns the nonempty blocks. The marker of an empty block moves to the
// block before. If there are too many markers, the last ones are retained, which
// cover most.
func texts(blocks []llm.Block) []llm.Block {
	var nonempty []llm.Block
	for _, s := range blocks {
		switch {
		case strings.TrimSpace(s.Text) != "":
			nonempty = append(nonempty, s)
		case s.Cache && len(nonempty) > 0:
			nonempty[len(nonempty)-1].Cache = true
		}
	}
	left := maxSystemMarkers
	for i := len(nonempty) - 1; i >= 0; i-- {
		if nonempty[i].Cache {
			nonempty[i].Cache = left > 0
			left--
		}
	}
	return nonempty
}

func encodeSystem(p prompt) []byte {
	b := []byte{'['}
	for i, s := range p.blocks {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(dialect.AppendString(append(b, `{"text":`...), s.Text), `,"type":"text"`...)
		if s.Cache {
			b = append(b, p.marker...)
		}
		b = append(b, '}')
	}
	return append(b, ']')
}
