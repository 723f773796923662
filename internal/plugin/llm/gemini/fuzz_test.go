package gemini_test

import (
	"testing"

	"github.com/chela-ai/chela/internal/core/llm/llmtest"
)

func FuzzDecode(f *testing.F) { llmtest.FuzzDecode(f, llmtest.Gemini, open) }

func FuzzRequest(f *testing.F) { llmtest.FuzzRequest(f, llmtest.Gemini, open) }

func BenchmarkRequest(b *testing.B) { llmtest.BenchmarkRequest(b, open) }

func BenchmarkStream(b *testing.B) { llmtest.BenchmarkStream(b, llmtest.Gemini, open) }
