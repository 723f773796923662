package anthropic_test

import (
	"testing"

	"github.com/chela-ai/chela/internal/core/llm/llmtest"
)

func BenchmarkDecode(b *testing.B) { llmtest.BenchmarkDecode(b, llmtest.Anthropic, open) }
