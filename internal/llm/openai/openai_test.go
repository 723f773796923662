package openai_test

import (
	"net/http"
	"testing"

	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/internal/llm/llmtest"
	"github.com/chela-ai/chela/internal/llm/openai"
)

func TestSuite(t *testing.T) {
	llmtest.Suite(t, llmtest.OpenAI, func(url string, hc *http.Client) llm.Provider {
		return openai.New(openai.Options{BaseURL: url, HTTP: hc})
	})
}
