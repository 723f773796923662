package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/internal/llm/failover"
	"github.com/chela-ai/chela/internal/schema"
	"github.com/chela-ai/chela/internal/standard"
)

// Set knows which models there are, which one answers by default and why,
// and makes their providers. It is safe for concurrent use.
type Set struct {
	o       Options
	compat  map[string]llm.Compat // of what models of a provider do not say themselves
	catalog *atomic.Pointer[llm.Catalog]
	choice  llm.Ref
	why     string
	health  *failover.Health

	look   sync.Mutex // held while this machine is looked at
	looked time.Time
	usable llm.Ref // the model found there that may be chosen
	found  int     // models at the end of the catalogue that were found there

	mu       sync.Mutex
	made     map[string]llm.Provider // by key
	resolved map[string]resolved     // by what was asked for
}

// Open chooses the default model: the configured one; a service whose key is
// known; a model server on this machine; the built-in assistant.
func Open(ctx context.Context, o Options) (*Set, error) {
	m := &Set{
		o: o, compat: map[string]llm.Compat{}, catalog: new(atomic.Pointer[llm.Catalog]), made: map[string]llm.Provider{}, resolved: map[string]resolved{},
	}
	known, err := m.known()
	if err != nil {
		return nil, err
	}
	m.catalog.Store(&known)
	if m.o.Before = nil; o.Before != nil { // which is not kept in memory
		m.follow(o.Before)
	} else {
		m.health = openHealth(o)
	}
	if err := m.checkFallbacks("agents.defaults"); err != nil {
		return nil, err
	}
	if want := o.Default.Primary; want != "" {
		info, err := known.Resolve(want)
		if err != nil {
			return nil, &chela.Error{Code: chela.CodeInvalid, Message: "agents.defaults.model", Hint: "chela config set agents.defaults.model PROVIDER/MODEL", Err: err}
		}
		m.choice, m.why = llm.Ref{Provider: info.Provider, Model: info.ID}, "configured"
		return m, nil
	}
	for id, p := range sorted(o.Providers) {
		if len(p.Models) > 0 {
			m.choice, m.why = llm.Ref{Provider: id, Model: p.Models[0].ID}, "the first model of the configured provider "+id
			return m, nil
		}
	}
	for _, s := range services {
		if k := m.first(s.id); !k.value.IsZero() {
			m.choice, m.why = llm.Ref{Provider: s.id, Model: s.model}, "key found in "+k.from
			return m, nil
		}
	}
	if !o.NoProbe {
		if ref, ok := m.Look(ctx); ok {
			m.choice, m.why = ref, "a model server answers on this machine"
			return m, nil
		}
	}
	m.choice, m.why = Offline, "no key, and no model server on this machine"
	return m, nil
}

// follow takes over what another Set found out.
func (m *Set) follow(b *Set) {
	m.health = b.health
	b.look.Lock()
	m.looked, m.usable = b.looked, b.usable
	b.mu.Lock()
	models := b.catalog.Load().Models
	models = models[len(models)-b.found:]
	b.mu.Unlock()
	b.look.Unlock()
	m.take(models)
}

// With returns the Set of an agent that asks another model first, unless choice
// names none, and whose requests have fields of their own. at is where the
// configuration says so. A key that rests in one rests in the other.
func (m *Set) With(choice Choice, params json.RawMessage, at string) (*Set, error) {
	if choice.Primary == "" && len(params) == 0 && len(m.o.AgentParams) == 0 {
		return m, nil
	}
	n := &Set{
		o: m.o, compat: m.compat, catalog: m.catalog, choice: m.choice, why: m.why, health: m.health, made: map[string]llm.Provider{}, resolved: map[string]resolved{},
	}
	n.o.AgentParams = params
	if choice.Primary == "" {
		return n, nil
	}
	info, err := n.Catalog().Resolve(choice.Primary)
	if err != nil {
		return nil, &chela.Error{Code: chela.CodeInvalid, Message: at + ".model", Hint: "chela config unset " + at + ".model", Err: err}
	}
	n.o.Default, n.choice, n.why = choice, llm.Ref{Provider: info.Provider, Model: info.ID}, "configured"
	return n, n.checkFallbacks(at)
}

func sorted(ps map[string]Provider) func(func(string, Provider) bool) {
	return func(yield func(string, Provider) bool) {
		ids := make([]string, 0, len(ps))
		for id := range ps {
			ids = append(ids, id)
		}
		slices.Sort(ids)
		for _, id := range ids {
			if !yield(id, ps[id]) {
				return
			}
		}
	}
}

// Catalog returns the models that can be named. The default one may always be
// chosen.
func (m *Set) Catalog() llm.Catalog {
	c := *m.catalog.Load()
	if len(m.o.Allow) > 0 {
		c.Allow = append([]string{m.choice.String()}, m.o.Allow...)
	}
	return c
}

// CloseIdle closes the connections that no request needs now: the Set asks no
// more.
func (m *Set) CloseIdle() {
	if m.o.HTTP != nil {
		m.o.HTTP.CloseIdleConnections()
	}
}

// Default returns the model that answers where nobody chose another, and why.
func (m *Set) Default() (ref llm.Ref, why string) { return m.choice, m.why }

// Name returns the full name of a model that a person chose.
func (m *Set) Name(s string) (string, error) {
	info, err := m.Catalog().Choose(s)
	return info.Ref(), err
}

// known returns the models that can be named: the configured ones, the
// built-in one, and the table of common ones.
func (m *Set) known() (llm.Catalog, error) {
	out := llm.Catalog{Aliases: map[string]string{}}
	for id, p := range sorted(m.o.Providers) {
		c, err := compat(p.Compat)
		if err != nil {
			return out, &chela.Error{Code: chela.CodeInvalid, Message: "models.providers." + id + ".compat", Hint: "chela config unset models.providers." + id + ".compat", Err: err}
		}
		m.compat[id] = c
		for i := range p.Models {
			info, err := p.model(id, &p.Models[i])
			if err != nil {
				return out, &chela.Error{Code: chela.CodeInvalid, Message: err.Error()}
			}
			m.checkProfile(&info)
			out.Models = append(out.Models, info)
		}
	}
	if m.o.Mode != "replace" {
		common := llm.Known()
		for _, c := range common.Models {
			if _, configured := out.Lookup(c.Ref()); !configured {
				c.Compat = m.compat[c.Provider]
				out.Models = append(out.Models, c)
			}
		}
		maps.Copy(out.Aliases, common.Aliases)
	}
	out.Models = append(out.Models, llm.Model{
		Provider: Offline.Provider, ID: Offline.Model, Name: "built-in assistant (not a language model)", Price: &llm.Price{},
	})
	for ref, s := range m.o.Models {
		if s.Alias != "" {
			out.Aliases[s.Alias] = ref
		}
	}
	return looking(out, m.o.Looks), nil
}

// checkProfile takes the name of a profile of schemas off that there is not.
func (m *Set) checkProfile(info *llm.Model) {
	name := info.Compat.ToolSchemaProfile
	if name == "" || slices.Contains(schema.Profiles(), name) {
		return
	}
	if m.o.Log != nil {
		m.o.Log.Warn("no such profile for the schemas of tools; the service's own is used", "model", info.Ref(),
			"toolSchemaProfile", name, "want", strings.Join(schema.Profiles(), ", "))
	}
	info.Compat.ToolSchemaProfile = ""
}

// info returns what is known of a model of a provider.
func (m *Set) info(provider, model string) llm.Model {
	info, err := m.Catalog().Resolve(provider + "/" + model)
	if err != nil {
		info = llm.Model{Provider: provider, ID: model}
	}
	if _, listed := m.Catalog().Lookup(info.Ref()); !listed {
		info.Compat, info.MaxOutput = m.compat[provider], m.o.Providers[provider].MaxTokens
	}
	return info
}

// config is what the provider with the id is made of, under one of its keys.
func (m *Set) config(id string, k key) (standard.ProviderConfig, error) {
	c := standard.ProviderConfig{Name: id, Key: k.value, HTTP: m.o.HTTP, Image: m.o.Image, Log: m.o.Log, Model: func(model string) llm.Model { return m.info(id, model) }}
	if id == Offline.Provider {
		c.API = standard.Offline
		return c, nil
	}
	for _, s := range services {
		if s.id == id {
			c.API, c.BaseURL = s.api, s.url
		}
	}
	for _, l := range locals {
		if l.id == id {
			c.API, c.BaseURL = standard.OpenAI, l.url
		}
	}
	o, configured := m.o.Providers[id]
	if o.BaseURL != "" {
		c.BaseURL = o.BaseURL
	}
	if o.API != "" {
		c.API = o.API
	}
	for k, v := range o.Headers {
		if c.Header == nil {
			c.Header = http.Header{}
		}
		c.Header.Set(k, v)
	}
	if c.API == "" && configured {
		c.API = standard.OpenAI
	}
	if c.API == "" {
		return c, &chela.Error{
			Code: chela.CodeInvalid, Message: fmt.Sprintf("provider %q is not known", id),
			Hint: "chela config set models.providers." + id + ".baseUrl URL",
		}
	}
	if k.value.IsZero() && !o.APIKey.IsZero() {
		_, err := o.APIKey.Resolve(m.o.Env)
		if err == nil {
			err = errors.New("it names a variable that is not set")
		}
		return c, &chela.Error{
			Code: chela.CodeInvalid, Message: "the key of " + id,
			Hint: "chela config set models.providers." + id + ".apiKey KEY", Err: err,
		}
	}
	if needsKey(id) && k.value.IsZero() && o.BaseURL == "" {
		return c, &chela.Error{
			Code: chela.CodeInvalid, Message: fmt.Sprintf("there is no key for %s", id),
			Hint: "chela config set models.providers." + id + ".apiKey KEY",
		}
	}
	return c, nil
}
