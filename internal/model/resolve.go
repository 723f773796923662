package model

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/chela-ai/chela/internal/atomicfile"
	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/internal/llm/failover"
	"github.com/chela-ai/chela/internal/standard"
)

// openHealth reads which keys rest. That is kept in a file that may be lost:
// it costs a few failed calls.
func openHealth(o Options) *failover.Health {
	if o.Rests == "" {
		return failover.NewHealth(nil, nil)
	}
	b, _ := os.ReadFile(o.Rests)
	return failover.NewHealth(b, func(state []byte) {
		err := os.MkdirAll(filepath.Dir(o.Rests), 0o700)
		if err == nil {
			err = atomicfile.Write(o.Rests, state, 0o600)
		}
		if err != nil && o.Log != nil {
			o.Log.Warn("which keys rest is not kept", "err", err)
		}
	})
}

// Rests returns which keys are not asked now, and why.
func (m *Set) Rests() map[failover.Place]failover.Rest { return m.health.Rests() }

// Resolve returns the model that a session asks for with what asks it: with
// each of its keys, and for the default model ("") its fallbacks after it. A
// model that somebody chose is not replaced behind their back.
func (m *Set) Resolve(ref string) (llm.Model, llm.Provider, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r, ok := m.resolved[ref]; ok {
		return r.model, r.provider, nil
	}
	refs := m.line()
	if ref != "" {
		info, err := m.Catalog().Resolve(ref)
		if err != nil {
			return llm.Model{}, nil, err
		}
		refs = []llm.Ref{{Provider: info.Provider, Model: info.ID}}
	}
	var cs []failover.Candidate
	for _, r := range refs {
		cs = append(cs, m.candidateLocked(r))
	}
	if !slices.ContainsFunc(cs, func(c failover.Candidate) bool { return c.Err == nil }) {
		return cs[0].Model, nil, cs[0].Err
	}
	r := resolved{cs[0].Model, failover.New(m.health, cs...)}
	m.resolved[ref] = r
	return r.model, r.provider, nil
}

// resolved is what Resolve gave.
type resolved struct {
	model    llm.Model
	provider llm.Provider
}

// Fallbacks returns the models that answer when the default one does not, in
// order.
func (m *Set) Fallbacks() []llm.Ref { return m.line()[1:] }

// line is the default model and its fallbacks, each once. Fallbacks that do not
// exist were refused by Open.
func (m *Set) line() []llm.Ref {
	out := []llm.Ref{m.choice}
	for _, f := range m.o.Default.Fallbacks {
		info, err := m.Catalog().Resolve(f)
		r := llm.Ref{Provider: info.Provider, Model: info.ID}
		if err == nil && !slices.Contains(out, r) {
			out = append(out, r)
		}
	}
	return out
}

// checkFallbacks returns an error when a fallback is no model; at is where the
// configuration has them.
func (m *Set) checkFallbacks(at string) error {
	for i, f := range m.o.Default.Fallbacks {
		if _, err := m.Catalog().Resolve(f); err != nil {
			return &chela.Error{
				Code: chela.CodeInvalid, Message: fmt.Sprintf("%s.model.fallbacks[%d]", at, i),
				Hint: "chela models fallbacks PROVIDER/MODEL …", Err: err,
			}
		}
	}
	return nil
}

// candidateLocked is a model with all the keys under which it can be asked, and
// the fields that its requests have.
func (m *Set) candidateLocked(r llm.Ref) failover.Candidate {
	c := failover.Candidate{Model: m.info(r.Provider, r.Model)}
	fields, err := m.paramsOf(c.Model)
	if err != nil {
		c.Err = &chela.Error{Code: chela.CodeInvalid, Message: err.Error(), Hint: "chela config validate"}
		return c
	}
	add := func(id string, p llm.Provider) {
		if fields != nil {
			p = shaped{p, fields}
		}
		c.Keys = append(c.Keys, failover.Key{ID: id, Provider: p})
	}
	if p := m.o.Made[r.Provider]; p != nil {
		add(r.Provider, p)
		return c
	}
	keys := m.keys(r.Provider)
	if len(keys) == 0 {
		keys = []key{{id: r.Provider}}
	}
	for _, k := range keys {
		p, err := m.providerLocked(r.Provider, k)
		if err != nil {
			c.Err = err
			continue
		}
		add(k.id, p)
	}
	if len(c.Keys) > 0 {
		c.Err = nil
	}
	return c
}

// longestAnswer bounds an answer that comes drop by drop.
const longestAnswer = time.Hour

// providerLocked returns the provider with the id under one of its keys, made
// at its first use.
func (m *Set) providerLocked(id string, k key) (llm.Provider, error) {
	if p := m.made[k.id]; p != nil {
		return p, nil
	}
	c, err := m.config(id, k)
	if err != nil {
		return nil, err
	}
	p, err := standard.Provider(c)
	if err != nil {
		return nil, err
	}
	first := 120 * time.Second
	if s := m.o.Providers[id].TimeoutSeconds; s > 0 {
		first = time.Duration(s) * time.Second
	}
	p = llm.Watch(p, llm.Timeouts{First: first, Idle: first, Total: max(longestAnswer, 2*first)})
	m.made[k.id] = p
	return p, nil
}
