package openai

import (
	"cmp"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/plugin/llm/dialect"
)

// body encodes the request. What changes with each turn is last, so that
// successive requests of a conversation have the same prefix.
func (p *Provider) body(r *llm.Request, q *quirks) (*dialect.Body, error) {
	o, err := dialect.NewObject(r.Params, "model", "messages", "stream")
	if err != nil {
		return nil, err
	}
	r = p.adapter.Adapt(r)
	model := p.model(r.Model)
	e := encoder{provider: p.name, images: dialect.SupportsImages(model) && !q.stringContent, quirks: q}
	w := q.think(r, model)
	if w.on && q.form == router && strings.HasPrefix(r.Model, anthropicModels) && !e.replays(r.Messages) {
		w = thought{} // the model requires the thinking of its last turn, which is another provider's
	}
	o.String("model", r.Model)
	o.Raw("stream", "true")
	if !q.noUsage {
		o.Raw("stream_options", `{"include_usage":true}`)
	}
	if r.Fast {
		o.String("service_tier", "priority")
	}
	if r.MaxTokens > 0 {
		o.Int(cmp.Or(q.limit, "max_tokens"), r.MaxTokens)
	}
	if r.HasTemperature && q.allowsTemperature(model, w) {
		o.Float("temperature", q.temperature(r.Temperature))
	}
	for _, f := range w.fields {
		o.Raw(f.name, f.value)
	}
	if q.cacheKey && r.Session != "" && r.Cache != "none" {
		o.String("prompt_cache_key", dialect.CallID(r.Session, 64))
	}
	if len(r.Tools) > 0 {
		o.Piece("tools", p.tools.Encode(r.Tools, dialect.SameTools, dialect.Functions))
	}
	marker := q.cacheMarker(r)
	body := o.Body("messages")
	body.AddString("[")
	system, note := r.System, r.Note
	if n := len(r.Messages); note != "" && (q.bridge || q.merge) && n > 0 && r.Messages[n-1].Role == llm.RoleTool {
		system, note = append(slices.Clip(system), llm.Block{Text: note}), "" // a user message may not follow results
	}
	body.Add(p.system.Encode(prompt{q.systemRole(model), system, marker}, samePrompt, encodeSystem))
	if !e.add(body, r.Messages, marker, note) {
		return nil, dialect.ErrNoMessages
	}
	return body, nil
}

// anthropicModels is the prefix of Anthropic's models in a router.
const anthropicModels = "anthropic/"

func (q *quirks) systemRole(m llm.Model) string {
	if q.developer && len(m.Levels) > 0 {
		return "developer"
	}
	return "system"
}

// allowsTemperature reports whether the model accepts a temperature.
func (q *quirks) allowsTemperature(m llm.Model, t thought) bool {
	switch q.ownTemperature {
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

// cacheMarker returns the field that marks the end of the cached prefix, with a
// leading comma. Only a router accepts it, for models that require it; other
// services cache automatically.
func (q *quirks) cacheMarker(r *llm.Request) string {
	if !q.markers || !strings.HasPrefix(r.Model, anthropicModels) {
		return ""
	}
	return dialect.CacheMarker(r.Cache)
}

// prompt is the content of the system message and the cache marker.
type prompt struct {
	role   string
	blocks []llm.Block
	marker string
}

func samePrompt(a, b prompt) bool {
	return a.role == b.role && a.marker == b.marker && slices.Equal(a.blocks, b.blocks)
}

// encodeSystem returns the system message, with a trailing comma, or nothing if
// it is empty. With a marker, the text that does not change between turns is a
// separate part.
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
