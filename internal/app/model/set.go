package model

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chela-ai/chela/internal/app/standard"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/failover"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/schema"
	"github.com/chela-ai/chela/internal/core/shell"
	"github.com/chela-ai/chela/internal/kit/spelling"
	"github.com/chela-ai/chela/internal/plugin/llm/dialect"
)

// Set is the models that can be used, with the default one and the reason for it. It
// makes their providers. It is safe for concurrent use.
type Set struct {
	o       Options
	compat  map[string]llm.Compat        // by provider, for models without their own
	catalog *atomic.Pointer[llm.Catalog] // shared with the Sets of agents; replaced under mu
	choice  llm.Ref                      // the default model
	why     string                       // why it is, for people
	health  *failover.Health             // cooldowns of keys; shared, and taken over by the next Set

	probe  sync.Mutex // held during Probe; taken before mu
	probed time.Time  // when; zero: never
	usable llm.Ref    // the model found by Probe that can be the default
	found  int        // number of models at the end of the catalog that Probe found

	resolved sync.Map // resolved by reference; read without mu, because Resolved must not block

	mu   sync.Mutex
	made map[string]llm.Provider // by id of the key
}

// Open chooses the default model: the configured one; else a service with a known
// key; else a model server on this machine; else the built-in assistant.
func Open(ctx context.Context, o Options) (*Set, error) {
	m := &Set{
		o: o, compat: map[string]llm.Compat{}, catalog: new(atomic.Pointer[llm.Catalog]), made: map[string]llm.Provider{},
	}
	known, err := m.known()
	if err != nil {
		return nil, err
	}
	m.catalog.Store(&known)
	if m.o.Before = nil; o.Before != nil { // do not retain the chain of earlier Sets
		m.follow(o.Before)
	} else {
		m.health = openHealth(o)
	}
	if err := m.checkFallbacks("agents.defaults"); err != nil {
		return nil, err
	}
	if want := o.Model.Primary; want != "" {
		info, err := known.Resolve(want)
		if err != nil {
			return nil, &chela.Error{Code: chela.CodeInvalid, Message: "agents.defaults.model",
				Hint: "chela config set agents.defaults.model PROVIDER/MODEL", Err: err}
		}
		m.choice, m.why = llm.Ref{Provider: info.Provider, Model: info.ID}, "configured"
		return m, nil
	}
	for _, id := range slices.Sorted(maps.Keys(o.Providers)) {
		if own := o.Providers[id].Models; len(own) > 0 {
			m.choice, m.why = llm.Ref{Provider: id, Model: own[0].ID}, "the first model of the configured provider "+id
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
		if ref, ok := m.Probe(ctx); ok {
			m.choice, m.why = ref, "found a model server on this machine"
			return m, nil
		}
	}
	m.choice, m.why = Offline, "no key, and no model server on this machine"
	return m, nil
}

// follow takes over the cooldowns and the local models of another Set. So a change of the
// configuration neither asks the servers again nor tries keys that have just failed.
func (m *Set) follow(b *Set) {
	m.health = b.health
	b.probe.Lock()
	m.probed, m.usable = b.probed, b.usable
	b.mu.Lock()
	models := b.catalog.Load().Models
	models = models[len(models)-b.found:]
	b.mu.Unlock()
	b.probe.Unlock()
	m.take(models)
}

// With returns the Set of an agent with its own default model, unless choice has
// none, and with its own fields of requests. at is the path of the agent's
// configuration. The saved keys in the directory own are tried before the others; ""
// stands for none. Both Sets share the cooldowns of keys.
func (m *Set) With(choice Choice, params json.RawMessage, at, own string) (*Set, error) {
	if len(savedIn(own)) == 0 {
		own = ""
	}
	if choice.Primary == "" && len(params) == 0 && len(m.o.AgentParams) == 0 && own == "" {
		return m, nil
	}
	n := &Set{
		o:       m.o,
		compat:  m.compat,
		catalog: m.catalog,
		choice:  m.choice,
		why:     m.why,
		health:  m.health,
		made:    map[string]llm.Provider{},
	}
	n.o.AgentParams, n.o.Own = params, own
	if choice.Primary == "" {
		return n, nil
	}
	info, err := n.Catalog().Resolve(choice.Primary)
	if err != nil {
		return nil, &chela.Error{Code: chela.CodeInvalid, Message: at + ".model", Hint: "chela config unset " + at + ".model",
			Err: err}
	}
	n.o.Model, n.choice, n.why = choice, llm.Ref{Provider: info.Provider, Model: info.ID}, "configured"
	return n, n.checkFallbacks(at)
}

// Catalog returns the models that can be named. The default one is always allowed.
func (m *Set) Catalog() llm.Catalog {
	c := *m.catalog.Load()
	if len(m.o.ModelPolicy.Allow) > 0 {
		c.Allow = append([]string{m.choice.String()}, m.o.ModelPolicy.Allow...)
	}
	return c
}

// CloseIdle closes idle connections. It is called when the Set is replaced.
func (m *Set) CloseIdle() {
	if m.o.HTTP != nil {
		m.o.HTTP.CloseIdleConnections()
	}
}

// Default returns the default model and the reason for it.
func (m *Set) Default() (ref llm.Ref, why string) { return m.choice, m.why }

// Name returns provider/model for a name that a person chose.
func (m *Set) Name(s string) (string, error) {
	info, err := m.Catalog().Choose(s)
	return info.Ref(), err
}

// known returns the models that can be named: the configured ones, the table of
// common ones, and the built-in assistant.
func (m *Set) known() (llm.Catalog, error) {
	out, common := llm.Catalog{Aliases: map[string]string{}, Closed: Offline.Provider}, llm.Known()
	if m.o.Mode == "replace" {
		common = llm.Catalog{}
	}
	for _, id := range slices.Sorted(maps.Keys(m.o.Providers)) {
		p := m.o.Providers[id]
		c, err := compat(p.Compat)
		if err != nil {
			return out, &chela.Error{Code: chela.CodeInvalid, Message: "models.providers." + id + ".compat",
				Hint: "chela config unset models.providers." + id + ".compat", Err: err}
		}
		m.compat[id] = c
		for i := range p.Models {
			info, err := p.model(id, &p.Models[i])
			if err != nil {
				return out, &chela.Error{Code: chela.CodeInvalid, Message: err.Error()}
			}
			if known, ok := common.Lookup(info.Ref()); ok && info.Context == 0 {
				info.Context = known.Context
			}
			if known, ok := common.Lookup(m.serviceOf(id) + "/" + info.ID); ok {
				info.Fast = known.Fast
			}
			m.checkProfile(&info)
			out.Models = append(out.Models, info)
		}
	}
	for _, c := range common.Models {
		if _, configured := out.Lookup(c.Ref()); !configured {
			c.Compat = m.compat[c.Provider]
			if m.serviceOf(c.Provider) != c.Provider { // a proxy may not know the faster tier
				c.Fast = 0
			}
			out.Models = append(out.Models, c)
		}
	}
	out.Providers = slices.Concat(slices.Sorted(maps.Keys(m.o.Providers)), slices.Sorted(maps.Keys(m.o.Made)), Known())
	maps.Copy(out.Aliases, common.Aliases)
	out.Models = append(out.Models, llm.Model{
		Provider: Offline.Provider, ID: Offline.Model, Name: "built-in assistant (not a language model)", Price: &llm.Price{},
	})
	for ref, s := range m.o.Models {
		if s.Alias != "" {
			out.Aliases[s.Alias] = ref
		}
	}
	return withImages(out, m.o.ImageModel), nil
}

// serviceOf returns the id of the known service that a provider is: that of its host. It
// returns "" for a proxy or another server.
func (m *Set) serviceOf(id string) string {
	base := m.o.Providers[id].BaseURL
	if base == "" {
		return serviceOf(id).id
	}
	u, err := url.Parse(base)
	if err != nil {
		return ""
	}
	for _, s := range services {
		if own, err := url.Parse(s.url); err == nil && own.Scheme == u.Scheme && own.Host == u.Host {
			return s.id
		}
	}
	return ""
}

// checkProfile removes an unknown schema profile.
func (m *Set) checkProfile(info *llm.Model) {
	name := info.Compat.ToolSchemaProfile
	if name == "" || slices.Contains(schema.Profiles(), name) {
		return
	}
	if m.o.Log != nil {
		m.o.Log.Warn("unknown tool schema profile; using that of the service", "model", info.Ref(),
			"toolSchemaProfile", name, "want", strings.Join(schema.Profiles(), ", "))
	}
	info.Compat.ToolSchemaProfile = ""
}

// info returns what is known about a model. It may be called for a model that nobody listed: an
// unknown model is used as it is named.
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

// config returns the dialect and the options of the provider with the id, under
// one of its keys.
func (m *Set) config(id string, k key) (api string, c dialect.Options, err error) {
	c = dialect.Options{
		Name:  id,
		Key:   k.value,
		HTTP:  m.o.HTTP,
		Image: m.o.Image,
		Log:   m.o.Log,
		Model: func(model string) llm.Model { return m.info(id, model) },
	}
	if id == Offline.Provider {
		return standard.Offline, c, nil
	}
	known := serviceOf(id)
	o, configured := m.o.Providers[id]
	c.BaseURL, api = cmp.Or(o.BaseURL, known.url), cmp.Or(o.API, known.api)
	for k, v := range o.Headers {
		if c.Header == nil {
			c.Header = http.Header{}
		}
		c.Header.Set(k, v)
	}
	if api == "" && configured {
		api = standard.OpenAI
	}
	if api == "" {
		return "", c, unknownProvider(id)
	}
	if c.BaseURL == "" { // never that of another service
		return "", c, &chela.Error{
			Code: chela.CodeInvalid, Message: "models.providers." + id + ".baseUrl is not set", Hint: "chela config set " +
				shell.Quote("models.providers."+id+".baseUrl") + " URL",
		}
	}
	if k.value.IsZero() && !o.APIKey.IsZero() {
		_, err := o.APIKey.Resolve(m.o.Env)
		if err == nil {
			err = errors.New("it refers to a variable that is not set")
		}
		return "", c, &chela.Error{
			Code: chela.CodeInvalid, Message: "the key of " + id,
			Hint: "chela config set models.providers." + id + ".apiKey KEY", Err: err,
		}
	}
	if needsKey(id) && k.value.IsZero() && o.BaseURL == "" {
		return "", c, &chela.Error{
			Code: chela.CodeInvalid, Message: fmt.Sprintf("there is no key for %s", id),
			Hint: "chela models auth " + id, // needsKey: it is a known service
		}
	}
	return api, c, nil
}

// unknownProvider returns the error about a provider that is neither known nor configured.
func unknownProvider(id string) error {
	text := fmt.Sprintf("unknown provider %q%s", id, spelling.DidYouMean(id, Known()))
	return &chela.Error{Code: chela.CodeInvalid, Message: text, Hint: "chela config set " +
		shell.Quote("models.providers."+id+".baseUrl") + " URL"}
}
