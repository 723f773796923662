package sandbox_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/surface/method/methodtest"
	"github.com/chela-ai/chela/wire"
)

// TestStatusWithoutBackend checks that a build without the configured backend says
// so.
func TestStatusWithoutBackend(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript())
	got := methodtest.Do[wire.SandboxStatus](t, h, wire.MethodSandboxStatus, wire.SandboxGet{})
	want := []wire.SandboxLevel{{Backend: "native", Level: "none", Reason: "this program was built or started without it"}}
	if diff := cmp.Diff(want, got.Backends); diff != "" || got.AgentID != "main" || got.Backend != "native" {
		t.Errorf("%+v\n%s", got, diff)
	}
}

func TestRecreate(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript())
	for in, refused := range map[wire.SandboxRecreate]bool{
		{}:                                 true,
		{All: true}:                        false,
		{AgentID: "main"}:                  false,
		{SessionKey: "x"}:                  false,
		{SessionKey: "x", AgentID: "main"}: false,
		{All: true, AgentID: "main"}:       true,
		{All: true, SessionKey: "x"}:       true,
		{SessionKey: "agent:other:x"}:      true,

		{AgentID: "other"}: true,
	} {
		err := h.Call(t.Context(), wire.MethodSandboxRecreate, in, nil)
		if we, ok := errors.AsType[*wire.Error](err); (err != nil) != refused ||
			refused && (!ok || we.Code != wire.InvalidRequest) {
			t.Errorf("%+v: %v", in, err)
		}
	}
}
