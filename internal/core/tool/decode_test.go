package tool_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/tool"
)

func TestDecode(t *testing.T) {
	t.Parallel()
	type args struct {
		Path  string   `json:"path"`
		Count int      `json:"count"`
		Names []string `json:"names"`
		In    struct {
			Deep *bool             `json:"deep"`
			Wait *float64          `json:"wait"`
			Env  map[string]string `json:"env"`
		} `json:"in"`
	}
	for _, tt := range []struct {
		args, err string
		want      args
	}{
		{args: `{}`},
		{args: ` {"path":"a","count":3,"names":["b"]} `, want: args{Path: "a", Count: 3, Names: []string{"b"}}},
		{args: `{"path":null}`},
		{args: ``, err: `arguments: want one JSON object`},
		{args: `null`, err: `arguments: want one JSON object`},
		{args: `["a"]`, err: `arguments: want one JSON object`},
		{args: `"a"`, err: `arguments: want one JSON object`},
		{args: `{"path":"a"`, err: `arguments: the JSON object is incomplete`},
		{args: `{"path":"a"}{}`, err: `arguments: unexpected data after the JSON object`},
		{args: `{"path":"a",}`, err: `arguments: invalid character '}' looking for beginning of object key string`},
		{args: `{"file":"a"}`, err: `arguments: unknown field "file"`},
		{args: `{"path":1}`, err: `arguments: "path" is number, want string`},
		{args: `{"count":"1"}`, err: `arguments: "count" is string, want integer`},
		{args: `{"count":1.5}`, err: `arguments: "count" is number 1.5, want integer`},
		{args: `{"names":"a"}`, err: `arguments: "names" is string, want array`},
		{args: `{"in":[]}`, err: `arguments: "in" is array, want object`},
		{args: `{"in":{"deep":"yes"}}`, err: `arguments: "in.deep" is string, want boolean`},
		{args: `{"in":{"wait":"5"}}`, err: `arguments: "in.wait" is string, want number`},
		{args: `{"in":{"env":[]}}`, err: `arguments: "in.env" is array, want object`},
	} {
		got, err := tool.Decode[args](json.RawMessage(tt.args))
		if text := errorText(err); text != tt.err {
			t.Errorf("Decode(%s): error %q, want %q", tt.args, text, tt.err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("Decode(%s): %s", tt.args, diff)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
