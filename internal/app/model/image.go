package model

import (
	"fmt"
	"slices"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/failover"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/plugin/llm/dialect"
)

// Vision returns the model that describes pictures for a session with the model ref
// ("": the default model), and its provider: the session's model if it takes
// pictures, else the configured image models in their order.
func (m *Set) Vision(ref string) (llm.Model, llm.Provider, error) {
	info, p, err := m.Resolve(ref)
	if err == nil && info.Images {
		return info, p, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var cs []failover.Candidate
	for _, name := range m.o.ImageModel.all() {
		info, err := m.Catalog().Resolve(name)
		if err != nil {
			cs = append(cs, failover.Candidate{Model: llm.Model{ID: name}, Err: err})
			continue
		}
		cs = append(cs, m.candidateLocked(llm.Ref{Provider: info.Provider, Model: info.ID}))
	}
	if len(cs) == 0 {
		return llm.Model{}, nil, &chela.Error{
			Code: chela.CodeInvalid, Message: fmt.Sprintf("%s takes no pictures, and no image model is configured", info.Ref()),
			Hint: "chela config set agents.defaults.imageModel PROVIDER/MODEL",
		}
	}
	if !slices.ContainsFunc(cs, func(c failover.Candidate) bool { return c.Err == nil }) {
		return cs[0].Model, nil, cs[0].Err
	}
	return cs[0].Model, failover.New(m.health, cs...), nil
}

// Sighted returns the models of services with a key that take pictures, one of each
// service.
func (m *Set) Sighted() (out []llm.Ref) {
	for _, s := range services {
		ref := llm.Ref{Provider: s.id, Model: s.model}
		if k := m.first(s.id); !k.value.IsZero() && m.info(ref.Provider, ref.Model).Images {
			out = append(out, ref)
		}
	}
	return out
}

// Endpoint returns how a provider is called with its first key, for calls other than
// those of its models.
func (m *Set) Endpoint(id string) (dialect.Options, error) {
	_, o, err := m.Dialect(id)
	return o, err
}

// Dialect is like Endpoint, with the name of the dialect in which its models are called.
func (m *Set) Dialect(id string) (api string, o dialect.Options, err error) {
	return m.config(id, m.first(id))
}

// all returns the models of a choice, in order.
func (c Choice) all() []string {
	if c.Primary == "" {
		return c.Fallbacks
	}
	return append([]string{c.Primary}, c.Fallbacks...)
}

// withImages returns the catalog in which the configured image models take pictures,
// whatever else is known about them.
func withImages(c llm.Catalog, o Choice) llm.Catalog {
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
