package model

import (
	"fmt"
	"slices"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/internal/llm/failover"
)

// Looker returns the model that looks at pictures for a session that asks for
// ref ("": the default model), and what asks it: the session's own when it sees,
// else the configured ones in their order.
func (m *Set) Looker(ref string) (llm.Model, llm.Provider, error) {
	info, p, err := m.Resolve(ref)
	if err == nil && info.Images {
		return info, p, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var cs []failover.Candidate
	for _, name := range m.o.Looks.all() {
		info, err := m.Catalog().Resolve(name)
		if err != nil {
			cs = append(cs, failover.Candidate{Model: llm.Model{ID: name}, Err: err})
			continue
		}
		cs = append(cs, m.candidateLocked(llm.Ref{Provider: info.Provider, Model: info.ID}))
	}
	if len(cs) == 0 {
		return llm.Model{}, nil, &chela.Error{
			Code: chela.CodeInvalid, Message: fmt.Sprintf("%s takes no pictures, and no model is named that does", info.Ref()),
			Hint: "chela config set agents.defaults.imageModel PROVIDER/MODEL",
		}
	}
	if !slices.ContainsFunc(cs, func(c failover.Candidate) bool { return c.Err == nil }) {
		return cs[0].Model, nil, cs[0].Err
	}
	return cs[0].Model, failover.New(m.health, cs...), nil
}

// all returns the models of a choice, in order.
func (c Choice) all() []string {
	if c.Primary == "" {
		return c.Fallbacks
	}
	return append([]string{c.Primary}, c.Fallbacks...)
}

// looking returns the catalogue with the models that were named to look at
// pictures: they take them, whatever else is known.
func looking(c llm.Catalog, o Choice) llm.Catalog {
	for _, name := range o.all() {
		info, err := c.Resolve(name)
		if err != nil || info.Images {
			continue
		}
		info.Images = true
		at := slices.IndexFunc(c.Models, func(m llm.Model) bool { return m.Ref() == info.Ref() })
		if at < 0 {
			c.Models = append(c.Models, info)
			continue
		}
		c.Models[at] = info
	}
	return c
}
