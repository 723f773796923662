package standard_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/internal/reach"
	"github.com/chela-ai/chela/internal/standard"
	"github.com/chela-ai/chela/internal/tool"
	"github.com/chela-ai/chela/internal/tool/exec"
	"github.com/chela-ai/chela/internal/tool/web"
)

func TestProvider(t *testing.T) {
	for _, api := range []string{standard.Anthropic, standard.OpenAI, standard.Offline} {
		p, err := standard.Provider(standard.ProviderConfig{
			Name: "p", API: api, BaseURL: "http://127.0.0.1:1", Model: func(id string) llm.Model { return llm.Model{ID: id} },
		})
		if err != nil || p == nil {
			t.Errorf("%s: %v %v", api, p, err)
		}
	}
	_, err := standard.Provider(standard.ProviderConfig{Name: "p", API: "smoke"})
	if err == nil || !strings.Contains(err.Error(), `provider p: api "smoke"`) || !strings.Contains(err.Error(), standard.Anthropic) {
		t.Errorf("error %v", err)
	}
}

func TestTools(t *testing.T) {
	c := standard.ToolConfig{Exec: exec.Options{Commands: exec.NewCommands(exec.CommandOptions{})}, Fetch: &web.FetchOptions{}, Search: &web.SearchOptions{}}
	tools, err := standard.Tools(c)
	if err != nil {
		t.Fatal(err)
	}
	tools = append(tools, standard.Reaching(c, reach.Rule{})...)
	set := tool.NewSet(tools...)
	want := []string{"apply_patch", "edit", "exec", "find", "grep", "ls", "process", "read", "session_status", "web_fetch", "web_search", "write"}
	got := slices.Sorted(slices.Values(set.Names()))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tools: %s", diff)
	}
	for _, x := range tools {
		s := x.Spec()
		var schema struct {
			Type       string                     `json:"type"`
			Properties map[string]json.RawMessage `json:"properties"`
		}
		if err := json.Unmarshal(s.Schema, &schema); err != nil || schema.Type != "object" {
			t.Errorf("%s: schema of type %q: %v", s.Name, schema.Type, err)
		}
		for alias, name := range s.Aliases {
			if schema.Properties[name] == nil || schema.Properties[alias] != nil {
				t.Errorf("%s: alias %s of %s", s.Name, alias, name)
			}
		}
		if s.Label == "" || len(s.Description) < 20 {
			t.Errorf("%s: label %q, description %q", s.Name, s.Label, s.Description)
		}
		if s.Parallel && s.Effect != tool.Reads {
			t.Errorf("%s overlaps with others and %s", s.Name, s.Effect)
		}
	}
	if _, err := standard.Tools(standard.ToolConfig{Search: &web.SearchOptions{Provider: "altavista"}}); err == nil {
		t.Error("a search service that there is not was taken")
	}
	if tools, err := standard.Tools(standard.ToolConfig{}); err != nil || len(tools) != 2 {
		t.Errorf("%d tools without the web and the background, %v", len(tools), err)
	}
	if _, err := standard.Tools(standard.ToolConfig{Exec: exec.Options{DangerousPatterns: []string{"("}}}); err == nil {
		t.Error("a pattern that is none was taken")
	}
}
