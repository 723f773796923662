package llm

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Catalog is the models that are known and the short names for them. A model
// that is not in it can be used all the same.
type Catalog struct {
	Models  []Model
	Aliases map[string]string // lower-case alias → "provider/model" or a model's id
}

// Resolve returns the model that ref means: an alias, "provider/model", or the
// id of a model that only one provider has. Case makes no difference. Of a
// "provider/model" that is not in the catalogue, nothing but its name is known.
// The error for anything else says which names are near.
func (c Catalog) Resolve(ref string) (Model, error) {
	name := strings.TrimSpace(ref)
	if to, ok := c.Aliases[strings.ToLower(name)]; ok {
		name = to
	}
	if m, ok := c.Lookup(name); ok {
		return m, nil
	}
	var same []Model
	for _, m := range c.Models {
		if strings.EqualFold(m.ID, name) {
			same = append(same, m)
		}
	}
	switch len(same) {
	case 1:
		return same[0], nil
	case 0:
	default:
		refs := make([]string, len(same))
		for i, m := range same {
			refs[i] = m.Ref()
		}
		return Model{}, fmt.Errorf("model %q: several providers have it: %s", ref, strings.Join(refs, ", "))
	}
	r, err := ParseRef(name)
	switch {
	case err != nil:
		return Model{}, err
	case r.Provider != "":
		return Model{Provider: r.Provider, ID: r.Model}, nil
	}
	if near := c.Near(name); len(near) > 0 {
		return Model{}, fmt.Errorf("model %q is not known; near: %s", ref, strings.Join(near, ", "))
	}
	return Model{}, fmt.Errorf("model %q is not known: want an alias or provider/model", ref)
}

// Lookup returns the model with that "provider/model".
func (c Catalog) Lookup(ref string) (Model, bool) {
	for _, m := range c.Models {
		if len(ref) == len(m.Provider)+1+len(m.ID) && strings.EqualFold(ref, m.Ref()) {
			return m, true
		}
	}
	return Model{}, false
}

// Near returns up to three aliases and models whose names are like name, best
// first.
func (c Catalog) Near(name string) []string {
	type near struct {
		name string
		d    int
	}
	name = strings.ToLower(strings.TrimSpace(name))
	var ns []near
	add := func(shown, id string) {
		id = strings.ToLower(id)
		d := distance(name, id)
		if name != "" && (strings.Contains(id, name) || strings.Contains(name, id)) {
			d = min(d, 2)
		}
		if d <= max(2, len(name)/3) {
			ns = append(ns, near{shown, d})
		}
	}
	for alias := range c.Aliases {
		add(alias, alias)
	}
	for _, m := range c.Models {
		add(m.Ref(), m.ID)
	}
	slices.SortFunc(ns, func(a, b near) int { return cmp.Or(a.d-b.d, cmp.Compare(a.name, b.name)) })
	var names []string
	for _, n := range ns[:min(3, len(ns))] {
		names = append(names, n.name)
	}
	return names
}

// distance is the Levenshtein distance of two short names.
func distance(a, b string) int {
	if len(a) > 80 || len(b) > 80 {
		return 80
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diag := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diag
			if a[i] != b[j] {
				change++
			}
			diag, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, change)
		}
	}
	return row[len(b)]
}
