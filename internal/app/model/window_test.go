package model

import (
	"encoding/json"
	"testing"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/window"
)

func TestClaims(t *testing.T) {
	t.Parallel()
	o := Options{NoProbe: true, Env: func(string) string { return "" }}
	if err := json.Unmarshal([]byte(`{"providers": {"x": {"baseUrl": "http://127.0.0.1:9", "models": [{"id": "a", "contextWindow": 9000}, {"id": "b"}, {"id": "c", "contextWindow": 9000, "contextTokens": 7000}]}}}`), &o.Config); err != nil {
		t.Fatal(err)
	}
	o.Models = map[string]Settings{
		"x/a": {Params: json.RawMessage(`{"contextTokensOverride": 5000, "cacheRetention": "long"}`)},
		"x/b": {Params: json.RawMessage(`{"context1m": true}`)},
	}
	m, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		ref   string
		want  window.Claims
		cache string
	}{
		{"x/a", window.Claims{Override: 5000, Config: 9000, Model: 9000}, "long"},
		{"x/b", window.Claims{Million: true}, ""},
		{"x/c", window.Claims{Config: 7000, Model: 7000}, ""},
		{"anthropic/claude-opus-4-5", window.Claims{Model: 200_000}, ""},
		{"x/unknown", window.Claims{}, ""},
	} {
		info, err := m.Info(tt.ref)
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Claims(info); got != tt.want || m.Retention(info) != tt.cache {
			t.Errorf("%s: %+v, %q; want %+v, %q", tt.ref, got, m.Retention(info), tt.want, tt.cache)
		}
	}
	p, err := m.paramsOf(llm.Model{Provider: "x", ID: "a"})
	if err != nil || len(p.body) > 0 {
		t.Errorf("sent to the service: %s, %v", p.body, err)
	}
}
