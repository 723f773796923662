package models_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/surface/method/methodtest"
	"github.com/chela-ai/chela/internal/surface/method/models"
	"github.com/chela-ai/chela/wire"
)

// keyAnswer is a key with the service's answer, or an HTTP status.
func keyAnswer(id string, saved bool, status int) models.Key {
	step := llmtest.Say("OK")
	if status != 0 {
		step = llmtest.Status(status, "no")
	}
	return models.Key{ID: id, Saved: saved, Model: llm.Model{Provider: "groq", ID: "m"}, Provider: llmtest.NewScript(step)}
}

func TestProbe(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript())
	const refused = "script/m: auth (http 401): no"
	ask := func(in wire.ModelsProbe, keys ...models.Key) wire.ModelsProbed {
		h.ModelKeys = map[string][]models.Key{"groq": keys}
		in.Provider = "groq"
		out := methodtest.Do[wire.ModelsProbed](t, h, wire.MethodModelsProbe, in)
		for i := range out.Results {
			if out.Results[i].Latency == nil {
				t.Error("a result without a latency")
			}
			out.Results[i].Latency = nil
		}
		out.Latency = nil
		return out
	}
	good := wire.ProbedKey{Key: "groq:work", Label: "groq:work · groq/m", Status: wire.ProbeOK}
	bad := wire.ProbedKey{Label: "groq:ENV · groq/m", Status: wire.ProbeAuth, Error: refused}
	got := ask(wire.ModelsProbe{}, keyAnswer("groq:ENV", false, 401), keyAnswer("groq:work", true, 0))
	if diff := cmp.Diff(wire.ModelsProbed{Provider: "groq", Status: wire.ProbeOK, Results: []wire.ProbedKey{bad, good}},
		got); diff != "" {
		t.Errorf("one key of two works:\n%s", diff)
	}
	got = ask(wire.ModelsProbe{Key: "groq:ENV", Timeout: 1}, keyAnswer("groq:ENV", false, 401),
		keyAnswer("groq:work", true, 0))
	if diff := cmp.Diff(wire.ModelsProbed{Provider: "groq", Status: wire.ProbeAuth, Error: refused,
		Results: []wire.ProbedKey{bad}}, got); diff != "" {
		t.Errorf("the failing key:\n%s", diff)
	}
	if got = ask(wire.ModelsProbe{}); got.Status != wire.ProbeUnknown || len(got.Results) != 0 || got.Error == "" {
		t.Errorf("no key: %+v", got)
	}
	for code, want := range map[int]string{
		429: wire.ProbeRate,
		529: wire.ProbeRate,
		402: wire.ProbeBilling,
		408: wire.ProbeTimeout,
		400: wire.ProbeFormat,
		404: wire.ProbeNoModel,
		500: wire.ProbeUnknown,
	} {
		if got = ask(wire.ModelsProbe{}, keyAnswer("groq:k", true, code)); got.Status != want {
			t.Errorf("%d: %s, want %s: %s", code, got.Status, want, got.Error)
		}
	}
	refuses(t, h, wire.MethodModelsProbe, wire.ModelsProbe{Provider: " "},
		wire.ModelsProbe{Provider: "groq", AgentID: "nope"}, wire.ModelsProbe{Provider: "groq", Timeout: -1})
}

// refuses checks that a method refuses each of the parameters, and any call
// without the scope.
func refuses(t *testing.T, h *methodtest.Fixture, method string, in ...any) {
	t.Helper()
	for _, p := range in {
		var e *wire.Error
		if err := h.Call(t.Context(), method, p, nil); !errors.As(err, &e) || e.Code != wire.InvalidRequest {
			t.Errorf("%s %+v: %v", method, p, err)
		}
	}
	writer := h.Dial(client.Options{Scopes: []string{"operator.write"}})
	defer writer.Close()
	if err := writer.Call(t.Context(), method, map[string]any{"provider": "groq"}, nil); err == nil ||
		!strings.Contains(err.Error(), "operator.admin") {
		t.Errorf("%s without the scope: %v", method, err)
	}
}

func TestLogout(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript())
	h.ModelKeys = map[string][]models.Key{"groq": {keyAnswer("groq:a", true, 0), keyAnswer("groq:b", true, 0),
		keyAnswer("groq:ENV", false, 0)}}
	for want, in := range map[string]wire.ModelsLogout{
		"groq:a groq:b|": {Provider: "groq"}, "groq:b|": {Provider: "groq", Keys: []string{"groq:b"}},
		"|The key was not removed from the variable MOCK_KEY.": {Provider: "mock", Credential: "api_key"},
	} {
		got := methodtest.Do[wire.ModelsLoggedOut](t, h, wire.MethodModelsLogout, in)
		if s := strings.Join(got.Removed, " ") + "|" + got.Warning; s != want || got.Provider != in.Provider ||
			got.Removed == nil || got.Aborted == nil {
			t.Errorf("%+v: %q, want %q", in, s, want)
		}
	}
	refuses(t, h, wire.MethodModelsLogout, wire.ModelsLogout{Provider: " "},
		wire.ModelsLogout{Provider: "groq", Keys: []string{"groq:ENV"}},
		wire.ModelsLogout{Provider: "groq", Keys: []string{"groq:a"}, Credential: "api_key"},
		wire.ModelsLogout{Provider: "groq", Credential: "oauth"},
		map[string]any{"provider": "groq", "profileIds": []string{}}, wire.ModelsLogout{Provider: "groq", AgentID: "nope"})
}
