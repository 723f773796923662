package config

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/secret"
)

// place is what stands at a path, and what clients were shown of it. What is
// not there is nil.
type place struct {
	raw, force  any // as it is written, and as it is used
	shown, used any // the same, as clients see it
}

// here is the whole configuration as a place.
func (t *Tree) here() place {
	return place{
		raw: t.raw, force: any(t.root),
		shown: viewer{t: t}.show(clone(t.raw), nil, false), used: viewer{t: t, used: true}.show(clone(t.root), nil, false),
	}
}

// at returns what stands below a place.
func (p place) at(steps ...string) place {
	get := func(v any) any { v, _ = lookup(v, steps); return v }
	return place{get(p.raw), get(p.force), get(p.shown), get(p.used)}
}

// restored returns a new value for a path in which what reads as it was shown is
// as it stands in the file.
func (t *Tree) restored(steps []string, value json.RawMessage) (json.RawMessage, error) {
	v, err := decodeJSON(value)
	if err != nil {
		return nil, chela.Errorf(chela.CodeInvalid, "%s: the value is no JSON: %w", FormatPath(steps), err)
	}
	plain := encode(v)
	if v, err = t.restore(v, steps); err != nil {
		return nil, err
	}
	if out := encode(v); !bytes.Equal(out, plain) {
		return out, nil
	}
	return value, nil // in the order it was given in
}

// restore is restored for what was decoded.
func (t *Tree) restore(v any, steps []string) (any, error) {
	var lost []string
	v = restore(v, t.here().at(steps...), steps, &lost)
	if lost != nil {
		slices.Sort(lost)
		return nil, chela.Errorf(chela.CodeInvalid, "%s: %s is no value", strings.Join(lost, ", "), secret.Redacted)
	}
	return v, nil
}

func restore(v any, p place, path []string, lost *[]string) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = restore(e, p.at(k), join(path, k), lost)
		}
	case []any:
		for i, e := range v {
			v[i] = restore(e, p.partner(e, i, len(v)), join(path, itoa(i)), lost)
		}
	case string:
		text, written := p.raw.(string)
		switch {
		case p.raw != nil && (v == secret.Redacted || v == p.shown || v == p.used), written && v == p.force && variable.MatchString(text):
			return p.raw
		case strings.Contains(v, secret.Redacted):
			*lost = append(*lost, FormatPath(path))
		}
	}
	return v
}

// partner is what the element i of a new array of n was before: the one with its
// id, and where elements have none the one in its place, while there are as
// many.
func (p place) partner(v any, i, n int) place {
	list, _ := p.raw.([]any)
	if id := idOf(v); id != "" {
		at := slices.IndexFunc(list, func(e any) bool { return idOf(e) == id })
		if at < 0 {
			return place{}
		}
		return p.at(itoa(at))
	}
	if len(list) != n {
		return place{}
	}
	return p.at(itoa(i))
}

// idOf is what tells an element of an array from the others; "": nothing does.
func idOf(v any) string {
	m, _ := v.(map[string]any)
	for _, key := range [...]string{"id", "agentId"} {
		if s, ok := m[key].(string); ok && s != "" {
			return s
		}
	}
	return ""
}
