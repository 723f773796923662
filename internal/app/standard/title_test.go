package standard_test

import (
	"testing"

	"github.com/chela-ai/chela/internal/core/llm"
)

// What people are told of calls: the title of the tool, or the main argument.
func TestTitles(t *testing.T) {
	set := all(t)
	for _, tt := range []struct{ name, args, want string }{
		{"exec", `{"command":"ls -l"}`, "exec ls -l"},
		{"bash", `{"command":"ls -l"}`, "bash ls -l"},
		{"process", `{"action":"poll","sessionId":"an3h67","timeout":5}`, "process poll an3h67"},
		{"process", `{"action":"list"}`, "process list"},
		{"process", `{"action":"poll","sessionId":"a","timeout":"x"}`, "process poll a"},
		{"apply_patch", `{"input":"*** Begin Patch\n*** Update File: a.go\n*** Move to: b.go\n@@\n-x\n*** Add File: c d\n+*** Delete File: no\n*** End Patch"}`, "apply_patch a.go, b.go, c d"},
		{"apply_patch", `{"input":"no patch"}`, "apply_patch"},
		{"plan", `{"steps":[{"title":"a","state":"completed"},{"title":"b","state":"in_progress"},{"title":"c"}]}`,
			"plan 1/3 b"},
		{"plan", `[`, "plan"},
		{"none", `{"path":"p"}`, "none p"},
	} {
		call := set.Titled(llm.ToolCall{Name: tt.name, Args: []byte(tt.args)})
		if got := call.Label(); got != tt.want {
			t.Errorf("%s %s: %q, want %q", tt.name, tt.args, got, tt.want)
		}
	}
}
