package export

import (
	"bytes"
	"encoding/json"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/session"
)

// redacted returns a copy of an entry without secrets and without what authenticates
// thoughts to their provider.
func (x *Exporter) redacted(e *session.Entry) session.Entry {
	out := *e
	out.Text = x.o.Redact(e.Text)
	out.Details = x.redactedJSON(e.Details)
	out.Sender.Name = x.o.Redact(e.Sender.Name)
	if m := e.Message; m != nil {
		out.Message = &llm.Message{
			Role:     m.Role,
			Provider: m.Provider,
			Model:    m.Model,
			Stop:     m.Stop,
			CallID:   m.CallID,
			ToolName: m.ToolName,
			IsError:  m.IsError,
		}
		for i := range m.Parts {
			p := m.Parts[i]
			p.Text, p.Signature = x.o.Redact(p.Text), ""
			if p.Redacted != "" {
				p.Redacted = "hidden by the provider"
			}
			if c := p.Call; c != nil {
				p.Call = &llm.ToolCall{
					ID:    c.ID,
					Name:  x.o.Redact(c.Name),
					Args:  x.redactedJSON(c.Args),
					Raw:   x.o.Redact(c.Raw),
					Title: x.o.Redact(c.Title),
				}
			}
			out.Message.Parts = append(out.Message.Parts, p)
		}
	}
	return out
}

// redactedJSON returns a JSON value whose texts contain no secrets. Text that is not JSON
// is treated as one text.
func (x *Exporter) redactedJSON(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return raw
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber() // numbers keep their digits
	var v any
	if d.Decode(&v) != nil {
		v = string(raw)
	}
	return encode(x.redactedValue(v))
}

// redactedValue redacts the texts in a decoded JSON value, whose arrays it changes.
func (x *Exporter) redactedValue(v any) any {
	switch v := v.(type) {
	case string:
		return x.o.Redact(v)
	case []any:
		for i := range v {
			v[i] = x.redactedValue(v[i])
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, old := range v {
			out[x.o.Redact(k)] = x.redactedValue(old)
		}
		return out
	}
	return v
}

// encode returns a value as JSON without escapes for HTML.
func encode(v any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		return json.RawMessage("null")
	}
	return bytes.TrimSpace(b.Bytes())
}
