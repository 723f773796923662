package dialect

import (
	"bytes"
	"encoding/json"
	"slices"
	"sync/atomic"

	"github.com/chela-ai/chela/internal/llm"
)

// ObjectSchema returns a tool's schema as every service takes it: of type
// object, without a union at the top. The alternatives of a union are merged
// into one object whose required properties are those that all of them require.
// Keys are sorted when something had to be changed.
func ObjectSchema(schema json.RawMessage) json.RawMessage {
	var top map[string]json.RawMessage
	if json.Unmarshal(schema, &top) != nil || top == nil {
		return json.RawMessage(`{"properties":{},"type":"object"}`)
	}
	union := false
	for _, k := range []string{"anyOf", "oneOf", "allOf"} {
		if branches, ok := top[k]; ok {
			union = true
			delete(top, k)
			mergeBranches(top, branches, k == "allOf")
		}
	}
	properties := bytes.HasPrefix(top["properties"], []byte("{"))
	if !union && string(top["type"]) == `"object"` && properties {
		return schema
	}
	top["type"] = json.RawMessage(`"object"`)
	if !properties {
		top["properties"] = json.RawMessage("{}")
	}
	out, err := json.Marshal(top)
	if err != nil {
		return schema
	}
	return out
}

// object is what is merged of a schema.
type object struct {
	Properties map[string]json.RawMessage `json:"properties"`
	Required   []string                   `json:"required"`
}

// mergeBranches merges the alternatives of a union into top; all says that
// every one of them holds.
func mergeBranches(top map[string]json.RawMessage, raw json.RawMessage, all bool) {
	var own object
	_ = json.Unmarshal(top["properties"], &own.Properties) // not an object: none
	_ = json.Unmarshal(top["required"], &own.Required)
	var branches []object
	_ = json.Unmarshal(raw, &branches)
	if own.Properties == nil {
		own.Properties = map[string]json.RawMessage{}
	}
	var required []string
	for i, b := range branches {
		for name, p := range b.Properties {
			if _, ok := own.Properties[name]; !ok {
				own.Properties[name] = p
			}
		}
		if all || i == 0 {
			required = append(required, b.Required...)
			continue
		}
		required = slices.DeleteFunc(required, func(r string) bool { return !slices.Contains(b.Required, r) })
	}
	required = append(required, own.Required...)
	slices.Sort(required)
	required = slices.Compact(required)
	top["properties"], _ = json.Marshal(own.Properties) // of valid JSON
	delete(top, "required")
	if len(required) > 0 {
		top["required"], _ = json.Marshal(required)
	}
}

// Kept keeps the encoding that was made last of something that seldom changes:
// a conversation sends the same tools and the same system prompt with each
// request. The zero value works; it is safe for concurrent use.
type Kept[T any] struct{ last atomic.Pointer[kept[T]] }

type kept[T any] struct {
	of  T
	enc []byte
}

// Encode returns the encoding of v: the kept one when it is of the same. Nobody
// changes v or what is returned afterwards.
func (k *Kept[T]) Encode(v T, same func(a, b T) bool, enc func(T) []byte) []byte {
	if last := k.last.Load(); last != nil && same(last.of, v) {
		return last.enc
	}
	fresh := &kept[T]{v, enc(v)}
	k.last.Store(fresh)
	return fresh.enc
}

// Tools keeps the encoding of the last list of tools.
type Tools struct{ last atomic.Pointer[tools] }

type tools struct {
	specs []llm.ToolSpec
	enc   [][]byte
}

// Encode returns each tool's encoding by enc, kept from the call before when
// the tools are the same. It must always be given the same enc.
func (t *Tools) Encode(specs []llm.ToolSpec, enc func(llm.ToolSpec) []byte) [][]byte {
	if k := t.last.Load(); k != nil && SameTools(k.specs, specs) {
		return k.enc
	}
	k := &tools{specs: slices.Clone(specs), enc: make([][]byte, len(specs))}
	for i, s := range specs {
		k.specs[i].Schema = slices.Clone(s.Schema)
		k.enc[i] = enc(s)
	}
	t.last.Store(k)
	return k.enc
}

// SameTools reports whether a model is told the same with both lists.
func SameTools(a, b []llm.ToolSpec) bool {
	return slices.EqualFunc(a, b, func(a, b llm.ToolSpec) bool {
		return a.Name == b.Name && a.Description == b.Description && string(a.Schema) == string(b.Schema)
	})
}

// AppendSchema appends a tool's schema by [ObjectSchema], in one line.
func AppendSchema(dst []byte, schema json.RawMessage) []byte {
	b := bytes.NewBuffer(dst)
	_ = json.Compact(b, ObjectSchema(schema)) // it is valid
	return b.Bytes()
}
