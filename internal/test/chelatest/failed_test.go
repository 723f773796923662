//go:build unix

package chelatest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/wire"
)

// diligent is a model that carries out every request since its last answer: for each "append
// WORD" it appends the word to dup.txt. fails says which requests it refuses.
func diligent(fails func(n int, r *llm.Request) llmtest.Step) *llmtest.Script {
	return llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
		if s := fails(n, r); s.Fault.Status != 0 {
			return s
		}
		var calls []llm.ToolCall
		for i := len(r.Messages) - 1; i >= 0 && r.Messages[i].Role == llm.RoleUser; i-- {
			if _, word, ok := strings.Cut(r.Messages[i].PlainText(), "append "); ok {
				calls = append(calls,
					llmtest.ToolCall(fmt.Sprintf("c%d-%d", n, i), "exec", `{"command":"echo `+word+` >>dup.txt"}`))
			}
		}
		if len(calls) == 0 {
			return llmtest.Say("done")
		}
		return llmtest.Calls(calls...)
	})
}

// appended returns the words in dup.txt.
func appended(g *Gateway) string {
	b, _ := os.ReadFile(filepath.Join(g.Dir, "workspace", "dup.txt"))
	return strings.Join(strings.Fields(string(b)), " ")
}

// sentTo returns the messages of a request in short.
func sentTo(r *llm.Request) string {
	var b strings.Builder
	for _, m := range r.Messages {
		fmt.Fprintf(&b, "%s: %s\n", m.Role, m.PlainText())
	}
	return b.String()
}

func TestFailedMessages(t *testing.T) {
	t.Parallel()
	exec := Config{"tools": json.RawMessage(`{"exec": {"mode": "full"}}`)}
	first := func(step llmtest.Step) func(int, *llm.Request) llmtest.Step {
		return func(n int, _ *llm.Request) llmtest.Step {
			if n == 0 {
				return step
			}
			return llmtest.Step{}
		}
	}
	for _, c := range []struct {
		name   string
		fault  llmtest.Step
		marked string // in the next request
	}{
		{"the key is refused", llmtest.Status(401, "no such key"),
			"assistant: [This request was not completed: the model gave no answer (auth). "},
		{"there is no credit", llmtest.Status(402, "pay"),
			"assistant: [This request was not completed: the model gave no answer (billing). "},
	} {
		t.Run(c.name+": the same message again is carried out once", func(t *testing.T) {
			t.Parallel()
			model := diligent(first(c.fault))
			g := Start(t, Options{Model: model, Config: exec})
			cl := g.Client()
			if end := cl.Ask("main", "append two"); end.State != wire.StateError {
				t.Fatalf("%s %q", end.State, end.Text)
			}
			if end := cl.Ask("main", "append two"); end.Text != "done" {
				t.Errorf("%s %q %s", end.State, end.Text, end.Error)
			}
			if got := appended(g); got != "two" {
				t.Errorf("dup.txt has %q", got)
			}
			if got := sentTo(model.Requests()[1]); !strings.Contains(got, "append two\n"+c.marked) ||
				strings.Contains(got, "no such key") {
				t.Errorf("the model is sent:\n%s", got)
			}
			if got := strings.Join(cl.lines("main"), "\n"); strings.Contains(got, "not completed") {
				t.Errorf("the person is shown what is meant for the model:\n%s", got)
			}
		})
	}
	t.Run("a model without a key fails, and the message is carried out once after another model was set",
		func(t *testing.T) {
			t.Parallel()
			model := diligent(func(int, *llm.Request) llmtest.Step { return llmtest.Step{} })
			conf := Config{"tools": exec["tools"], "agents.defaults": json.RawMessage(`{"model": "openai/gpt-5"}`)}
			g := Start(t, Options{Model: model, Config: conf})
			cl := g.Client()
			if end := cl.Ask("main", "append two"); end.State != wire.StateError {
				t.Fatalf("%s %q", end.State, end.Text)
			}
			if end := cl.Ask("main", "/model mock/m"); end.State != wire.StateFinal {
				t.Fatalf("%s %q %s", end.State, end.Text, end.Error)
			}
			if end := cl.Ask("main", "append two"); end.Text != "done" {
				t.Errorf("%s %q %s", end.State, end.Text, end.Error)
			}
			if got := appended(g); got != "two" {
				t.Errorf("dup.txt has %q", got)
			}
			if got := sentTo(model.Requests()[0]); !strings.Contains(got,
				"append two\nassistant: [This request was not completed: an error ended it. ") {
				t.Errorf("the model is sent:\n%s", got)
			}
		})
	t.Run("a message that failed after some of its work is not continued with the next one", func(t *testing.T) {
		t.Parallel()
		model := diligent(func(n int, _ *llm.Request) llmtest.Step {
			if n == 1 {
				return llmtest.Status(401, "expired")
			}
			return llmtest.Step{}
		})
		g := Start(t, Options{Model: model, Config: exec})
		cl := g.Client()
		cl.Ask("main", "append one")
		if end := cl.Ask("main", "append two"); end.Text != "done" {
			t.Errorf("%s %q %s", end.State, end.Text, end.Error)
		}
		if got := appended(g); got != "one two" {
			t.Errorf("dup.txt has %q", got)
		}
	})
	t.Run("a message that was stopped before its answer is not carried out with the next one", func(t *testing.T) {
		t.Parallel()
		asked := make(chan struct{})
		model := llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
			if n == 0 {
				close(asked)
				return llmtest.Step{Fault: llmtest.Fault{Hang: llmtest.HangHeaders}}
			}
			return llmtest.Say(sentTo(r))
		})
		g := Start(t, Options{Model: model})
		cl := g.Client()
		run := cl.Send("main", "remove everything")
		<-asked
		cl.must(wire.MethodChatAbort, wire.ChatAbort{SessionKey: "main"}, nil)
		cl.Await(run)
		if got := cl.Ask("main", "hello").Text; !strings.Contains(got,
			"remove everything\nassistant: [This request was not completed: it was stopped. ") {
			t.Errorf("the model is sent:\n%s", got)
		}
	})
	t.Run("a message that the service refuses for its text is left out of later requests", func(t *testing.T) {
		t.Parallel()
		poison := func(_ int, r *llm.Request) llmtest.Step {
			if strings.Contains(sentTo(r), "POISON") {
				return llmtest.Status(400, "the request contains a forbidden text")
			}
			return llmtest.Step{}
		}
		model := diligent(poison)
		dir := t.TempDir()
		g := Start(t, Options{Dir: dir, Model: model, Config: exec})
		cl := g.Client()
		if end := cl.Ask("main", "append one"); end.Text != "done" {
			t.Fatalf("%s %q %s", end.State, end.Text, end.Error)
		}
		if end := cl.Ask("main", "append POISON"); end.State != wire.StateError {
			t.Fatalf("%s %q", end.State, end.Text)
		}
		if end := cl.Ask("main", "append two"); end.Text != "done" {
			t.Errorf("the next message: %s %q %s", end.State, end.Text, end.Error)
		}
		reqs := model.Requests()
		if got := sentTo(reqs[len(reqs)-1]); strings.Count(got, "[A message was left out here: ") != 1 ||
			!strings.Contains(got, "append one") {
			t.Errorf("the model is sent:\n%s", got)
		}
		if got := strings.Join(cl.lines("main"), "\n"); !strings.Contains(got, "POISON") {
			t.Errorf("the person does not see their message any more:\n%s", got)
		}
		cl.Close()
		g.Stop()
		g = Start(t, Options{Dir: dir, Model: model, Config: exec})
		if end := g.Client().Ask("main", "append three"); end.Text != "done" {
			t.Errorf("after a restart: %s %q %s", end.State, end.Text, end.Error)
		}
		if got := appended(g); got != "one two three" {
			t.Errorf("dup.txt has %q", got)
		}
	})
	t.Run("a message stays, marked as failed, if the service refuses a setting", func(t *testing.T) {
		t.Parallel()
		model := diligent(first(llmtest.Status(400, "unsupported value for the setting top_k")))
		g := Start(t, Options{Model: model})
		cl := g.Client()
		cl.Ask("main", "what is new?")
		cl.Ask("main", "hello")
		if got := sentTo(model.Requests()[1]); !strings.Contains(got,
			"what is new?\nassistant: [This request was not completed: ") {
			t.Errorf("the model is sent:\n%s", got)
		}
	})
	t.Run("a program is told that the model said nothing after a failed tool", func(t *testing.T) {
		t.Parallel()
		g := Start(t, Options{Model: llmtest.NewScript(llmtest.Call("1", "read", `{"path":"nothing.txt"}`), llmtest.Say(""),
			llmtest.Say(""))})
		var out wire.AgentResult
		err := g.Client().Client.Await(t.Context(), wire.MethodAgent,
			wire.AgentRun{Message: "read it", SessionKey: "main", IdempotencyKey: "quiet"}, nil, &out)
		if err != nil || out.Result == nil || out.Result.Meta.Stop != wire.StopUnable {
			t.Errorf("%+v, %v", out.Result, err)
		}
	})
	t.Run("a window that is too small for a run is not kept: its server may get a larger one", func(t *testing.T) {
		t.Parallel()
		model := diligent(first(llmtest.Status(400,
			"request (5120 tokens) exceeds the available context size (4096 tokens), try increasing it")))
		g := Start(t, Options{Model: model, Config: exec})
		cl := g.Client()
		end := cl.Ask("main", "long")
		for _, want := range []string{"too small: 4096 tokens (source: provider)",
			"Start the server of the model with a larger context"} {
			if end.State != wire.StateError || !strings.Contains(end.Text+end.Error, want) {
				t.Errorf("%s %q %q, want %q", end.State, end.Text, end.Error, want)
			}
		}
		if end := cl.Ask("main", "append one"); end.Text != "done" {
			t.Errorf("the next message: %s %q %s", end.State, end.Text, end.Error)
		}
	})
	t.Run("so is a result of a tool that the service refuses", func(t *testing.T) {
		t.Parallel()
		model := diligent(func(_ int, r *llm.Request) llmtest.Step {
			for _, m := range r.Messages {
				if m.Role == llm.RoleTool && strings.Contains(m.PlainText(), "poison") {
					return llmtest.Status(400, "invalid tool result")
				}
			}
			return llmtest.Step{}
		})
		g := Start(t, Options{Model: model, Config: exec})
		cl := g.Client()
		if end := cl.Ask("main", "append x; echo poison; true"); end.State != wire.StateError {
			t.Fatalf("%s %q", end.State, end.Text)
		}
		if end := cl.Ask("main", "append two"); end.Text != "done" {
			t.Errorf("the next message: %s %q %s", end.State, end.Text, end.Error)
		}
		reqs := model.Requests()
		got := sentTo(reqs[len(reqs)-1])
		if !strings.Contains(got, "toolResult: the call has ended, but its result is left out: ") ||
			!strings.Contains(got, "[This request was not completed: ") || strings.Contains(got, "not carried out") {
			t.Errorf("the model is sent:\n%s", got)
		}
	})
}
