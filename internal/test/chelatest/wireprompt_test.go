package chelatest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/wire"
)

// wireText is what is compared of a request to a model service: the texts of its system
// prompt and the names of its tools, in their order.
func wireText(t *testing.T, w llmtest.Wire, body []byte) (system string, tools []string) {
	t.Helper()
	type text struct {
		Text string `json:"text"`
	}
	var r struct {
		System   []text `json:"system"`
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
		Tools []struct {
			Name     string `json:"name"`
			Function struct {
				Name string `json:"name"`
			} `json:"function"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &r); err != nil {
		t.Fatal(err)
	}
	for _, k := range r.Tools {
		tools = append(tools, k.Name+k.Function.Name)
	}
	var blocks []string
	for _, b := range r.System {
		blocks = append(blocks, b.Text)
	}
	for _, m := range r.Messages {
		if w == llmtest.Anthropic || m.Role != "system" && m.Role != "developer" {
			continue
		}
		var s string
		var parts []text
		if json.Unmarshal(m.Content, &s) != nil {
			if err := json.Unmarshal(m.Content, &parts); err != nil {
				t.Fatalf("content of the system prompt: %s", m.Content)
			}
		}
		for _, p := range parts {
			blocks = append(blocks, p.Text)
		}
		if s != "" {
			blocks = append(blocks, s)
		}
	}
	return regexp.MustCompile(`\n{2,}`).ReplaceAllString(strings.Join(blocks, "\n\n"), "\n\n"), tools
}

// The system prompt has no part for single providers, except for the name of the model in
// the line Runtime. Each service validates the request that it gets.
func TestProviderPrompts(t *testing.T) {
	t.Parallel()
	t.Run("PROMPT-15 the prompts for two providers differ only in the line about the model, and both requests are valid",
		func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ways, providers := hosts{}, map[string]any{}
				services := map[string]*llmtest.Server{}
				for name, s := range map[string]struct {
					url  string
					wire llmtest.Wire
				}{
					"anthropic": {"https://api.anthropic.com", llmtest.Anthropic},
					"openai":    {"https://api.openai.com/v1", llmtest.OpenAI},
				} {
					srv := llmtest.ServerFunc(t, s.wire,
						func(int, llmtest.ReceivedRequest) llmtest.Step { return llmtest.Say("hello from " + name) })
					t.Cleanup(srv.Close)
					_, hc := srv.Pipe()
					ways[strings.TrimPrefix(strings.TrimSuffix(s.url, "/v1"), "https://")] = hc.Transport
					providers[name] = map[string]any{
						"baseUrl": s.url, "api": string(s.wire), "apiKey": "k",
						"models": []map[string]any{{"id": "m", "contextWindow": 200_000, "reasoning": true}},
					}
					services[name] = srv
				}
				models, err := json.Marshal(map[string]any{"providers": providers})
				if err != nil {
					t.Fatal(err)
				}
				g := Start(t, Options{
					Dir: withFile(t, "AGENTS.md", "Always be kind."), HTTP: &http.Client{Transport: plainHosts{ways}},
					Wrap: withoutSync,
					Config: Config{"agents.defaults": json.RawMessage(`{"model": "anthropic/m", "thinkingDefault": "low"}`),
						"models": models},
				})
				c := g.Client()
				systems, tools := map[string]string{}, map[string][]string{}
				for name, srv := range services {
					session := "with-" + name
					if end := c.Ask(session, "/model "+name+"/m"); end.State != wire.StateFinal {
						t.Fatalf("/model: %s %q", end.State, end.Error)
					}
					if end := c.Ask(session, "hello"); end.Text != "hello from "+name {
						t.Fatalf("%s: %s %q %s", name, end.State, end.Text, end.Error)
					}
					got := srv.Requests()
					if len(got) != 1 || got[0].Err != nil {
						t.Fatalf("%s: %d requests", name, len(got))
					}
					w := llmtest.OpenAI
					if name == "anthropic" {
						w = llmtest.Anthropic
					}
					systems[name], tools[name] = wireText(t, w, got[0].Body)
				}
				c.Close()
				g.Stop()
				for name, s := range systems {
					line := fmt.Sprintf("model=%s/m ", name)
					if !strings.Contains(s, "Always be kind.") || strings.Count(s, line) != 1 {
						t.Fatalf("%s: the prompt lacks a file or the model:\n%s", name, s)
					}
					systems[name] = strings.ReplaceAll(s, line, "model=NAME/m ")
				}
				if diff := cmp.Diff(systems["anthropic"], systems["openai"]); diff != "" {
					t.Errorf("the prompts differ (-anthropic +openai):\n%s", diff)
				}
				if diff := cmp.Diff(tools["anthropic"], tools["openai"]); diff != "" || len(tools["openai"]) == 0 {
					t.Errorf("the tools differ (-anthropic +openai):\n%s", diff)
				}
			})
		})
}
