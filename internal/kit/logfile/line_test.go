package logfile

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		line string
		want Line
		ok   bool
	}{
		{`{"time":"T","level":"INFO","msg":"up","url":"ws://x","n":3,"args":"{\"a\": 1}"}`,
			Line{"T", "INFO", "up", `url=ws://x n=3 args="{\"a\": 1}"`}, true},
		{`{"level":"WARN","msg":"two words","empty":"","set":{"a":[1]},"no":null}`,
			Line{"", "WARN", "two words", `empty="" set={"a":[1]} no=null`}, true},
		{`{"level":"INFO"}`, Line{}, false},
		{`{"msg":"up"`, Line{}, false},
		{`{"msg":"up"} {}`, Line{}, false},
		{`["msg","up"]`, Line{}, false},
		{`panic: x`, Line{}, false},
		{``, Line{}, false},
	} {
		got, ok := Parse([]byte(tt.line))
		if !ok {
			got = Line{}
		}
		if got != tt.want || ok != tt.ok {
			t.Errorf("%s:\n got %+v, %v\nwant %+v, %v", tt.line, got, ok, tt.want, tt.ok)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, line := range []string{`{"time":"T","level":"INFO","msg":"up","n":3}`, `{"msg":"a","b":{"c":[null,"\ud800"]}}`,
		`{"msg":`, "{}", "x", ""} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		l, ok := Parse(line)
		if !ok {
			return
		}
		var attrs map[string]any
		if err := json.Unmarshal(line, &attrs); err != nil || l.Message == "" {
			t.Errorf("%q was parsed as a record with the message %q: %v", line, l.Message, err)
		}
		for _, name := range []string{"time", "level", "msg"} {
			delete(attrs, name)
		}
		for name := range attrs {
			if !strings.Contains(l.Attrs, name+"=") && strings.ToValidUTF8(name, "") == name {
				t.Errorf("%q: %q is missing: %q", line, name, l.Attrs)
			}
		}
	})
}
