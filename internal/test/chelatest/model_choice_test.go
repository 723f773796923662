package chelatest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/wire"
)

// TestModelChoice chooses models by command.
func TestModelChoice(t *testing.T) {
	t.Parallel()
	model := llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step { return llmtest.Say("answered by " + r.Model) })
	conf := func(policy string) Config {
		return Config{
			"agents.defaults": json.RawMessage(`{"model": "mock/m"` + policy + `}`),
			"models": json.RawMessage(`{"mode": "replace", "providers": {"mock": {"models": [
				{"id": "m", "contextWindow": 1000000}, {"id": "n", "contextWindow": 1000000}, {"id": "o", "contextWindow": 1000000}]}}}`),
		}
	}
	says := func(c *Client, text, want string) {
		t.Helper()
		if end := c.Ask("main", text); !strings.Contains(end.Text, want) {
			t.Errorf("%s: %q %s, want %q", text, end.Text, end.Error, want)
		}
	}
	whole := t
	g := Start(whole, Options{Model: model, Config: conf("")})
	c := g.Client()
	t.Run("MODEL-01 a number of the list, also after a restart", func(t *testing.T) {
		says(c, "/model list", "2. mock/n")
		says(c, "/model 2", "Model: mock/n.")
		says(c, "hello", "answered by n")
		says(c, "/model 99", "There is no model number 99")
		g.Stop()
		g = Start(whole, Options{Model: model, Config: conf(""), Dir: g.Dir})
		c = g.Client()
		says(c, "/model", "Model: mock/n (selected for this conversation)")
		says(c, "hello", "answered by n")
	})
	t.Run("MODEL-04 default removes the choice", func(t *testing.T) {
		says(c, "/model default", "Model: mock/m.")
		says(c, "/model", "Model: mock/m (default)")
		says(c, "hello", "answered by m")
	})
	t.Run("MODEL-05 a model that is not allowed is rejected with the key of the rule, and nothing changes",
		func(t *testing.T) {
			g := Start(t, Options{Model: model, Config: conf(`, "modelPolicy": {"allow": ["mock/n"]}`)})
			c := g.Client()
			const key = "agents.defaults.modelPolicy.allow"
			says(c, "/model mock/n", "Model: mock/n.")
			for _, text := range []string{"/model mock/o", "/model 3", "/new mock/o hello"} {
				says(c, text, key)
			}
			err := c.Call(t.Context(), wire.MethodSessionsPatch, map[string]any{"key": "main", "model": "mock/o"}, nil)
			if err == nil || !strings.Contains(err.Error(), key) {
				t.Errorf("patched: %v", err)
			}
			says(c, "hello", "answered by n")
			says(c, "/model mock/m", "Model: mock/m.") // the default model
			var list wire.ModelsList
			c.must(wire.MethodModelsList, nil, &list)
			for _, m := range list.Models {
				if m.ID == "o" {
					t.Error("the list contains a model that is not allowed")
				}
			}
		})
}
