package offline

import (
	"testing"

	"github.com/chela-ai/chela/internal/core/llm"
)

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		New()
	}
}

func BenchmarkAnswer(b *testing.B) {
	p := New()
	r := request(allTools, llm.User("look for \"apple pie\" in notes.txt, then show it"))
	for b.Loop() {
		p.answer(r, testNow)
	}
}
