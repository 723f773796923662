package offline

import (
	"testing"

	"github.com/chela-ai/chela/internal/llm"
)

func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		compile()
	}
}

func BenchmarkAnswer(b *testing.B) {
	p := fixed()
	r := request(allTools, llm.User("look for \"apple pie\" in notes.txt, then show it"))
	for b.Loop() {
		p.answer(r)
	}
}
