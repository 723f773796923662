package invoke_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/approval"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/hook"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/policy"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/core/usage"
	"github.com/chela-ai/chela/internal/engine/invoke"
	"github.com/chela-ai/chela/internal/kit/secret"
)

// fake is a tool that consists of a spec and a function. It records its arguments.
type fake struct {
	spec tool.Spec
	run  func(context.Context, tool.Call) (tool.Result, error)

	mu   sync.Mutex
	args []string
}

func (f *fake) Spec() tool.Spec { return f.spec }

func (f *fake) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	f.mu.Lock()
	f.args = append(f.args, string(c.Args))
	f.mu.Unlock()
	if f.run == nil {
		return tool.Text("ok"), nil
	}
	return f.run(ctx, c)
}

const schema = `{
	"type": "object",
	"properties": {
		"path": {"type": "string"},
		"limit": {"type": "integer"},
		"deep": {"type": "boolean"},
		"mode": {"enum": ["a", "b"]},
		"options": {"type": "object", "properties": {"n": {"type": "number"}}},
		"list": {"type": "array", "items": {"type": "integer"}}
	},
	"required": ["path"],
	"additionalProperties": false
}`

// read returns a tool with the schema above.
func read() *fake {
	return &fake{spec: tool.Spec{Name: "read", Schema: json.RawMessage(schema),
		Aliases: map[string]string{"file_path": "path"}, Parallel: true}}
}

// open returns a tool that accepts any arguments.
func open(name string, run func(context.Context, tool.Call) (tool.Result, error)) *fake {
	return &fake{spec: tool.Spec{Name: name}, run: run}
}

func scope(tools ...tool.Tool) invoke.Scope {
	return invoke.Scope{
		Agent: "main", Session: "agent:main:main", Run: "r", Principal: chela.Owner("process"), Tools: tool.NewSet(tools...),
	}
}

func call(name, args string) llm.ToolCall {
	return llm.ToolCall{ID: "c1", Name: name, Args: json.RawMessage(args)}
}

// do executes one call.
func do(t *testing.T, v *invoke.View, c llm.ToolCall) tool.Result {
	t.Helper()
	res, err := v.Invoke(t.Context(), c, nil)
	if err != nil {
		t.Fatalf("%s %s: %v", c.Name, c.Args, err)
	}
	return res
}

func text(r tool.Result) string {
	var b strings.Builder
	for _, p := range r.Content {
		b.WriteString(p.Text)
	}
	return b.String()
}

// failed checks that r is an error result that contains all the words.
func failed(t *testing.T, r tool.Result, words ...string) {
	t.Helper()
	var e struct{ Status, Tool, Error string }
	if err := json.Unmarshal([]byte(text(r)), &e); err != nil || e.Status != "error" || !r.IsError {
		t.Errorf("not an error result: %q", text(r))
	}
	for _, w := range words {
		if !strings.Contains(e.Error, w) {
			t.Errorf("%q does not contain %q", e.Error, w)
		}
	}
}

func TestLookup(t *testing.T) {
	t.Parallel()
	owner := &fake{spec: tool.Spec{Name: "gateway", OwnerOnly: true, Effect: tool.Acts}}
	x := invoke.New(invoke.Options{})

	t.Run("TC-11 TOOL-08 an unknown tool names the nearest", func(t *testing.T) {
		v := x.For(scope(read(), open("write_file", nil)))
		failed(t, do(t, v, call("red", "{}")), `"red"`, "did you mean read")
		failed(t, do(t, v, call("nope", "{}")), "the tools are read, write_file")
	})
	t.Run("an ambiguous name is refused", func(t *testing.T) {
		failed(t, do(t, x.For(scope(open("a_b", nil), open("ab", nil))), call("A-B", "{}")), "there is no tool")
	})
	t.Run("a name is found in another case and with dashes", func(t *testing.T) {
		f := open("write_file", nil)
		do(t, x.For(scope(f)), call("Write-File", "{}"))
		if len(f.args) != 1 {
			t.Error("not run")
		}
	})
	t.Run("TOOL-09 a tool for the owner is neither listed nor run for others", func(t *testing.T) {
		s := scope(owner, read())
		s.Principal = chela.Principal{ID: "telegram:1:2", Scopes: []chela.Scope{chela.ScopeWrite}}
		v := x.For(s)
		if specs := v.Specs(false); len(specs) != 1 || specs[0].Name != "read" {
			t.Errorf("listed %v", specs)
		}
		failed(t, do(t, v, call("gateway", "{}")), "only the owner")
		if len(owner.args) != 0 {
			t.Error("the tool was run")
		}
		if len(x.For(scope(owner, read())).Specs(false)) != 2 {
			t.Error("not listed for the owner")
		}
	})
	t.Run("no tool is available without a principal", func(t *testing.T) {
		f := read()
		s := scope(f)
		s.Principal = chela.Principal{}
		v := x.For(s)
		failed(t, do(t, v, call("read", `{"path":"a"}`)), "no principal")
		if len(f.args) != 0 || len(v.Specs(false)) != 0 {
			t.Errorf("ran %v, listed %v", f.args, v.Specs(false))
		}
	})
	t.Run("read-only lists contain only tools that read", func(t *testing.T) {
		if specs := x.For(scope(owner, read())).Specs(true); len(specs) != 1 || specs[0].Name != "read" {
			t.Errorf("listed %v", specs)
		}
	})
	t.Run("TC-10 SEED-01 filtering does not change the original set", func(t *testing.T) {
		s := tool.NewSet(open("a", nil), open("b", nil), open("c", nil))
		if got := s.Filter(func(sp tool.Spec) bool { return sp.Name != "b" }).Names(); !slices.Equal(got,
			[]string{"a", "c"}) {
			t.Errorf("new set: %v", got)
		}
		if got := s.Names(); !slices.Equal(got, []string{"a", "b", "c"}) {
			t.Errorf("old set: %v", got)
		}
	})
	t.Run("TOOL-11 the spec says whether calls may overlap", func(t *testing.T) {
		v := x.For(scope(read(), open("write", nil)))
		if !v.Parallel(call("read", "{}")) || v.Parallel(call("write", "{}")) || v.Parallel(call("none", "{}")) {
			t.Error("Parallel is wrong")
		}
	})
}

func TestArguments(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, args, want string }{
		{"unchanged", `{"path": "a", "limit": 5}`, `{"path": "a", "limit": 5}`},
		{"a number as a string", `{"path":"a","limit":"5"}`, `{"limit":5,"path":"a"}`},
		{"an integer with a decimal point", `{"path":"a","limit":5.0}`, `{"limit":5,"path":"a"}`},
		{"an integer with an exponent, as a string", `{"path":"a","limit":"2e3"}`, `{"limit":2000,"path":"a"}`},
		{"a boolean as a string", `{"path":"a","deep":"True"}`, `{"deep":true,"path":"a"}`},
		{"a number for a string", `{"path":12345678901234567890}`, `{"path":"12345678901234567890"}`},
		{"an alias", `{"file_path":"a"}`, `{"path":"a"}`},
		{"an alias in another case", `{"filePath":"a"}`, `{"path":"a"}`},
		{"a name in another case", `{"Path":"a","LIMIT":1}`, `{"limit":1,"path":"a"}`},
		{"an object as a string", `{"path":"a","options":"{\"n\":\"1.5\"}"}`, `{"options":{"n":1.5},"path":"a"}`},
		{"an array as a string", `{"path":"a","list":"[1,2]"}`, `{"list":[1,2],"path":"a"}`},
		{"numbers in an array as strings", `{"path":"a","list":["1",2]}`, `{"list":[1,2],"path":"a"}`},
		{"null for an optional field", `{"path":"a","limit":null}`, `{"path":"a"}`},
		{"all arguments as a string", `"{\"path\":\"a\"}"`, `{"path":"a"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := read()
			r := do(t, invoke.New(invoke.Options{}).For(scope(f)), call("read", c.args))
			if r.IsError || !slices.Equal(f.args, []string{c.want}) {
				t.Errorf("%s: run with %q; %s", c.args, f.args, text(r))
			}
		})
	}
	for _, c := range []struct{ name, raw, want string }{
		{"a code fence", "```json\n{\"path\": \"a\"}\n```", `{"path":"a"}`},
		{"a trailing comma", `{"path":"a",}`, `{"path":"a"}`},
		{"an unclosed object", `{"path":"a","options":{"n":1}`, `{"options":{"n":1},"path":"a"}`},
		{"an unclosed object after a comma", `{"path":"a","list":[1,2],`, `{"list":[1,2],"path":"a"}`},
		{"an unclosed array", `{"path":"a","list":[1,2,`, `{"list":[1,2],"path":"a"}`},
		{"line breaks in a string", "{\"path\":\"a\nb\"}", `{"path":"a\nb"}`},
		{"brackets in a string", "{\"path\":\"[{a\",", `{"path":"[{a"}`},
		{"single quotes", `{'path': 'a'}`, `{"path":"a"}`},
		{"an empty object in front", `{}{"path":"a"}`, `{"path":"a"}`},
	} {
		t.Run("repair "+c.name, func(t *testing.T) {
			f := read()
			r := do(t, invoke.New(invoke.Options{}).For(scope(f)),
				llm.ToolCall{Name: "read", Args: json.RawMessage("{}"), Raw: c.raw})
			if r.IsError || !slices.Equal(f.args, []string{c.want}) {
				t.Errorf("%s: run with %q; %s", c.raw, f.args, text(r))
			}
		})
	}
	for raw, word := range map[string]string{
		`{"path":"a`:             "cut off",
		`{"path":"a,`:            "cut off",
		`{"path":"a}`:            "cut off",
		`{"path":`:               "cut off",
		`{"path":"a","limit":12`: "cut off",
		`{"path":"a","deep":tr`:  "cut off",
		`path=a`:                 "not JSON",
		`{"path":"a"]`:           "not JSON",
	} {
		t.Run("refuse "+raw, func(t *testing.T) {
			f := read()
			failed(t, do(t, invoke.New(invoke.Options{}).For(scope(f)), llm.ToolCall{Name: "read", Args: json.RawMessage("{}"),
				Raw: raw}), "arguments", word)
			if len(f.args) != 0 {
				t.Errorf("run with %q", f.args)
			}
		})
	}
	t.Run("fields without a mistake are not named", func(t *testing.T) {
		r := do(t, invoke.New(invoke.Options{}).For(scope(read())),
			call("read", `{"path":"a","mode":"a","list":[1],"limit":"many"}`))
		if failed(t, r, `"limit" is string`); strings.Contains(text(r), `\"mode\" is`) ||
			strings.Contains(text(r), `\"list\" is`) {
			t.Errorf("got %s", text(r))
		}
	})
	for _, c := range []struct {
		args  string
		words []string
	}{
		{`{}`, []string{`"path" is missing (string)`, "path (string, required)", "limit (integer)"}},
		{`{"path":"a","limit":"many"}`, []string{`"limit" is string, want integer`}},
		{`{"path":"a","limit":1.5}`, []string{`"limit" is number, want integer`}},
		{`{"path":"a","colour":1}`, []string{`"colour" is not a field`, "The fields are"}},
		{`{"path":"a","mode":"c"}`, []string{`"mode" is c, want one of ["a","b"]`}},
		{`{"path":"a","options":{"n":[]}}`, []string{`"options.n" is array, want number`, "number"}},
		{`[1]`, []string{"array, want an object"}},
		{`{"path":"a","PATH":"b"}`, []string{`"PATH" is not a field`}},
		{`{"Path":"a","PATH":"b"}`, []string{`"path" is missing`, `"PATH" is not a field`, `"Path" is not a field`}},
		{`{"path":{"a":1}}`, []string{`"path" is object, want string`}},
	} {
		t.Run("TOOL-07 the error names the field and its type: "+c.args, func(t *testing.T) {
			f := read()
			failed(t, do(t, invoke.New(invoke.Options{}).For(scope(f)), call("read", c.args)), c.words...)
			if len(f.args) != 0 {
				t.Errorf("run with %q", f.args)
			}
		})
	}
	t.Run("a schema that cannot be used", func(t *testing.T) {
		f := &fake{spec: tool.Spec{Name: "bad", Schema: json.RawMessage(`{"type":7}`)}}
		failed(t, do(t, invoke.New(invoke.Options{}).For(scope(f)), call("bad", "{}")), "schema")
	})
}

func FuzzArguments(f *testing.F) {
	f.Add(`{"path":"a","limit":"5"}`, "")
	f.Add(`{}`, `{"path":"a",}`)
	f.Add(`{}`, "```json\n{'path':'a\n'}")
	f.Add(`"{\"list\":\"[1,\\\"2\\\"]\"}"`, "")
	x := invoke.New(invoke.Options{})
	f.Fuzz(func(t *testing.T, args, raw string) {
		if !json.Valid([]byte(args)) {
			args = "{}"
		}
		tl := read()
		s := scope(tl)
		s.Run = ""
		r, err := x.For(s).Invoke(t.Context(), llm.ToolCall{Name: "read", Args: json.RawMessage(args), Raw: raw}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.IsError {
			return
		}
		var got struct {
			Path  *string
			Limit *json.Number
			Deep  *bool
		}
		if err := json.Unmarshal([]byte(tl.args[0]), &got); err != nil || got.Path == nil {
			t.Errorf("run with %q: %v", tl.args[0], err)
		}
	})
}

func TestResults(t *testing.T) {
	t.Parallel()
	run := func(t *testing.T, f func(context.Context, tool.Call) (tool.Result, error)) tool.Result {
		return do(t, invoke.New(invoke.Options{}).For(scope(open("x", f))), call("x", "{}"))
	}
	give := func(r tool.Result) func(context.Context, tool.Call) (tool.Result, error) {
		return func(context.Context, tool.Call) (tool.Result, error) { return r, nil }
	}
	for _, c := range []struct {
		name, want string
		result     tool.Result
	}{
		{"text", "42", tool.Text("42")}, {"empty text", "(no output)", tool.Text("")},
		{"nothing", "(no output)", tool.Result{}},
	} {
		t.Run("TOOL-06 TH-05 "+c.name+" is a valid result", func(t *testing.T) {
			r := run(t, give(c.result))
			if len(r.Content) != 1 || r.Content[0].Kind != llm.PartText || text(r) != c.want {
				t.Errorf("got %+v, want %q", r.Content, c.want)
			}
		})
	}
	t.Run("TOOL-01 TH-06 an error becomes a result", func(t *testing.T) {
		r := run(t, func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, errors.New("boom") })
		if text(r) != `{"status":"error","tool":"x","error":"boom"}` || !r.IsError {
			t.Errorf("got %q", text(r))
		}
	})
	t.Run("a panic becomes an error with an id that is in the log", func(t *testing.T) {
		var log bytes.Buffer
		d := invoke.New(invoke.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		r := do(t, d.For(scope(open("x", func(context.Context, tool.Call) (tool.Result, error) { panic("at the disco") }))),
			call("x", "{}"))
		failed(t, r, "crashed")
		_, id, _ := strings.Cut(text(r), "(error ")
		id, _, _ = strings.Cut(id, " ")
		if !strings.Contains(log.String(), "id="+id) || !strings.Contains(log.String(), "at the disco") {
			t.Errorf("result %q, log %q", text(r), log.String())
		}
	})
	t.Run("TOOL-02 TH-07 an abort is not a failure of the tool", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		v := invoke.New(invoke.Options{}).For(scope(open("x", func(ctx context.Context, _ tool.Call) (tool.Result, error) {
			cancel()
			return tool.Result{}, fmt.Errorf("exec: %w", ctx.Err())
		})))
		if r, err := v.Invoke(ctx, call("x", "{}"), nil); !errors.Is(err, context.Canceled) || len(r.Content) != 0 {
			t.Errorf("got %v %v", r, err)
		}
	})
	t.Run("a result from before the abort is used", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		v := invoke.New(invoke.Options{}).For(scope(open("x", func(context.Context, tool.Call) (tool.Result, error) {
			cancel()
			return tool.Text("sent"), nil
		})))
		if r, err := v.Invoke(ctx, call("x", "{}"), nil); err != nil || text(r) != "sent" {
			t.Errorf("got %v %v", r, err)
		}
	})
	t.Run("the middle of a long result is removed", func(t *testing.T) {
		long := "HEAD" + strings.Repeat("äöü", 50_000) + "TAIL"
		r := text(run(t, give(tool.Text(long))))
		if !strings.HasPrefix(r, "HEAD") || !strings.HasSuffix(r, "TAIL") ||
			!strings.Contains(r, "86008 of 150008 characters omitted") {
			t.Errorf("%d bytes: %.40s … %s", len(r), r, r[len(r)-20:])
		}
		if n := len([]rune(r)); n > 64_200 {
			t.Errorf("%d characters", n)
		}
	})
	t.Run("a long result is stored, without secrets, and says where", func(t *testing.T) {
		stored := ""
		x := invoke.New(invoke.Options{
			Redact:      func(s string) string { return strings.ReplaceAll(s, "hunter2", "***") },
			StoreOutput: func(s string) (string, error) { stored = s; return "0123", nil },
		})
		r, err := x.For(
			scope(open("x", give(tool.Result{Content: []llm.Part{llm.Text("a hunter2"), llm.Text(strings.Repeat("b", 100_000)),
				llm.Text("c")}})))).Invoke(t.Context(), call("x", "{}"), nil)
		if err != nil || len(r.Content) != 1 || r.Content[0].Ref != "0123" || r.Content[0].Bytes != 100_012 {
			t.Fatalf("%+v, %v", r.Content, err)
		}
		if want := "a ***\n" + strings.Repeat("b", 100_000) + "\nc"; stored != want {
			t.Errorf("stored %d characters, %.20q", len(stored), stored)
		}
		got := r.Content[0].Text
		if !strings.Contains(got, "media:0123") || !strings.HasSuffix(got, "b\nc") ||
			!strings.HasPrefix(got, "a ***") || len(got) > 64_300 {
			t.Errorf("%d characters: %.20q", len(got), got)
		}
	})
	t.Run("the parts of a result share one limit", func(t *testing.T) {
		long := llm.Text(strings.Repeat("x", 40_000))
		if r := text(run(t, give(tool.Result{Content: []llm.Part{long, long, long}}))); len(r) > 65_000 {
			t.Errorf("%d characters", len(r))
		}
	})
	t.Run("blank and invalid parts are removed", func(t *testing.T) {
		r := run(t, give(tool.Result{
			Content: []llm.Part{llm.Text(" "), llm.Image("image/png", nil),
				llm.Image("image/png", []byte{1}), llm.Text("a\xff")},
			Details: json.RawMessage("{"),
		}))
		if len(r.Content) != 2 || r.Content[1].Text != "a\uFFFD" || r.Details != nil {
			t.Errorf("got %+v", r)
		}
	})
}

func TestBudget(t *testing.T) {
	t.Parallel()
	spent := func() usage.Sum { return usage.Sum{Tokens: llm.Usage{Input: 900, Output: 100}} }
	for _, c := range []struct {
		name   string
		budget usage.Budget
		stops  string // empty: the run continues
	}{
		{"no limit", usage.Budget{}, ""},
		{"tokens", usage.Budget{Tokens: 1000}, "1000 of 1000 tokens"},
		{"tokens left", usage.Budget{Tokens: 1001}, ""},
		{"time", usage.Budget{Time: time.Minute}, "1m0s"},
		{"time left", usage.Budget{Time: 3 * time.Minute}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := read()
			s := scope(f)
			s.Budget, s.Spent, s.Started = c.budget, spent, time.Now().Add(-2*time.Minute)
			r, err := invoke.New(invoke.Options{}).For(s).Invoke(t.Context(), call("read", `{"path":"a"}`), nil)
			if c.stops == "" {
				if err != nil || r.IsError {
					t.Errorf("stopped: %v %s", err, text(r))
				}
				return
			}
			failed(t, r, c.stops)
			if !errors.Is(err, tool.ErrStop) || len(f.args) != 0 {
				t.Errorf("error %v, ran %v", err, f.args)
			}
		})
	}
	t.Run("R22 failures in a row", func(t *testing.T) {
		s := scope(read(), open("ok", nil))
		s.Budget.Failures = 3
		l := &ledger{}
		s.Ledger = l
		v := invoke.New(invoke.Options{}).For(s)
		for i, name := range strings.Fields("none none ok none none") {
			do(t, v, call(name, fmt.Sprintf(`{"n":%d}`, i)))
		}
		r, err := v.Invoke(t.Context(), call("none", `{"n":9}`), nil)
		failed(t, r, "there is no tool")
		if !errors.Is(err, tool.ErrStop) || !strings.Contains(err.Error(), "3 tool calls in a row failed") {
			t.Errorf("third failure: %v", err)
		}
		if last := l.ended[len(l.ended)-1]; last != "refused unknown-tool error" {
			t.Errorf("recorded outcome: %s", last)
		}
	})
	t.Run("R22 the same call with changing results", func(t *testing.T) {
		n := 0
		count := func(context.Context, tool.Call) (tool.Result, error) { n++; return tool.Text(fmt.Sprint(n)), nil }
		s := scope(open("x", count))
		s.Budget.Identical = 40
		v := invoke.New(invoke.Options{}).For(s)
		for range 40 {
			do(t, v, call("x", `{"a":1}`))
			do(t, v, call("x", `{"action":"poll"}`))
		}
		if _, err := v.Invoke(t.Context(), call("x", `{"a":1}`), nil); !errors.Is(err, tool.ErrStop) || n != 80 {
			t.Errorf("after %d calls: %v", n, err)
		}
		do(t, v, call("x", `{"action":"poll"}`))
	})
	t.Run("calls, counted across the views of a run", func(t *testing.T) {
		d := invoke.New(invoke.Options{})
		s := scope(read())
		s.Budget.ToolCalls = 2
		do(t, d.For(s), call("read", `{"path":"a"}`))
		do(t, d.For(s), call("read", `{"path":"b"}`))
		if _, err := d.For(s).Invoke(t.Context(), call("read", `{"path":"c"}`), nil); !errors.Is(err, tool.ErrStop) {
			t.Errorf("third call: %v", err)
		}
		s.Run, s.Earlier = "resumed", 1 // a process that ended made one
		do(t, d.For(s), call("read", `{"path":"a"}`))
		if _, err := d.For(s).Invoke(t.Context(), call("read", `{"path":"b"}`), nil); !errors.Is(err, tool.ErrStop) {
			t.Errorf("second call after one before: %v", err)
		}
		s.Earlier = 0
		for i := range 1024 {
			s.Run = chela.RunID(fmt.Sprint(i))
			do(t, d.For(s), call("read", `{"path":"a"}`))
		}
		s.Run = "r" // the state of this run was discarded: its count starts at 0
		do(t, d.For(s), call("read", `{"path":"a"}`))
	})
}

// points returns hooks around tool calls.
func points(log *slog.Logger, before []hook.Before, after ...hook.After) *hook.Points {
	p := hook.New(log)
	for _, h := range before {
		p.BeforeToolCall.Add(h)
	}
	for _, h := range after {
		p.AfterToolCall.Add(h)
	}
	return p
}

func TestHooks(t *testing.T) {
	t.Parallel()
	// executor returns an Executor with the hooks.
	type f = func(context.Context, hook.Call) (hook.Verdict, error)
	executor := func(log *bytes.Buffer, hooks ...hook.Before) *invoke.Executor {
		l := slog.New(slog.NewTextHandler(log, nil))
		return invoke.New(invoke.Options{Log: l, Hooks: points(l, hooks)})
	}
	args := func(s string) f {
		return func(context.Context, hook.Call) (hook.Verdict, error) {
			return hook.Verdict{Args: json.RawMessage(s)}, nil
		}
	}
	t.Run("TH-01 TOOL-03 a blocked call is not run and its result contains the reason", func(t *testing.T) {
		var log bytes.Buffer
		tl := read()
		d := executor(&log, hook.Before{Name: "p", Func: func(context.Context, hook.Call) (hook.Verdict, error) {
			return hook.Verdict{Block: true, Reason: "not on Sundays"}, nil
		}})
		failed(t, do(t, d.For(scope(tl)), call("read", `{"path":"a"}`)), "not on Sundays")
		if len(tl.args) != 0 {
			t.Error("the tool was run")
		}
	})
	t.Run("TH-02 TOOL-04 changed arguments are used and both are logged", func(t *testing.T) {
		var log bytes.Buffer
		tl := read()
		r := do(t, executor(&log, hook.Before{Name: "p", Func: args(`{"path":"safe"}`)}).For(scope(tl)),
			call("read", `{"path":"risky"}`))
		if !slices.Equal(tl.args, []string{`{"path":"safe"}`}) {
			t.Errorf("run with %q", tl.args)
		}
		if want := "[The hook p changed the arguments: {\"path\":\"safe\"}]ok"; text(r) != want ||
			string(r.Args) != `{"path":"safe"}` {
			t.Errorf("the result is %q with %s, want %q", text(r), r.Args, want)
		}
		if !strings.Contains(log.String(), "risky") || !strings.Contains(log.String(), "safe") {
			t.Errorf("log %q", log.String())
		}
	})
	t.Run("changed arguments are validated", func(t *testing.T) {
		var log bytes.Buffer
		tl := read()
		failed(t, do(t, executor(&log, hook.Before{Name: "p", Func: args(`{"path":1}`)}).For(scope(tl)),
			call("read", `{"path":"a"}`)), "hook p", "want string")
		if len(tl.args) != 0 {
			t.Error("the tool was run")
		}
	})
	t.Run("TH-03 TOOL-05 a hook that fails or panics is skipped", func(t *testing.T) {
		var log bytes.Buffer
		tl := read()
		d := executor(&log,
			hook.Before{Name: "bad", Func: func(context.Context, hook.Call) (hook.Verdict, error) {
				return hook.Verdict{Block: true}, errors.New("no database")
			}},
			hook.Before{Name: "worse", Func: func(context.Context, hook.Call) (hook.Verdict, error) { panic("oh") }})
		do(t, d.For(scope(tl)), call("read", `{"path":"a"}`))
		if !slices.Equal(tl.args, []string{`{"path":"a"}`}) || strings.Count(log.String(), "level=WARN") != 2 {
			t.Errorf("run with %q, log %q", tl.args, log.String())
		}
	})
	t.Run("TH-04 a hook that exceeds its time limit blocks the call", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			tl := read()
			d := executor(&log, hook.Before{Name: "slow", Func: func(context.Context, hook.Call) (hook.Verdict, error) {
				time.Sleep(time.Minute) // it ignores its context
				return hook.Verdict{}, nil
			}})
			failed(t, do(t, d.For(scope(tl)), call("read", `{"path":"a"}`)), "did not answer within 15s")
			if len(tl.args) != 0 {
				t.Errorf("ran %v", tl.args)
			}
			time.Sleep(time.Minute)
		})
	})
	t.Run("hooks run by priority, each with the arguments of the previous one", func(t *testing.T) {
		var log bytes.Buffer
		var order []string
		hook := func(name string, prio int) hook.Before {
			return hook.Before{Name: name, Priority: prio, Func: func(_ context.Context, c hook.Call) (hook.Verdict, error) {
				var a struct{ Path string }
				json.Unmarshal(c.Args, &a)
				order = append(order, name+"("+a.Path+")")
				return hook.Verdict{Args: json.RawMessage(`{"path":"` + a.Path + name + `"}`)}, nil
			}}
		}
		tl := read()
		do(t, executor(&log, hook("b", 0), hook("c", 0), hook("a", 9)).For(scope(tl)), call("read", `{"path":""}`))
		if !slices.Equal(order, []string{"a()", "b(a)", "c(ab)"}) || tl.args[0] != `{"path":"abc"}` {
			t.Errorf("order %v, ran with %v", order, tl.args)
		}
	})
	t.Run("TH-12 After hooks are called once, with the duration, and change nothing", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var all, failures []string
			p := points(nil, nil,
				hook.After{Name: "all", Func: func(_ context.Context, r hook.Done) (hook.None, error) {
					all = append(all, fmt.Sprint(r.Tool, " ", r.IsError, " ", r.Err, " ", r.Took))
					return hook.None{}, nil
				}},
				hook.After{Name: "bad", Func: func(context.Context, hook.Done) (hook.None, error) { panic("oh") }})
			p.ToolCallFailed.Add(hook.After{Name: "failures", Func: func(_ context.Context, r hook.Done) (hook.None, error) {
				failures = append(failures, fmt.Sprint(r.Tool, " ", string(r.Args), " ", r.Err))
				return hook.None{}, nil
			}})
			d := invoke.New(invoke.Options{Hooks: p})
			v := d.For(scope(
				open("good", func(context.Context, tool.Call) (tool.Result, error) {
					time.Sleep(200 * time.Millisecond)
					return tool.Text("ok"), nil
				}),
				open("bad", func(context.Context, tool.Call) (tool.Result, error) {
					time.Sleep(200 * time.Millisecond)
					return tool.Result{}, errors.New("boom")
				})))
			if r := do(t, v, call("good", "{}")); text(r) != "ok" {
				t.Errorf("the result is %q", text(r))
			}
			do(t, v, call("bad", `{"a":1}`))
			failed(t, do(t, v, call("none", "{}")), "there is no tool")
			d.Wait(t.Context())
			if d := cmp.Diff([]string{"good false <nil> 200ms", "bad true boom 200ms"}, all); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff([]string{`bad {"a":1} boom`}, failures); d != "" {
				t.Error(d)
			}
		})
	})
	t.Run("HOOK-10 SEED-10 a cancelled call is not reported to hooks as a failure", func(t *testing.T) {
		calls := 0
		p := points(nil, nil)
		p.ToolCallFailed.Add(hook.After{Name: "f", Func: func(context.Context, hook.Done) (hook.None, error) {
			calls++
			return hook.None{}, nil
		}})
		d := invoke.New(invoke.Options{Hooks: p})
		ctx, cancel := context.WithCancel(t.Context())
		v := d.For(scope(open("x", func(ctx context.Context, _ tool.Call) (tool.Result, error) {
			cancel()
			return tool.Result{}, ctx.Err()
		})))
		if _, err := v.Invoke(ctx, call("x", "{}"), nil); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		d.Wait(t.Context())
		if calls != 0 {
			t.Errorf("%d calls", calls)
		}
	})
}

// TestHookAsks tests hooks that require an approval.
func TestHookAsks(t *testing.T) {
	t.Parallel()
	d := invoke.New(invoke.Options{
		Redact: func(s string) string { return strings.ReplaceAll(s, "s3cret", "[redacted]") },
		Hooks: points(nil, []hook.Before{
			{Name: "change", Priority: 1, Func: func(context.Context, hook.Call) (hook.Verdict, error) {
				return hook.Verdict{Args: json.RawMessage(`{"path":"s3cret"}`)}, nil
			}},
			{Name: "careful", Func: func(context.Context, hook.Call) (hook.Verdict, error) {
				return hook.Verdict{Ask: true, Reason: "it looks odd"}, nil
			}},
		}),
	})
	planned := &planner{fake: fake{spec: read().spec}, plan: func() (tool.Plan, error) {
		return tool.Plan{Effect: tool.Acts, Ask: true, Reason: "outside s3cret", Text: "all of it", Hash: "h"}, nil
	}}
	for _, tt := range []struct {
		name         string
		tool         tool.Tool
		text, reason string
	}{
		{"a tool without a plan", read(), `read {"path":"[redacted]"}`, "it looks odd"},
		{"a tool whose plan asks", planned, "all of it", "outside [redacted]; it looks odd"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := &ledger{always: "h"} // which does not answer hooks
			s := scope(tt.tool)
			s.Ledger = l
			if _, err := d.For(s).Invoke(t.Context(), call("read", `{"path":"a"}`), nil); !errors.Is(err, tool.ErrSuspended) {
				t.Fatalf("error %v", err)
			}
			if l.plan.Text != tt.text || l.plan.Reason != tt.reason || l.plan.Hash == "" {
				t.Errorf("requested with %+v", l.plan)
			}
			for decision, words := range map[approval.Decision]string{
				approval.Expired: "expired",
				approval.Deny:    "denied by owner",
			} {
				l.req = approval.Request{ID: "a", Decision: decision, Hash: l.plan.Hash, By: "owner"}
				failed(t, do(t, d.For(s), call("read", `{"path":"a"}`)), words)
			}
			l.req.Decision = approval.AllowOnce
			if r := do(t, d.For(s), call("read", `{"path":"a"}`)); r.IsError || !strings.HasSuffix(text(r), "ok") {
				t.Errorf("allowed: %s", text(r))
			}
			if want := []string{"denied approval error", "denied approval error",
				"allowed approval ok"}; !slices.Equal(l.ended, want) {
				t.Errorf("outcomes %q, want %q", l.ended, want)
			}
		})
	}
	t.Run("denied if nobody can be asked", func(t *testing.T) {
		tl := read()
		failed(t, do(t, d.For(scope(tl)), call("read", `{"path":"a"}`)), "nobody can be asked", "it looks odd")
		if len(tl.args) != 0 {
			t.Error("the tool was run")
		}
	})
}

// TestRedacted has a tool and a hook return a secret.
func TestRedacted(t *testing.T) {
	t.Parallel()
	x := invoke.New(invoke.Options{
		Redact: func(s string) string { return strings.ReplaceAll(s, "s3cret", "[redacted]") },
		Hooks: points(nil, []hook.Before{{Name: "change", Func: func(context.Context, hook.Call) (hook.Verdict, error) {
			return hook.Verdict{Args: json.RawMessage(`{"path":"s3cret"}`)}, nil
		}}}),
	})
	tl := open("show", func(_ context.Context, c tool.Call) (tool.Result, error) {
		c.Update("half s3cret")
		res := tool.Text("all s3cret")
		res.Details = json.RawMessage(`{"x":"s3cret"}`)
		return res, nil
	})
	var update string
	res, err := x.For(scope(tl)).Invoke(t.Context(), call("show", `{}`), func(s string) { update += s })
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]string{
		"update":    update,
		"text":      text(res),
		"details":   string(res.Details),
		"arguments": string(res.Args),
	} {
		if strings.Contains(got, "s3cret") || !strings.Contains(got, "[redacted]") {
			t.Errorf("%s: %q", name, got)
		}
	}
	if len(tl.args) != 1 || tl.args[0] != `{"path":"s3cret"}` {
		t.Errorf("the tool got %q", tl.args)
	}
}

// planner is a tool with a Plan.
type planner struct {
	fake
	plan func() (tool.Plan, error)
}

func (p *planner) Plan(context.Context, tool.Call) (tool.Plan, error) { return p.plan() }

// ledger records the calls of its methods and returns what its fields say.
type ledger struct {
	req    approval.Request
	rights []string // of the call's record
	always string   // hash of the plan that is always allowed
	lookup error    // of Call
	start  error
	begin  func() // called by Start
	log    []string
	plan   tool.Plan // of the last request
	ended  []string
}

func (l *ledger) Call(c llm.ToolCall) (session.Call, error) {
	return session.Call{ID: "record-" + c.ID, Wire: c, Rights: l.rights}, l.lookup
}

func (l *ledger) Start(_ context.Context, c llm.ToolCall, e tool.Effect) error {
	l.log = append(l.log, "start "+e.String())
	if l.begin != nil {
		l.begin()
	}
	return l.start
}

func (l *ledger) Decision(context.Context, llm.ToolCall) (approval.Request, error) { return l.req, nil }

func (l *ledger) Always(_ context.Context, _, hash string) (bool, error) {
	return hash == l.always, nil
}

func (l *ledger) Suspend(_ context.Context, _ llm.ToolCall, p tool.Plan) error {
	l.log, l.plan = append(l.log, "suspend "+p.Hash), p
	return nil
}

func (l *ledger) Ended(_ llm.ToolCall, o session.Outcome) {
	l.ended = append(l.ended, string(o.Decision)+" "+o.Rule+" "+string(o.Result))
}

func TestApproval(t *testing.T) {
	t.Parallel()
	ask := tool.Plan{Effect: tool.Acts, Ask: true, Hash: "h", Text: "rm x", Reason: "outside"}
	type want struct {
		err   error
		words []string // in the refusal
		log   []string
		ran   bool
	}
	suspended := want{err: tool.ErrSuspended}
	ran := want{log: []string{"start acts"}, ran: true}
	decided := func(d approval.Decision, hash string) approval.Request {
		return approval.Request{ID: "a", Decision: d, Hash: hash, By: "owner"}
	}
	for _, c := range []struct {
		name   string
		plan   tool.Plan
		ledger ledger
		want   want
	}{
		{"no approval needed", tool.Plan{Effect: tool.Acts}, ledger{}, ran},
		{"a call that reads is not recorded", tool.Plan{Effect: tool.Reads}, ledger{}, want{ran: true}},
		{"denied by the plan", tool.Plan{Deny: "never"}, ledger{}, want{words: []string{"never"}}},
		{"no request", ask, ledger{}, want{err: tool.ErrSuspended, log: []string{"suspend h"}}},
		{"a pending request", ask, ledger{req: decided(approval.Pending, "h")}, suspended},
		{"always allowed", ask, ledger{always: "h"}, ran},
		{"allowed once", ask, ledger{req: decided(approval.AllowOnce, "h")}, ran},
		{"allowed for another plan", ask, ledger{req: decided(approval.AllowOnce, "g")},
			want{words: []string{"plan has changed", "again"}}},
		{"denied", ask, ledger{req: decided(approval.Deny, "h")}, want{words: []string{"denied by owner"}}},
		{"expired", ask, ledger{req: decided(approval.Expired, "h")},
			want{words: []string{"expired", "call the tool again"}}},
		{"started before", tool.Plan{Effect: tool.Acts},
			ledger{start: chela.Errorf(chela.CodeConflict, "it is denied already")},
			want{words: []string{"denied already"}, log: []string{"start acts"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &planner{fake: fake{spec: tool.Spec{Name: "exec", Effect: tool.Acts}},
				plan: func() (tool.Plan, error) { return c.plan, nil }}
			s := scope(p)
			s.Ledger = &c.ledger
			r, err := invoke.New(invoke.Options{}).For(s).Invoke(t.Context(), call("exec", "{}"), nil)
			if !errors.Is(err, c.want.err) {
				t.Errorf("error %v, want %v", err, c.want.err)
			}
			if c.want.words != nil {
				failed(t, r, c.want.words...)
			}
			if got := len(p.args) == 1; got != c.want.ran || !slices.Equal(c.ledger.log, c.want.log) {
				t.Errorf("ran %v, ledger %v", got, c.ledger.log)
			}
		})
	}
	t.Run("a plan without a hash gets one from the call", func(t *testing.T) {
		p := &planner{plan: func() (tool.Plan, error) { return tool.Plan{Ask: true}, nil }}
		p.spec.Name = "x"
		var hashes []string
		for _, args := range []string{`{"a":1}`, `{"a":1}`, `{"a":2}`} {
			l := &ledger{}
			s := scope(p)
			s.Ledger = l
			invoke.New(invoke.Options{}).For(s).Invoke(t.Context(), call("x", args), nil)
			hashes = append(hashes, l.log...)
		}
		if len(hashes) != 3 || len(hashes[0]) < 20 || hashes[0] != hashes[1] || hashes[1] == hashes[2] {
			t.Errorf("suspended with %q", hashes)
		}
	})
	t.Run("the tool gets its plan", func(t *testing.T) {
		p := &planner{plan: func() (tool.Plan, error) { return tool.Plan{Value: 7}, nil }}
		p.spec.Name = "x"
		p.run = func(_ context.Context, c tool.Call) (tool.Result, error) {
			return tool.Text(fmt.Sprint(c.Plan.Value)), nil
		}
		if r := do(t, invoke.New(invoke.Options{}).For(scope(p)), call("x", "{}")); text(r) != "7" {
			t.Errorf("got %q", text(r))
		}
	})
	t.Run("a plan that fails or panics is a result", func(t *testing.T) {
		p := &planner{plan: func() (tool.Plan, error) { return tool.Plan{}, errors.New("no such file") }}
		p.spec.Name = "x"
		v := invoke.New(invoke.Options{}).For(scope(p))
		failed(t, do(t, v, call("x", "{}")), "no such file")
		p.plan = func() (tool.Plan, error) { panic("oh") }
		failed(t, do(t, v, call("x", "{}")), "crashed")
	})
	t.Run("denied if nobody can be asked", func(t *testing.T) {
		p := &planner{plan: func() (tool.Plan, error) { return ask, nil }}
		p.spec.Name = "x"
		failed(t, do(t, invoke.New(invoke.Options{}).For(scope(p)), call("x", "{}")), "nobody can be asked")
	})
	for name, l := range map[string]*ledger{
		"an error of the ledger ends the run":                       {start: chela.ErrFenced},
		"a call that the ledger does not know ends the run":         {lookup: chela.ErrFenced},
		"a call that is stopped while it is recorded has no result": {start: chela.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{spec: tool.Spec{Name: "x", Effect: tool.Writes}}
			s := scope(f)
			s.Ledger = l
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			want := chela.ErrFenced
			if errors.Is(l.start, chela.ErrClosed) {
				l.begin, want = cancel, context.Canceled
			}
			if _, err := invoke.New(invoke.Options{}).For(s).Invoke(ctx, call("x", "{}"), nil); !errors.Is(err, want) ||
				len(f.args) != 0 {
				t.Errorf("error %v, ran %v", err, f.args)
			}
		})
	}
}

// argLedger is a ledger that keeps the arguments of calls as they are recorded.
type argLedger struct {
	silentLedger
	args []string
}

func (r *argLedger) Ended(_ llm.ToolCall, o session.Outcome) { r.args = append(r.args, o.Ran) }

func TestAudit(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	d := invoke.New(invoke.Options{
		Log:    slog.New(slog.NewJSONHandler(&log, nil)),
		Redact: func(s string) string { return strings.ReplaceAll(s, "known-canary", "[redacted]") },
	})
	deny := &planner{plan: func() (tool.Plan, error) { return tool.Plan{Deny: "never"}, nil }}
	deny.spec.Name = "deny"
	v := d.For(scope(deny, open("good", nil), open("bad", func(context.Context, tool.Call) (tool.Result, error) {
		return tool.Result{}, errors.New("boom")
	})))
	do(t, v, call("good", `{"apiKey":"s3cret","nested":{"Password":"s3cret"},"list":[{"token":"s3cret"}],"content":"`+
		strings.Repeat("x", 1000)+`","cut":"`+strings.Repeat("y", 75)+`known-canary"}`))
	do(t, v, call("good", `{"command":"curl 'https://me:s3cret@a.example/?q=1&token=s3cret'"}`))
	do(t, v, call("bad", "{}"))
	do(t, v, call("deny", "{}"))
	do(t, v, call("none", "{}"))
	var rows []string
	for l := range strings.Lines(log.String()) {
		var r struct{ Msg, Principal, Tool, Decision, Rule, Outcome, Args, Error string }
		if err := json.Unmarshal([]byte(l), &r); err != nil {
			t.Fatal(err)
		}
		if r.Msg != "tool call" {
			continue
		}
		rows = append(rows,
			strings.TrimSpace(strings.Join([]string{r.Principal, r.Tool, r.Decision, r.Rule, r.Outcome, r.Error}, " ")))
		if len(r.Args) > 420 {
			t.Errorf("%d bytes of arguments", len(r.Args))
		}
	}
	want := []string{
		"owner good allowed default ok", "owner good allowed default ok", "owner bad allowed default error boom",
		"owner deny denied plan error never",
		`owner none refused unknown-tool error there is no tool "none"; the tools are bad, deny, good`,
	}
	if d := cmp.Diff(want, rows); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	var kept argLedger
	s := scope(open("good", nil))
	s.Ledger = &kept
	do(t, invoke.New(invoke.Options{Log: slog.New(slog.DiscardHandler)}).For(s),
		call("good", `{"command":"mysql -ps3cret-s3cret --password=s3cret-s3cret"}`))
	if len(kept.args) != 1 || strings.Contains(kept.args[0], "s3cret") || !strings.Contains(kept.args[0], "mysql") {
		t.Errorf("recorded %q", kept.args)
	}
	if s := log.String(); strings.Contains(s, "s3cret") || strings.Contains(s, "yk") ||
		strings.Contains(s, strings.Repeat("x", 200)) {
		t.Errorf("log %s", s)
	}
}

// BenchmarkInvoke executes a call with a policy of several steps, a schema, hooks
// before and after it, loop detection, budgets and the log. The tool does nothing,
// and nothing is committed.
func BenchmarkInvoke(b *testing.B) {
	n := 0
	count := &fake{spec: read().spec}
	count.run = func(context.Context, tool.Call) (tool.Result, error) {
		n++
		count.args = count.args[:0]
		return tool.Text(fmt.Sprint(n)), nil
	}
	var more []tool.Tool
	for i := range 30 {
		more = append(more, open(fmt.Sprint("tool", i), nil))
	}
	count.spec.Groups = []string{"group:fs"}
	s := scope(append(more, count)...)
	s.Policy = policy.NewCatalog(s.Tools).Pipeline(policy.Config{Rules: policy.Rules{Profile: "coding",
		AlsoAllow: []string{"tool*"}, Deny: []string{"browser", "cron"}}},
		policy.Config{Rules: policy.Rules{Deny: []string{"tool2?"}}}, "agents.entries.main",
		policy.Conversation{Provider: "openai", Model: "gpt"})
	s.Budget = usage.Budget{
		ToolCalls: math.MaxInt,
		Failures:  20,
		Identical: math.MaxInt,
		Tokens:    math.MaxInt,
		Time:      time.Hour,
	}
	s.Started, s.Spent, s.Ledger = time.Now(), func() usage.Sum { return usage.Sum{} }, new(silentLedger)
	secrets := new(secret.Redactor)
	secrets.Add(secret.New("sk-0123456789"), secret.New("another secret"))
	before := func(_ context.Context, c hook.Call) (hook.Verdict, error) {
		return hook.Verdict{Ask: secrets.Redact(string(c.Args)) != string(c.Args)}, nil
	}
	d := invoke.New(invoke.Options{
		Log: slog.New(slog.NewJSONHandler(io.Discard, nil)), Redact: secrets.Redact,
		Hooks: points(nil, []hook.Before{{Name: "secrets", Func: before}, {Name: "other", Func: before}},
			hook.After{Name: "count", Func: func(context.Context, hook.Done) (hook.None, error) { return hook.None{}, nil }}),
	})
	v := d.For(s)
	c := call("read", `{"path": "internal/invoke/call.go", "limit": 200}`)
	b.ReportAllocs()
	for b.Loop() {
		if r, err := v.Invoke(b.Context(), c, nil); err != nil || r.IsError {
			b.Fatal(text(r), err)
		}
	}
}

// silentLedger records no outcomes.
type silentLedger struct{ ledger }

func (*silentLedger) Ended(llm.ToolCall, session.Outcome) {}
