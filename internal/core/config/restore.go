package config

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/secret"
)

// position is the values at a path, and how clients see them; nil: there is no
// value.
type position struct {
	raw, effective           any // in the file, and after substitution
	shownRaw, shownEffective any // the same with secrets redacted
}

// top returns the position of the whole configuration.
func (t *Tree) top() position {
	return position{
		raw: t.raw, effective: any(t.root),
		shownRaw:       viewer{t: t}.show(Clone(t.raw), nil, false),
		shownEffective: viewer{t: t, used: true}.show(Clone(t.root), nil, false),
	}
}

// at returns the position at a path below p.
func (p position) at(steps ...string) position {
	get := func(v any) any { v, _ = ValueAt(v, steps); return v }
	return position{get(p.raw), get(p.effective), get(p.shownRaw), get(p.shownEffective)}
}

// restored returns the new value for a path, in which values that are the same as
// clients see them are replaced by those of the file.
func (t *Tree) restored(steps []string, value json.RawMessage) (json.RawMessage, error) {
	v, err := decodeJSON(value)
	if err != nil {
		return nil, chela.Errorf(chela.CodeInvalid, "%s: the value is not JSON: %w", FormatPath(steps), err)
	}
	plain := encode(v)
	if v, err = t.restore(v, steps); err != nil {
		return nil, err
	}
	if out := encode(v); !bytes.Equal(out, plain) {
		return out, nil
	}
	return value, nil // with its keys in their order
}

// restore is restored for a decoded value.
func (t *Tree) restore(v any, steps []string) (any, error) {
	var r restorer
	v = r.restore(v, t.top().at(steps...), steps)
	switch {
	case r.lost != nil:
		slices.Sort(r.lost)
		return nil, chela.Errorf(chela.CodeInvalid, "%s: %s is not a value", strings.Join(r.lost, ", "), secret.Redacted)
	case r.rounded != nil:
		slices.Sort(r.rounded)
		return nil, chela.Errorf(chela.CodeInvalid,
			"%s: a number of more than 15 digits, which a program may have rounded; put it in quotes",
			strings.Join(r.rounded, ", "))
	}
	return v, nil
}

// restorer collects the paths of values that cannot be restored.
type restorer struct {
	lost    []string // what is redacted
	rounded []string // numbers
}

func (r *restorer) restore(v any, p position, path []string) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = r.restore(e, p.at(k), join(path, k))
		}
	case []any:
		ids := numbersOf(p.raw, v)
		for i, e := range v {
			if n, ok := e.(json.Number); ok && !exact(n) && len(ids[double(n)]) > 0 {
				v[i], ids[double(n)] = ids[double(n)][0], ids[double(n)][1:]
				continue
			}
			v[i] = r.restore(e, p.partner(e, i, len(v)), join(path, itoa(i)))
		}
	case json.Number:
		if old, ok := p.raw.(json.Number); ok && double(old) == double(v) {
			return old
		}
		if !exact(v) {
			r.rounded = append(r.rounded, FormatPath(path))
		}
	case string:
		text, written := p.raw.(string)
		switch {
		case p.raw != nil && (v == secret.Redacted || v == p.shownRaw || v == p.shownEffective), written &&
			v == p.effective && variable().MatchString(text):
			return p.raw
		case strings.Contains(v, secret.Redacted):
			r.lost = append(r.lost, FormatPath(path))
		}
	}
	return v
}

// double returns a number as programs see it that have no other numbers.
func double(n json.Number) float64 {
	f, _ := n.Float64() // out of range: infinite
	return f
}

// exact reports whether every program reads a number as it is written. Fractions count as
// exact: they are no ids.
func exact(n json.Number) bool { return math.Abs(double(n)) < 1<<53 }

// numbersOf returns the inexact numbers of an array, by their doubles, in their order. Those
// of which the new array has another count are left out: it is unknown which of them are
// meant.
func numbersOf(old any, next []any) map[float64][]json.Number {
	count := func(list []any) map[float64][]json.Number {
		out := map[float64][]json.Number{}
		for _, e := range list {
			if n, ok := e.(json.Number); ok && !exact(n) {
				out[double(n)] = append(out[double(n)], n)
			}
		}
		return out
	}
	list, _ := old.([]any)
	out, want := count(list), count(next)
	for f, have := range out {
		if same := len(slices.Compact(slices.Sorted(slices.Values(have)))) == 1; len(have) != len(want[f]) && !same {
			delete(out, f)
		}
	}
	return out
}

// partner returns the earlier position of the element i of a new array of n: the
// element with the same id or, without ids, the element with the same index if the
// length is the same.
func (p position) partner(v any, i, n int) position {
	list, _ := p.raw.([]any)
	if id := idOf(v); id != "" {
		at := slices.IndexFunc(list, func(e any) bool { return idOf(e) == id })
		if at < 0 {
			return position{}
		}
		return p.at(itoa(at))
	}
	if len(list) != n {
		return position{}
	}
	return p.at(itoa(i))
}

// idOf returns the id of an element of an array; "": it has none.
func idOf(v any) string {
	m, _ := v.(map[string]any)
	for _, key := range [...]string{"id", "agentId"} {
		if s, ok := m[key].(string); ok && s != "" {
			return s
		}
	}
	return ""
}
