package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/internal/secret"
	"github.com/chela-ai/chela/internal/standard"
)

// service is a provider that is known without configuration.
type service struct {
	id    string
	api   string
	url   string
	env   []string // variables that may hold its key
	model string   // the one to begin with
}

// services are tried in this order when no model is configured.
var services = [...]service{
	{"anthropic", standard.Anthropic, "https://api.anthropic.com", []string{"ANTHROPIC_API_KEY"}, "claude-sonnet-4-5"},
	{"openai", standard.OpenAI, "https://api.openai.com/v1", []string{"OPENAI_API_KEY"}, "gpt-5"},
	{"google", standard.OpenAI, "https://generativelanguage.googleapis.com/v1beta/openai", []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}, "gemini-2.5-flash"},
	{"openrouter", standard.OpenAI, "https://openrouter.ai/api/v1", []string{"OPENROUTER_API_KEY"}, "openrouter/auto"},
	{"groq", standard.OpenAI, "https://api.groq.com/openai/v1", []string{"GROQ_API_KEY"}, "llama-3.3-70b-versatile"},
	{"deepseek", standard.OpenAI, "https://api.deepseek.com/v1", []string{"DEEPSEEK_API_KEY"}, "deepseek-chat"},
	{"mistral", standard.OpenAI, "https://api.mistral.ai/v1", []string{"MISTRAL_API_KEY"}, "mistral-large-latest"},
	{"xai", standard.OpenAI, "https://api.x.ai/v1", []string{"XAI_API_KEY"}, "grok-4"},
}

// local is a model server that people run on their own machine.
type local struct{ id, url string }

var locals = [...]local{
	{"ollama", "http://127.0.0.1:11434/v1"},
	{"lmstudio", "http://127.0.0.1:1234/v1"},
	{"llamacpp", "http://127.0.0.1:8080/v1"},
}

// offlineRef is the built-in assistant.
var offlineRef = llm.Ref{Provider: standard.Offline, Model: "assistant"}

// modelSet knows which models there are, which one answers by default and why,
// and makes their providers.
type modelSet struct {
	opts    modelOptions
	env     func(string) string
	http    *http.Client
	keys    string // directory of saved keys
	catalog llm.Catalog
	choice  llm.Ref
	why     string

	mu   sync.Mutex
	made map[string]llm.Provider
}

// newModels chooses the default model: the configured one; a service whose key
// is known; a model server on this machine; the built-in assistant.
func newModels(ctx context.Context, o *options, a Options) (*modelSet, error) {
	m := &modelSet{
		opts: o.Models, env: a.Env, http: a.HTTP, keys: filepath.Join(a.State, "credentials"), made: map[string]llm.Provider{},
	}
	maps.Copy(m.made, a.Providers)
	m.catalog = m.known()
	for ref, s := range o.Agent.Models {
		if s.Alias != "" {
			m.catalog.Aliases[s.Alias] = ref
		}
	}
	if want := o.Agent.Model.Primary; want != "" {
		info, err := m.catalog.Resolve(want)
		if err != nil {
			return nil, &chela.Error{Code: chela.CodeInvalid, Message: "agents.defaults.model", Hint: "chela config set agents.defaults.model PROVIDER/MODEL", Err: err}
		}
		m.choice, m.why = llm.Ref{Provider: info.Provider, Model: info.ID}, "configured"
		return m, nil
	}
	for id, p := range sortedProviders(o.Models.Providers) {
		if len(p.Models) > 0 {
			m.choice, m.why = llm.Ref{Provider: id, Model: p.Models[0].ID}, "the first model of the configured provider "+id
			return m, nil
		}
	}
	for _, s := range services {
		if key, from := m.key(s.id); !key.IsZero() {
			m.choice, m.why = llm.Ref{Provider: s.id, Model: s.model}, "key found in "+from
			return m, nil
		}
	}
	if !a.NoProbe {
		if ref, ok := m.findLocal(ctx); ok {
			m.choice, m.why = ref, "a model server answers on this machine"
			return m, nil
		}
	}
	m.choice, m.why = offlineRef, "no key, and no model server on this machine"
	return m, nil
}

func sortedProviders(ps map[string]providerOptions) func(func(string, providerOptions) bool) {
	return func(yield func(string, providerOptions) bool) {
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

// known returns the models that can be named: the configured ones, the
// built-in one, and the table of common ones.
func (m *modelSet) known() llm.Catalog {
	out := llm.Catalog{Aliases: map[string]string{}}
	for id, p := range sortedProviders(m.opts.Providers) {
		for _, c := range p.Models {
			info := llm.Model{
				Provider: id, ID: c.ID, Name: c.Name, Context: c.Context, MaxOutput: c.MaxTokens,
				Images: slices.Contains(c.Input, "image"), Price: c.Cost,
			}
			if c.Reasoning {
				info.Levels = llm.Levels[:]
			}
			out.Models = append(out.Models, info)
		}
	}
	if m.opts.Mode != "replace" {
		common := llm.Known()
		out.Models = append(out.Models, common.Models...)
		maps.Copy(out.Aliases, common.Aliases)
	}
	out.Models = append(out.Models, llm.Model{
		Provider: offlineRef.Provider, ID: offlineRef.Model, Name: "built-in assistant (not a language model)",
	})
	return out
}

// Where a key was found, unless in a variable.
const (
	fromConfig = "the configuration"
	fromSaved  = "the saved keys"
)

// key returns the provider's key and where it was found; empty: nowhere.
func (m *modelSet) key(id string) (secret.Value, string) {
	// A variable that is not set stays in the text as it was written.
	if v, err := m.opts.Providers[id].APIKey.Resolve(m.env); err == nil && !v.IsZero() && !strings.Contains(v.Reveal(), "${") {
		return v, fromConfig
	}
	for _, s := range services {
		if s.id != id {
			continue
		}
		for _, name := range s.env {
			if v := m.env(name); v != "" {
				return secret.New(v), name
			}
		}
	}
	if b, err := os.ReadFile(filepath.Join(m.keys, id+".key")); err == nil {
		if v := strings.TrimSpace(string(b)); v != "" {
			return secret.New(v), fromSaved
		}
	}
	return secret.Value{}, ""
}

// findLocal asks the usual ports of this machine for a model server. A port
// where nobody listens answers at once.
func (m *modelSet) findLocal(ctx context.Context) (llm.Ref, bool) {
	ctx, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	found := make([]string, len(locals))
	var wg sync.WaitGroup
	for i, l := range locals {
		wg.Go(func() { found[i] = m.firstModel(ctx, l.url) })
	}
	wg.Wait()
	for i, id := range found {
		if id != "" {
			return llm.Ref{Provider: locals[i].id, Model: id}, true
		}
	}
	return llm.Ref{}, false
}

func (m *modelSet) firstModel(ctx context.Context, url string) string {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/models", nil)
	if err != nil {
		return ""
	}
	res, err := m.http.Do(req)
	if err != nil {
		return ""
	}
	defer res.Body.Close()
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	err = json.NewDecoder(http.MaxBytesReader(nil, res.Body, 1<<20)).Decode(&list)
	if err != nil || res.StatusCode != http.StatusOK || len(list.Data) == 0 {
		return ""
	}
	return list.Data[0].ID
}

// resolve returns the model that a session asks for ("": the default one) with
// its provider.
func (m *modelSet) resolve(ref string) (llm.Model, llm.Provider, error) {
	r := m.choice
	if ref != "" {
		info, err := m.catalog.Resolve(ref)
		if err != nil {
			return llm.Model{}, nil, err
		}
		r = llm.Ref{Provider: info.Provider, Model: info.ID}
	}
	info, err := m.catalog.Resolve(r.String())
	if err != nil {
		info = llm.Model{Provider: r.Provider, ID: r.Model}
	}
	p, err := m.provider(r.Provider)
	return info, p, err
}

// provider returns the provider with the id, made at its first use.
func (m *modelSet) provider(id string) (llm.Provider, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.made[id]; p != nil {
		return p, nil
	}
	c, err := m.config(id)
	if err != nil {
		return nil, err
	}
	p, err := standard.Provider(c)
	if err != nil {
		return nil, err
	}
	first := 120 * time.Second
	if s := m.opts.Providers[id].TimeoutSeconds; s > 0 {
		first = time.Duration(s) * time.Second
	}
	p = llm.Watch(p, llm.Timeouts{First: first, Idle: first})
	m.made[id] = p
	return p, nil
}

// config is what the provider with the id is made of.
func (m *modelSet) config(id string) (standard.ProviderConfig, error) {
	key, _ := m.key(id)
	c := standard.ProviderConfig{Name: id, Key: key, HTTP: m.http, Model: func(model string) llm.Model {
		info, err := m.catalog.Resolve(id + "/" + model)
		if err != nil {
			return llm.Model{Provider: id, ID: model}
		}
		return info
	}}
	if id == offlineRef.Provider {
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
	o, configured := m.opts.Providers[id]
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
	if key.IsZero() && !o.APIKey.IsZero() {
		_, err := o.APIKey.Resolve(m.env)
		if err == nil {
			err = errors.New("it names a variable that is not set")
		}
		return c, &chela.Error{
			Code: chela.CodeInvalid, Message: "the key of " + id,
			Hint: "chela config set models.providers." + id + ".apiKey KEY", Err: err,
		}
	}
	if needsKey(id) && key.IsZero() && o.BaseURL == "" {
		return c, &chela.Error{
			Code: chela.CodeInvalid, Message: fmt.Sprintf("there is no key for %s", id),
			Hint: "chela config set models.providers." + id + ".apiKey KEY",
		}
	}
	return c, nil
}

func needsKey(id string) bool {
	return slices.ContainsFunc(services[:], func(s service) bool { return s.id == id })
}
