package openai

import (
	"errors"
	"math"
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
	thinks := len(model.Levels) > 0
	o.String("model", r.Model)
	o.Raw("stream", "true")
	if !p.quirks.mistral {
		o.Raw("stream_options", `{"include_usage":true}`)
	}
	if r.MaxTokens > 0 {
		o.Int(p.maxTokensField(), r.MaxTokens)
	}
	if r.HasTemp && !math.IsNaN(r.Temperature) && !math.IsInf(r.Temperature, 0) && !(p.quirks.openai && thinks) {
		o.Float("temperature", r.Temperature)
	}
	p.thinking(o, r, model)
	if p.quirks.openai && r.Session != "" && r.Cache != "none" {
		o.String("prompt_cache_key", dialect.CallID(r.Session, 64))
	}
	if tools := p.tools.Encode(r.Tools, encodeTool); len(tools) > 0 {
		o.Field("tools", func(b []byte) []byte { return appendTools(b, tools) })
	}
	marker := p.cacheMarker(r)
	body := &dialect.Body{}
	body.Add(appendSystem(append(o.Open("messages"), '['), p.systemRole(thinks), r.System, marker))
	e := encoder{provider: p.name, images: model.ID == "" || model.Images, quirks: p.quirks}
	if !e.add(body, r.Messages, marker) {
		return nil, errNoMessages
	}
	return body, nil
}

func (p *Provider) maxTokensField() string {
	if p.quirks.openai {
		return "max_completion_tokens"
	}
	return "max_tokens"
}

func (p *Provider) systemRole(thinks bool) string {
	if p.quirks.openai && thinks {
		return "developer"
	}
	return "system"
}

// thinking says how much the model may think, to hosts that are known to take
// it. A level that the model does not list becomes the nearest one.
func (p *Provider) thinking(o *dialect.Object, r *llm.Request, m llm.Model) {
	level := r.Thinking
	if level == "" || level == llm.Off || m.ID != "" && len(m.Levels) == 0 {
		return
	}
	have := []llm.Level{llm.Minimal, llm.Low, llm.Medium, llm.High}
	if len(m.Levels) > 0 {
		have = m.Levels
	}
	switch effort := string(dialect.Nearest(level, have)); {
	case p.quirks.openai:
		o.String("reasoning_effort", effort)
	case p.quirks.openrouter:
		o.Field("reasoning", func(b []byte) []byte {
			return append(dialect.AppendString(append(b, `{"effort":`...), effort), '}')
		})
	}
}

func encodeTool(t llm.ToolSpec) []byte {
	b := []byte(`{"function":{`)
	if t.Description != "" {
		b = append(dialect.AppendString(append(b, `"description":`...), t.Description), ',')
	}
	b = dialect.AppendString(append(b, `"name":`...), t.Name)
	b = dialect.AppendSchema(append(b, `,"parameters":`...), t.Schema)
	return append(b, `},"type":"function"}`...)
}

func appendTools(b []byte, tools [][]byte) []byte {
	b = append(b, '[')
	for i, t := range tools {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, t...)
	}
	return append(b, ']')
}

// cacheMarker returns the field that marks the end of what is to be cached, with
// a comma before it. Only the router takes it, for models that want to be told;
// other services cache by themselves.
func (p *Provider) cacheMarker(r *llm.Request) string {
	switch {
	case !p.quirks.openrouter || !strings.HasPrefix(r.Model, "anthropic/") || r.Cache == "none":
		return ""
	case r.Cache == "long":
		return `,"cache_control":{"ttl":"1h","type":"ephemeral"}`
	}
	return `,"cache_control":{"type":"ephemeral"}`
}

// appendSystem appends the message that holds the system prompt, with a comma
// behind it; nothing when there is none. With a marker, what stays the same
// between turns is a part of its own.
func appendSystem(b []byte, role string, blocks []llm.Block, marker string) []byte {
	var stays, texts []string
	for _, s := range blocks {
		if strings.TrimSpace(s.Text) != "" {
			texts = append(texts, s.Text)
		}
		if s.Cache && marker != "" {
			stays, texts = append(stays, texts...), nil
		}
	}
	if len(stays)+len(texts) == 0 {
		return b
	}
	rest := strings.Join(texts, "\n\n")
	b = append(b, `{"content":`...)
	if len(stays) == 0 {
		b = dialect.AppendString(b, rest)
	} else {
		b = dialect.AppendString(append(b, `[{"text":`...), strings.Join(stays, "\n\n"))
		b = append(append(append(b, `,"type":"text"`...), marker...), '}')
		if rest != "" {
			b = append(dialect.AppendString(append(b, `,{"text":`...), rest), `,"type":"text"}`...)
		}
		b = append(b, ']')
	}
	b = dialect.AppendString(append(b, `,"role":`...), role)
	return append(b, `},`...)
}
