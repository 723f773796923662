package model

import (
	"maps"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/kit/secret"
	"github.com/chela-ai/chela/internal/plugin/llm/dialect"
)

// State says whether a provider can be used. It does not contain the key.
type State struct {
	ID      string
	Err     error    // why it cannot be used; nil: it can
	Key     bool     // it has a key
	From    string   // source of the key: FromConfig, FromEnv, FromSaved
	Env     string   // the variable, for FromEnv
	Where   string   // the source of the key in words
	Keys    []string // the ids of its keys
	Service bool     // it is a known service, which needs only a key
	Local   *bool    // its models run on this machine; nil: unknown
}

// Sources of keys.
const (
	FromConfig = "config"
	FromEnv    = "env"
	FromSaved  = "profile"
)

// Provider returns the state of a provider.
func (m *Set) Provider(id string) State {
	keys := m.keys(id)
	var first key // zero for providers without a key
	if len(keys) > 0 {
		first = keys[0]
	}
	_, c, err := m.config(id, first)
	s := State{ID: id, Err: err, Key: len(keys) > 0, Where: first.from, Service: needsKey(id)}
	if id == Offline.Provider || c.BaseURL != "" {
		s.Local = new(id == Offline.Provider || onThisMachine(c.BaseURL))
	}
	for _, k := range keys {
		s.Keys = append(s.Keys, k.id)
	}
	switch {
	case first.from == inConfig:
		s.From = FromConfig
	case first.from == inSaved:
		s.From = FromSaved
	case s.Key:
		s.From, s.Env = FromEnv, first.from
	}
	return s
}

// onThisMachine reports whether a base URL names this machine, or one of the local network
// by its name.
func onThisMachine(base string) bool {
	u, err := url.Parse(base)
	if err != nil {
		return false
	}
	host := strings.ToLower(u.Hostname())
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasSuffix(host, ".local") ||
		err == nil && (ip.Unmap().IsLoopback() || ip.IsUnspecified())
}

// Unusable returns why a provider cannot be asked, such as a missing key; nil: it can.
func (m *Set) Unusable(id string) error {
	if m.o.Made[id] != nil {
		return nil
	}
	return m.Provider(id).Err
}

// Unknown returns the error about the name of a model whose provider is neither known nor
// configured; nil: it is one of them, or the name is none.
func (m *Set) Unknown(ref string) error {
	catalog := m.Catalog()
	info, err := catalog.Resolve(ref)
	if err != nil || slices.Contains(catalog.Providers, info.Provider) {
		return nil //nolint:nilerr // it is no name of a model
	}
	return unknownProvider(info.Provider)
}

// Check returns why a model cannot be chosen by its name: it is none, or its provider is
// neither known nor configured.
func (m *Set) Check(ref string) error {
	if _, err := m.Info(ref); err != nil {
		return err
	}
	return m.Unknown(ref)
}

// BadProvider returns the error about a setting of a configured provider that makes every
// request to it or to one of its models fail; nil: there is none.
func (m *Set) BadProvider() error {
	for _, id := range slices.Sorted(maps.Keys(m.o.Providers)) {
		p := m.o.Providers[id]
		if p.BaseURL != "" {
			if _, err := dialect.BaseURL(p.BaseURL, ""); err != nil {
				return chela.Errorf(chela.CodeInvalid, "models.providers.%s.baseUrl: want http(s)://host[:port][/path]", id)
			}
		}
		if p.API != "" {
			if _, err := m.o.NewProvider(p.API, dialect.Options{Name: id}); err != nil {
				return chela.Errorf(chela.CodeInvalid, "models.providers.%s.api: %w", id, err)
			}
		}
		if k := p.APIKey; k.Source == secret.File && !filepath.IsAbs(k.ID) {
			return chela.Errorf(chela.CodeInvalid, "models.providers.%s.apiKey: %s: want an absolute path", id, k)
		}
		for _, name := range slices.Sorted(maps.Keys(p.Headers)) {
			if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(p.Headers[name]) {
				return chela.Errorf(chela.CodeInvalid, "models.providers.%s.headers: %q cannot be sent as an HTTP header", id, name)
			}
		}
		for i, e := range p.Models {
			if strings.TrimSpace(e.ID) == "" {
				return chela.Errorf(chela.CodeInvalid, "models.providers.%s.models: number %d has no id", id, i+1)
			}
			if least := min(e.Context, e.ContextTokens, e.MaxTokens); least < 0 {
				return chela.Errorf(chela.CodeInvalid, "models.providers.%s.models: %s has %d tokens; leave out what is not known",
					id, e.ID, least)
			}
		}
	}
	return nil
}

// Providers returns the state of the providers.
func (m *Set) Providers() []State {
	var out []State
	for _, id := range m.ids() {
		out = append(out, m.Provider(id))
	}
	return out
}

// ids returns the providers: the configured ones, the known services, the model
// servers that were found on this machine, and the built-in assistant.
func (m *Set) ids() []string {
	ids := slices.Sorted(maps.Keys(m.o.Providers))
	for _, s := range services {
		ids = append(ids, s.id)
	}
	known := m.Catalog().Models
	for _, l := range locals {
		if slices.ContainsFunc(known, func(k llm.Model) bool { return k.Provider == l.id }) {
			ids = append(ids, l.id)
		}
	}
	ids = append(ids, m.choice.Provider, Offline.Provider)
	var out []string
	for _, id := range ids {
		if !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}
