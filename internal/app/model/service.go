package model

import (
	"slices"

	"github.com/chela-ai/chela/internal/app/standard"
	"github.com/chela-ai/chela/internal/core/llm"
)

// service is a provider that needs no configuration but a key, or a model server
// for one's own machine.
type service struct {
	id    string
	api   string
	url   string
	env   []string // variables that may contain its key; most servers need none
	model string   // its default model; "": a server
}

// services is tried in this order when no model is configured.
var services = [...]service{
	{"anthropic", standard.Anthropic, "https://api.anthropic.com", []string{"ANTHROPIC_API_KEY"}, "claude-sonnet-4-5"},
	{"openai", standard.OpenAI, "https://api.openai.com/v1", []string{"OPENAI_API_KEY"}, "gpt-5"},
	{"google", standard.OpenAI, "https://generativelanguage.googleapis.com/v1beta/openai",
		[]string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}, "gemini-2.5-flash"},
	{"openrouter", standard.OpenAI, "https://openrouter.ai/api/v1", []string{"OPENROUTER_API_KEY"}, "openrouter/auto"},
	{"groq", standard.OpenAI, "https://api.groq.com/openai/v1", []string{"GROQ_API_KEY"}, "openai/gpt-oss-120b"},
	{"deepseek", standard.OpenAI, "https://api.deepseek.com/v1", []string{"DEEPSEEK_API_KEY"}, "deepseek-v4-pro"},
	{"mistral", standard.OpenAI, "https://api.mistral.ai/v1", []string{"MISTRAL_API_KEY"}, "mistral-large-latest"},
	{"xai", standard.OpenAI, "https://api.x.ai/v1", []string{"XAI_API_KEY"}, "grok-4"},
	{"moonshot", standard.OpenAI, "https://api.moonshot.ai/v1", []string{"MOONSHOT_API_KEY", "KIMI_API_KEY"}, "kimi-k3"},
	{"zai", standard.OpenAI, "https://api.z.ai/api/paas/v4", []string{"ZAI_API_KEY", "Z_AI_API_KEY"}, "glm-5.2"},
	{"minimax", standard.Anthropic, "https://api.minimax.io/anthropic", []string{"MINIMAX_API_KEY"}, "MiniMax-M3"},
	{"together", standard.OpenAI, "https://api.together.xyz/v1", []string{"TOGETHER_API_KEY"}, "moonshotai/Kimi-K2.6"},
}

// locals is the model servers, probed in this order.
var locals = [...]service{
	{"ollama", standard.Ollama, "http://127.0.0.1:11434/v1", []string{"OLLAMA_API_KEY"}, ""},
	{"lmstudio", standard.OpenAI, "http://127.0.0.1:1234/v1", []string{"LM_API_TOKEN", "LMSTUDIO_API_KEY"}, ""},
	{"llamacpp", standard.OpenAI, "http://127.0.0.1:8080/v1", []string{"LLAMACPP_API_KEY"}, ""},
	{"vllm", standard.OpenAI, "http://127.0.0.1:8000/v1", []string{"VLLM_API_KEY"}, ""},
}

// serviceOf returns the known service or server with the id; the zero service if
// there is none.
func serviceOf(id string) service {
	for _, s := range slices.Concat(services[:], locals[:], embedders[:]) {
		if s.id == id {
			return s
		}
	}
	return service{}
}

// Offline is the built-in assistant.
var Offline = llm.Ref{Provider: standard.Offline, Model: "assistant"}

// Known returns the providers that need no configuration but a key: services,
// model servers on this machine and the built-in assistant.
func Known() []string {
	var ids []string
	for _, s := range slices.Concat(services[:], locals[:]) {
		ids = append(ids, s.id)
	}
	return append(ids, Offline.Provider)
}

func needsKey(id string) bool { return serviceOf(id).model != "" }
