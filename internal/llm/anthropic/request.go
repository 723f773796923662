package anthropic

import (
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/dialect"
	"github.com/chela-ai/chela/internal/llm"
)

var errNoMessages = errors.New("the request has no message that could be sent")

// body puts the request together. What changes with each turn is last, so that
// two requests of a conversation begin with the same bytes.
func (p *Provider) body(r *llm.Request) (*dialect.Body, error) {
	o, err := dialect.NewObject(r.Params, "model", "messages", "stream")
	if err != nil {
		return nil, err
	}
	model := p.model(r.Model)
	e := encoder{provider: p.name, images: model.ID == "" || model.Images}
	enc := e.encode(r.Messages)
	t := think(r, model, replays(r.Messages, enc))
	marker := cacheMarker(r.Cache)

	o.String("model", r.Model)
	o.Int("max_tokens", t.maxTokens)
	o.Raw("stream", "true")
	o.Raw("thinking", t.thinking)
	o.Raw("output_config", t.output)
	if r.HasTemp && t.thinking == "" && !math.IsNaN(r.Temperature) && !math.IsInf(r.Temperature, 0) {
		o.Float("temperature", r.Temperature)
	}
	specs := r.Tools
	if len(specs) == 0 {
		if specs = calledTools(r.Messages); len(specs) > 0 {
			o.Raw("tool_choice", `{"type":"none"}`)
		}
	}
	if tools := p.tools.Encode(specs, encodeTool); len(tools) > 0 {
		o.Field("tools", func(b []byte) []byte { return appendTools(b, tools, marker) })
	}
	if system := texts(r.System); len(system) > 0 {
		o.Field("system", func(b []byte) []byte { return appendSystem(b, system, marker) })
	}
	body := &dialect.Body{}
	body.Add(o.Open("messages"))
	if !addMessages(body, r.Messages, enc, marker) {
		return nil, errNoMessages
	}
	return body, nil
}

// cacheMarker returns the field that marks the end of what is to be cached,
// with a comma before it; empty: nothing is cached.
func cacheMarker(retention string) string {
	switch retention {
	case "none":
		return ""
	case "long":
		return `,"cache_control":{"ttl":"1h","type":"ephemeral"}`
	}
	return `,"cache_control":{"type":"ephemeral"}`
}

// calledTools returns a stand-in for each tool that the history calls. The
// service refuses a history with calls when a request defines no tools.
func calledTools(msgs []*llm.Message) []llm.ToolSpec {
	var specs []llm.ToolSpec
	for _, m := range msgs {
		for _, c := range m.Calls() {
			name := dialect.ToolName(c.Name)
			at, known := slices.BinarySearchFunc(specs, name, func(s llm.ToolSpec, n string) int { return strings.Compare(s.Name, n) })
			if !known {
				specs = slices.Insert(specs, at, llm.ToolSpec{Name: name, Description: "Not available now."})
			}
		}
	}
	return specs
}

func encodeTool(t llm.ToolSpec) []byte {
	b := []byte{'{'}
	if t.Description != "" {
		b = append(dialect.AppendString(append(b, `"description":`...), t.Description), ',')
	}
	b = dialect.AppendSchema(append(b, `"input_schema":`...), t.Schema)
	b = dialect.AppendString(append(b, `,"name":`...), t.Name)
	return append(b, '}')
}

func appendTools(b []byte, tools [][]byte, marker string) []byte {
	b = append(b, '[')
	for _, t := range tools {
		b = append(append(b, t...), ',')
	}
	b = append(b[:len(b)-2], marker...) // in the place of the last "},"
	return append(b, '}', ']')
}

// maxSystemMarkers leaves two of the four markers that a request may have: one
// for the tools and one for the history.
const maxSystemMarkers = 2

// texts returns the blocks that have a text. A marker behind nothing belongs
// to the block before. Of many markers the last ones stay: they cover most.
func texts(blocks []llm.Block) []llm.Block {
	var kept []llm.Block
	for _, s := range blocks {
		switch {
		case strings.TrimSpace(s.Text) != "":
			kept = append(kept, s)
		case s.Cache && len(kept) > 0:
			kept[len(kept)-1].Cache = true
		}
	}
	left := maxSystemMarkers
	for i := len(kept) - 1; i >= 0; i-- {
		if kept[i].Cache {
			kept[i].Cache = left > 0
			left--
		}
	}
	return kept
}

func appendSystem(b []byte, blocks []llm.Block, marker string) []byte {
	b = append(b, '[')
	for i, s := range blocks {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(dialect.AppendString(append(b, `{"text":`...), s.Text), `,"type":"text"`...)
		if s.Cache {
			b = append(b, marker...)
		}
		b = append(b, '}')
	}
	return append(b, ']')
}
