package wiretest

import (
	"encoding/json"
	"fmt"
)

// Pairs holds calls and their results together.
type Pairs struct {
	Open []string // calls without a result
	seen map[string]bool
}

// Call notes a call, whose id must be new.
func (p *Pairs) Call(id string) error {
	if p.seen[id] {
		return fmt.Errorf("call id %q twice", id)
	}
	if p.seen == nil {
		p.seen = map[string]bool{}
	}
	p.seen[id] = true
	p.Open = append(p.Open, id)
	return nil
}

// Result notes a result, whose call must be open.
func (p *Pairs) Result(id string) error {
	for i, o := range p.Open {
		if o == id {
			p.Open = append(p.Open[:i:i], p.Open[i+1:]...)
			return nil
		}
	}
	return fmt.Errorf("result of %q: no call of the message before has that id, or it has a result", id)
}

// ObjectSchema reports why s is not the schema of an object.
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
