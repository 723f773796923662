//go:build conformance

package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

// schema is the published description of the protocol.
type schema struct {
	Methods     map[string]any                `json:"methods"`
	Definitions map[string]*jsonschema.Schema `json:"definitions"`

	mu       sync.Mutex
	resolved map[string]*jsonschema.Resolved
}

func newSchema(t testing.TB) *schema {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(packages(t, current()), "@openclaw", "gateway-protocol", "protocol.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	v, err := decoded(b)
	if err != nil {
		t.Fatal(err)
	}
	portable(v)
	if b, err = json.Marshal(v); err != nil {
		t.Fatal(err)
	}
	s := &schema{resolved: map[string]*jsonschema.Resolved{}}
	if err := json.Unmarshal(b, s); err != nil {
		t.Fatal(err)
	}
	s.allow()
	return s
}

// portable removes patterns that are not regular expressions in Go: the few
// with lookahead.
func portable(v any) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			portable(e)
		}
	case map[string]any:
		if p, ok := v["pattern"].(string); ok {
			if _, err := regexp.Compile(p); err != nil {
				delete(v, "pattern")
			}
		}
		for _, e := range v {
			portable(e)
		}
	}
}

// allow adds properties to definitions that allow no additional ones:
// properties that OpenClaw's gateway also sends, and its clients use.
func (s *schema) allow() {
	add := func(d *jsonschema.Schema, names ...string) {
		for _, name := range names {
			d.Properties[name] = &jsonschema.Schema{}
		}
	}
	add(s.Definitions["HelloOk"].Properties["auth"], "method")         // how a client was authenticated
	add(s.Definitions["AgentEvent"], "sessionKey", "agentId")          // location of a run
	add(s.Definitions["SkillsProposalsListResult"], "installedSkills") // on the page of the workshop
	property := func(definition, name string) *jsonschema.Schema { return s.Definitions[definition].Properties[name] }
	for _, task := range []*jsonschema.Schema{
		s.Definitions["TaskSummary"], property("TasksListResult", "tasks").Items, property("TasksGetResult", "task"),
		property("TasksCancelResult", "task"), property("TasksRecoveryResult", "results").Items.Properties["task"],
	} {
		add(task, "execution", "hasTranscript") // in lists of work in the background
	}
	for _, result := range []string{"AgentsFilesGetResult", "AgentsFilesSetResult"} { // newer than this schema
		add(property(result, "file"), "hash")
	}
	add(s.Definitions["ModelChoice"], "local") // newer than this schema; the command models list shows it
	add(property("ModelsListResult", "models").Items, "local")
}

// named returns the name of the definition for a method, as in sessions.list,
// SessionsListResult; "" if there is none.
func (s *schema) named(method, suffix string) string {
	name := named(method) + suffix
	if _, ok := s.Definitions[name]; !ok {
		return ""
	}
	return name
}

// named returns how the names of a method's definitions begin.
func named(method string) string {
	var name strings.Builder
	for _, word := range strings.FieldsFunc(method, func(r rune) bool { return r == '.' || r == '-' }) {
		name.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return name.String()
}

// Check reports how a value differs from a definition.
func (s *schema) Check(definition string, value any) error {
	r, err := s.resolve(definition)
	if err != nil {
		return err
	}
	if err := r.Validate(value); err != nil {
		return fmt.Errorf("%s: %w", definition, err)
	}
	return nil
}

// resolve returns a definition ready to use. Definitions do not refer to one
// another.
func (s *schema) resolve(definition string) (*jsonschema.Resolved, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, ok := s.resolved[definition]; ok {
		return r, nil
	}
	d, ok := s.Definitions[definition]
	if !ok {
		return nil, fmt.Errorf("the schema has no %s", definition)
	}
	d.Schema = "http://json-schema.org/draft-07/schema#"
	r, err := d.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", definition, err)
	}
	s.resolved[definition] = r
	return r, nil
}

// part assigns a definition to a path of a value: "" is the value itself,
// "sessions[]" each element of its property.
type part struct{ path, definition string }

// CheckParts reports how parts of a value differ from their definitions.
// Missing parts are ignored.
func (s *schema) CheckParts(value any, parts []part) error {
	var errs []error
	for _, p := range parts {
		for _, v := range at(value, p.path) {
			if err := s.Check(p.definition, v); err != nil {
				errs = append(errs, fmt.Errorf("at %q: %w", p.path, err))
			}
		}
	}
	return errors.Join(errs...)
}

// at returns the values at a path.
func at(value any, path string) []any {
	if path == "" {
		return []any{value}
	}
	if rest, ok := strings.CutPrefix(path, "[]"); ok {
		var found []any
		list, _ := value.([]any)
		for _, v := range list {
			found = append(found, at(v, strings.TrimPrefix(rest, "."))...)
		}
		return found
	}
	n := strings.IndexAny(path, ".[")
	if n < 0 {
		n = len(path)
	}
	object, _ := value.(map[string]any)
	v, ok := object[path[:n]]
	if !ok || v == nil {
		return nil
	}
	return at(v, strings.TrimPrefix(path[n:], "."))
}

// decoded returns JSON in the form that the schema's checker accepts.
func decoded(b []byte) (any, error) {
	var v any
	err := json.Unmarshal(b, &v)
	return v, err
}
