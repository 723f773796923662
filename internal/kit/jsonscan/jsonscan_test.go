package jsonscan

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestScanner(t *testing.T) {
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
		s := New([]byte(tt.in))
		text, n := "", 0
		for s.Enter('{'); s.More('}'); {
			switch string(s.Key()) {
			case "text":
				text = s.Text()
			case "n":
				n = s.Int()
			default:
				s.Skip()
			}
		}
		if ok := s.Done(); ok != tt.ok || ok && (text != tt.text || n != tt.n) {
			t.Errorf("%s: %q, %d, %v; want %q, %d, %v", tt.in, text, n, ok, tt.text, tt.n, tt.ok)
		}
	}
}

// FuzzScanner checks that every accepted input is valid JSON and that encoding/json
// reads the same text.
func FuzzScanner(f *testing.F) {
	for _, seed := range []string{`{"text":"a\n","x":[1,{"y":-2.5e3}]}`, `{"text":"","text":"b"}`, "{\"text\":\"\xff\"}", `{"x":tru}`, `{"text":"\ud83d\ude00"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		s := New(in)
		var got []string
		for s.Enter('{'); s.More('}'); {
			switch string(s.Key()) {
			case "text":
				got = append(got, s.Text())
			default:
				s.Skip()
			}
		}
		if !s.Done() {
			return
		}
		var want struct {
			Text *string `json:"text"`
		}
		if err := json.Unmarshal(in, &want); err != nil {
			t.Fatalf("%q is not valid JSON: %v", in, err)
		}
		if n := len(got); n > 0 && got[n-1] != *want.Text {
			t.Errorf("%q: %q, want %q", in, got[n-1], *want.Text)
		}
	})
}
