package schema_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/schema"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func decode(t testing.TB, raw json.RawMessage) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	return v
}

// apply returns the converted schema and checks that converting it again
// changes nothing.
func apply(t testing.TB, r schema.Rules, in string) json.RawMessage {
	t.Helper()
	out, err := r.Apply(json.RawMessage(in))
	if err != nil {
		t.Fatalf("%s: %s: %v", r.Profile, in, err)
	}
	again, err := r.Apply(out)
	if err != nil || !bytes.Equal(out, again) {
		t.Fatalf("%s: again: %v\n%s\n%s", r.Profile, err, out, again)
	}
	return out
}

func check(t *testing.T, r schema.Rules, in, want string) {
	t.Helper()
	got := apply(t, r, in)
	if d := cmp.Diff(decode(t, json.RawMessage(want)), decode(t, got)); d != "" {
		t.Errorf("%s of %s (-want +got):\n%s", r.Profile, in, d)
	}
}

func every(f func(schema.Rules)) {
	for _, p := range schema.Profiles() {
		f(schema.Rules{Profile: p})
	}
}

func TestProfiles(t *testing.T) {
	t.Parallel()
	t.Run("SN-01 a schema without a type becomes an object with properties", func(t *testing.T) {
		every(func(r schema.Rules) {
			for _, in := range []string{``, `null`, `true`, `{}`, `{"type":"object"}`, `{"type":["object","null"]}`} {
				check(t, r, in, `{"type":"object","properties":{}}`)
			}
			check(t, r, `{"properties":{"a":{"type":"string"}}}`, `{"type":"object","properties":{"a":{"type":"string"}}}`)
		})
	})
	t.Run("SN-02 keywords that Gemini does not support are removed at every depth", func(t *testing.T) {
		in := `{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"array","minItems":1,"items":{
			"type":"string","format":"uri","minLength":1,"pattern":"x"}}},"additionalProperties":{"type":"string"},"maxProperties":3}},
			"$id":"https://x.example/y","not":{"required":["z"]},"if":{"required":["a"]},"dependentRequired":{"a":["b"]},"x-mine":1}`
		check(t, schema.Rules{Profile: schema.Gemini}, in,
			`{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"array","items":{"type":"string"}}}}}}`)
	})
	t.Run("SN-03 a property named like a keyword remains", func(t *testing.T) {
		in := `{"type":"object","properties":{"pattern":{"type":"string"},"format":{"type":"string"},
			"anyOf":{"type":"string"},"const":{"type":"object","properties":{"maxLength":{"type":"integer"},"$ref":{"type":"string"}}}},"required":["pattern"]}`
		every(func(r schema.Rules) {
			r.Without = []string{"pattern", "format", "maxLength", "const", "$ref"}
			check(t, r, in, in)
		})
	})
	t.Run("SN-04 a union at the top becomes one object", func(t *testing.T) {
		in := `{"%s":[{"type":"object","properties":{"kind":{"const":"a"},"x":{"type":"string"},"y":{"type":"string"}},"required":["kind","x"],"additionalProperties":false},
			{"type":"object","properties":{"kind":{"const":"b"},"x":{"type":"string"}},"required":["x","kind"]}]}`
		want := `{"type":"object","properties":{"kind":{"enum":["a","b"]%s},"x":{"type":"string"},"y":{"type":"string"}},"required":["kind","x"]}`
		every(func(r schema.Rules) {
			typed := ""
			if r.Profile == schema.Gemini {
				typed = `,"type":"string"`
			}
			for _, k := range []string{"anyOf", "oneOf"} {
				check(t, r, fmt.Sprintf(in, k), fmt.Sprintf(want, typed))
			}
			check(t, r, `{"allOf":[{"properties":{"a":{"type":"string"}},"required":["a"]},{"properties":{"b":{"type":"string"}},"required":["b"]}]}`,
				`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"required":["a","b"]}`)
			check(t, r, `{"properties":{"a":{"type":"string"},"b":{"type":"string"}},"required":["b"],"anyOf":[{"required":["a"]},{"properties":{"c":{"type":"string"}}},{"type":"string"},false]}`,
				`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"},"c":{"type":"string"}},"required":["b"]}`)
		})
	})
	t.Run("SN-05 Anthropic gets the schema unchanged", func(t *testing.T) {
		in := `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","$defs":{"n":{"type":"object","properties":{"next":{"$ref":"#/$defs/n"}}}},
			"properties":{"a":{"$ref":"#/$defs/n"},"b":{"type":["string","null"],"format":"date","const":null},"c":{"anyOf":[{"type":"string"},{"type":"array"}]}},
			"required":["a"],"additionalProperties":false,"minProperties":1,"not":{"required":["z"]},"if":{"required":["a"]},"then":{"required":["b"]}}`
		if got := apply(t, schema.Rules{}, in); string(got) != in {
			t.Errorf("got %s\nwant %s", got, in)
		}
		check(t, schema.Rules{}, `{"description":"d","type":"object","anyOf":[{"properties":{"a":{"minLength":3}}},{"properties":{"a":{"pattern":"x"}}}],"$comment":"c"}`,
			`{"description":"d","type":"object","properties":{"a":{"anyOf":[{"minLength":3},{"pattern":"x"}]}},"$comment":"c"}`)
	})
	t.Run("SN-06 references are expanded, and cut where they recur", func(t *testing.T) {
		in := `{"$ref":"#/$defs/top","$defs":{"top":{"type":"object","properties":{"a":{"$ref":"#/$defs/s","description":"mine"},"tree":{"$ref":"#tree"}}},
			"s":{"type":"string","description":"theirs"},"tree":{"$anchor":"tree","type":"object","properties":{"v":{"type":"integer"},"kids":{"type":"array","items":{"$ref":"#/$defs/tree"}},"up":{"$ref":"#tree"}}}}}`
		check(t, schema.Rules{Profile: schema.Gemini}, in,
			`{"type":"object","properties":{"a":{"type":"string","description":"mine"},
			"tree":{"type":"object","properties":{"v":{"type":"integer"},"up":{"type":"object"},"kids":{"type":"array","items":{"type":"object",
			"properties":{"v":{"type":"integer"},"up":{"type":"object"},"kids":{"type":"array","items":{"type":"object"}}}}}}}}}`)
		for _, in := range []string{`{"$ref":"#"}`, `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/a"}}}`,
			`{"anyOf":[{"$ref":"#"}]}`} {
			every(func(r schema.Rules) {
				if out, err := r.Apply(json.RawMessage(in)); err == nil {
					t.Errorf("%s: %s is %s", r.Profile, in, out)
				}
			})
		}
		check(t, schema.Rules{Profile: schema.Gemini}, `{"type":"object","properties":{"a":{"$ref":"#/properties/a"}}}`,
			`{"type":"object","properties":{"a":{"type":"string"}}}`)
	})
	t.Run("SN-06 a reference into a merged union is expanded", func(t *testing.T) {
		check(t, schema.Rules{},
			`{"anyOf":[{"properties":{"a":{"type":"string"}}},{"properties":{"b":{"$ref":"#/anyOf/0/properties/a"}}}]}`,
			`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}}}`)
	})
	t.Run("SN-07 unsupported keywords are removed, others remain", func(t *testing.T) {
		in := `{"type":"object","properties":{"maxLength":{"type":"string","maxLength":3,"minLength":1},"b":{"type":"array","items":{"type":"string","maxLength":9}}},"$defs":{"x":{"maxLength":1}}}`
		check(t, schema.Rules{Profile: schema.OpenAI, Without: []string{"maxLength"}}, in,
			`{"type":"object","properties":{"maxLength":{"type":"string","minLength":1},"b":{"type":"array","items":{"type":"string"}}},"$defs":{"x":{}}}`)
	})
	t.Run("SN-08 TOOL-12 a flat definition", func(t *testing.T) {
		in := `{"a":{"type":"string","description":"A"},"b":{"type":"integer","description":"B","required":false},"type":{"type":"string","optional":true}}`
		want := `{"type":"object","properties":{"a":{"type":"string","description":"A"},"b":{"type":"integer","description":"B"},"type":{"type":"string"}},"required":["a"]}`
		every(func(r schema.Rules) { check(t, r, in, want) })
		got, err := schema.Object(json.RawMessage(in))
		if d := cmp.Diff(decode(t, json.RawMessage(want)), decode(t, got)); err != nil || d != "" {
			t.Errorf("Object: %v (-want +got):\n%s", err, d)
		}
		for _, in := range []string{`{"additionalProperties":{"type":"string"}}`,
			`{"type":"object","properties":{"a":{"type":"string"}}}`} {
			if got, err := schema.Object(json.RawMessage(in)); err != nil || string(got) != in {
				t.Errorf("%s is not flat, but became %s, %v", in, got, err)
			}
		}
		check(t, schema.Rules{}, `{"type":"object","properties":{"a":{"type":"string","required":true},"b":{"type":"string","required":false}},"required":["c"]}`,
			`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"required":["a","c"]}`)
	})
}

func TestRules(t *testing.T) {
	t.Parallel()
	object := func(p string) string { return `{"type":"object","properties":{"p":` + p + `}}` }
	for _, tt := range []struct{ profile, in, want string }{
		{schema.OpenAI, `{"type":"array"}`, `{"type":"array","items":{}}`},
		{schema.OpenAI, `{"anyOf":[{"type":"array"},{"type":"null"}]}`,
			`{"anyOf":[{"type":"array","items":{}},{"type":"null"}]}`},
		{schema.Gemini, `{"const":"x"}`, `{"type":"string","enum":["x"]}`},
		{schema.Gemini, `{"const":5}`, `{"type":"integer","description":"One of: 5."}`},
		{schema.Gemini, `{"type":"integer","enum":[1,2],"description":"How many."}`,
			`{"type":"integer","description":"How many. One of: 1,2."}`},
		{schema.Gemini, `{"enum":["a","b",null]}`, `{"type":"string","enum":["a","b"]}`},
		{schema.Gemini, `{"type":["string","null"]}`, `{"type":"string"}`},
		{schema.Gemini, `{"type":"null","properties":{"a":{"type":"string"}}}`,
			`{"type":"object","properties":{"a":{"type":"string"}}}`},
		{schema.Gemini, `{"type":["null","integer","string"]}`, `{"type":"integer"}`},
		{schema.Gemini, `{"anyOf":[{"type":"null"},{"type":"string","format":"date"}],"description":"d"}`,
			`{"type":"string","description":"d"}`},
		{schema.Gemini, `{"anyOf":[{"type":"string"},{"type":"number"}],"title":"t"}`, `{"type":"string","title":"t"}`},
		{schema.Gemini, `{"oneOf":[{"const":"a"},{"const":"b"},{"const":null}]}`, `{"type":"string","enum":["a","b"]}`},
		{schema.Gemini, `{"type":"array","prefixItems":[{"type":"string"}]}`, `{"type":"array","items":{"type":"string"}}`},
		{schema.Gemini, `{"items":[{"type":"string"},{"type":"string","format":"x"}]}`,
			`{"type":"array","items":{"type":"string"}}`},
		{schema.Gemini, `{"allOf":[{"type":"string"},{"enum":["a"]}]}`, `{"type":"string","enum":["a"]}`},
		{schema.Gemini, `{"type":"object","properties":{"a":true,"b":false},"required":["a","z"]}`, `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string","description":"Leave this out."}},"required":["a"]}`},
		{schema.DeepSeek, `{"anyOf":[{"type":"string"},{"type":"null"}],"default":null}`,
			`{"type":["string","null"],"default":null}`},
		{schema.DeepSeek, `{"oneOf":[{"type":"string"},{"type":"integer"}]}`, `{"type":["string","integer"]}`},
		{schema.DeepSeek, `{"anyOf":[{"const":"a"},{"enum":["b","a"]},{"type":"null"}]}`, `{"enum":["a","b",null]}`},
		{schema.DeepSeek, `{"anyOf":[{"type":"object","properties":{"a":{"type":"string"},"k":{"const":1}},"required":["a","k"]},{"type":"object","properties":{"k":{"const":2}},"required":["k"]}]}`,
			`{"type":"object","properties":{"a":{"type":"string"},"k":{"enum":[1,2]}},"required":["k"]}`},
		{schema.DeepSeek, `{"anyOf":[true,{"type":"string"}]}`, `{}`},
		{schema.LlamaCPP, `{"type":"string","pattern":"a","maxLength":1999}`, `{"type":"string","maxLength":1999}`},
		{schema.LlamaCPP, `{"type":"string","maxLength":2000,"minLength":2}`, `{"type":"string","minLength":2}`},
		{schema.XAI, `{"type":"array","items":{"type":"string"},"contains":{"const":"a"},"minContains":2}`,
			`{"type":"array","items":{"type":"string"},"contains":{"const":"a"}}`},
	} {
		check(t, schema.Rules{Profile: tt.profile}, object(tt.in), object(tt.want))
	}
	for _, p := range schema.Profiles() {
		check(t, schema.Rules{Profile: p},
			`{"type":"object","properties":{"a":{"type":"string","deprecated":true},"b":{"type":"string"}}}`,
			`{"type":"object","properties":{"b":{"type":"string"}}}`)
	}
	check(t, schema.Rules{}, `{"type":"object","properties":{"a":{"deprecated":true}},"required":["a"]}`,
		`{"type":"object","properties":{"a":{"deprecated":true}},"required":["a"]}`)
	check(t, schema.Rules{Without: []string{"oneOf"}}, object(`{"oneOf":[{"type":"string"},{"type":"integer"}]}`),
		object(`{"anyOf":[{"type":"string"},{"type":"integer"}]}`))
	check(t, schema.Rules{Profile: schema.Gemini}, `{"type":"object","$defs":{"s":{"type":"string"}},"properties":{"a":{"$id":"https://x.example/a","type":"integer"},"b":{"$ref":"#/$defs/s"}}}`,
		`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}}}`)
	check(t, schema.Rules{Profile: schema.OpenAI}, `{"type":"object","properties":{},"enum":[{}],"not":{}}`,
		`{"type":"object","properties":{}}`)
}

func TestOrder(t *testing.T) {
	t.Parallel()
	in := `{"type":"object","properties":{"path":{"type":"string","pattern":"x"},"old":{"type":"string"},"new":{"$ref":"#/$defs/n"}},"required":["path"],"$defs":{"n":{"type":"array","items":{"type":"string"}}}}`
	want := `{"type":"object","properties":{"path":{"type":"string"},"old":{"type":"string"},"new":{"type":"array","items":{"type":"string"}}},"required":["path"]}`
	if got := apply(t, schema.Rules{Profile: schema.Gemini}, in); string(got) != want {
		t.Errorf("the author's order changed:\n%s\nwant\n%s", got, want)
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	check(t, schema.Rules{}, `{"type":"object","properties":{"filter[id]":{"type":"string"},"filter.to":{"type":"object","properties":{"a b":{}}},"a.b-c_d":{}},"required":["filter[id]","a.b-c_d","other one"]}`,
		`{"type":"object","properties":{"filter_id_":{"type":"string"},"filter.to":{"type":"object","properties":{"a b":{}}},"a.b-c_d":{}},"required":["filter_id_","a.b-c_d","other one"]}`)
	check(t, schema.Rules{}, `{"type":"object","properties":{"a_b":{},"a-b":{}}}`,
		`{"type":"object","properties":{"a_b":{},"a-b":{}}}`)
	check(t, schema.Rules{Profile: schema.OpenAI}, `{"type":"object","properties":{"filter[id]":{"type":"string"}}}`,
		`{"type":"object","properties":{"filter[id]":{"type":"string"}}}`)
	for _, in := range []string{`{"a[b]":{},"a_b":{}}`, `{"a b":{},"a[b]":{}}`, `{"größe":{}}`, `{"[]":{}}`, `{"":{}}`,
		`{"` + strings.Repeat("x", 65) + `":{}}`} {
		if out, err := (schema.Rules{}).Apply(json.RawMessage(`{"type":"object","properties":` + in + `}`)); err == nil {
			t.Errorf("%s is %s", in, out)
		}
	}
}

// TestRelax converts schemas for validators in Go. A value that was valid stays valid.
func TestRelax(t *testing.T) {
	t.Parallel()
	const no = `"pattern":"^(?!x)"` // no pattern of Go
	for in, want := range map[string]string{
		`{"pattern":"^a"}`:                                                  `{"pattern":"^a"}`,
		`{"type":"string",` + no + `}`:                                      `{"type":"string"}`,
		`{"properties":{"a":{` + no + `}}}`:                                 `{"properties":{"a":{}}}`,
		`{"anyOf":[{` + no + `},{"minLength":2}]}`:                          `{"anyOf":[{},{"minLength":2}]}`,
		`{"not":{` + no + `}}`:                                              `{}`,
		`{"contains":{` + no + `}}`:                                         `{}`,
		`{"not":{"pattern":"^a"}}`:                                          `{"not":{"pattern":"^a"}}`,
		`{"oneOf":[{` + no + `},{}]}`:                                       `{"allOf":[{"anyOf":[{},{}]}]}`,
		`{"if":{` + no + `},"then":{"maxLength":1},"else":{"maxLength":2}}`: `{}`,
		`{"if":{"pattern":"^a"},"then":{` + no + `}}`:                       `{"if":{"pattern":"^a"},"then":{}}`,
		`{"patternProperties":{"^(?!x)":{"type":"string"}},"additionalProperties":false,"unevaluatedProperties":false}`: `{}`,
		`{"patternProperties":{"^x":{"type":"string"}},"additionalProperties":false}`:                                   `{"patternProperties":{"^x":{"type":"string"}},"additionalProperties":false}`,
		`{"$schema":"http://json-schema.org/draft-04/schema#"}`:                                                         `{"$schema":"http://json-schema.org/draft-07/schema#"}`,
		`{"$schema":"https://json-schema.org/draft/2019-09/schema"}`:                                                    `{"$schema":"https://json-schema.org/draft/2020-12/schema"}`,
	} {
		out, err := schema.Relax(json.RawMessage(in))
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		if d := cmp.Diff(decode(t, json.RawMessage(want)), decode(t, out)); d != "" {
			t.Errorf("%s (-want +got):\n%s", in, d)
		}
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"items":`, 200) + "{}" + strings.Repeat("}", 200)
	var wide, top strings.Builder // each definition refers twice to the next one
	for i := range 28 {
		fmt.Fprintf(&top, `"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	for i := range 18 {
		fmt.Fprintf(&wide, `"d%d":{"properties":{"a":{"$ref":"#/$defs/d%d"},"b":{"$ref":"#/$defs/d%d"}}},`, i, i+1, i+1)
	}
	for _, tt := range []struct{ in, want string }{
		{`{`, "JSON"}, {`{} {}`, "more than one"}, {`[]`, "not an object"}, {`"x"`, "not an object"},
		{`false`, "not an object"},
		{`{"type":"string"}`, "arguments are not an object"},
		{`{"anyOf":[{"type":"string"},{"type":"null"}]}`, "arguments are not an object"},
		{`{"properties":{"a":{"$ref":"https://x.example/schema"}}}`, "is not in the schema"},
		{`{"$ref":"#/$defs/none"}`, "is not in the schema"},
		{`{"properties":{"a":{"type":"any"}}}`, "invalid value of type"},
		{`{"properties":[1]}`, "invalid value of properties"},
		{`{"properties":{"a":{"format":5}}}`, "invalid value of format"},
		{`{"properties":{"a":{"pattern":{}}}}`, "invalid value of pattern"},
		{`{"properties":{"a":{"$ref":5}}}`, "invalid value of $ref"}, {`{"title":[]}`, "invalid value of title"},
		{`{"description":5}`, "invalid value of description"},
		{`{"properties":{"a":{"enum":"x"}}}`, "invalid value of enum"}, {`{"properties":{"a":{"anyOf":[]}}}`,
			"invalid value of anyOf"}, {`{"properties":{"a":{"items":5}}}`, "invalid value of items"},
		{`{"$defs":{"t":true},"$ref":"#/$defs/t"}`, "cannot be followed"},
		{`{"$defs":{"t":{"$id":"https://x.example/t","type":"object"}},"$ref":"https://x.example/t"}`, "cannot be followed"},
		{`{"properties":{"a":5}}`, "a number instead of a schema"}, {`{"required":"a"}`, "invalid value of required"},
		{deep, "deeper"}, {`{"description":"` + strings.Repeat("x", 300_000) + `"}`, "larger"},
		{`{"$defs":{` + wide.String() + `"d18":{}},"$ref":"#/$defs/d0"}`, "too large"},
		{`{"$defs":{` + top.String() + `"d28":{}},"$ref":"#/$defs/d0"}`, "too large"},
	} {
		r := schema.Rules{Profile: schema.Gemini}
		if out, err := r.Apply(json.RawMessage(tt.in)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.100s: %.200s, %v; want an error with %q", tt.in, out, err, tt.want)
		}
	}
}

func TestGolden(t *testing.T) {
	t.Parallel()
	in, err := os.ReadFile("testdata/calendar.json")
	if err != nil {
		t.Fatal(err)
	}
	every(func(r schema.Rules) {
		var got bytes.Buffer
		if err := json.Indent(&got, apply(t, r, string(in)), "", "  "); err != nil {
			t.Fatal(err)
		}
		got.WriteByte('\n')
		name := filepath.Join("testdata", "calendar."+r.Profile+".json")
		if *update {
			if err := os.WriteFile(name, got.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(name)
		if d := cmp.Diff(string(want), got.String()); err != nil || d != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, d)
		}
	})
}

func TestStrict(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]bool{
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`:                                                                                            true,
		`{"type":"object","properties":{},"required":[],"additionalProperties":false}`:                                                                                                                    true,
		`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`:                                                                                                             false,
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`:                                                                                                                         false,
		`{"type":"object","properties":{"a":{"type":"string","minLength":1}},"required":["a"],"additionalProperties":false}`:                                                                              false,
		`{"type":"object","properties":{"a":{"type":"array"}},"required":["a"],"additionalProperties":false}`:                                                                                             false,
		`{"type":"object","properties":{"a":{"type":"array","items":{"type":"object","properties":{"b":{"type":"string"}},"additionalProperties":false}}},"required":["a"],"additionalProperties":false}`: false,
		`{"type":"object","properties":{"a":{}},"required":["a"],"additionalProperties":false}`:                                                                                                           false,
	} {
		if got := schema.Strict(json.RawMessage(in)); got != want {
			t.Errorf("Strict(%s) = %v", in, got)
		}
	}
}

func TestWithin(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		schema, value string
		want          bool
	}{
		{`{"type":"object"}`, `{}`, true},
		{`{"$ref":"#"}`, `{}`, false},
		{`{"allOf":[{"$dynamicRef":"#a"}],"$dynamicAnchor":"a"}`, `{}`, false},
		{`{"properties":{"a":{"$ref":"#"}}}`, `{"a":{"a":{}}}`, true},
		{`{"anyOf":[{"properties":{"a":{"$ref":"#"}}},{"properties":{"a":{"$ref":"#"}}}]}`, strings.Repeat(`{"a":`, 5) +
			"{}" + strings.Repeat("}", 5), true},
		{`{"anyOf":[{"properties":{"a":{"$ref":"#"}}},{"properties":{"a":{"$ref":"#"}}}]}`, strings.Repeat(`{"a":`, 30) +
			"{}" + strings.Repeat("}", 30), false},
	} {
		d, err := schema.Read(json.RawMessage(tt.schema))
		if err != nil {
			t.Fatal(err)
		}
		if got := d.WithinSteps(decode(t, json.RawMessage(tt.value)), 100_000); got != tt.want {
			t.Errorf("%s of %s: %v", tt.schema, tt.value, got)
		}
	}
}

// forbidden returns the keywords in a schema that the rules do not allow, from
// an independent list.
func forbidden(r schema.Rules, s any, top bool) []string {
	m, ok := s.(map[string]any)
	if !ok {
		return nil
	}
	var bad []string
	for k, v := range m {
		switch {
		case top && slices.Contains([]string{"anyOf", "oneOf", "allOf", "$ref"}, k),
			r.Profile == schema.Gemini && !slices.Contains([]string{"type", "title", "description", "default", "enum", "items",
				"properties", "required", "nullable"}, k),
			r.Profile == schema.DeepSeek && (k == "anyOf" || k == "oneOf"),
			r.Profile == schema.LlamaCPP && k == "pattern":
			bad = append(bad, k)
		}
		switch k {
		case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies":
			sub, _ := v.(map[string]any)
			for _, s := range sub {
				bad = append(bad, forbidden(r, s, false)...)
			}
		case "items", "not", "if", "then", "else", "contains", "additionalProperties", "propertyNames", "anyOf", "oneOf",
			"allOf", "prefixItems":
			if l, ok := v.([]any); ok {
				for _, s := range l {
					bad = append(bad, forbidden(r, s, false)...)
				}
			}
			bad = append(bad, forbidden(r, v, false)...)
		case "type":
			if _, ok := v.(string); !ok && r.Profile == schema.Gemini {
				bad = append(bad, "a list of types")
			}
		}
	}
	return bad
}

func FuzzApply(f *testing.F) {
	golden, err := os.ReadFile("testdata/calendar.json")
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{
		string(golden), `{}`, `true`, `{"a":{"type":"string"}}`,
		`{"$ref":"#/$defs/a","$defs":{"a":{"properties":{"b":{"$ref":"#"}}}}}`,
		`{"anyOf":[{"oneOf":[{"required":["a"]},{"properties":{"a":{"const":1}}}]},{"properties":{"a":{"const":null}}}]}`,
		`{"properties":{"a":{"allOf":[{"anyOf":[{"type":"null"},true]},{"enum":["",1]}],"$id":"x","$anchor":"y"},"b":{"$ref":"x#y"}}}`,
		`{"properties":{"a":{"items":[{},false],"type":["array","null"]},"b":{"dependencies":{"a":["b"],"c":{"$dynamicRef":"#"}}}}}`,
		`{"properties":{"a":{"type":"string","required":true}},"required":["a","a"],"$defs":{"~1/":{"$ref":"#/$defs/~01~1"}}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		every(func(r schema.Rules) {
			out, err := r.Apply(in)
			if err != nil {
				return
			}
			v, ok := decode(t, out).(map[string]any)
			if _, hasProperties := v["properties"].(map[string]any); !ok || v["type"] != "object" || !hasProperties {
				t.Fatalf("%s: not an object schema: %s", r.Profile, out)
			}
			if bad := forbidden(r, v, true); bad != nil {
				t.Fatalf("%s: %v in %s of %s", r.Profile, bad, out, in)
			}
			if len(out) > 256<<10 {
				t.Fatalf("%s: %d bytes", r.Profile, len(out))
			}
			again, err := r.Apply(out)
			if err != nil || !bytes.Equal(out, again) {
				t.Fatalf("%s: again %v\n%s\n%s\n%s", r.Profile, err, in, out, again)
			}
		})
	})
}
