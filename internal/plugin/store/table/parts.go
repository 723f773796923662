package table

import (
	"strings"

	"github.com/chela-ai/chela/internal/core/llm"
)

// isPlain reports whether parts is exactly one plain text. Most messages are, and
// their text is stored without encoding, which not every database can with the character 0.
func isPlain(parts []llm.Part) bool {
	if len(parts) != 1 {
		return false
	}
	p := &parts[0]
	return p.Kind == llm.PartText && p.Signature == "" && p.Redacted == "" && p.MIME == "" && p.Data == nil &&
		p.Ref == "" && p.Call == nil && strings.IndexByte(p.Text, 0) < 0
}

// part is the stored form of llm.Part. Arguments are stored as text, byte for byte:
// the same request must be sent after a restart to hit the provider's prompt cache.
type part struct {
	Kind      llm.PartKind `json:"k"`
	Text      string       `json:"t,omitempty"`
	Signature string       `json:"s,omitempty"`
	Redacted  string       `json:"r,omitempty"`
	MIME      string       `json:"m,omitempty"`
	Data      []byte       `json:"d,omitempty"`
	Ref       string       `json:"ref,omitempty"` // the same JSON key as in other rows: see media.Refs
	Bytes     int          `json:"n,omitempty"`
	Call      *partCall    `json:"c,omitempty"`
}

type partCall struct {
	ID   string `json:"i"`
	Name string `json:"n"`
	Args string `json:"a,omitempty"`
	Raw  string `json:"r,omitempty"`

	Title string `json:"l,omitempty"`
}

// encodeParts returns parts as JSON and reports whether one of them refers to a
// file.
func encodeParts(parts []llm.Part) (s string, refers bool, err error) {
	stored := make([]part, len(parts))
	for i, p := range parts {
		stored[i] = part{
			Kind: p.Kind, Text: p.Text, Signature: p.Signature, Redacted: p.Redacted,
			MIME: p.MIME, Data: p.Data, Ref: p.Ref, Bytes: p.Bytes,
		}
		refers = refers || p.Ref != ""
		if p.Call != nil {
			stored[i].Call = &partCall{p.Call.ID, p.Call.Name, string(p.Call.Args), p.Call.Raw, p.Call.Title}
		}
	}
	s, err = encode(stored)
	return s, refers, err
}

// decodeParts is the inverse of encodeParts.
func decodeParts(s string) ([]llm.Part, error) {
	var stored []part
	if err := decode(s, &stored); err != nil {
		return nil, err
	}
	parts := make([]llm.Part, len(stored))
	for i, p := range stored {
		parts[i] = llm.Part{
			Kind: p.Kind, Text: p.Text, Signature: p.Signature, Redacted: p.Redacted,
			MIME: p.MIME, Data: p.Data, Ref: p.Ref, Bytes: p.Bytes,
		}
		if p.Call != nil {
			parts[i].Call = &llm.ToolCall{
				ID:    p.Call.ID,
				Name:  p.Call.Name,
				Args:  raw(p.Call.Args),
				Raw:   p.Call.Raw,
				Title: p.Call.Title,
			}
		}
	}
	return parts, nil
}
