package dialect

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/schema"
)

// Memo stores the last encoding of a value that seldom changes: the requests of
// a conversation have the same tools and system prompt. The zero value is ready
// to use. It is safe for concurrent use.
type Memo[T any] struct{ last atomic.Pointer[memo[T]] }

type memo[T any] struct {
	of  T
	enc []byte
}

// Encode returns the encoding of v, which is the stored one if it is of the
// same value. Neither v nor the result may be modified afterwards.
func (k *Memo[T]) Encode(v T, same func(a, b T) bool, enc func(T) []byte) []byte {
	if last := k.last.Load(); last != nil && same(last.of, v) {
		return last.enc
	}
	fresh := &memo[T]{v, enc(v)}
	k.last.Store(fresh)
	return fresh.enc
}

// SameTools reports whether two lists of tools are equal for a model.
func SameTools(a, b []llm.ToolSpec) bool {
	return slices.EqualFunc(a, b, func(a, b llm.ToolSpec) bool {
		return a.Name == b.Name && a.Description == b.Description && string(a.Schema) == string(b.Schema) &&
			(a.Strict == b.Strict || a.Strict != nil && b.Strict != nil && *a.Strict == *b.Strict)
	})
}

// Functions encodes tools as OpenAI's Chat Completions has them.
func Functions(tools []llm.ToolSpec) []byte {
	b := []byte{'['}
	for i, t := range tools {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"function":{`...)
		if t.Description != "" {
			b = append(AppendString(append(b, `"description":`...), t.Description), ',')
		}
		b = AppendString(append(b, `"name":`...), t.Name)
		b = AppendSchema(append(b, `,"parameters":`...), t.Schema)
		if t.Strict != nil {
			b = strconv.AppendBool(append(b, `,"strict":`...), *t.Strict)
		}
		b = append(b, `},"type":"function"}`...)
	}
	return append(b, ']')
}

// AppendSchema appends a tool's schema as compact JSON.
func AppendSchema(dst []byte, raw json.RawMessage) []byte {
	b := bytes.NewBuffer(dst)
	if json.Compact(b, raw) != nil { // it was not adapted
		return append(dst, `{"properties":{},"type":"object"}`...)
	}
	return b.Bytes()
}

// ToolAdapter converts the tools of requests for a service. It caches the
// result per set of tools and rules, because the requests of a conversation
// have the same tools. It is safe for concurrent use.
type ToolAdapter struct {
	Rules func(model string) ToolRules // set before the first call; nil: the zero ToolRules
	Log   *slog.Logger                 // for tools that are left out; nil: no log

	mu     sync.Mutex
	recent []adaptedTools  // newest last
	warned map[string]bool // warnings already logged
}

// ToolRules are the limits of a service for the tools of a model. The zero
// ToolRules have none.
type ToolRules struct {
	Schema schema.Rules
	None   bool // the model does not support tools
	Strict bool // the service supports strict mode
}

// NewToolRules returns the rules for a model. profile is the service's schema
// profile, which c may replace.
func NewToolRules(c llm.Compat, profile string) ToolRules {
	return ToolRules{
		Schema: schema.Rules{Profile: cmp.Or(c.ToolSchemaProfile, profile), Without: c.UnsupportedToolSchemaKeywords},
		None:   !c.Tools(),
	}
}

// adaptedTools is a cached conversion.
type adaptedTools struct {
	rules ToolRules
	specs []llm.ToolSpec
	out   []llm.ToolSpec
}

const (
	maxAdapted  = 8   // cached conversions
	maxWarnings = 256 // remembered warnings
)

var errName = errors.New("its name is not 1 to 64 letters, digits, _ and -")

// Adapt returns the request with converted tools. It leaves out tools whose
// schema cannot be converted and tools with an unsupported name. A tool that is left out does not
// exist for the model; one that the service rejects would fail every request.
func (o *ToolAdapter) Adapt(r *llm.Request) *llm.Request {
	if len(r.Tools) == 0 {
		return r
	}
	var w ToolRules
	if o.Rules != nil {
		w = o.Rules(r.Model)
	}
	fit := *r
	fit.Tools = o.adapt(r.Tools, w)
	return &fit
}

func (o *ToolAdapter) adapt(specs []llm.ToolSpec, w ToolRules) []llm.ToolSpec {
	if w.None {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, k := range o.recent {
		if k.rules.equal(w) && SameTools(k.specs, specs) {
			return k.out
		}
	}
	k := adaptedTools{rules: w, specs: slices.Clone(specs)}
	for _, s := range specs {
		fit, err := w.Schema.Apply(s.Schema)
		if err == nil && ToolName(s.Name) != s.Name {
			err = errName
		}
		if err != nil {
			o.warnLocked(s.Name, w.Schema.Profile, err)
			continue
		}
		s.Schema = fit
		if w.Strict {
			strict := schema.Strict(fit)
			s.Strict = &strict
		}
		k.out = append(k.out, s)
	}
	if len(o.recent) >= maxAdapted {
		o.recent = slices.Delete(o.recent, 0, 1)
	}
	o.recent = append(o.recent, k)
	return k.out
}

// warnLocked logs once that a tool is left out.
func (o *ToolAdapter) warnLocked(tool, profile string, err error) {
	key := tool + " " + profile + " " + err.Error()
	if o.Log == nil || o.warned[key] {
		return
	}
	if o.warned == nil || len(o.warned) >= maxWarnings {
		o.warned = map[string]bool{}
	}
	o.warned[key] = true
	o.Log.Warn("a tool is left out because the service would reject it", "tool", tool, "profile", profile, "err", err)
}

func (w ToolRules) equal(v ToolRules) bool {
	return w.Schema.Equal(v.Schema) && w.None == v.None && w.Strict == v.Strict
}

// CacheMarker returns the field that marks the end of the cached prefix, with a
// leading comma, or "" if nothing is cached.
func CacheMarker(retention string) string {
	switch retention {
	case "none":
		return ""
	case "long":
		return `,"cache_control":{"ttl":"1h","type":"ephemeral"}`
	}
	return `,"cache_control":{"type":"ephemeral"}`
}
