package chela_test

import (
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/chela"
)

func TestCallTitle(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, title, args, want string }{
		{"exec", "", `{"command":"ls -l"}`, "exec ls -l"},
		{"exec", "", `{"command":" a\nb"}`, "exec a…"},
		{"exec", "", `{"command":"a\u001b[2J\u202eb\tc\u0007"}`, "exec a[2Jb c"},
		{"x", "", `{"n":1}`, "x"},
		{"x", "", `{"command":7,"path":"p"}`, "x p"},
		{"x", "", `[`, "x"},
		{"x", "", `{"text":"` + strings.Repeat("ä", 121) + `"}`, "x " + strings.Repeat("ä", 120) + "…"},
		{"plan", "1/2 look\nround", `{"command":"ls"}`, "plan 1/2 look…"},
		{"plan", " ", `{"path":"p"}`, "plan"},
	} {
		if got := chela.CallTitle(tc.name, tc.title, []byte(tc.args)); got != tc.want {
			t.Errorf("%s %s: %q, want %q", tc.name, tc.args, got, tc.want)
		}
	}
}
