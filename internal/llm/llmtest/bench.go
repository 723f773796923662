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
