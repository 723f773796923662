package wire_test

import (
	"encoding/json"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/wire"
)

func TestMembers(t *testing.T) {
	t.Parallel()
	in := []byte(" { \"a\" : 1 , \"b\\\"\\\\\":[{\"x\":\"}]\\\\\"},null],\n\"c\":\"\\\\\\\"\", \"d\":{},\"e\":true}")
	var want map[string]json.RawMessage
	if err := json.Unmarshal(in, &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, maps.Collect(wire.Members(in))); diff != "" {
		t.Error(diff)
	}
	for _, v := range wire.Members(in) {
		v[0] = 'X' // v aliases the object
		break
	}
	if in[9] != 'X' {
		t.Errorf("%q: the value is a copy", in)
	}
	for _, none := range []string{``, ` `, `[1]`, `1`, `{}`, ` { } `, `null`} {
		for name := range wire.Members([]byte(none)) {
			t.Errorf("%q has %q", none, name)
		}
	}
}

func FuzzMembers(f *testing.F) {
	for _, s := range []string{`{"a":1}`, `{"a":{"b":["\"}"]},"a":2,"":""}`, `{"\u0061":"\\"}`,
		`{"a":-1.5e3 }`, `[]`, `{`, `{"a"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		got := maps.Collect(wire.Members(in)) // must return for any input
		if !json.Valid(in) {
			return
		}
		var want map[string]json.RawMessage
		if json.Unmarshal(in, &want) != nil || want == nil {
			want = map[string]json.RawMessage{}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%q (-want +got):\n%s", in, diff)
		}
	})
}
