package model

import (
	"fmt"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/plugin/memory/embed"
)

// embedders is the services that make vectors of texts but have no models for chat.
var embedders = [...]service{
	{"voyage", "", "https://api.voyageai.com/v1", []string{"VOYAGE_API_KEY"}, ""},
}

// Embedders is the services that make vectors, in the order in which they are tried.
var Embedders = [...]string{"openai", "gemini", "voyage", "mistral"}

// Embedding returns how vectors of texts are requested from a provider, with its first
// key. The error says what is missing.
func (m *Set) Embedding(id string) (embed.Options, error) {
	provider := id
	switch id {
	case "google":
		id = "gemini"
	case "gemini":
		provider = "google"
	}
	out := embed.Options{Provider: id, HTTP: m.o.HTTP}
	_, o, err := m.config(provider, m.first(provider))
	if s := serviceOf(provider); err != nil && s.id != "" && s.api == "" { // it has no models for chat
		o.BaseURL, err = s.url, nil
	}
	if err != nil {
		return out, err
	}
	out.BaseURL, out.Key, out.Header = o.BaseURL, o.Key, o.Header
	if provider == Offline.Provider || provider == "anthropic" {
		return out, &chela.Error{
			Code: chela.CodeInvalid, Message: fmt.Sprintf("%s makes no vectors of texts", provider),
			Hint: "chela config set agents.defaults.memorySearch.provider openai",
		}
	}
	if serviceOf(provider).env != nil && !isLocal(provider) && o.Key.IsZero() && m.o.Providers[provider].BaseURL == "" {
		return out, &chela.Error{
			Code: chela.CodeInvalid, Message: fmt.Sprintf("there is no key for %s", provider),
			Hint: "chela config set models.providers." + provider + ".apiKey KEY",
		}
	}
	return out, nil
}

// isLocal reports whether a provider is a model server for one's own machine.
func isLocal(id string) bool {
	for _, l := range locals {
		if l.id == id {
			return true
		}
	}
	return false
}
