package llm

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/kit/spelling"
)

// Catalog lists known models and aliases. Other models can be used as well.
type Catalog struct {
	Models  []Model
	Aliases map[string]string // lower-case alias → "provider/model" or a model id
	// Allow lists the models that users may choose: "provider/model", an alias,
	// or all models of a provider ("provider/*"). Empty means any model.
	Allow []string
}

// Choose resolves ref and checks that users may choose the model.
func (c Catalog) Choose(ref string) (Model, error) {
	m, err := c.Resolve(ref)
	if err == nil && !c.Allows(m) {
		return Model{}, fmt.Errorf("model %s is not allowed by agents.defaults.modelPolicy.allow", m.Ref())
	}
	return m, err
}

// Allows reports whether users may choose the model.
func (c Catalog) Allows(m Model) bool {
	return len(c.Allow) == 0 || slices.ContainsFunc(c.Allow, func(name string) bool {
		if service, ok := strings.CutSuffix(name, "*"); ok {
			return len(m.Ref()) >= len(service) && strings.EqualFold(m.Ref()[:len(service)], service)
		}
		named, err := c.Resolve(name)
		return err == nil && named.Ref() == m.Ref()
	})
}

// Resolve returns the model for ref: an alias, "provider/model", or the id of a
// model that only one provider has. Case is ignored. A "provider/model" that is
// not in the catalog resolves to a model with only its name. Any other name is
// an error with similar names.
func (c Catalog) Resolve(ref string) (Model, error) {
	name := strings.TrimSpace(ref)
	if to, ok := c.Aliases[strings.ToLower(name)]; ok {
		name = to
	}
	if m, ok := c.Lookup(name); ok {
		return m, nil
	}
	var same []Model
	for _, m := range c.Models {
		if strings.EqualFold(m.ID, name) {
			same = append(same, m)
		}
	}
	switch len(same) {
	case 1:
		return same[0], nil
	case 0:
	default:
		refs := make([]string, len(same))
		for i, m := range same {
			refs[i] = m.Ref()
		}
		return Model{}, fmt.Errorf("model %q: it is ambiguous: %s", ref, strings.Join(refs, ", "))
	}
	r, err := ParseRef(name)
	switch {
	case err != nil:
		return Model{}, err
	case r.Provider != "":
		return Model{Provider: r.Provider, ID: r.Model}, nil
	}
	if near := c.Near(name); len(near) > 0 {
		return Model{}, fmt.Errorf("model %q is unknown; similar: %s", ref, strings.Join(near, ", "))
	}
	return Model{}, fmt.Errorf("model %q is unknown: want an alias or provider/model", ref)
}

// Lookup returns the model with that "provider/model".
func (c Catalog) Lookup(ref string) (Model, bool) {
	for i := range c.Models {
		m := &c.Models[i] // avoids copying every model
		if len(ref) == len(m.Provider)+1+len(m.ID) && strings.EqualFold(ref, m.Provider+"/"+m.ID) {
			return *m, true
		}
	}
	return Model{}, false
}

// Near returns up to three aliases and models with names similar to name, best
// first.
func (c Catalog) Near(name string) []string {
	type near struct {
		name string
		d    int
	}
	name = strings.ToLower(strings.TrimSpace(name))
	var ns []near
	add := func(shown, id string) {
		id = strings.ToLower(id)
		d := spelling.Distance(name, id)
		if name != "" && (strings.Contains(id, name) || strings.Contains(name, id)) {
			d = min(d, 2)
		}
		if d <= max(2, len(name)/3) {
			ns = append(ns, near{shown, d})
		}
	}
	for alias := range c.Aliases {
		add(alias, alias)
	}
	for _, m := range c.Models {
		add(m.Ref(), m.ID)
	}
	slices.SortFunc(ns, func(a, b near) int { return cmp.Or(a.d-b.d, cmp.Compare(a.name, b.name)) })
	var names []string
	for _, n := range ns[:min(3, len(ns))] {
		names = append(names, n.name)
	}
	return names
}

// Known returns the models of common providers as of autumn 2026, and aliases
// for popular ones. Prices are list prices; if a price depends on the length of
// the prompt, it is the price for short prompts.
func Known() Catalog {
	k := known{models: make([]Model, 0, 64)}
	k.anthropic()
	k.openai()
	k.google()
	k.open()
	k.routers()
	return Catalog{Models: k.models, Aliases: map[string]string{
		"opus": "anthropic/claude-opus-4-6", "sonnet": "anthropic/claude-sonnet-4-6", "haiku": "anthropic/claude-haiku-4-5",
		"gpt": "openai/gpt-5.2", "gpt-mini": "openai/gpt-5-mini", "gpt-nano": "openai/gpt-5-nano",
		"gemini": "google/gemini-3-pro-preview", "gemini-flash": "google/gemini-3-flash-preview",
		"gemini-flash-lite": "google/gemini-2.5-flash-lite",
		"deepseek":          "deepseek/deepseek-v4-pro", "grok": "xai/grok-4.7", "kimi": "moonshot/kimi-k3",
		"mistral": "mistral/mistral-large-latest", "glm": "zai/glm-5.2",
	}}
}

// known builds the catalog, one provider after another.
type known struct {
	models   []Model
	provider string
}

// text adds a model. in and out are its prices, 0 if unknown.
func (k *known) text(id, name string, context, output int, in, out, cached float64, levels ...Level) {
	m := Model{Provider: k.provider, ID: id, Name: name, Context: context, MaxOutput: output, Levels: levels}
	if in > 0 {
		m.Price = &Price{Input: in, Output: out, CacheRead: cached}
		if cached == 0 {
			m.Price.CacheRead = in // no discount
		}
		m.Price.CacheWrite = in
	}
	k.models = append(k.models, m)
}

// vision adds a model that accepts images.
func (k *known) vision(id, name string, context, output int, in, out, cached float64, levels ...Level) {
	k.text(id, name, context, output, in, out, cached, levels...)
	k.models[len(k.models)-1].Images = true
}

func (k *known) anthropic() {
	k.provider = "anthropic"
	claude := func(id, name string, output int, in, out float64, levels ...Level) {
		k.vision(id, name, 200_000, output, in, out, in/10, levels...)
		k.models[len(k.models)-1].Price.CacheWrite = in * 1.25
	}
	budget := []Level{Minimal, Low, Medium, High, XHigh}
	five := func(id, name string, in, out float64) {
		claude(id, name, 128_000, in, out, Low, Medium, High, Adaptive, Max)
		k.models[len(k.models)-1].Context = 1_000_000
	}
	five("claude-opus-5-5", "Claude Opus 5.5", 4, 20)
	k.models[len(k.models)-1].Price.CacheRead = 0.2
	five("claude-opus-5", "Claude Opus 5", 5, 25)
	five("claude-sonnet-5", "Claude Sonnet 5", 2, 10)
	claude("claude-opus-4-6", "Claude Opus 4.6", 128_000, 5, 25, Low, Medium, High, Adaptive, Max)
	claude("claude-sonnet-4-6", "Claude Sonnet 4.6", 64_000, 3, 15, Low, Medium, High, Adaptive)
	claude("claude-opus-4-5", "Claude Opus 4.5", 64_000, 5, 25, budget...)
	claude("claude-sonnet-4-5", "Claude Sonnet 4.5", 64_000, 3, 15, budget...)
	claude("claude-haiku-4-5", "Claude Haiku 4.5", 64_000, 1, 5, budget...)
	claude("claude-opus-4-1", "Claude Opus 4.1", 32_000, 15, 75, budget...)
	claude("claude-opus-4-0", "Claude Opus 4", 32_000, 15, 75, budget...)
	claude("claude-sonnet-4-0", "Claude Sonnet 4", 64_000, 3, 15, budget...)
	claude("claude-3-7-sonnet-latest", "Claude Sonnet 3.7", 64_000, 3, 15, budget...)
	claude("claude-3-5-haiku-latest", "Claude Haiku 3.5", 8192, 0.8, 4)
}

func (k *known) openai() {
	k.provider = "openai"
	five := []Level{Minimal, Low, Medium, High}
	later := []Level{Low, Medium, High}
	upToXHigh := []Level{Low, Medium, High, XHigh}
	k.vision("gpt-6-sol", "GPT-6 Sol", 1_050_000, 128_000, 2, 10, 0.2, upToXHigh...)
	k.vision("gpt-6-luna", "GPT-6 Luna", 1_050_000, 128_000, 0.1, 0.5, 0.01, upToXHigh...)
	k.vision("gpt-5.5", "GPT-5.5", 1_050_000, 128_000, 5, 30, 0.5, upToXHigh...)
	k.vision("gpt-5.4", "GPT-5.4", 1_050_000, 128_000, 2.5, 15, 0.25, upToXHigh...)
	k.vision("gpt-5.4-mini", "GPT-5.4 mini", 400_000, 128_000, 0.75, 4.5, 0.075, upToXHigh...)
	k.vision("gpt-5.4-nano", "GPT-5.4 nano", 400_000, 128_000, 0.2, 1.25, 0.02, upToXHigh...)
	k.vision("gpt-5.2", "GPT-5.2", 400_000, 128_000, 1.75, 14, 0.175, Low, Medium, High, XHigh)
	k.vision("gpt-5.1", "GPT-5.1", 400_000, 128_000, 1.25, 10, 0.125, later...)
	k.vision("gpt-5", "GPT-5", 400_000, 128_000, 1.25, 10, 0.125, five...)
	k.vision("gpt-5-mini", "GPT-5 mini", 400_000, 128_000, 0.25, 2, 0.025, five...)
	k.vision("gpt-5-nano", "GPT-5 nano", 400_000, 128_000, 0.05, 0.4, 0.005, five...)
	k.vision("gpt-4.1", "GPT-4.1", 1_047_576, 32_768, 2, 8, 0.5)
	k.vision("gpt-4.1-mini", "GPT-4.1 mini", 1_047_576, 32_768, 0.4, 1.6, 0.1)
	k.vision("gpt-4.1-nano", "GPT-4.1 nano", 1_047_576, 32_768, 0.1, 0.4, 0.025)
	k.vision("gpt-4o", "GPT-4o", 128_000, 16_384, 2.5, 10, 1.25)
	k.vision("gpt-4o-mini", "GPT-4o mini", 128_000, 16_384, 0.15, 0.6, 0.075)
	k.vision("o3", "o3", 200_000, 100_000, 2, 8, 0.5, later...)
	k.vision("o4-mini", "o4-mini", 200_000, 100_000, 1.1, 4.4, 0.275, later...)
}

func (k *known) google() {
	k.provider = "google"
	k.vision("gemini-3.1-pro-preview", "Gemini 3.1 Pro", 1_048_576, 65_536, 0, 0, 0, Low, High)
	k.vision("gemini-3.7-flash", "Gemini 3.7 Flash", 1_048_576, 65_536, 0, 0, 0, Minimal, Low, Medium, High)
	k.vision("gemini-3-pro-preview", "Gemini 3 Pro", 1_048_576, 65_536, 2, 12, 0.2, Low, High)
	k.vision("gemini-3-flash-preview", "Gemini 3 Flash", 1_048_576, 65_536, 0.5, 3, 0.05, Minimal, Low, Medium, High)
	k.vision("gemini-2.5-pro", "Gemini 2.5 Pro", 1_048_576, 65_536, 1.25, 10, 0.125, Minimal, Low, Medium, High, Adaptive)
	k.vision("gemini-2.5-flash", "Gemini 2.5 Flash", 1_048_576, 65_536, 0.3, 2.5, 0.03, Minimal, Low, Medium, High, Adaptive)
	k.vision("gemini-2.5-flash-lite", "Gemini 2.5 Flash-Lite", 1_048_576, 65_536, 0.1, 0.4, 0.01, Minimal, Low, Medium, High, Adaptive)
}

// open adds the makers of open models and similar services.
func (k *known) open() {
	k.provider = "deepseek"
	k.text("deepseek-v4-pro", "DeepSeek V4 Pro", 1_000_000, 384_000, 0, 0, 0, High, Max)
	k.vision("deepseek-flash", "DeepSeek V4.1 Flash", 1_000_000, 384_000, 0.3, 1.2, 0.006, High, Max)
	k.text("deepseek-v4-flash", "DeepSeek V4 Flash", 1_000_000, 384_000, 0.3, 1.2, 0.006, High, Max)

	k.provider = "mistral"
	k.vision("mistral-large-latest", "Mistral Large", 262_144, 16_384, 0.5, 1.5, 0)
	k.vision("mistral-medium-3-5", "Mistral Medium 3.5", 262_144, 8192, 0, 0, 0, High)
	k.vision("mistral-small-latest", "Mistral Small", 262_144, 16_384, 0, 0, 0, High)
	k.text("codestral-latest", "Codestral", 262_144, 0, 0.3, 0.9, 0)

	k.provider = "xai"
	k.vision("grok-4.7", "Grok 4.7", 500_000, 64_000, 2, 6, 0.5, Adaptive)
	k.vision("grok-4.3", "Grok 4.3", 1_000_000, 64_000, 1.25, 2.5, 0.2, Adaptive)
	k.vision("grok-4", "Grok 4", 256_000, 0, 3, 15, 0.75, Adaptive)
	k.vision("grok-4-fast-reasoning", "Grok 4 Fast", 2_000_000, 0, 0.2, 0.5, 0.05, Adaptive)
	k.text("grok-code-fast-1", "Grok Code Fast", 256_000, 0, 0.2, 1.5, 0.02, Adaptive)

	k.provider = "moonshot"
	k.vision("kimi-k3", "Kimi K3", 1_048_576, 1_048_576, 0, 0, 0, Low, High, Max)
	k.vision("kimi-k2.7-code", "Kimi K2.7 Code", 262_144, 262_144, 0, 0, 0, Adaptive)
	k.text("kimi-k2-thinking", "Kimi K2 Thinking", 262_144, 0, 0.6, 2.5, 0.15, Adaptive)

	k.provider = "zai"
	k.text("glm-5.2", "GLM-5.2", 262_144, 131_072, 1.4, 4.4, 0.26, Adaptive)
	k.text("glm-4.6", "GLM-4.6", 200_000, 128_000, 0.6, 2.2, 0.11, Adaptive)

	k.provider = "minimax"
	k.text("MiniMax-M3", "MiniMax M3", 204_800, 0, 0, 0, 0, Adaptive)
	k.text("MiniMax-M2.7", "MiniMax M2.7", 204_800, 0, 0, 0, 0, Adaptive)
}

// routers adds services that host models of others.
func (k *known) routers() {
	k.provider = "groq"
	k.text("openai/gpt-oss-120b", "GPT-OSS 120B", 131_072, 65_536, 0.15, 0.6, 0.075, Low, Medium, High)
	k.text("openai/gpt-oss-20b", "GPT-OSS 20B", 131_072, 65_536, 0.075, 0.3, 0.037, Low, Medium, High)
	k.vision("qwen/qwen3.6-27b", "Qwen 3.6 27B", 131_072, 0, 0, 0, 0, Adaptive)

	k.provider = "together"
	k.vision("moonshotai/Kimi-K2.6", "Kimi K2.6", 262_144, 32_768, 1.2, 4.5, 0.2, Adaptive)
	k.text("deepseek-ai/DeepSeek-V4-Pro", "DeepSeek V4 Pro", 512_000, 384_000, 1.74, 3.48, 0.2, Adaptive)
	k.text("zai-org/GLM-5.2", "GLM-5.2", 262_144, 131_072, 1.4, 4.4, 0.26, Adaptive)

	k.provider = "openrouter"
	all := []Level{Minimal, Low, Medium, High}
	k.text("openrouter/auto", "Auto", 0, 0, 0, 0, 0)
	k.vision("anthropic/claude-sonnet-4.5", "Claude Sonnet 4.5", 1_000_000, 64_000, 3, 15, 0.3, all...)
	k.vision("anthropic/claude-opus-4.5", "Claude Opus 4.5", 200_000, 64_000, 5, 25, 0.5, all...)
	k.vision("anthropic/claude-haiku-4.5", "Claude Haiku 4.5", 200_000, 64_000, 1, 5, 0.1, all...)
	k.vision("openai/gpt-5.2", "GPT-5.2", 400_000, 128_000, 1.75, 14, 0.175, all...)
	k.vision("openai/gpt-5-mini", "GPT-5 mini", 400_000, 128_000, 0.25, 2, 0.025, all...)
	k.vision("google/gemini-2.5-flash", "Gemini 2.5 Flash", 1_048_576, 65_536, 0.3, 2.5, 0.03, all...)
	k.text("deepseek/deepseek-v3.2", "DeepSeek V3.2", 163_840, 65_536, 0, 0, 0, all...)
	k.text("moonshotai/kimi-k2-0905", "Kimi K2", 262_144, 262_144, 0, 0, 0)
}
