package model

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/llm"
)

const (
	probeTime     = 300 * time.Millisecond // for all servers of this machine together
	probeInterval = 30 * time.Second       // minimum time between probes
	minContext    = 16_000                 // tokens of a model that can be the default
	maxProbed     = 32                     // models of a server whose abilities are requested
)

// Probe looks for model servers on the usual ports of this machine, or at their
// configured addresses, and adds their models to the catalog. It returns the model
// that can be the default: the first that takes tools and has a sufficient context.
// A closed port costs no time. A recent result is not requested again.
func (m *Set) Probe(ctx context.Context) (llm.Ref, bool) {
	m.probe.Lock()
	defer m.probe.Unlock()
	if m.o.NoProbe || time.Since(m.probed) < probeInterval {
		return m.usable, m.usable.Model != ""
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	found := make([][]found, len(locals))
	var wg sync.WaitGroup
	for i := range locals {
		wg.Go(func() { found[i] = m.ask(ctx, locals[i]) })
	}
	wg.Wait()
	m.usable, m.probed = llm.Ref{}, time.Now()
	var models []llm.Model
	for _, some := range found {
		for _, f := range some {
			models = append(models, f.model)
			if m.usable.Model == "" && f.usable() {
				m.usable = llm.Ref{Provider: f.model.Provider, Model: f.model.ID}
			}
		}
	}
	m.take(models)
	return m.usable, m.usable.Model != ""
}

// take replaces the models in the catalog that were found on this machine. They are at the end of
// the catalog, so that they can be cut off again.
func (m *Set) take(models []llm.Model) {
	m.mu.Lock()
	defer m.mu.Unlock()
	old := m.Catalog()
	known := llm.Catalog{Aliases: old.Aliases, Closed: old.Closed, Providers: old.Providers,
		Models: slices.Clone(old.Models[:len(old.Models)-m.found])}
	m.found = 0
	for _, info := range models {
		if _, listed := known.Lookup(info.Ref()); !listed {
			info.Compat = over(m.compat[info.Provider], info.Compat)
			known.Models = append(known.Models, info)
			m.found++
		}
	}
	m.catalog.Store(&known)
	m.resolved.Clear() // more may be known about a model now
}

// over returns the configured abilities, completed by those that a server reports.
func over(configured, said llm.Compat) llm.Compat {
	if configured.SupportsTools == nil {
		configured.SupportsTools = said.SupportsTools
	}
	return configured
}

// found is a model of a server on this machine.
type found struct {
	model llm.Model
	other bool // it is no chat model: it embeds texts, for example
}

func (f *found) usable() bool {
	return !f.other && f.model.Compat.Tools() && (f.model.Context == 0 || f.model.Context >= minContext)
}

// ask returns the models of a server; none when there is no server.
func (m *Set) ask(ctx context.Context, l service) []found {
	base := l.url
	if own := m.o.Providers[l.id].BaseURL; own != "" {
		base = strings.TrimRight(own, "/")
	}
	var list struct {
		Data []struct {
			ID     string `json:"id"`
			Length int    `json:"max_model_len"` // vLLM
			Meta   struct {
				Length  int `json:"n_ctx"` // llama.cpp
				Trained int `json:"n_ctx_train"`
			} `json:"meta"`
		} `json:"data"`
	}
	if !m.get(ctx, l.id, base+"/models", nil, &list) {
		return nil
	}
	var all []found
	for _, d := range list.Data {
		if d.ID == "" {
			continue
		}
		f := found{model: llm.Model{
			Provider: l.id,
			ID:       d.ID,
			Name:     d.ID,
			Context:  max(d.Length, d.Meta.Length),
			Price:    &llm.Price{},
		}}
		if f.model.Context == 0 {
			f.model.Context = d.Meta.Trained
		}
		f.other = slices.ContainsFunc([]string{"embed", "rerank", "whisper"},
			func(w string) bool { return strings.Contains(strings.ToLower(d.ID), w) })
		all = append(all, f)
	}
	root := strings.TrimSuffix(base, "/v1")
	switch l.id {
	case "ollama":
		m.askOllama(ctx, root, all[:min(len(all), maxProbed)])
	case "lmstudio":
		m.askLMStudio(ctx, root, all)
	}
	return slices.DeleteFunc(all, func(f found) bool { return f.other })
}

// get sends a request to a server on this machine and reports whether the response
// was JSON.
func (m *Set) get(ctx context.Context, id, url string, body []byte, into any) bool {
	method := http.MethodGet
	if body != nil {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return false
	}
	if k := m.first(id); !k.value.IsZero() {
		req.Header.Set("Authorization", "Bearer "+k.value.Reveal())
	}
	res, err := m.o.HTTP.Do(req)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	err = json.NewDecoder(http.MaxBytesReader(nil, res.Body, 1<<20)).Decode(into)
	return err == nil && res.StatusCode == http.StatusOK
}

// ollamaWindow is the largest context window that is asked for of a model whose window is
// not configured, in tokens. The server takes memory for all of it.
const ollamaWindow = 32 << 10

// askOllama requests the abilities of each model. Models without a response remain
// unchanged.
func (m *Set) askOllama(ctx context.Context, root string, models []found) {
	var wg sync.WaitGroup
	for i := range models {
		wg.Go(func() {
			var said struct {
				Abilities []string       `json:"capabilities"`
				Info      map[string]any `json:"model_info"`
			}
			body, err := json.Marshal(map[string]string{"model": models[i].model.ID})
			if err != nil || !m.get(ctx, "ollama", root+"/api/show", body, &said) {
				return
			}
			models[i].can(said.Abilities, "completion")
			for name, v := range said.Info {
				if n, ok := v.(float64); ok && strings.HasSuffix(name, ".context_length") {
					models[i].model.Context = min(int(n), ollamaWindow)
				}
			}
		})
	}
	wg.Wait()
}

// askLMStudio requests the kinds and abilities of the models.
func (m *Set) askLMStudio(ctx context.Context, root string, models []found) {
	var list struct {
		Data []struct {
			ID        string   `json:"id"`
			Kind      string   `json:"type"` // llm, vlm, embeddings
			Most      int      `json:"max_context_length"`
			Loaded    int      `json:"loaded_context_length"`
			Abilities []string `json:"capabilities"`
		} `json:"data"`
	}
	if !m.get(ctx, "lmstudio", root+"/api/v0/models", nil, &list) {
		return
	}
	for _, d := range list.Data {
		i := slices.IndexFunc(models, func(f found) bool { return f.model.ID == d.ID })
		if i < 0 {
			continue
		}
		f := &models[i]
		f.other = d.Kind != "llm" && d.Kind != "vlm"
		f.model.Images = d.Kind == "vlm"
		if f.model.Context = d.Loaded; d.Loaded == 0 {
			f.model.Context = d.Most
		}
		if d.Abilities != nil {
			f.can(d.Abilities, "")
		}
	}
}

// can records the abilities of a model. One that lacks the ability must is no chat
// model.
func (f *found) can(abilities []string, must string) {
	if abilities == nil {
		return
	}
	has := func(names ...string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return slices.Contains(abilities, n) })
	}
	f.other = f.other || must != "" && !has(must)
	tools := has("tools", "tool_use")
	f.model.Compat.SupportsTools = &tools
	f.model.Images = f.model.Images || has("vision")
	if has("thinking") {
		f.model.Levels = []llm.Level{llm.Low, llm.Medium, llm.High}
	}
}
