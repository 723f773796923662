package invoke

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/kit/needtest"
)

// suiteDir returns the directory of the JSON Schema test suite for 2020-12 in the
// module of the validator.
func suiteDir(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/google/jsonschema-go").Output()
	dir := filepath.Join(strings.TrimSpace(string(out)), "jsonschema", "testdata", "draft2020-12")
	if err != nil || strings.TrimSpace(string(out)) == "" {
		needtest.Missing(t, "the module github.com/google/jsonschema-go in the module cache")
	}
	return dir
}

// TestSuite runs the test suite of JSON Schema. Groups that refer to other
// documents are skipped: nothing is fetched, and a tool with such a schema is not
// available to models.
func TestSuite(t *testing.T) {
	t.Parallel()
	dir := suiteDir(t)
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) < 40 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	passed, remote := 0, 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var groups []struct {
			Description string
			Schema      json.RawMessage
			Tests       []struct {
				Description string
				Data        any
				Valid       bool
			}
		}
		if err := json.Unmarshal(data, &groups); err != nil {
			t.Fatal(err)
		}
		for _, g := range groups {
			name := strings.TrimSuffix(filepath.Base(file), ".json") + ": " + g.Description
			if s := string(g.Schema); s == "true" || s == "false" {
				g.Schema = json.RawMessage(`{"allOf":[` + s + `]}`) // the schema of a tool is an object
			}
			a := newArguments(g.Schema)
			a.prepare()
			if a.err != nil {
				if remote++; !strings.Contains(a.err.Error(), "cannot resolve remote schemas") {
					t.Errorf("%s: %v", name, a.err)
				}
				continue
			}
			for _, tt := range g.Tests {
				if err := a.check(tt.Data); (err == nil) != tt.Valid {
					t.Errorf("%s: %s: %v, want valid %v", name, tt.Description, err, tt.Valid)
					continue
				}
				passed++
			}
		}
	}
	if passed < 1000 || remote > 22 {
		t.Errorf("%d tests passed, want at least 1000; %d groups refer to other documents, want at most 22", passed, remote)
	}
}

// FuzzValidate looks for schemas and arguments that crash the validator, or that
// lead to very long errors.
func FuzzValidate(f *testing.F) {
	for _, s := range [][2]string{
		{`{"type":"object","properties":{"a":{"type":"string","minLength":1},"b":{"type":"array","items":{"type":"integer","maximum":3}}},"required":["a"],"additionalProperties":false}`, `{"a":"","b":[1,5,"x"],"c":null}`},
		{`{"a":{"type":"string"},"b":{"type":"integer","required":false}}`, `{"b":"5"}`},
		{`{"$ref":"#"}`, `{}`},
		{`{"properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"anyOf":[{"properties":{"x":{"$ref":"#/$defs/a"}}},{"$dynamicRef":"#b"}],"$dynamicAnchor":"b"}}}`, `{"a":{"x":{"x":{}}}}`},
		{`{"$schema":"http://json-schema.org/draft-04/schema#","definitions":{"a":{}},"dependencies":{"a":["b"],"c":{"not":{}}},"items":[{}]}`, `{"a":1,"c":[]}`},
		{`{"patternProperties":{"(?=x)":false,"^y":{"pattern":"(?!a)"}},"unevaluatedProperties":false,"not":{"pattern":"(?=)"}}`, `{"y":"a"}`},
		{`{"properties":{"a":{"const":null,"enum":[{},[]],"multipleOf":0.1,"uniqueItems":true}},"propertyNames":{"maxLength":1}}`, `{"a":[{},{}],"bb":1e400}`},
	} {
		f.Add([]byte(s[0]), []byte(s[1]))
	}
	f.Fuzz(func(t *testing.T, definition, args []byte) {
		a := newArguments(definition)
		if a.prepare(); a.err != nil {
			if a.plain {
				t.Fatalf("%s is plain but cannot be used: %v", definition, a.err)
			}
			return
		}
		if !json.Valid(a.text) {
			t.Fatalf("%s became %s", definition, a.text)
		}
		err := a.validate(args)
		if err != nil && (err.Error() == "" || len(err.Error()) > 100_000+10*len(definition)+10*len(args)) {
			t.Fatalf("an error of %d bytes for %s with %s", len(err.Error()), definition, args)
		}
		_, _, _ = a.repair(llm.ToolCall{Args: args}, nil)
		_, _, _ = a.repair(llm.ToolCall{Raw: string(args)}, map[string]string{"x": "a"})
	})
}
