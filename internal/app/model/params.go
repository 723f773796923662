package model

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/window"
)

// params is the configured fields of requests to a model. Some have the same name
// and meaning for every service; the others are added to the body unchanged.
type params struct {
	temperature *float64
	maxTokens   int
	cache       string
	thinking    llm.Level // default level; see [Set.Think]
	fast        llm.Fast  // likewise; see [Set.Fast]
	window      int       // contextTokensOverride
	million     bool      // context1m
	body        json.RawMessage
	limited     json.RawMessage // body without the fields that set a limit of the answer; nil: it has none
}

// limits are the names that services use for the limit of an answer.
var limits = [...]string{"max_tokens", "max_completion_tokens", "max_output_tokens"}

// ours is names that services do not know. They are not sent.
var ours = [...]string{"transport", "extra_body"}

// paramsOf returns the fields of requests to a model. A field that is configured more
// than once has the value of the most specific section.
func (m *Set) paramsOf(info llm.Model) (*params, error) {
	all := map[string]json.RawMessage{}
	for _, section := range []struct {
		path string
		raw  json.RawMessage
	}{
		{"models.providers." + info.Provider + ".params", m.o.Providers[info.Provider].Params},
		{"agents.defaults.params", m.o.Params},
		{"agents.defaults.models." + info.Ref() + ".params", m.o.Models[info.Ref()].Params},
		{"the agent's params", m.o.AgentParams},
	} {
		if len(section.raw) == 0 {
			continue
		}
		var some map[string]json.RawMessage
		if err := json.Unmarshal(section.raw, &some); err != nil {
			return nil, fmt.Errorf("%s: want an object: %w", section.path, err)
		}
		maps.Copy(all, some)
	}
	if len(all) == 0 {
		return nil, nil
	}
	return take(all)
}

// take separates the fields that have a meaning for every service.
func take(all map[string]json.RawMessage) (*params, error) {
	p := &params{}
	for name, to := range map[string]any{
		"temperature":           &p.temperature,
		"maxTokens":             &p.maxTokens,
		"cacheRetention":        &p.cache,
		"fastMode":              &p.fast,
		"contextTokensOverride": &p.window,
		"context1m":             &p.million,
	} {
		raw, ok := all[name]
		if !ok || string(raw) == "null" && name == "temperature" {
			continue
		}
		if err := json.Unmarshal(raw, to); err != nil {
			return nil, fmt.Errorf("params: %s: %w", name, err)
		}
		delete(all, name)
	}
	// Anything but a level is specific to a service.
	if err := json.Unmarshal(all["thinking"], &p.thinking); err != nil || !slices.Contains(llm.Levels[:], p.thinking) {
		p.thinking = ""
	} else {
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
		n := len(all)
		for _, name := range limits {
			delete(all, name)
		}
		if len(all) < n {
			if p.limited, err = json.Marshal(all); err != nil {
				return nil, fmt.Errorf("params: %w", err)
			}
		}
	}
	return p, nil
}

// Think returns the thinking level that params set for a model of sessions that choose
// none; "": none is set. Resolve reports invalid params.
func (m *Set) Think(info llm.Model) llm.Level {
	p, err := m.paramsOf(info)
	if err != nil || p == nil {
		return ""
	}
	return p.thinking
}

// Fast returns the fast mode that params set for a model of sessions that choose none; "":
// none is set.
func (m *Set) Fast(info llm.Model) llm.Fast {
	p, err := m.paramsOf(info)
	if err != nil || p == nil {
		return ""
	}
	return p.fast
}

// Claims returns what is known about the window of a model: its parameters, its
// configured size, or what the catalog or the model server says.
func (m *Set) Claims(info llm.Model) window.Claims {
	c := window.Claims{Model: info.Context}
	for _, e := range m.o.Providers[info.Provider].Models {
		if strings.EqualFold(e.ID, info.ID) && (e.Context > 0 || e.ContextTokens > 0) {
			c.Config = info.Context
		}
	}
	if p, err := m.paramsOf(info); err == nil && p != nil {
		c.Override, c.Million = p.window, p.million
	}
	return c
}

// Retention returns how long the provider caches prompts of a model, as params set it;
// "": nothing is set.
func (m *Set) Retention(info llm.Model) string {
	p, err := m.paramsOf(info)
	if err != nil || p == nil {
		return ""
	}
	return p.cache
}

// apply returns the request with the configured fields.
func (p *params) apply(r *llm.Request) *llm.Request {
	own := *r
	if p.temperature != nil {
		own.Temperature, own.HasTemperature = *p.temperature, true
	}
	if p.maxTokens > 0 {
		own.MaxTokens = p.maxTokens
	}
	if p.cache != "" {
		own.Cache = p.cache
	}
	if len(p.body) > 0 {
		own.Params = p.body
	}
	// A budget reserves what the answer may cost at most. A configured limit must not raise
	// it, neither here nor in the body.
	if r.Ceiling > 0 {
		own.MaxTokens = min(own.MaxTokens, r.Ceiling)
		if len(p.limited) > 0 {
			own.Params = p.limited
		}
	}
	return &own
}

// withParams is a provider whose requests have the configured fields.
type withParams struct {
	llm.Provider
	p *params
}

// Stream implements llm.Provider.
func (s withParams) Stream(ctx context.Context, r *llm.Request) iter.Seq2[llm.Event, error] {
	return s.Provider.Stream(ctx, s.p.apply(r))
}
