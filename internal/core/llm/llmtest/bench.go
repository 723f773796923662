package llmtest

import (
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/llm"
)

// BenchmarkDecode measures the decoding of a stream with small events:
// thinking, text and a call.
func BenchmarkDecode(b *testing.B, w Wire, open Open) {
	step := Think(strings.Repeat("First I look at what there is. ", 300), "c2ln",
		Call("call_1", "write", `{"path":"a.txt","text":"`+strings.Repeat("some words and more, ", 300)+`"}`))
	step.Parts = append([]llm.Part{step.Parts[0],
		llm.Text(strings.Repeat("The answer has *words*, \"quotes\" and\nlines – 世界. ", 800))}, step.Parts[1:]...)
	step.Chunk = 20
	body := Body(w, step)
	p := open("http://bench.invalid", AnswerClient(w, body, func([]byte) error { return nil }))
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if c, err := Collect(b.Context(), p, Ask("Hi")); err != nil || c.Err != nil {
			b.Fatal(err, c.Err)
		}
	}
}

// BenchmarkRequest sends a conversation of 2,000 messages and 5 MB in which
// only the last message is new.
func BenchmarkRequest(b *testing.B, open Open) {
	r := Long(2000, 5<<20)
	size := int64(0)
	p := open("http://bench.invalid", DiscardClient(&size))
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
						r.Messages[i] = Fresh(m)
					}
					b.StartTimer()
				}
				for range p.Stream(b.Context(), r) { //nolint:errcheck // every call fails
				}
			}
			b.SetBytes(size)
		})
	}
}

// BenchmarkStream measures the decoding of an answer of 2,000 deltas.
func BenchmarkStream(b *testing.B, w Wire, open Open) {
	body := Body(w, Say(strings.Repeat("Some \"text\" of a file.\n", 2000)))
	p := open("http://bench.invalid", AnswerClient(w, body, func([]byte) error { return nil }))
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		for _, err := range p.Stream(b.Context(), Ask("Hi")) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}
