package openai

import (
	"strings"

	"github.com/chela-ai/chela/internal/core/schema"
	"github.com/chela-ai/chela/internal/plugin/llm/dialect"
)

// entities is the value of compat.toolCallArgumentsEncoding for HTML entities.
const entities = "html-entities"

// profiles are the schema profiles of services with one of their own, known by the
// host or the provider's id.
var profiles = [...]struct {
	domain  string // "": self-hosted
	ids     []string
	profile string
}{
	{"deepseek.com", []string{"deepseek"}, schema.DeepSeek},
	{"googleapis.com", []string{"gemini", "google"}, schema.Gemini},
	{"x.ai", []string{"xai", "x-ai", "grok"}, schema.XAI},
	{"", []string{"llamacpp", "llama-cpp", "lmstudio", "ollama"}, schema.LlamaCPP},
}

// profileOf returns the schema profile of the service with the host, or else of the
// one that the provider's id names.
func profileOf(id, host string) string {
	host = strings.ToLower(host)
	for _, s := range profiles {
		if s.domain != "" && (host == s.domain || strings.HasSuffix(host, "."+s.domain)) {
			return s.profile
		}
	}
	for _, s := range profiles {
		if names(id, s.ids...) {
			return s.profile
		}
	}
	return schema.OpenAI
}

// toolRules returns the tool rules of a model.
func (p *Provider) toolRules(id string) dialect.ToolRules {
	c := p.model(id).Compat
	profile := p.schema
	if names(id, "gemini") { // also through a router
		profile = schema.Gemini
	}
	rules := dialect.NewToolRules(c, profile)
	rules.Strict = c.SupportsStrictMode != nil && *c.SupportsStrictMode
	return rules
}

// htmlEntities reports whether a model encodes HTML entities in arguments.
func (p *Provider) htmlEntities(id string) bool {
	c := p.model(id).Compat
	return c.ToolCallArgumentsEncoding == entities || c.ToolCallArgumentsEncoding == "" && p.schema == schema.XAI
}
