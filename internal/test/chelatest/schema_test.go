//go:build unix

package chelatest

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/schema"
	"github.com/chela-ai/chela/wire"
)

func TestSchemas(t *testing.T) {
	t.Parallel()
	t.Run("PROV-21 a model without tool support is sent neither tools nor a description of them", func(t *testing.T) {
		script := llmtest.NewScript(llmtest.Say("hi"))
		g := Start(t,
			Options{Model: script,
				Config: section("models", `{"providers":{"mock":{"models":[{"id":"m","compat":{"supportsTools":false}}]}}}`)})
		if end := g.Client().Ask("main", "hello"); end.Text != "hi" {
			t.Fatalf("%s %s", end.State, end.Error)
		}
		r := script.Requests()[0]
		for _, b := range r.System {
			if len(r.Tools) > 0 || strings.Contains(b.Text, "apply_patch") {
				t.Errorf("tools %v, prompt %s", r.Tools, b.Text)
			}
		}
	})
	t.Run("TOOL-13 the tools accept the argument names of other assistants", func(t *testing.T) {
		g := Start(t, Options{Model: uses()})
		c := g.Client()
		for _, tt := range []struct{ call, want string }{
			{`write {"file_path":"a.txt","text":"one two"}`, "Created"},
			{`edit {"file_path":"a.txt","old_text":"two","new_text":"three"}`, "a.txt"},
			{`read {"filePath":"a.txt"}`, "one three"},
			{`Edit {"file":"a.txt","old_string":"three","new_string":"four"}`, "a.txt"},
			{`grep {"Pattern":"four","file_path":"a.txt"}`, "one four"},
		} {
			if end := c.Ask("main", tt.call); end.State != wire.StateFinal || !strings.Contains(end.Text, tt.want) {
				t.Errorf("%s: %q %s", tt.call, end.Text, end.Error)
			}
		}
		if b, err := os.ReadFile(filepath.Join(g.Dir, "workspace", "a.txt")); err != nil || string(b) != "one four" {
			t.Errorf("the file has %q, %v", b, err)
		}
	})
	t.Run("PROV-06 every tool fits every profile", func(t *testing.T) {
		script := llmtest.NewScript(llmtest.Say("hi"))
		Start(t, Options{Model: script}).Client().Ask("main", "hello")
		specs := script.Requests()[0].Tools
		if len(specs) < 10 {
			t.Fatalf("%d tools", len(specs))
		}
		for _, profile := range schema.Profiles() {
			for _, s := range specs {
				out, err := schema.Rules{Profile: profile}.Apply(s.Schema)
				var top, was struct {
					Properties map[string]struct{ Deprecated bool }
				}
				if err != nil || json.Unmarshal(out, &top) != nil || json.Unmarshal(s.Schema, &was) != nil {
					t.Errorf("%s for %s: %s, %v", s.Name, profile, out, err)
				}
				for name, p := range was.Properties {
					if p.Deprecated { // which models are not shown
						delete(was.Properties, name)
					}
				}
				if !slices.Equal(slices.Sorted(maps.Keys(top.Properties)), slices.Sorted(maps.Keys(was.Properties))) {
					t.Errorf("%s for %s: %s, %v", s.Name, profile, out, err)
				}
			}
		}
	})
}
