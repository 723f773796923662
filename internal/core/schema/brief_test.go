package schema_test

import (
	"encoding/json"
	"testing"

	"github.com/chela-ai/chela/internal/core/schema"
)

func TestBrief(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"type":"object","properties":{"b":{"type":"string","minLength":1,"pattern":"^x"},"a":{"type":"integer","minimum":0,"maximum":9}},"required":["b"],"additionalProperties":false}`:                    `{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"integer"}},"required":["b"]}`,
		`{"type":"object","properties":{"a":{"type":"string","minLength":1}},"required":["a"],"additionalProperties":false}`:                                                                                  `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`,
		`{"type":"object","properties":{"old":{"type":"string","deprecated":true},"must":{"type":"string","deprecated":true}},"required":["must"]}`:                                                           `{"type":"object","properties":{"must":{"type":"string","deprecated":true}},"required":["must"]}`,
		`{"type":"object","properties":{"env":{"type":"object","additionalProperties":{"type":"string"}}}}`:                                                                                                   `{"type":"object","properties":{"env":{"type":"object","additionalProperties":{"type":"string"}}}}`,
		`{"type":"object","properties":{"pattern":{"type":"string"},"list":{"type":"array","maxItems":3,"items":{"type":"object","properties":{"minimum":{"type":"number"}},"additionalProperties":false}}}}`: `{"type":"object","properties":{"pattern":{"type":"string"},"list":{"type":"array","items":{"type":"object","properties":{"minimum":{"type":"number"}}}}}}`,
		`not JSON`: `not JSON`,
	} {
		if got := string(schema.Brief(json.RawMessage(in))); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", in, got, want)
		}
	}
}
