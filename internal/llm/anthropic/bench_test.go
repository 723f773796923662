package anthropic_test

import (
	"testing"

	"github.com/chela-ai/chela/internal/llm/llmtest"
)

func BenchmarkDecode(b *testing.B) { llmtest.BenchmarkDecode(b, llmtest.Anthropic, open) }
