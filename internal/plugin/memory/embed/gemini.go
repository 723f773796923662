package embed

import (
	"encoding/json"
	"net/url"
	"strings"

	"github.com/chela-ai/chela/internal/core/memory"
)

// geminiNumbers is the length of the vectors that are requested. The longest ones have
// four times as many numbers and find little more.
const geminiNumbers = 768

var gemini = format{
	url:   "https://generativelanguage.googleapis.com/v1beta",
	model: "gemini-embedding-001",
	request: func(model string, p memory.Purpose, texts []string) (string, any) {
		model = "models/" + strings.TrimPrefix(model, "models/")
		task := map[memory.Purpose]string{memory.Question: "RETRIEVAL_QUERY", memory.Document: "RETRIEVAL_DOCUMENT"}[p]
		requests := make([]any, len(texts))
		for i, t := range texts {
			requests[i] = map[string]any{
				"model": model, "content": map[string]any{"parts": []any{map[string]string{"text": t}}},
				"taskType": task, "outputDimensionality": geminiNumbers,
			}
		}
		return "/" + (&url.URL{Path: model}).EscapedPath() + ":batchEmbedContents", map[string]any{"requests": requests}
	},
	decode: func(body []byte) ([][]float32, error) {
		var answer struct {
			Embeddings []struct {
				Values []float32 `json:"values"`
			} `json:"embeddings"`
		}
		if err := json.Unmarshal(body, &answer); err != nil {
			return nil, errAnswer
		}
		var out [][]float32
		for _, e := range answer.Embeddings {
			out = append(out, e.Values)
		}
		return out, nil
	},
	base:   func(path string) string { return strings.TrimSuffix(path, "/openai") },
	header: "X-Goog-Api-Key",
}
