package embed

import (
	"encoding/json"
	"strings"

	"github.com/chela-ai/chela/internal/core/memory"
)

var ollama = format{
	url:   "http://127.0.0.1:11434",
	model: "nomic-embed-text",
	request: func(model string, p memory.Purpose, texts []string) (string, any) {
		return "/api/embed", map[string]any{"model": model, "input": nomic(model, p, texts), "truncate": true}
	},
	decode: func(body []byte) ([][]float32, error) {
		var answer struct {
			Embeddings [][]float32 `json:"embeddings"`
		}
		if err := json.Unmarshal(body, &answer); err != nil {
			return nil, errAnswer
		}
		return answer.Embeddings, nil
	},
	base: func(path string) string { return strings.TrimSuffix(path, "/v1") },
}
