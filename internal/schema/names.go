package schema

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// maxName bounds the name of an argument, in bytes, where names are bounded.
const maxName = 64

// Fold returns the name of an argument without what models get wrong in it, and
// what [Rules] replace in it: case, and all that is no letter or digit.
func Fold(name string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

// renamed gives the properties of m names of letters, digits, "_", "." and "-",
// as some services want those of arguments, in a way that [Fold] undoes. It
// fails for names that could not be told apart.
func renamed(m node) (node, error) {
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
		other, taken := folds[fold]
		folds[fold] = name
		switch {
		case to[name] == name && (!taken || to[other] == other) && len(name) <= maxName && name != "":
		case taken:
			return nil, fmt.Errorf("its arguments %q and %q would have the same name", other, name)
		case fold == "" || fold != Fold(to[name]) || len(name) > maxName:
			return nil, fmt.Errorf("its argument %q has a name that cannot be sent", name)
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

// typed gives every schema below m a type: where any value is taken, and no
// service could be told so, a text is the one that can hold it.
func typed(m node) {
	_ = each(m, func(_ string, s any) (any, error) { // no error
		if sub, ok := s.(node); ok {
			if sub["type"] == nil {
				sub["type"] = "string"
			}
			typed(sub)
		}
		return s, nil
	})
}
