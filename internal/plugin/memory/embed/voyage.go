package embed

import "github.com/chela-ai/chela/internal/core/memory"

var voyage = format{
	url:   "https://api.voyageai.com/v1",
	model: "voyage-4-large",
	request: func(model string, p memory.Purpose, texts []string) (string, any) {
		return "/embeddings", map[string]any{"model": model, "input": texts, "input_type": p}
	},
	decode: decodeList,
}
