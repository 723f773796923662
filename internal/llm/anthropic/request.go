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
	r = p.offers.Fit(r)
	model := p.model(r.Model)
	e := encoder{provider: p.name, images: sees(model)}
	enc := e.encode(r.Messages)
	t := think(r, model, replays(r.Messages, enc))
	marker := cacheMarker(r.Cache)

	o.String("model", r.Model)
	o.Int("max_tokens", t.maxTokens)
	o.Raw("stream", "true")
	o.Raw("thinking", t.thinking)
	o.Raw("output_config", t.output)
	if warm := model.Compat.SupportsTemperature; r.HasTemp && (warm == nil || *warm) && t.thinking == "" && !math.IsNaN(r.Temperature) && !math.IsInf(r.Temperature, 0) {
		o.Float("temperature", r.Temperature)
	}
	specs := r.Tools
	if len(specs) == 0 {
		if specs = calledTools(r.Messages); len(specs) > 0 {
			o.Raw("tool_choice", `{"type":"none"}`)
		}
	}
	if len(specs) > 0 {
		o.Piece("tools", p.tools.Encode(offer{specs, marker}, sameOffer, encodeTools))
	}
	if system := texts(r.System); len(system) > 0 {
		o.Piece("system", p.system.Encode(prompt{system, marker}, samePrompt, encodeSystem))
	}
	body := o.Body("messages")
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

func encodeTools(o offer) []byte {
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
