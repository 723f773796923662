package embed

import (
	"encoding/json"
	"strings"

	"github.com/chela-ai/chela/internal/core/memory"
)

var openai = format{
	url:   "https://api.openai.com/v1",
	model: "text-embedding-3-small",
	request: func(model string, p memory.Purpose, texts []string) (string, any) {
		return "/embeddings", map[string]any{"model": model, "input": nomic(model, p, texts), "encoding_format": "float"}
	},
	decode: decodeList,
	base: func(path string) string {
		if path == "" {
			return "/v1"
		}
		return strings.TrimSuffix(path, "/embeddings")
	},
}

// decodeList decodes the response of OpenAI's format. The vectors may be in any order.
func decodeList(body []byte) ([][]float32, error) {
	var answer struct {
		Data []struct {
			Index     *int      `json:"index"`
			Embedding []float32 `json:"embedding"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &answer); err != nil || len(answer.Data) == 0 {
		return nil, errAnswer
	}
	out := make([][]float32, len(answer.Data))
	for i, d := range answer.Data {
		at := i
		if d.Index != nil {
			at = *d.Index
		}
		if at < 0 || at >= len(out) || out[at] != nil || d.Embedding == nil {
			return nil, errAnswer
		}
		out[at] = d.Embedding
	}
	return out, nil
}
