package llm

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/spelling"
)

// Catalog lists known models and aliases. Other models can be used as well.
type Catalog struct {
	Models  []Model
	Aliases map[string]string // lower-case alias → "provider/model" or a model id
	// Allow lists the models that users may choose: "provider/model", an alias,
	// or all models of a provider ("provider/*"). Empty means any model.
	Allow []string
	// Providers lists the providers that users may name. Empty means any.
	Providers []string
	// Closed is a provider that has only the models in Models; "": none is known to.
	Closed string
}

// Choose resolves ref and checks that users may choose the model.
func (c Catalog) Choose(ref string) (Model, error) {
	m, err := c.Resolve(ref)
	switch {
	case err != nil:
		return m, err
	case !c.Allows(m):
		return Model{}, chela.Errorf(chela.CodeInvalid, "model %s is not allowed by agents.defaults.modelPolicy.allow",
			m.Ref())
	case len(c.Providers) > 0 && !slices.Contains(c.Providers, m.Provider):
		return Model{}, chela.Errorf(chela.CodeInvalid, "unknown provider %q%s", m.Provider,
			spelling.DidYouMean(m.Provider, c.Providers))
	}
	return m, nil
}

// Allows reports whether users may choose the model.
func (c Catalog) Allows(m Model) bool {
	return len(c.Allow) == 0 || slices.ContainsFunc(c.Allow, func(name string) bool {
		if service, ok := strings.CutSuffix(name, "*"); ok {
			return len(m.Ref()) >= len(service) && strings.EqualFold(m.Ref()[:len(service)], service)
		}
		named, err := c.Resolve(name)
		return err == nil && named.Ref() == m.Ref()
	})
}

// Resolve returns the model for ref: an alias, "provider/model", or the id of a
// model that only one provider has. Case is ignored. A "provider/model" that is
// not in the catalog resolves to a model with only its name, unless the provider is
// Closed. Any other name is an error with similar names.
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
		return Model{}, chela.Errorf(chela.CodeInvalid, "model %q: it is ambiguous: %s", ref, strings.Join(refs, ", "))
	}
	r, err := ParseRef(name)
	switch {
	case err != nil:
		return Model{}, err
	case r.Provider != "" && r.Provider == c.Closed:
		return Model{}, chela.Errorf(chela.CodeInvalid, "%s has no model %q", r.Provider, r.Model)
	case r.Provider != "":
		return Model{Provider: r.Provider, ID: r.Model}, nil
	}
	if near := c.Near(name); len(near) > 0 {
		return Model{}, chela.Errorf(chela.CodeInvalid, "model %q is unknown; similar: %s", ref, strings.Join(near, ", "))
	}
	return Model{}, chela.Errorf(chela.CodeInvalid, "model %q is unknown: want an alias or provider/model", ref)
}

// Lookup returns the model with that "provider/model".
func (c Catalog) Lookup(ref string) (Model, bool) {
	for i := range c.Models {
		m := &c.Models[i] // avoids copying every model
		if len(ref) == len(m.Provider)+1+len(m.ID) && strings.EqualFold(ref, m.Provider+"/"+m.ID) {
			return *m, true
		}
	}
	return Model{}, false
}

// Near returns up to three aliases and models with names similar to name, best
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
		d := spelling.Distance(name, id)
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

//go:embed catalog.json
var catalogJSON string

// Known returns the models of common providers as of autumn 2026, and aliases
// for popular ones. Prices are list prices; if a price depends on the length of
// the prompt, it is the price for short prompts.
func Known() Catalog {
	var c Catalog
	if err := json.Unmarshal([]byte(catalogJSON), &c); err != nil {
		panic(err) // the catalog is part of the program
	}
	for i := range c.Models {
		c.Models[i].Price = c.Models[i].Price.WithReads()
	}
	return c
}
