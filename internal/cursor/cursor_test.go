package cursor

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestJSON(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		in   string
		text string
		n    int
		ok   bool
	}{
		{`{"text":"a","n":7}`, "a", 7, true},
		{" {\t\"n\" : 0 , \"x\":[1,{\"y\":null},[]], \"text\":\"\\u00e9\\n\" }\n", "é\n", 0, true},
		{`{"text":"世界","e":-1.5e+3,"f":true,"g":{}}`, "世界", 0, true},
		{"{\"text\":\"a\xffb\"}", "a\ufffdb", 0, true},
		{`{"text":"\ud800x"}`, "\ufffdx", 0, true},
		{`{}`, "", 0, true},
		{`{"Text":"a"}`, "", 0, false},
		{`{"te\u0078t":"a"}`, "", 0, false},
		{`{"n":01}`, "", 0, false},
		{`{"n":-1}`, "", 0, false},
		{`{"n":1.5}`, "", 0, false},
		{`{"n":12345678901}`, "", 0, false},
		{`{"text":"a",}`, "", 0, false},
		{`{,"text":"a"}`, "", 0, false},
		{`{"text" "a"}`, "", 0, false},
		{`{"text":"a"}x`, "", 0, false},
		{`{"text":"a`, "", 0, false},
		{`{"text":"a` + "\n" + `"}`, "", 0, false},
		{`{"x":1.}`, "", 0, false},
		{`{"x":nul}`, "", 0, false},
		{`{"x":"\q"}`, "", 0, false},
		{`{"x":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}`, "", 0, false},
		{``, "", 0, false},
		{`[]`, "", 0, false},
	} {
		c := New([]byte(tt.in))
		text, n := "", 0
		for c.Enter('{'); c.More('}'); {
			switch string(c.Key()) {
			case "text":
				text = c.Text()
			case "n":
				n = c.Int()
			default:
				c.Skip()
			}
		}
		if ok := c.Done(); ok != tt.ok || ok && (text != tt.text || n != tt.n) {
			t.Errorf("%s: %q, %d, %v; want %q, %d, %v", tt.in, text, n, ok, tt.text, tt.n, tt.ok)
		}
	}
}

// FuzzJSON: what is plain is JSON, and its text is what encoding/json reads.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{`{"text":"a\n","x":[1,{"y":-2.5e3}]}`, `{"text":"","text":"b"}`, "{\"text\":\"\xff\"}", `{"x":tru}`, `{"text":"\ud83d\ude00"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		c := New(in)
		var got []string
		for c.Enter('{'); c.More('}'); {
			switch string(c.Key()) {
			case "text":
				got = append(got, c.Text())
			default:
				c.Skip()
			}
		}
		if !c.Done() {
			return
		}
		var want struct {
			Text *string `json:"text"`
		}
		if err := json.Unmarshal(in, &want); err != nil {
			t.Fatalf("%q is no JSON of that kind: %v", in, err)
		}
		if n := len(got); n > 0 && got[n-1] != *want.Text {
			t.Errorf("%q: %q, want %q", in, got[n-1], *want.Text)
		}
	})
}
