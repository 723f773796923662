package embed

import "github.com/chela-ai/chela/internal/core/memory"

var mistral = format{
	url:   "https://api.mistral.ai/v1",
	model: "mistral-embed",
	request: func(model string, _ memory.Purpose, texts []string) (string, any) {
		return "/embeddings", map[string]any{"model": model, "input": texts}
	},
	decode: decodeList,
}
