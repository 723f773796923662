package wiretest

import (
	"encoding/json"
	"fmt"
)

// Pairs matches calls with their results.
type Pairs struct {
	Open []string // calls without a result
	seen map[string]bool
}

// Call adds a call. Its id must be new.
func (p *Pairs) Call(id string) error {
	if p.seen[id] {
		return fmt.Errorf("duplicate call id %q", id)
	}
	if p.seen == nil {
		p.seen = map[string]bool{}
	}
	p.seen[id] = true
	p.Open = append(p.Open, id)
	return nil
}

// Result adds a result. Its call must be open.
func (p *Pairs) Result(id string) error {
	for i, o := range p.Open {
		if o == id {
			p.Open = append(p.Open[:i:i], p.Open[i+1:]...)
			return nil
		}
	}
	return fmt.Errorf("result of %q: the previous message has no open call with that id", id)
}

// ObjectSchema returns why s is not an object schema, or nil.
func ObjectSchema(s json.RawMessage) error {
	var o struct {
		Type       json.RawMessage `json:"type"`
		Properties json.RawMessage `json:"properties"`
	}
	if err := json.Unmarshal(s, &o); err != nil {
		return fmt.Errorf("schema: %w", err)
	}
	if string(o.Type) != `"object"` {
		return fmt.Errorf("schema: type %s: want object", o.Type)
	}
	return nil
}
