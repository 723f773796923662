package chela_test

import (
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/chela"
)

func TestCallTitle(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, args, want string }{
		{"exec", `{"command":"ls -l"}`, "exec ls -l"},
		{"exec", `{"command":" a\nb"}`, "exec a…"},
		{"exec", `{"command":"a\u001b[2J\u202eb\tc\u0007"}`, "exec a[2Jb c"},
		{"x", `{"n":1}`, "x"},
		{"x", `{"command":7,"path":"p"}`, "x p"},
		{"x", `[`, "x"},
		{"x", `{"text":"` + strings.Repeat("ä", 121) + `"}`, "x " + strings.Repeat("ä", 120) + "…"},
		{"process", `{"action":"poll","sessionId":"an3h67","timeout":5}`, "process poll an3h67"},
		{"process", `{"action":"list"}`, "process list"},
		{"apply_patch", `{"input":"*** Begin Patch\n*** Update File: a.go\n*** Move to: b.go\n@@\n-x\n*** Add File: c d\n+*** Delete File: no\n*** End Patch"}`, "apply_patch a.go, b.go, c d"},
		{"apply_patch", `{"input":"no patch"}`, "apply_patch"},
	} {
		if got := chela.CallTitle(tc.name, []byte(tc.args)); got != tc.want {
			t.Errorf("%s %s: %q, want %q", tc.name, tc.args, got, tc.want)
		}
	}
}
