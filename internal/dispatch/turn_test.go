package dispatch_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/llm/llmtest"
	"github.com/chela-ai/chela/internal/run"
)

func TestTurn(t *testing.T) {
	t.Run("LOOP-01 one message, one model call, one reply", func(t *testing.T) {
		model := llmtest.NewScript(llmtest.Say("hello"))
		h := newHouse(t, model).open()
		r := h.ask("m1", "hi")
		if r.State != run.OK || r.Text != "hello" {
			t.Errorf("run ended %s with %q (%s)", r.State, r.Text, r.Error)
		}
		if n := len(model.Requests()); n != 1 {
			t.Errorf("%d model calls", n)
		}
		if diff := cmp.Diff([]string{"user: hi", "assistant: hello"}, h.lines()); diff != "" {
			t.Errorf("transcript: %s", diff)
		}
		if ends := h.seen(chela.StreamLifecycle, chela.PhaseEnd); len(ends) != 1 || ends[0].End.Text != "hello" {
			t.Errorf("ends: %+v", ends)
		}
	})
}
