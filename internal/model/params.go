package model

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"

	"github.com/chela-ai/chela/internal/llm"
)

// params are fields of the requests to a model, as people configure them. Some
// have a name and a meaning of their own for every service; what is left is part
// of the body as it is.
type params struct {
	temperature *float64
	maxTokens   int
	cache       string
	thinking    llm.Level
	body        json.RawMessage
}

// ours are the names that a service does not know: what has no meaning here is
// left out.
var ours = [...]string{"fastMode", "transport", "extra_body"}

// paramsOf returns the fields of requests to a model: what the more special place
// says goes before, name by name.
func (m *Set) paramsOf(info llm.Model) (*params, error) {
	all := map[string]json.RawMessage{}
	for _, place := range []struct {
		path string
		raw  json.RawMessage
	}{
		{"models.providers." + info.Provider + ".params", m.o.Providers[info.Provider].Params},
		{"agents.defaults.params", m.o.Params},
		{"agents.defaults.models." + info.Ref() + ".params", m.o.Models[info.Ref()].Params},
		{"the agent's params", m.o.AgentParams},
	} {
		if len(place.raw) == 0 {
			continue
		}
		var some map[string]json.RawMessage
		if err := json.Unmarshal(place.raw, &some); err != nil {
			return nil, fmt.Errorf("%s: want an object: %w", place.path, err)
		}
		maps.Copy(all, some)
	}
	if len(all) == 0 {
		return nil, nil
	}
	return take(all)
}

// take takes what has a meaning of its own out of the fields.
func take(all map[string]json.RawMessage) (*params, error) {
	p := &params{}
	for name, to := range map[string]any{"temperature": &p.temperature, "maxTokens": &p.maxTokens, "cacheRetention": &p.cache} {
		raw, ok := all[name]
		if !ok || string(raw) == "null" && name == "temperature" {
			continue
		}
		if err := json.Unmarshal(raw, to); err != nil {
			return nil, fmt.Errorf("params: %s: %w", name, err)
		}
		delete(all, name)
	}
	if raw := all["thinking"]; len(raw) > 0 && raw[0] == '"' { // an object is a service's own
		if err := json.Unmarshal(raw, &p.thinking); err != nil {
			return nil, fmt.Errorf("params: thinking: %w", err)
		}
		delete(all, "thinking")
	}
	extra := all["extra_body"]
	for _, name := range ours {
		delete(all, name)
	}
	if len(extra) > 0 {
		var more map[string]json.RawMessage
		if err := json.Unmarshal(extra, &more); err != nil {
			return nil, fmt.Errorf("params: extra_body: want an object: %w", err)
		}
		maps.Copy(all, more)
	}
	if len(all) > 0 {
		body, err := json.Marshal(all)
		if err != nil {
			return nil, fmt.Errorf("params: %w", err)
		}
		p.body = body
	}
	return p, nil
}

// apply returns the request with the fields.
func (p *params) apply(r *llm.Request) *llm.Request {
	own := *r
	if p.temperature != nil {
		own.Temperature, own.HasTemp = *p.temperature, true
	}
	if p.maxTokens > 0 {
		own.MaxTokens = p.maxTokens
	}
	if p.cache != "" {
		own.Cache = p.cache
	}
	if p.thinking != "" && own.Thinking == "" {
		own.Thinking = p.thinking
	}
	if len(p.body) > 0 {
		own.Params = p.body
	}
	return &own
}

// shaped is a provider whose requests have the fields that are configured.
type shaped struct {
	llm.Provider
	p *params
}

// Stream implements llm.Provider.
func (s shaped) Stream(ctx context.Context, r *llm.Request) iter.Seq2[llm.Event, error] {
	return s.Provider.Stream(ctx, s.p.apply(r))
}
