package anthropic_test

import (
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/llm/llmtest"
)

func FuzzDecode(f *testing.F) { llmtest.FuzzDecode(f, llmtest.Anthropic, open) }

func FuzzRequest(f *testing.F) { llmtest.FuzzRequest(f, llmtest.Anthropic, open) }

// BenchmarkRequest sends a conversation of 2,000 messages and 5 MB, nothing of
// which is new but the last message.
func BenchmarkRequest(b *testing.B) {
	r := llmtest.Long(2000, 5<<20)
	size := int64(0)
	p := open("http://bench.invalid", llmtest.Discarding(&size))
	for _, tt := range []struct {
		name  string
		fresh bool
	}{{"first", true}, {"next", false}} {
		b.Run(tt.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if tt.fresh {
					b.StopTimer()
					for i, m := range r.Messages {
						r.Messages[i] = llmtest.Fresh(m)
					}
					b.StartTimer()
				}
				for range p.Stream(b.Context(), r) {
				}
			}
			b.SetBytes(size)
		})
	}
}

// BenchmarkStream reads an answer of 2,000 deltas.
func BenchmarkStream(b *testing.B) {
	body := llmtest.Body(llmtest.Anthropic, llmtest.Say(strings.Repeat("Some \"text\" of a file.\n", 2000)))
	p := open("http://bench.invalid", llmtest.Answering(body, func([]byte) error { return nil }))
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		for _, err := range p.Stream(b.Context(), llmtest.Ask("Hi")) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}
