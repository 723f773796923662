package chelatest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/llm/llmtest"
)

// services are two model services in memory, anthropic and openai, each with
// its wire format.
type services map[string]*llmtest.Server

// service is a service with a wire format, and one of its models that thinks.
type service struct {
	name, model string
	wire        llmtest.Wire
}

func (s service) ref() string { return s.name + "/" + s.model }

// The services. The first has a model that thinks within a budget and checks
// the beginning of a turn with calls.
func testServices() [2]service {
	return [2]service{
		{"anthropic", "claude-sonnet-4-5", llmtest.Anthropic},
		{"openai", "gpt-5", llmtest.OpenAI},
	}
}

// network serves them in memory. A request that the real service would reject
// fails the test.
func network(t *testing.T, answer func(service string, n int, got llmtest.ReceivedRequest) llmtest.Step) (services,
	*http.Client) {
	all, ways := services{}, hosts{}
	for _, s := range testServices() {
		srv := llmtest.ServerFunc(t, s.wire,
			func(n int, got llmtest.ReceivedRequest) llmtest.Step { return answer(s.name, n, got) })
		_, hc := srv.Pipe()
		all[s.name], ways[s.name+".invalid"] = srv, hc.Transport
	}
	return all, &http.Client{Transport: ways}
}

// close closes the services.
func (s services) close() {
	for _, srv := range s {
		srv.Close()
	}
}

// hosts routes requests by host.
type hosts map[string]http.RoundTripper

// RoundTrip implements http.RoundTripper.
func (h hosts) RoundTrip(r *http.Request) (*http.Response, error) { return h[r.URL.Host].RoundTrip(r) }

// asks returns a configuration with both services. The first model is the
// default, the others are its fallbacks. more contains additional members of
// agents.defaults.
func asks(more string, models ...string) Config {
	choice, err := json.Marshal(map[string]any{"primary": models[0], "fallbacks": models[1:]})
	if err != nil {
		panic(err)
	}
	providers := map[string]any{}
	for _, s := range testServices() {
		providers[s.name] = map[string]any{
			"baseUrl":          fmt.Sprintf("http://%s.invalid", s.name),
			"timeoutSeconds":   20,
			"keepAliveSeconds": 20,
		}
	}
	b, err := json.Marshal(map[string]any{"providers": providers})
	if err != nil {
		panic(err)
	}
	return Config{"agents.defaults": merge(json.RawMessage(more), fmt.Sprintf(`{"model": %s}`, choice)), "models": b}
}

// keys returns an environment with keys of both services: one each, or a second
// one of one service.
func keys(more map[string]string) map[string]string {
	env := map[string]string{"ANTHROPIC_API_KEYS": "k1", "OPENAI_API_KEYS": "k1"}
	maps.Copy(env, more)
	return env
}

// keyOf returns the key of a request.
func keyOf(got llmtest.ReceivedRequest) string {
	if k := got.Header.Get("X-Api-Key"); k != "" {
		return k
	}
	return strings.TrimPrefix(got.Header.Get("Authorization"), "Bearer ")
}
