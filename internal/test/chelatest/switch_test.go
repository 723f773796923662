package chelatest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/llm/wiretest"
	"github.com/chela-ai/chela/wire"
)

// switchedService is a model service of TestSwitchModels.
type switchedService struct {
	name    string
	url     string
	wire    llmtest.Wire
	service *wiretest.Service
}

// switchedServices returns a service of each format, and all services with the format of
// OpenAI that deviate from it.
func switchedServices() []switchedService {
	all := []switchedService{
		{name: "anthropic", url: "https://api.anthropic.com", wire: llmtest.Anthropic},
		{name: "openai", url: "https://api.openai.com/v1", wire: llmtest.OpenAI},
		{name: "responses", url: "https://responses.invalid/v1", wire: llmtest.Responses},
		{name: "google", url: "https://generativelanguage.googleapis.com/v1beta", wire: llmtest.Gemini},
		{name: "ollama-own", url: "https://ollama-own.invalid/v1", wire: llmtest.Ollama},
	}
	for i := range wiretest.Services {
		s := &wiretest.Services[i]
		host := s.Name + ".invalid"
		if len(s.Hosts) > 0 {
			host = "api." + s.Hosts[0]
		}
		all = append(all, switchedService{s.Name, "https://" + host + "/v1", llmtest.OpenAI, s})
	}
	return all
}

// A conversation goes through all services and back, with thinking, calls of tools in
// groups, failed calls and pictures. Each service validates each request.
func TestSwitchModels(t *testing.T) {
	t.Parallel()
	t.Run("E2E-08 HYG-02 the model changes in the middle of a conversation with tools", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			asked := map[string]int{}
			ways, providers := hosts{}, map[string]any{}
			all := switchedServices()
			for i, s := range all {
				srv := llmtest.ServerFunc(t, s.wire, func(_ int, got llmtest.ReceivedRequest) llmtest.Step {
					mu.Lock()
					defer mu.Unlock()
					asked[s.name]++
					turn := fmt.Sprintf("turn-%s-%d", s.name, asked[s.name])
					end := got.Body[max(0, bytes.LastIndex(got.Body, []byte("please look"))):]
					if slices.ContainsFunc([]string{`"tool_result"`, `"role":"tool"`, `"function_call_output"`, `"functionResponse"`},
						func(mark string) bool {
							return bytes.Contains(end, []byte(mark))
						}) {
						return llmtest.Think("It is decided.", "c2lnLW9mLQ==", llmtest.Say("seen by "+s.name))
					}
					return llmtest.Think("Let me see.", "c2lnLW9mLQ==", llmtest.Calls(
						llmtest.ToolCall("look_"+turn+"a", "look", fmt.Sprintf(`{"lines":%d}`, 1+i)),
						llmtest.ToolCall("look_"+turn+"b", "read", `{"path":"no such file"}`),
						llmtest.ToolCall("look_"+turn+"c", "look", `{"lines":`), // malformed
					))
				})
				srv.Service = s.service
				_, hc := srv.Pipe()
				host, _, _ := strings.Cut(strings.TrimPrefix(s.url, "https://"), "/")
				ways[host] = hc.Transport
				t.Cleanup(srv.Close)
				api := string(s.wire)
				providers[s.name] = map[string]any{
					"baseUrl": s.url, "api": api, "apiKey": "k",
					"models": []map[string]any{{"id": "m", "contextWindow": 200_000, "input": []string{"text", "image"},
						"reasoning": true}},
				}
			}
			models, err := json.Marshal(map[string]any{"providers": providers})
			if err != nil {
				t.Fatal(err)
			}
			g := Start(t, Options{HTTP: &http.Client{Transport: plainHosts{ways}}, Wrap: withoutSync, Tools: lookTools(),
				Config: Config{
					"agents.defaults": json.RawMessage(`{"model": "anthropic/m", "thinkingDefault": "low"}`), "models": models,
					"tools": json.RawMessage(`{"allow": ["look", "read"]}`),
				}})
			c := g.Client()
			order := slices.Clone(all)
			slices.Reverse(order)
			for round, s := range slices.Concat(all, order, all) {
				if end := c.Ask("main", "/model "+s.name+"/m"); end.State != wire.StateFinal {
					t.Fatalf("/model %s: %s %q", s.name, end.State, end.Error)
				}
				if end := c.Ask("main", fmt.Sprintf("%d: please look", round)); end.State != wire.StateFinal ||
					end.Text != "seen by "+s.name {
					t.Fatalf("%d, %s: %s %q %s", round, s.name, end.State, end.Text, end.Error)
				}
			}
			c.Close()
			g.Stop()
			for _, s := range all {
				if asked[s.name] != 6 {
					t.Errorf("%s was asked %d times, want 6", s.name, asked[s.name])
				}
			}
		})
	})
}

// plainHosts routes requests by host, without TLS.
type plainHosts struct{ hosts }

// RoundTrip implements http.RoundTripper.
func (p plainHosts) RoundTrip(r *http.Request) (*http.Response, error) {
	out := r.Clone(r.Context())
	out.URL.Scheme = "http"
	return p.hosts.RoundTrip(out)
}
