package standard_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/app/standard"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/plugin/llm/dialect"
	"github.com/chela-ai/chela/internal/plugin/tool/exec"
)

func TestProvider(t *testing.T) {
	r := standard.New()
	for _, api := range []string{standard.Anthropic, standard.OpenAI, standard.Offline} {
		p, err := r.NewProvider(api, dialect.Options{
			Name: "p", BaseURL: "http://127.0.0.1:1", Model: func(id string) llm.Model { return llm.Model{ID: id} },
		})
		if err != nil || p == nil {
			t.Errorf("%s: %v %v", api, p, err)
		}
	}
	_, err := r.NewProvider("smoke", dialect.Options{Name: "p"})
	if err == nil || !strings.Contains(err.Error(), `provider p: api "smoke"`) ||
		!strings.Contains(err.Error(), standard.Anthropic) {
		t.Errorf("error %v", err)
	}
}

func TestDuplicate(t *testing.T) {
	defer func() {
		if p := recover(); p == nil || !strings.Contains(fmt.Sprint(p), `"exec"`) {
			t.Errorf("a second tool with the name exec: panic %v", p)
		}
	}()
	standard.New().Tool("exec", "", nil)
}

// conf is a configuration by sections.
type conf map[string]string

func (c conf) Section(path string) json.RawMessage {
	if s, ok := c[path]; ok {
		return json.RawMessage(s)
	}
	return nil
}

func TestTools(t *testing.T) {
	r := standard.New()
	env := environ(t, r)
	set := made(t, r, env)
	want := []string{"apply_patch", "edit", "exec", "find", "grep", "ls", "process", "read", "session_status",
		"web_fetch", "web_search", "write"}
	got := slices.Sorted(slices.Values(set.Names()))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tools: %s", diff)
	}
	for _, s := range set.Specs() {
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
	with := func(commands *exec.Commands, c conf) (int, error) {
		env.Commands.Commands = commands
		tools, err := r.NewTools(env, c.Section)
		return len(tool.NewSet(tools...).Names()), err
	}
	if _, err := with(nil, conf{"tools.web.search": `{"provider": "altavista"}`}); err == nil ||
		!strings.HasPrefix(err.Error(), "configuration, tools.web.search: ") {
		t.Errorf("an unknown search service: error %v", err)
	}
	if n, err := with(nil, conf{"tools.web.fetch": `{"enabled": false}`, "tools.web.search": `{"enabled": false}`}); err !=
		nil || n != 2 {
		t.Errorf("%d tools without the web and the background, %v", n, err)
	}
	if _, err := with(nil, conf{"tools.exec": `{"dangerousPatterns": ["("]}`}); err == nil ||
		!strings.HasPrefix(err.Error(), "configuration, tools.exec: ") {
		t.Errorf("an invalid pattern: error %v", err)
	}
	if _, err := with(nil, conf{"tools.exec": `{"dangerousPatterns": "rm"}`}); err == nil ||
		!strings.Contains(err.Error(), "dangerousPatterns") {
		t.Errorf("a pattern that is no list: error %v", err)
	}
}
