package schema

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// maxName is the maximum length of an argument's name, in bytes, for services
// that limit it.
const maxName = 64

// Fold normalizes the name of an argument: it removes case and everything
// except letters and digits. Models get these wrong, and [Rules] replace them.
func Fold(name string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

// renameProperties restricts the names of m's properties to letters, digits,
// "_", "." and "-", so that [Fold] of the new name equals [Fold] of the old
// one. It fails if names would become ambiguous.
func renameProperties(m node) (node, error) {
	properties, _ := m["properties"].(node)
	to := map[string]string{}
	folds := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		to[name] = strings.Map(func(r rune) rune {
			if r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)) || strings.ContainsRune("_.-", r) {
				return r
			}
			return '_'
		}, name)
		fold := Fold(name)
		other, duplicate := folds[fold]
		folds[fold] = name
		switch {
		case to[name] == name && (!duplicate || to[other] == other) && len(name) <= maxName && name != "":
		case duplicate:
			return nil, fmt.Errorf("its arguments %q and %q would have the same name", other, name)
		case fold == "" || fold != Fold(to[name]) || len(name) > maxName:
			return nil, fmt.Errorf("its argument %q has an unsupported name", name)
		}
	}
	if !slices.ContainsFunc(slices.Collect(maps.Keys(to)), func(n string) bool { return to[n] != n }) {
		return m, nil
	}
	m = maps.Clone(m)
	out := make(node, len(properties))
	for name, p := range properties {
		out[to[name]] = p
	}
	m["properties"] = out
	if required := names(m["required"]); required != nil {
		for i, n := range required {
			if t, ok := to[n]; ok {
				required[i] = t
			}
		}
		m["required"] = list(required)
	}
	return m, nil
}

// addTypes gives every schema below m a type. For schemas that accept any value
// it is string, which can represent all of them.
func addTypes(m node) {
	_ = each(m, func(_ string, s any) (any, error) { // no error
		if sub, ok := s.(node); ok {
			if sub["type"] == nil {
				sub["type"] = "string"
			}
			addTypes(sub)
		}
		return s, nil
	})
}
