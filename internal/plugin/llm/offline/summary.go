package offline

import (
	"github.com/chela-ai/chela/internal/core/compact"
	"github.com/chela-ai/chela/internal/core/estimate"
	"github.com/chela-ai/chela/internal/core/llm"
)

// summary answers a request for the summary of a conversation with what was asked and
// answered in it; false: the request is another one.
func summary(r *llm.Request) (string, bool) {
	conversation, previous, ok := compact.IsRequest(r)
	if !ok {
		return "", false
	}
	most := r.MaxTokens * estimate.BytesPerToken
	if most <= 0 {
		most = 8 << 10
	}
	return compact.Extract(conversation, previous, min(most, max(len(conversation)/2, 200))), true
}
