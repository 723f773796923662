package chelatest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/llm/llmtest"
)

// services are two model services on the network, each with the wire format of
// its name: anthropic and openai.
type services map[string]*llmtest.Server

// service is the one that speaks a wire format, with a model of it that thinks.
type service struct {
	name, model string
	wire        llmtest.Wire
}

func (s service) ref() string { return s.name + "/" + s.model }

// The services: of the first, a model that thinks to a budget and is strict
// about what a turn with calls begins with.
func both() [2]service {
	return [2]service{
		{"anthropic", "claude-sonnet-4-5", llmtest.Anthropic},
		{"openai", "gpt-5", llmtest.OpenAI},
	}
}

// network serves them in memory. A request that the real service would refuse
// fails the test.
func network(t *testing.T, answer func(service string, n int, got llmtest.Received) llmtest.Step) (services, *http.Client) {
	all, ways := services{}, hosts{}
	for _, s := range both() {
		srv := llmtest.ServerFunc(t, s.wire, func(n int, got llmtest.Received) llmtest.Step { return answer(s.name, n, got) })
		_, hc := srv.Pipe()
		all[s.name], ways[s.name+".invalid"] = srv, hc.Transport
	}
	return all, &http.Client{Transport: ways}
}

// close ends the services.
func (s services) close() {
	for _, srv := range s {
		srv.Close()
	}
}

// hosts goes to each host its own way.
type hosts map[string]http.RoundTripper

// RoundTrip implements http.RoundTripper.
func (h hosts) RoundTrip(r *http.Request) (*http.Response, error) { return h[r.URL.Host].RoundTrip(r) }

// asks is a configuration with both services, whose default model is the first
// and whose fallbacks are the others. More is members of agents.defaults.
func asks(more string, models ...string) Config {
	choice, err := json.Marshal(map[string]any{"primary": models[0], "fallbacks": models[1:]})
	if err != nil {
		panic(err)
	}
	providers := map[string]any{}
	for _, s := range both() {
		providers[s.name] = map[string]any{"baseUrl": fmt.Sprintf("http://%s.invalid", s.name), "timeoutSeconds": 20}
	}
	b, err := json.Marshal(map[string]any{"providers": providers})
	if err != nil {
		panic(err)
	}
	return Config{"agents.defaults": merge(json.RawMessage(more), fmt.Sprintf(`{"model": %s}`, choice)), "models": b}
}

// keys is an environment with keys of both services: one each, or a second of
// one of them.
func keys(more map[string]string) map[string]string {
	env := map[string]string{"ANTHROPIC_API_KEYS": "k1", "OPENAI_API_KEYS": "k1"}
	maps.Copy(env, more)
	return env
}

// keyOf returns the key of a request.
func keyOf(got llmtest.Received) string {
	if k := got.Header.Get("X-Api-Key"); k != "" {
		return k
	}
	return strings.TrimPrefix(got.Header.Get("Authorization"), "Bearer ")
}
