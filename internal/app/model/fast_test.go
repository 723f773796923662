package model

import (
	"encoding/json"
	"testing"

	"github.com/chela-ai/chela/internal/core/llm"
)

// TestFastTier asks which models have a faster tier: those of the table, on the hosts of
// their services.
func TestFastTier(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		config, ref string
		want        float64
	}{
		{`{}`, "openai/gpt-5.5", 2.5},
		{`{}`, "anthropic/claude-opus-5-5", 2},
		{`{}`, "anthropic/claude-sonnet-5", 0},
		{`{}`, "openai/gpt-unknown", 0},
		{`{}`, "openrouter/openai/gpt-5.2", 0},
		{`{"providers": {"openai": {"baseUrl": "https://proxy.example.org/v1"}}}`, "openai/gpt-5.5", 0},
		{`{"providers": {"openai": {"baseUrl": "http://api.openai.com/v1"}}}`, "openai/gpt-5.5", 0},
		{`{"providers": {"openai": {"baseUrl": "https://api.openai.com:8443/v1"}}}`, "openai/gpt-5.5", 0},
		{`{"providers": {"openai": {"baseUrl": "https://api.openai.com/v1", "apiKey": "k"}}}`, "openai/gpt-5.5", 2.5},
		{`{"providers": {"openai": {"models": [{"id": "gpt-5.5", "cost": {"input": 1, "output": 2}}, {"id": "other"}]}}}`,
			"openai/gpt-5.5", 2.5},
		{`{"providers": {"openai": {"models": [{"id": "other"}]}}}`, "openai/other", 0},
		{`{"providers": {"work": {"baseUrl": "https://api.anthropic.com", "api": "anthropic-messages", "models": [{"id": "claude-opus-5-5"}]}}}`, "work/claude-opus-5-5", 2},
		{`{"providers": {"work": {"baseUrl": "https://api.anthropic.com.example.org", "api": "anthropic-messages", "models": [{"id": "claude-opus-5-5"}]}}}`, "work/claude-opus-5-5", 0},
		{`{"providers": {"anthropic": {"baseUrl": "https://proxy.example.org", "models": [{"id": "claude-opus-5-5"}]}}}`,
			"anthropic/claude-opus-5-5", 0},
	} {
		o := Options{NoProbe: true, Env: func(string) string { return "" }}
		if err := json.Unmarshal([]byte(tt.config), &o.Config); err != nil {
			t.Fatal(err)
		}
		m, err := Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		info, err := m.Info(tt.ref)
		if err != nil || info.Fast != tt.want {
			t.Errorf("%s %s: %v, %v; want %v", tt.config, tt.ref, info.Fast, err, tt.want)
		}
	}
	o := Options{NoProbe: true, Env: func(string) string { return "" }}
	o.Params, o.Models = json.RawMessage(`{"fastMode": "auto"}`),
		map[string]Settings{"openai/gpt-5.5": {Params: json.RawMessage(`{"fastMode": false}`)}}
	m, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]llm.Fast{"gpt-5.5": llm.FastOff, "gpt-5.4": llm.FastAuto} {
		info := llm.Model{Provider: "openai", ID: id}
		if got := m.Fast(info); got != want {
			t.Errorf("%s: %q, want %q", id, got, want)
		}
		if p, err := m.paramsOf(info); err != nil || len(p.body) > 0 {
			t.Errorf("%s: sent to the service: %s, %v", id, p.body, err)
		}
	}
	o.Params = json.RawMessage(`{"fastMode": "loud"}`)
	if m, err = Open(t.Context(), o); err == nil {
		_, err = m.paramsOf(llm.Model{Provider: "openai", ID: "gpt-5.4"})
	}
	if err == nil {
		t.Error("fastMode loud: accepted")
	}
}
