package dialect

import (
	"bytes"
	"encoding/json"
	"slices"
	"sync/atomic"

	"github.com/chela-ai/chela/internal/llm"
)

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

// SameTools reports whether a model is told the same with both lists.
func SameTools(a, b []llm.ToolSpec) bool {
	return slices.EqualFunc(a, b, func(a, b llm.ToolSpec) bool {
		return a.Name == b.Name && a.Description == b.Description && string(a.Schema) == string(b.Schema) &&
			(a.Strict == b.Strict || a.Strict != nil && b.Strict != nil && *a.Strict == *b.Strict)
	})
}

// AppendSchema appends a tool's schema in one line.
func AppendSchema(dst []byte, schema json.RawMessage) []byte {
	b := bytes.NewBuffer(dst)
	if json.Compact(b, schema) != nil { // it did not pass through Offers
		return append(dst, `{"properties":{},"type":"object"}`...)
	}
	return b.Bytes()
}
