// Package tooltest contains the conformance suite for implementations of
// tool.Tool.
package tooltest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/jsonschema-go/jsonschema"
	"go.uber.org/goleak"

	"github.com/chela-ai/chela/internal/core/schema"
	"github.com/chela-ai/chela/internal/core/tool"
)

// Options configures the suite for one tool.
type Options struct {
	// Args are the arguments of calls that succeed in a workspace prepared by
	// Setup. At least one is required.
	Args []string
	// Setup prepares a workspace; nil: it stays empty.
	Setup func(t *testing.T, dir string)
}

// Run runs the suite on a tool. The test must not run in parallel with others:
// a goroutine that is still running after a call is counted as a leak of that
// call.
func Run(t *testing.T, tl tool.Tool, o Options) {
	if len(o.Args) == 0 {
		t.Fatal("tooltest: Options.Args is empty")
	}
	s := suite{tl, o}
	t.Run("spec", s.spec)
	t.Run("schema accepts the calls", s.schema)
	for _, args := range o.Args {
		t.Run("call "+args, func(t *testing.T) {
			t.Run("returns a result", func(t *testing.T) { s.result(t, args) })
			t.Run("honors a cancelled context", func(t *testing.T) { s.cancelled(t, args) })
			t.Run("plans without side effects, twice the same", func(t *testing.T) { s.plan(t, args) })
			t.Run("runs in parallel", func(t *testing.T) { s.parallel(t, args) })
			t.Run("has its effect once per call id", func(t *testing.T) { s.keyed(t, args) })
		})
	}
	t.Run("malformed arguments are an error", s.malformed)
}

type suite struct {
	tool tool.Tool
	Options
}

// call returns a call of the tool in a new workspace.
func (s suite) call(t *testing.T, args string) tool.Call {
	dir := t.TempDir()
	if s.Setup != nil {
		s.Setup(t, dir)
	}
	return tool.Call{
		ID: "call-1", Args: json.RawMessage(args), Agent: "main", Session: "agent:main:main", Run: "run-1",
		Dir: dir, Update: func(string) {},
	}
}

// planned returns the call with the plan of a Planner, and its effect.
func (s suite) planned(t *testing.T, c tool.Call) (tool.Call, tool.Effect) {
	t.Helper()
	p, ok := s.tool.(tool.Planner)
	if !ok {
		return c, s.tool.Spec().Effect
	}
	plan, err := p.Plan(t.Context(), c)
	if err != nil {
		t.Fatalf("Plan: %v", err)
	}
	if plan.Deny != "" {
		t.Fatalf("Plan: denied: %s", plan.Deny)
	}
	c.Plan = &plan
	return c, plan.Effect
}

func (s suite) spec(t *testing.T) {
	sp := s.tool.Spec()
	if !regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`).MatchString(sp.Name) {
		t.Errorf("name %q is not lower case", sp.Name)
	}
	if sp.Label == "" || strings.TrimSpace(sp.Description) == "" {
		t.Error("label or description missing")
	}
	if sp.Effect < tool.Reads || sp.Effect > tool.Acts {
		t.Errorf("unknown effect %d", sp.Effect)
	}
	again := s.tool.Spec()
	if (sp.Title == nil) != (again.Title == nil) {
		t.Error("Spec has a Title only sometimes")
	}
	if diff := cmp.Diff(sp, again, cmpopts.IgnoreFields(tool.Spec{}, "Title")); diff != "" {
		t.Errorf("Spec returns different values: %s", diff)
	}
	props := s.properties(t)
	spelt := map[string]string{}
	for _, name := range slices.Concat(slices.Sorted(maps.Keys(props)), slices.Sorted(maps.Keys(sp.Aliases))) {
		if other, ok := spelt[schema.Fold(name)]; ok && props[name] == nil {
			t.Errorf("alias %s differs from %s only in spelling, which the executor accepts without an alias", name, other)
		}
		spelt[schema.Fold(name)] = name
	}
	for alias, target := range sp.Aliases {
		if _, ok := props[target]; !ok {
			t.Errorf("alias %s: the schema has no argument %s", alias, target)
		}
		if _, ok := props[alias]; ok {
			t.Errorf("alias %s is also an argument", alias)
		}
	}
}

// properties returns the properties of the schema.
func (s suite) properties(t *testing.T) map[string]*jsonschema.Schema {
	t.Helper()
	var js jsonschema.Schema
	if err := json.Unmarshal(s.tool.Spec().Schema, &js); err != nil {
		t.Fatalf("schema: %v", err)
	}
	if js.Type != "object" {
		t.Fatalf("schema: type %q, want object", js.Type)
	}
	for _, name := range js.Required {
		if js.Properties[name] == nil {
			t.Errorf("schema: the required argument %s is not defined", name)
		}
	}
	return js.Properties
}

func (s suite) schema(t *testing.T) {
	var js jsonschema.Schema
	if err := json.Unmarshal(s.tool.Spec().Schema, &js); err != nil {
		t.Fatalf("schema: %v", err)
	}
	r, err := js.Resolve(nil)
	if err != nil {
		t.Fatalf("schema: %v", err)
	}
	for _, args := range s.Args {
		var v any
		if err := json.Unmarshal([]byte(args), &v); err != nil {
			t.Fatalf("%s: %v", args, err)
		}
		if err := r.Validate(v); err != nil {
			t.Errorf("%s: %v", args, err)
		}
	}
}

func (s suite) result(t *testing.T, args string) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	c, effect := s.planned(t, s.call(t, args))
	before := Tree(t, c.Dir)
	r, err := s.tool.Run(t.Context(), c)
	if err != nil {
		t.Fatalf("Run: %v", err)
	}
	check(t, r)
	if effect == tool.Reads {
		if diff := cmp.Diff(before, Tree(t, c.Dir)); diff != "" {
			t.Errorf("a call with effect reads changed the workspace: %s", diff)
		}
	}
}

// check validates a result.
func check(t *testing.T, r tool.Result) {
	t.Helper()
	if len(r.Content) == 0 {
		t.Error("the result has no content")
	}
	for _, p := range r.Content {
		if p.Text == "" && len(p.Data) == 0 {
			t.Error("the result has an empty part")
		}
		if !utf8.ValidString(p.Text) || strings.ContainsRune(p.Text, 0) {
			t.Errorf("text is not valid UTF-8 or contains NUL: %q", p.Text)
		}
	}
	if r.Details != nil && !json.Valid(r.Details) {
		t.Errorf("details are not JSON: %s", r.Details)
	}
}

func (s suite) cancelled(t *testing.T, args string) {
	c, _ := s.planned(t, s.call(t, args))
	before := Tree(t, c.Dir)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.tool.Run(ctx, c); !errors.Is(err, context.Canceled) {
		t.Errorf("Run: %v, want context.Canceled", err)
	}
	if diff := cmp.Diff(before, Tree(t, c.Dir)); diff != "" {
		t.Errorf("the call changed the workspace: %s", diff)
	}
}

func (s suite) plan(t *testing.T, args string) {
	p, ok := s.tool.(tool.Planner)
	if !ok {
		t.Skip("not a Planner")
	}
	c := s.call(t, args)
	before := Tree(t, c.Dir)
	one, err := p.Plan(t.Context(), c)
	if err != nil {
		t.Fatalf("Plan: %v", err)
	}
	two, err := p.Plan(t.Context(), c)
	if err != nil {
		t.Fatalf("Plan again: %v", err)
	}
	if one.Hash == "" || one.Text == "" {
		t.Errorf("hash or text missing: %+v", one)
	}
	if one.Ask && one.Reason == "" {
		t.Error("the plan asks without a reason")
	}
	one.Value, two.Value = nil, nil
	if diff := cmp.Diff(one, two); diff != "" {
		t.Errorf("two plans of one call differ: %s", diff)
	}
	if diff := cmp.Diff(before, Tree(t, c.Dir)); diff != "" {
		t.Errorf("Plan changed the workspace: %s", diff)
	}
}

func (s suite) parallel(t *testing.T, args string) {
	if !s.tool.Spec().Parallel {
		t.Skip("not parallel")
	}
	c, _ := s.planned(t, s.call(t, args))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := s.tool.Run(t.Context(), c); err != nil {
				t.Errorf("Run: %v", err)
			}
		})
	}
	wg.Wait()
}

func (s suite) keyed(t *testing.T, args string) {
	if !s.tool.Spec().Keyed {
		t.Skip("not keyed")
	}
	c, _ := s.planned(t, s.call(t, args))
	one, err := s.tool.Run(t.Context(), c)
	if err != nil {
		t.Fatalf("Run: %v", err)
	}
	before := Tree(t, c.Dir)
	two, err := s.tool.Run(t.Context(), c)
	if err != nil {
		t.Fatalf("second Run: %v", err)
	}
	if diff := cmp.Diff(one, two); diff != "" {
		t.Errorf("two runs with one call id return different results: %s", diff)
	}
	if diff := cmp.Diff(before, Tree(t, c.Dir)); diff != "" {
		t.Errorf("the second run changed the workspace: %s", diff)
	}
}

func (s suite) malformed(t *testing.T) {
	for _, args := range []string{"", "[]", `"x"`, `{"`} {
		c := s.call(t, args)
		if p, ok := s.tool.(tool.Planner); ok {
			if _, err := p.Plan(t.Context(), c); err == nil {
				t.Errorf("Plan of %q: no error", args)
			}
			continue
		}
		if _, err := s.tool.Run(t.Context(), c); err == nil {
			t.Errorf("Run of %q: no error", args)
		}
	}
}

// Tree returns the contents of a directory: the mode and content hash of each
// path in it.
func Tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	m := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		m[rel] = info.Mode().String()
		if info.Mode().IsRegular() {
			m[rel] += fmt.Sprint(" ", hash(path))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func hash(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return err.Error()
	}
	return hex.EncodeToString(h.Sum(nil))
}
