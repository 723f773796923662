package openai

import (
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/schema"
	"github.com/chela-ai/chela/internal/plugin/llm/dialect"
)

// entities is the value of compat.toolCallArgumentsEncoding for HTML entities.
const entities = "html-entities"

// profileOf returns the schema profile of the service with the host, or of the
// server that the provider's id names.
func profileOf(id, host string) string {
	host = strings.ToLower(host)
	for _, s := range [...]struct{ domain, profile string }{
		{"deepseek.com", schema.DeepSeek}, {"googleapis.com", schema.Gemini}, {"x.ai", schema.XAI},
	} {
		if host == s.domain || strings.HasSuffix(host, "."+s.domain) {
			return s.profile
		}
	}
	switch strings.ToLower(id) {
	case "llamacpp", "llama-cpp", "lmstudio", "ollama":
		return schema.LlamaCPP
	}
	return schema.OpenAI
}

// toolRules returns the tool rules of a model.
func (p *Provider) toolRules(id string) dialect.ToolRules {
	c := p.model(id).Compat
	profile := p.schema
	words := strings.FieldsFunc(strings.ToLower(id), func(r rune) bool { return strings.ContainsRune("/:-.", r) })
	if slices.Contains(words, "gemini") { // also through a router
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
