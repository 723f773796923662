package openai

import (
	"encoding/json"
	"strings"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/plugin/llm/dialect"
)

// detail is a piece of thinking in a router's format (reasoning_details), which must be sent back
// unchanged: the service behind the router checks its signature. A stream contains it in parts with
// the same index.
type detail struct {
	Type      string `json:"type"` // reasoning.text, reasoning.summary, reasoning.encrypted
	Text      string `json:"text,omitempty"`
	Summary   string `json:"summary,omitempty"`
	Data      string `json:"data,omitempty"`
	Signature string `json:"signature,omitempty"`
	ID        string `json:"id,omitempty"`
	Format    string `json:"format,omitempty"`
	Index     *int   `json:"index,omitempty"`
}

// partialDetail is a detail under construction. Its text is in the piece.
type partialDetail struct {
	detail
	piece *dialect.Piece
}

// detail adds a part of a detail.
func (d *decoder) detail(in *detail, a *dialect.Answer) error {
	k := d.findDetail(in)
	if k == nil {
		p, err := a.Begin(llm.PartThinking)
		if err != nil {
			return err
		}
		k = &partialDetail{detail: detail{Type: in.Type, Index: in.Index}, piece: p}
		d.details = append(d.details, k)
	}
	k.Data += in.Data
	k.Signature += in.Signature
	if in.ID != "" {
		k.ID = in.ID
	}
	if in.Format != "" {
		k.Format = in.Format
	}
	return a.Add(k.piece, in.Text+in.Summary)
}

// findDetail returns the detail that a part belongs to, or nil for a new one. A
// part without an index belongs to the last detail of its type.
func (d *decoder) findDetail(in *detail) *partialDetail {
	for i := len(d.details) - 1; i >= 0; i-- {
		k := d.details[i]
		if k.Type == in.Type && (in.Index == nil || k.Index != nil && *k.Index == *in.Index) {
			return k
		}
	}
	return nil
}

// sign stores the details in the signatures of their pieces, for sending them
// back.
func (d *decoder) sign() {
	for _, k := range d.details {
		if b, err := json.Marshal(k.detail); err == nil {
			k.piece.Sign(string(b))
		}
	}
	d.details = nil
}

// appendDetails appends the field with the details of m, if there are any.
func appendDetails(b []byte, m *llm.Message) []byte {
	n := 0
	for i := range m.Parts {
		p := &m.Parts[i]
		var k detail
		if p.Kind != llm.PartThinking || !strings.HasPrefix(p.Signature, "{") ||
			json.Unmarshal([]byte(p.Signature), &k) != nil {
			continue
		}
		switch k.Type {
		case "reasoning.text":
			k.Text = p.Text
		case "reasoning.summary":
			k.Summary = p.Text
		}
		enc, err := json.Marshal(k)
		if err != nil {
			continue
		}
		if n++; n == 1 {
			b = append(b, `,"`+details+`":[`...)
		} else {
			b = append(b, ',')
		}
		b = append(b, enc...)
	}
	if n > 0 {
		b = append(b, ']')
	}
	return b
}
