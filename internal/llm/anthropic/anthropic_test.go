package anthropic_test

import (
	"net/http"
	"testing"

	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/internal/llm/anthropic"
	"github.com/chela-ai/chela/internal/llm/llmtest"
)

func TestSuite(t *testing.T) {
	llmtest.Suite(t, llmtest.Anthropic, func(url string, hc *http.Client) llm.Provider {
		return anthropic.New(anthropic.Options{BaseURL: url, HTTP: hc})
	})
}
