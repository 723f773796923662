package openai

import (
	"cmp"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/dialect"
	"github.com/chela-ai/chela/internal/schema"
)

// entities is the encoding of arguments in which texts have &amp; for &.
const entities = "html-entities"

// profileOf returns what the service at a host, or the server that a
// provider's id says it is, takes of JSON Schema.
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

// tells returns what a model takes of tools.
func (p *Provider) tells(id string) dialect.Ways {
	c := p.model(id).Compat
	profile := p.schema
	words := strings.FieldsFunc(strings.ToLower(id), func(r rune) bool { return strings.ContainsRune("/:-.", r) })
	if slices.Contains(words, "gemini") { // also through a router
		profile = schema.Gemini
	}
	return dialect.Ways{
		Schema: schema.Rules{Profile: cmp.Or(c.ToolSchemaProfile, profile), Without: c.UnsupportedToolSchemaKeywords},
		None:   !c.Tools(),
		Strict: c.SupportsStrictMode != nil && *c.SupportsStrictMode,
	}
}

// encodes reports whether a model writes texts in arguments with &amp; for &.
func (p *Provider) encodes(id string) bool {
	c := p.model(id).Compat
	return c.ToolCallArgumentsEncoding == entities || c.ToolCallArgumentsEncoding == "" && p.schema == schema.XAI
}
