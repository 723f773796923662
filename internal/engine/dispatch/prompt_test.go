package dispatch_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/prompt"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
)

// TestPromptFiles looks for the workspace files in the prompts of runs.
func TestPromptFiles(t *testing.T) {
	t.Parallel()
	model := says("done")
	h := newHarness(t, model)
	for name, text := range map[string]string{"AGENTS.md": "the rules", "MEMORY.md": "the secret"} {
		if err := os.WriteFile(filepath.Join(h.p.Dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h.p.Files, h.p.Prompt = prompt.Open(h.p.Dir, nil), prompt.Input{Host: "box"}
	h.open()
	at := func(kind chela.PeerKind) func(*queue.Item) {
		return func(it *queue.Item) {
			it.Inbound.Address = chela.Address{Channel: "telegram", Peer: chela.Peer{Kind: kind, ID: "7"}}
		}
	}
	for _, c := range []struct {
		name, id      string
		change        func(*queue.Item)
		rules, secret bool
	}{
		{"a terminal", "m1", func(*queue.Item) {}, true, true},
		{"a direct chat", "m2", at(chela.Direct), true, true},
		{"a group", "m3", at(chela.Group), true, false},
		{"a public room", "m5", at(chela.Room), true, false},
		{"a light context", "m4", func(it *queue.Item) {
			it.Overrides = run.Overrides{Context: run.ContextLight, Prompt: "only look"}
		}, false, false},
	} {
		h.put(item(c.id, queue.Message, chela.OriginPerson, c.change))
		h.runOf(c.id)
		asked := model.Requests()
		got := ""
		for _, b := range asked[len(asked)-1].System {
			got += b.Text
		}
		if strings.Contains(got, "the rules") != c.rules || strings.Contains(got, "the secret") != c.secret {
			t.Errorf("%s: want rules %t, memory %t in the prompt:\n%s", c.name, c.rules, c.secret, got)
		}
		for _, want := range []string{"host=box", "agent=main", "model=mock/m", h.p.Dir} {
			if !strings.Contains(got, want) {
				t.Errorf("%s: the prompt lacks %q", c.name, want)
			}
		}
		if strings.Contains(got, "only look") == c.rules {
			t.Errorf("%s: the run's own prompt is missing or in the wrong run", c.name)
		}
	}
}
