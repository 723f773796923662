package ollama

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/plugin/llm/dialect"
)

// body encodes the request. What changes with each turn is last, so that successive
// requests of a conversation have the same prefix, which the server keeps evaluated.
func (p *Provider) body(r *llm.Request, no omitted) (*dialect.Body, error) {
	o, err := dialect.NewObject(r.Params, "model", "messages", "stream")
	if err != nil {
		return nil, err
	}
	r = p.adapter.Adapt(r)
	model := p.model(r.Model)
	o.String("model", r.Model)
	o.Raw("stream", "true")
	if !no.think {
		o.Raw("think", think(r, model))
	}
	o.Nested("options", func(o *dialect.Object) { options(o, r, model) })
	if len(r.Tools) > 0 {
		o.Piece("tools", p.tools.Encode(r.Tools, dialect.SameTools, dialect.Functions))
	}
	body := o.Body("messages")
	body.AddString("[")
	body.Add(p.system.Encode(r.System, slices.Equal[[]llm.Block], encodeSystem))
	e := encoder{provider: p.name, images: dialect.SupportsImages(model)}
	if !e.add(body, r.Messages, r.Note) {
		return nil, dialect.ErrNoMessages
	}
	return body, nil
}

// think returns whether a model thinks, or how much, as JSON; "": the model decides. Only one
// family of models has levels.
func think(r *llm.Request, m llm.Model) string {
	off := r.Thinking == "" || r.Thinking == llm.Off
	switch {
	case m.ID != "" && len(m.Levels) == 0, m.ID == "" && off:
		return ""
	case off:
		return "false"
	case strings.Contains(r.Model, "gpt-oss"):
		return strconv.Quote(string(dialect.Nearest(r.Thinking, []llm.Level{llm.Low, llm.Medium, llm.High})))
	}
	return "true"
}

// unknownWindow is the context window that is asked for of an unknown model, in tokens. The
// server's own default is smaller than the instructions of an assistant.
const unknownWindow = 32 << 10

// options adds the options of a request. The server makes a window of num_ctx tokens.
func options(o *dialect.Object, r *llm.Request, m llm.Model) {
	o.Int("num_ctx", cmp.Or(m.Context, unknownWindow))
	if r.MaxTokens > 0 {
		o.Int("num_predict", r.MaxTokens)
	}
	if r.HasTemperature {
		o.Float("temperature", r.Temperature)
	}
}

// encodeSystem returns the system message, with a trailing comma, or nothing if it is empty.
func encodeSystem(blocks []llm.Block) []byte {
	text := dialect.System(blocks)
	if text == "" {
		return nil
	}
	return append(dialect.AppendString([]byte(`{"content":`), text), `,"role":"system"},`...)
}
