package openai

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/chela-ai/chela/internal/dialect"
	"github.com/chela-ai/chela/internal/llm"
)

var errNoMessages = errors.New("the request has no message that could be sent")

// body puts the request together. What changes with each turn is last, so that
// two requests of a conversation begin with the same bytes.
func (p *Provider) body(r *llm.Request, q *quirks) (*dialect.Body, error) {
	o, err := dialect.NewObject(r.Params, "model", "messages", "stream")
	if err != nil {
		return nil, err
	}
	r = p.offers.Fit(r)
	model := p.model(r.Model)
	e := encoder{provider: p.name, images: (model.ID == "" || model.Images) && !q.texts, quirks: q}
	w := q.think(r, model)
	if w.on && q.form == router && strings.HasPrefix(r.Model, anthropicModels) && !e.replays(r.Messages) {
		w = thought{} // the model refuses to think on where its last turn was another's
	}
	e.thinks = w.on
	o.String("model", r.Model)
	o.Raw("stream", "true")
	if !q.noUsage {
		o.Raw("stream_options", `{"include_usage":true}`)
	}
	if r.MaxTokens > 0 {
		o.Int(cmp.Or(q.limit, "max_tokens"), r.MaxTokens)
	}
	if t := r.Temperature; r.HasTemp && q.warm(model, w) && !math.IsNaN(t) && !math.IsInf(t, 0) {
		o.Float("temperature", q.temperature(t))
	}
	for _, f := range w.fields {
		o.Raw(f.name, f.value)
	}
	if q.cacheKey && r.Session != "" && r.Cache != "none" {
		o.String("prompt_cache_key", dialect.CallID(r.Session, 64))
	}
	if len(r.Tools) > 0 {
		o.Piece("tools", p.tools.Encode(r.Tools, dialect.SameTools, encodeTools))
	}
	marker := q.cacheMarker(r)
	body := o.Body("messages")
	body.AddString("[")
	body.Add(p.system.Encode(prompt{q.systemRole(model), r.System, marker}, samePrompt, encodeSystem))
	if !e.add(body, r.Messages, marker) {
		return nil, errNoMessages
	}
	return body, nil
}

// anthropicModels is how a router names the models of Anthropic.
const anthropicModels = "anthropic/"

func (q *quirks) systemRole(m llm.Model) string {
	if q.developer && len(m.Levels) > 0 {
		return "developer"
	}
	return "system"
}

// warm reports whether the model takes a temperature.
func (q *quirks) warm(m llm.Model, t thought) bool {
	switch q.own {
	case ownOn:
		return !t.on
	case ownAble:
		return len(m.Levels) == 0
	case ownAll:
		return false
	}
	return true
}

func (q *quirks) temperature(t float64) float64 {
	if q.maxTemp > 0 {
		return min(t, q.maxTemp)
	}
	return t
}

func encodeTools(tools []llm.ToolSpec) []byte {
	b := []byte{'['}
	for i, t := range tools {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"function":{`...)
		if t.Description != "" {
			b = append(dialect.AppendString(append(b, `"description":`...), t.Description), ',')
		}
		b = dialect.AppendString(append(b, `"name":`...), t.Name)
		b = dialect.AppendSchema(append(b, `,"parameters":`...), t.Schema)
		if t.Strict != nil {
			b = strconv.AppendBool(append(b, `,"strict":`...), *t.Strict)
		}
		b = append(b, `},"type":"function"}`...)
	}
	return append(b, ']')
}

// cacheMarker returns the field that marks the end of what is to be cached, with
// a comma before it. Only a router takes it, for models that want to be told;
// other services cache by themselves.
func (q *quirks) cacheMarker(r *llm.Request) string {
	switch {
	case !q.markers || !strings.HasPrefix(r.Model, anthropicModels) || r.Cache == "none":
		return ""
	case r.Cache == "long":
		return `,"cache_control":{"ttl":"1h","type":"ephemeral"}`
	}
	return `,"cache_control":{"type":"ephemeral"}`
}

// prompt is what the message of the system prompt is made of, with the marker of
// what is to be cached.
type prompt struct {
	role   string
	blocks []llm.Block
	marker string
}

func samePrompt(a, b prompt) bool {
	return a.role == b.role && a.marker == b.marker && slices.Equal(a.blocks, b.blocks)
}

// encodeSystem returns the message that holds the system prompt, with a comma
// behind it; nothing when there is none. With a marker, what stays the same
// between turns is a part of its own.
func encodeSystem(p prompt) []byte {
	var stays, texts []string
	for _, s := range p.blocks {
		if strings.TrimSpace(s.Text) != "" {
			texts = append(texts, s.Text)
		}
		if s.Cache && p.marker != "" {
			stays, texts = append(stays, texts...), nil
		}
	}
	if len(stays)+len(texts) == 0 {
		return nil
	}
	rest := strings.Join(texts, "\n\n")
	b := []byte(`{"content":`)
	if len(stays) == 0 {
		b = dialect.AppendString(b, rest)
	} else {
		b = dialect.AppendString(append(b, `[{"text":`...), strings.Join(stays, "\n\n"))
		b = append(append(append(b, `,"type":"text"`...), p.marker...), '}')
		if rest != "" {
			b = append(dialect.AppendString(append(b, `,{"text":`...), rest), `,"type":"text"}`...)
		}
		b = append(b, ']')
	}
	b = dialect.AppendString(append(b, `,"role":`...), p.role)
	return append(b, `},`...)
}
