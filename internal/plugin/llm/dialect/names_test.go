package dialect

import (
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/llm"
)

func TestCallID(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 41)
	for _, tt := range []struct {
		id        string
		unchanged bool
	}{
		{"call_1-A", true}, {strings.Repeat("x", 40), true}, {"", false}, {long, false}, {"a.b", false},
		{"a|b", false}, {"é", false},
	} {
		got := CallID(tt.id, 40)
		if (got == tt.id) != tt.unchanged || len(got) == 0 || len(got) > 40 || !plain(got) || got != CallID(tt.id, 40) {
			t.Errorf("CallID(%q) = %q", tt.id, got)
		}
	}
	if CallID("a.b", 40) == CallID("a|b", 40) || CallID(long+"1", 40) == CallID(long+"2", 40) {
		t.Error("two ids have the same replacement")
	}
	for _, tt := range []struct {
		id        string
		unchanged bool
	}{{"abcDEF123", true}, {"abc_EF123", false}, {"call_1", false}, {"", false}} {
		got := ShortID(tt.id, 9)
		if (got == tt.id) != tt.unchanged || len(got) != 9 || strings.ContainsAny(got, "_-") {
			t.Errorf("ShortID(%q) = %q", tt.id, got)
		}
	}
}

func TestToolName(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"look": "look", "": "unknown", "functions.look": "functions_look", "a b/c": "a_b_c",
		strings.Repeat("x", 70): strings.Repeat("x", 64),
	} {
		if got := ToolName(in); got != want {
			t.Errorf("ToolName(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	have := []llm.Level{llm.Low, llm.High, llm.Max}
	for want, level := range map[llm.Level]llm.Level{
		llm.Minimal:  llm.Low,
		llm.Low:      llm.Low,
		llm.Medium:   llm.Low,
		llm.High:     llm.High,
		llm.XHigh:    llm.High,
		llm.Adaptive: llm.Max,
		llm.Max:      llm.Max,
	} {
		if got := Nearest(want, have); got != level {
			t.Errorf("Nearest(%s) = %s, want %s", want, got, level)
		}
	}
	if got := Nearest(llm.High, nil); got != "" {
		t.Errorf("Nearest of none = %s", got)
	}
}
