package llmtest

import (
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/llm"
)

// BenchmarkDecode measures how fast a dialect reads streams as services send
// them: events of a few words each, thinking first, text, and a call.
func BenchmarkDecode(b *testing.B, w Wire, open Open) {
	step := Think(strings.Repeat("First I look at what there is. ", 300), "c2ln", Call("call_1", "write", `{"path":"a.txt","text":"`+strings.Repeat("some words and more, ", 300)+`"}`))
	step.Parts = append([]llm.Part{step.Parts[0], llm.Text(strings.Repeat("The answer has *words*, \"quotes\" and\nlines – 世界. ", 800))}, step.Parts[1:]...)
	step.Chunk = 20
	body := Body(w, step)
	p := open("http://bench.invalid", Answering(body, func([]byte) error { return nil }))
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if c, err := Collect(b.Context(), p, Ask("Hi")); err != nil || c.Err != nil {
			b.Fatal(err, c.Err)
		}
	}
}

// BenchmarkRequest sends a conversation of 2,000 messages and 5 MB, nothing of
// which is new but the last message.
func BenchmarkRequest(b *testing.B, open Open) {
	r := Long(2000, 5<<20)
	size := int64(0)
	p := open("http://bench.invalid", Discarding(&size))
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
				for range p.Stream(b.Context(), r) { //nolint:errcheck // nobody answers: each ends with an error
				}
			}
			b.SetBytes(size)
		})
	}
}

// BenchmarkStream reads an answer of 2,000 deltas.
func BenchmarkStream(b *testing.B, w Wire, open Open) {
	body := Body(w, Say(strings.Repeat("Some \"text\" of a file.\n", 2000)))
	p := open("http://bench.invalid", Answering(body, func([]byte) error { return nil }))
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
