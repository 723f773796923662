// Package parts is the parts of a message as stores keep them: as they are
// where they are one text, and else as JSON.
package parts

import (
	"bytes"
	"encoding/json"

	"github.com/chela-ai/chela/internal/llm"
)

// Plain reports whether parts are one text and nothing else: most messages of a
// transcript, which are stored as they are and read without decoding.
func Plain(parts []llm.Part) bool {
	if len(parts) != 1 {
		return false
	}
	p := &parts[0]
	return p.Kind == llm.PartText && p.Signature == "" && p.Redacted == "" && p.MIME == "" && p.Data == nil && p.Ref == "" && p.Call == nil
}

// part is llm.Part as it is stored. Arguments are kept to the byte, as text:
// what was sent to a model is sent the same after a restart, so that its
// prompt cache holds.
type part struct {
	Kind      llm.PartKind `json:"k"`
	Text      string       `json:"t,omitempty"`
	Signature string       `json:"s,omitempty"`
	Redacted  string       `json:"r,omitempty"`
	MIME      string       `json:"m,omitempty"`
	Data      []byte       `json:"d,omitempty"`
	Ref       string       `json:"ref,omitempty"` // as in other rows: see media.Refs
	Bytes     int          `json:"n,omitempty"`
	Call      *partCall    `json:"c,omitempty"`
}

type partCall struct {
	ID   string `json:"i"`
	Name string `json:"n"`
	Args string `json:"a,omitempty"`
	Raw  string `json:"r,omitempty"`
}

// Encode returns parts as JSON, with their text as it is, and whether one of
// them refers to a file.
func Encode(parts []llm.Part) (s string, refers bool, err error) {
	stored := make([]part, len(parts))
	for i, p := range parts {
		stored[i] = part{
			Kind: p.Kind, Text: p.Text, Signature: p.Signature, Redacted: p.Redacted,
			MIME: p.MIME, Data: p.Data, Ref: p.Ref, Bytes: p.Bytes,
		}
		refers = refers || p.Ref != ""
		if p.Call != nil {
			stored[i].Call = &partCall{p.Call.ID, p.Call.Name, string(p.Call.Args), p.Call.Raw}
		}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(stored); err != nil {
		return "", false, err
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n"))), refers, nil
}

// Decode is the way back.
func Decode(s string) ([]llm.Part, error) {
	var stored []part
	if err := json.Unmarshal([]byte(s), &stored); err != nil {
		return nil, err
	}
	parts := make([]llm.Part, len(stored))
	for i, p := range stored {
		parts[i] = llm.Part{
			Kind: p.Kind, Text: p.Text, Signature: p.Signature, Redacted: p.Redacted,
			MIME: p.MIME, Data: p.Data, Ref: p.Ref, Bytes: p.Bytes,
		}
		if p.Call != nil {
			parts[i].Call = &llm.ToolCall{ID: p.Call.ID, Name: p.Call.Name, Args: raw(p.Call.Args), Raw: p.Call.Raw}
		}
	}
	return parts, nil
}

func raw(s string) json.RawMessage {
	if s == "" {
		return nil
	}
	return json.RawMessage(s)
}
