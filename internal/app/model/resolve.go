package model

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/failover"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/kit/atomicfile"
)

// openHealth reads the cooldowns of keys from their file. A lost file costs a few
// failed calls.
func openHealth(o Options) *failover.Health {
	if o.Cooldowns == "" {
		return failover.NewHealth(nil, nil)
	}
	b, _ := os.ReadFile(o.Cooldowns)
	return failover.NewHealth(b, func(state []byte) {
		err := os.MkdirAll(filepath.Dir(o.Cooldowns), 0o700)
		if err == nil {
			err = atomicfile.Write(o.Cooldowns, state, 0o600)
		}
		if err != nil && o.Log != nil {
			o.Log.Warn("save the cooldowns of keys", "err", err)
		}
	})
}

// Cooldowns returns the keys on cooldown.
func (m *Set) Cooldowns() map[failover.Target]failover.Cooldown { return m.health.Cooldowns() }

// Resolve returns a model and its provider, which tries each key and, for the default
// model (""), the fallbacks. A model that somebody chose has no fallbacks.
func (m *Set) Resolve(ref string) (llm.Model, llm.Provider, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if info, p, ok := m.Resolved(ref); ok {
		return info, p, nil
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
	m.resolved.Store(ref, r)
	return r.model, r.provider, nil
}

// ResolvePriced is Resolve with only the models whose price is known.
func (m *Set) ResolvePriced(ref string) (llm.Model, llm.Provider, error) {
	info, p, err := m.Resolve(ref)
	if err != nil {
		return info, p, err
	}
	return Priced(info, p)
}

// Priced returns a resolved model without the candidates whose price is not known.
func Priced(info llm.Model, p llm.Provider) (llm.Model, llm.Provider, error) {
	chain, ok := p.(*failover.Chain)
	if !ok {
		return info, p, nil
	}
	if chain = chain.Priced(); chain == nil {
		return info, nil, &chela.Error{
			Code:    chela.CodeInvalid,
			Message: fmt.Sprintf("there is a budget, but the price of %s is not known: set models.providers.%s.models[].cost, or allow models without a price", info.Ref(), info.Provider),
			Hint:    "chela config set budget.unpriced allow",
		}
	}
	return chain.Models()[0], chain, nil
}

// Cheapest returns the cheapest of the models that can be used and have a price: the
// model named, or else one of the default model, its fallbacks and the models that people
// may choose. It reports false if none is cheaper than the model than.
func (m *Set) Cheapest(named string, than llm.Model) (llm.Model, llm.Provider, bool) {
	names := []string{named}
	if named == "" {
		names = nil
		for _, r := range m.line() {
			names = append(names, r.String())
		}
		for _, name := range m.o.ModelPolicy.Allow {
			if _, ok := m.Catalog().Lookup(name); ok {
				names = append(names, name)
			}
		}
	}
	var best llm.Model
	var provider llm.Provider
	for _, name := range names {
		info, err := m.Catalog().Resolve(name)
		if err != nil || info.Price == nil || than.Price != nil && !cheaper(info, than) ||
			best.Price != nil && !cheaper(info, best) {
			continue
		}
		if _, p, err := m.Resolve(info.Ref()); err == nil {
			best, provider = m.info(info.Provider, info.ID), p
		}
	}
	return best, provider, provider != nil
}

// cheaper reports whether the typical call of a, with much more input than output, costs
// less than that of b.
func cheaper(a, b llm.Model) bool {
	typical := llm.Usage{Input: 10, Output: 1}
	return a.Price.Cost(typical) < b.Price.Cost(typical)
}

// Info returns the model that Resolve chooses for a reference. It does no I/O.
func (m *Set) Info(ref string) (llm.Model, error) {
	if ref == "" {
		return m.info(m.choice.Provider, m.choice.Model), nil
	}
	info, err := m.Catalog().Resolve(ref)
	if err != nil {
		return llm.Model{}, err
	}
	return m.info(info.Provider, info.ID), nil
}

// Resolved returns what Resolve returned for a reference before. It reports false
// when Resolve was not called yet. It does no I/O and does not block.
func (m *Set) Resolved(ref string) (llm.Model, llm.Provider, bool) {
	v, ok := m.resolved.Load(ref)
	r, _ := v.(resolved)
	return r.model, r.provider, ok
}

// resolved is a result of Resolve.
type resolved struct {
	model    llm.Model
	provider llm.Provider
}

// Fallbacks returns the models to use when the default one fails, in order.
func (m *Set) Fallbacks() []llm.Ref { return m.line()[1:] }

// line returns the default model and its fallbacks without duplicates. Open has
// checked that the fallbacks exist.
func (m *Set) line() []llm.Ref {
	out := []llm.Ref{m.choice}
	for _, f := range m.o.Model.Fallbacks {
		info, err := m.Catalog().Resolve(f)
		r := llm.Ref{Provider: info.Provider, Model: info.ID}
		if err == nil && !slices.Contains(out, r) {
			out = append(out, r)
		}
	}
	return out
}

// checkFallbacks returns an error when a fallback is not a known model; at is the
// path of the configuration that contains them.
func (m *Set) checkFallbacks(at string) error {
	for i, f := range m.o.Model.Fallbacks {
		if _, err := m.Catalog().Resolve(f); err != nil {
			return &chela.Error{
				Code: chela.CodeInvalid, Message: fmt.Sprintf("%s.model.fallbacks[%d]", at, i),
				Hint: "chela models fallbacks PROVIDER/MODEL …", Err: err,
			}
		}
	}
	return nil
}

// candidateLocked returns a model with a provider for each of its keys. A key that cannot be used
// does not count if another one can.
func (m *Set) candidateLocked(r llm.Ref) failover.Candidate {
	c := failover.Candidate{Model: m.info(r.Provider, r.Model)}
	fields, err := m.paramsOf(c.Model)
	if err != nil {
		c.Err = &chela.Error{Code: chela.CodeInvalid, Message: err.Error(), Hint: "chela config validate"}
		return c
	}
	add := func(id string, p llm.Provider) {
		if fields != nil {
			p = withParams{p, fields}
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

// Limits of the duration of a streamed answer.
const (
	silence   = 120 * time.Second // without anything from the service
	keepAlive = 15 * time.Minute  // with nothing but keep-alives, as of a model that thinks
	maxAnswer = time.Hour
)

// providerLocked returns the provider with the id for one of its keys. It makes the
// provider at the first use.
func (m *Set) providerLocked(id string, k key) (llm.Provider, error) {
	if p := m.made[k.id]; p != nil {
		return p, nil
	}
	api, c, err := m.config(id, k)
	if err != nil {
		return nil, err
	}
	p, err := m.o.NewProvider(api, c)
	if err != nil {
		return nil, err
	}
	configured := m.o.Providers[id]
	p = llm.Watch(p, configured.timeouts())
	m.made[k.id] = p
	return p, nil
}

// timeouts returns the limits of an answer of the provider.
func (c *Provider) timeouts() llm.Timeouts {
	idle, only := silence, keepAlive
	if s := c.TimeoutSeconds; s > 0 {
		idle = time.Duration(s) * time.Second
	}
	if s := c.KeepAliveSeconds; s > 0 {
		only = time.Duration(s) * time.Second
	}
	only = max(only, idle)
	return llm.Timeouts{First: idle, Idle: idle, KeepAlive: only, Total: max(maxAnswer, 2*only)}
}
