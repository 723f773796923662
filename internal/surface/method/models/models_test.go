package models_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/surface/method/methodtest"
	"github.com/chela-ai/chela/wire"
)

func TestModels(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript())
	main := wire.Model{
		ID:           "m1",
		Name:         "Mock",
		Provider:     "mock",
		Alias:        "mm",
		Context:      100_000,
		Reasoning:    true,
		Available:    true,
		Tags:         []string{"default"},
		Levels:       []wire.Level{{ID: "off", Label: "off"}, {ID: "low", Label: "low"}, {ID: "high", Label: "high"}},
		DefaultLevel: "off",
		Input:        []string{"text"},
	}
	far := wire.Model{
		ID: "m2", Name: "m2", Provider: "far", Unavailable: wire.MissingAuth, Levels: []wire.Level{{ID: "off", Label: "off"}},
		DefaultLevel: "off", Input: []string{"text"},
	}
	for _, tt := range []struct {
		view string
		want []wire.Model
	}{
		{"", []wire.Model{main}}, {wire.ModelsDefault, []wire.Model{main}}, {wire.ModelsConfigured, []wire.Model{main}},
		{wire.ModelsProvider, []wire.Model{main}}, {wire.ModelsAll, []wire.Model{main, far}},
	} {
		got := methodtest.Do[wire.ModelsList](t, h, wire.MethodModelsList, wire.ModelsGet{View: tt.view, SessionKey: "main"})
		if diff := cmp.Diff(tt.want, got.Models); diff != "" {
			t.Errorf("view %q (-want +got):\n%s", tt.view, diff)
		}
	}

	auth := methodtest.Do[wire.ModelsAuth](t, h, wire.MethodModelsAuthStatus,
		map[string]any{"refresh": true, "agentId": "main"})
	want := wire.ModelsAuth{
		Time: auth.Time,
		Providers: []wire.ProviderAuth{{
			Provider: "mock", Auth: "mock", Name: "mock", Status: wire.AuthStatic, Profiles: []string{},
			Key: &wire.KeySource{Source: "env", Env: "MOCK_KEY"},
		}},
		Capabilities: []wire.ProviderCapability{{Provider: "mock", Key: true}, {Provider: "far", Key: true, Quick: true}},
	}
	if diff := cmp.Diff(want, auth); diff != "" {
		t.Error(diff)
	}

	for method, params := range map[string]string{
		wire.MethodModelsList:       `{"view":"mine"}`,
		wire.MethodModelsAuthStatus: `{"agentId":"nope"}`,
	} {
		err := h.Call(t.Context(), method, json.RawMessage(params), nil)
		if err == nil || !strings.Contains(err.Error(), "allowed values") && !strings.Contains(err.Error(), "unknown agent") {
			t.Errorf("%s %s: %v", method, params, err)
		}
	}
	if err := h.Call(t.Context(), wire.MethodModelsList, wire.ModelsGet{AgentID: "nope"}, nil); err == nil {
		t.Error("models of an agent that does not exist")
	}
}
