package llm_test

import (
	"testing"

	"github.com/chela-ai/chela/internal/core/llm"
)

func TestParseLevel(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]llm.Level{
		"HIGH": llm.High, "x-high": llm.XHigh, "highest": llm.High, "think  hard": llm.Low, "ultrathink": llm.High,
		"off": llm.Off, "max": llm.Max, "loud": "", "": "",
	} {
		if got, ok := llm.ParseLevel(in); got != want || ok != (want != "") {
			t.Errorf("ParseLevel(%q) = %q, %v", in, got, ok)
		}
	}
}
