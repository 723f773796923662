package schema

import (
	"bytes"
	"testing"
)

// FuzzCommon checks that common schemas would be unchanged by the full
// conversion.
func FuzzCommon(f *testing.F) {
	for _, text := range []string{
		`{"type":"object","properties":{"a":{"type":"array","items":{"enum":["x"],"minLength":1}},"b":{"type":"object","additionalProperties":{"type":"string"}}},"required":["a","c"],"additionalProperties":false}`,
		`{"type":"object","properties":{"a_b":{"items":{},"title":""},"ab":{"type":"null","pattern":"x|y"}},"required":[]}`,
		`{"type":"object","properties":{"a":{"properties":{"":{"required":["x"]}}},"A":{"type":"array","maxItems":0}}}`,
		`{"type":"object","properties":{"a":{"type":["string","boolean"]},"b":{"type":["object"]},"c":{"type":["integer","number","integer"],"enum":["x"]}}}`,
		`{"type":"object","properties":{"a":{"type":["string","null"]}}}`,
		`{"type":"object","properties":{"a":{"type":["array","string"]}}}`,
		`{"type":"object","properties":{"type":{"type":"string"},"enum":{"enum":["",""]}},"properties":{},"minimum":0}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if plain, common := inspect(text); !plain || !common {
			return
		}
		for _, p := range Profiles() {
			r := Rules{Profile: p}
			if !r.common() {
				continue
			}
			if out, err := r.apply(text); err != nil || !bytes.Equal(out, text) {
				t.Errorf("%s: %s becomes %s, %v", p, text, out, err)
			}
		}
	})
}
