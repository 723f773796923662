package chelatest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/estimate"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/wire"
)

func TestRunaway(t *testing.T) {
	t.Parallel()
	t.Run("E2E-14 a model that repeats a call is stopped by detection, and what it costs is bounded", func(t *testing.T) {
		t.Parallel()
		model := llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
			if last := r.Messages[len(r.Messages)-1]; last.PlainText() == "and now?" {
				return llmtest.Say("still here")
			}
			return llmtest.Call(fmt.Sprint("c", n), "spew", `{}`)
		})
		const window = 60_000
		c := Start(t, Options{Model: model, Config: modelWindow(window, `{}`), Tools: []tool.Tool{spewing(15_000)}}).Client()
		end := c.Ask("main", "go")
		if end.State != wire.StateError || !strings.Contains(end.Error, "spew") {
			t.Errorf("%s %q %q", end.State, end.Text, end.Error)
		}
		all := model.Requests()
		if n := len(all); n < 5 || n > 40 {
			t.Errorf("%d model calls", n)
		}
		for i, r := range all {
			n := estimate.Blocks(r.System) + estimate.Tools(r.Tools) + estimate.Messages(r.Messages...)
			if n /= 2; n > window*8/10 { // the script counts four bytes of a result as a token
				t.Errorf("request %d has %d tokens", i, n)
			}
		}
		if end := c.Ask("main", "and now?"); end.Text != "still here" {
			t.Errorf("after it: %s %q %q", end.State, end.Text, end.Error)
		}
	})
}
