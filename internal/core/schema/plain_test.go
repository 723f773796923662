package schema_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/chela-ai/chela/internal/core/schema"
)

func TestPlain(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		`{}`: false, // Object adds to it
		`{"type":"object","properties":{"a":{"type":"array","items":{"type":"string","enum":["x"],"minLength":1}},"b":{"type":"integer","minimum":0,` +
			`"maximum":15,"description":"B","title":"b"}},"required":["a"],"additionalProperties":false}`: true,
		`{"type":"object","additionalProperties":{"type":"string"}}`:                       true,
		`{"type":"object","properties":{"a":{"$ref":"#"}}}`:                                false,
		`{"type":"object","properties":{"a":{"pattern":"(?!a)"}}}`:                         false,
		`{"type":"object","properties":{"a":{"pattern":"^a+$","type":["null","string"]}}}`: true,
		`{"type":["object","null"]}`:                                                       false,
		`{"type":"object","properties":{"a":{"anyOf":[]}}}`:                                false,
		`{"type":"object","properties":{"a":true}}`:                                        false,
		`{"type":"object","properties":[]}`:                                                false,
		`{"type":"object","properties":{"a":{"deprecated":true}}}`:                         true,
		`{"type":"object","properties":{"a":{"deprecated":1}}}`:                            false,
		`{"type":"thing"}`:                                          false,
		`{"type":"object","minimum":1.5}`:                           false, // plain, but rare
		`{"a":{"type":"string"},"type":{"type":"string"}}`:          false,
		`{"type":["thing"]}`:                                        false,
		`{"type":"object","description":1}`:                         false,
		`{"type":"object","minLength":-1}`:                          false,
		`{"type":"object","minLength":1.5}`:                         false,
		`{"type":"object","minLength":9999999999}`:                  false,
		`{"type":"object","minimum":"1"}`:                           false,
		`{"type":"object","enum":1}`:                                false,
		`{"type":"object","items":[{}]}`:                            false,
		`{"type":"object","additionalProperties":{"$ref":"#"}}`:     false,
		`{"type":"object","Type":"object"}`:                         false,
		`{"type":"object","properties":{"a":{"required":true}}}`:    false,
		`{"type":"object","properties":{"a":{"items":{"not":{}}}}}`: false,
		`{"type":"object","required":[1]}`:                          false,
		`{"a":{"type":"string"}}`:                                   false,
		`{"type":"object"`:                                          false,
	} {
		if got := schema.Plain(json.RawMessage(text)); got != want {
			t.Errorf("%s: plain %v, want %v", text, got, want)
		}
	}
}

// FuzzPlain checks that a validator accepts every plain schema unchanged.
func FuzzPlain(f *testing.F) {
	for _, text := range []string{
		`{"type":"object","properties":{"a":{"type":"array","items":{"enum":[1,null],"minLength":1}}},"required":["a"],"additionalProperties":{}}`,
		`{"type":"object","minimum":1e400}`, `{"type":["object","object"],"pattern":"a{1000}{3}|\\pL"}`,
		`{"type":"object","maxItems":007}`, `{"properties":{"":{"type":"null"}}}`, "{\"title\":\"\xff\"}",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if !schema.Plain(text) {
			return
		}
		if same, err := schema.Object(text); err != nil || !bytes.Equal(same, text) {
			t.Errorf("Object(%s) = %s, %v", text, same, err)
		}
		if same, err := schema.Relax(text); err != nil || !bytes.Equal(same, text) {
			t.Errorf("Relax(%s) = %s, %v", text, same, err)
		}
		var s jsonschema.Schema
		if err := json.Unmarshal(text, &s); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if _, err := s.Resolve(nil); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	})
}
