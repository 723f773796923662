package dialect

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/core/llm"
)

func TestBody(t *testing.T) {
	t.Parallel()
	long := []byte(strings.Repeat("x", 2<<10) + "!")
	b := &Body{}
	b.Add([]byte("one "))
	b.Add(nil)
	b.AddString("two!")
	b.Trim(1)
	b.AddString(" ")
	b.Add(long)
	b.Trim(1)
	b.AddString("?") // must not modify the caller's piece
	b.AddString(strings.Repeat("y", 100<<10))
	for range 5000 { // fills several chunks
		b.AddString(" and on and on")
	}
	want := "one two " + strings.Repeat("x", 2<<10) + "?" + strings.Repeat("y", 100<<10) +
		strings.Repeat(" and on and on", 5000)
	if got := string(b.Bytes()); got != want || b.Size() != len(want) {
		t.Errorf("body of %d bytes, size %d; want %d", len(got), b.Size(), len(want))
	}
	if long[len(long)-1] != '!' {
		t.Error("the caller's piece was modified")
	}
	for range 2 {
		if err := iotest.TestReader(b.Reader(), []byte(want)); err != nil {
			t.Error(err)
		}
	}
}

func TestObject(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, params, want string }{
		{"none", ``, `{"a":"x","n":1,"f":0.5,"r":{},"list":`},
		{"replaced at its position", `{"n": {"b": 2}}`, `{"a":"x","n":{"b":2},"f":0.5,"r":{},"list":`},
		{"left out", `{"n":null,"f":null}`, `{"a":"x","r":{},"list":`},
		{"more, sorted", `{"z":1,"y":[2],"x":null}`, `{"a":"x","n":1,"f":0.5,"r":{},"y":[2],"z":1,"list":`},
		{"owned", `{"a":"y","list":[]}`, `{"a":"x","n":1,"f":0.5,"r":{},"list":`},
	} {
		o, err := NewObject(json.RawMessage(tt.params), "a", "list")
		if err != nil {
			t.Fatal(err)
		}
		o.String("a", "x")
		o.String("empty", "")
		o.Int("n", 1)
		o.Float("f", 0.5)
		o.Piece("r", []byte("{}"))
		o.Raw("none", "")
		if got := string(o.Body("list").Bytes()); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
	o, err := NewObject(nil)
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", 2<<10)
	o.Piece("long", []byte(`"`+long+`"`))
	o.Int("n", 1)
	if got, want := string(o.Body("list").Bytes()), `{"long":"`+long+`","n":1,"list":`; got != want {
		t.Errorf("with a long piece: %s, want %s", got, want)
	}
	if _, err := NewObject(json.RawMessage(`[]`)); err == nil {
		t.Error("no error for params that are a list")
	}
}

func TestKept(t *testing.T) {
	t.Parallel()
	var k Memo[string]
	n := 0
	enc := func(s string) []byte { n++; return []byte("<" + s + ">") }
	same := func(a, b string) bool { return a == b }
	for i, c := range []struct {
		s    string
		made int
	}{{"a", 1}, {"a", 1}, {"b", 2}, {"a", 3}} {
		if got := string(k.Encode(c.s, same, enc)); got != "<"+c.s+">" || n != c.made {
			t.Errorf("%d: got %s, encoded %d times, want %d", i, got, n, c.made)
		}
	}
}

func TestArgs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, want string }{
		{`{"a": 1,  "b":[1, 2]}`, `{"a":1,"b":[1,2]}`},
		{` {"z":1,"a":2} `, `{"z":1,"a":2}`},
		{``, `{}`},
		{`{"a":`, `{}`},
		{`null`, `{"value":null}`},
		{`[1, 2]`, `{"value":[1,2]}`},
		{`"x"`, `{"value":"x"}`},
		{`{"a":"\u00e9<"}`, `{"a":"é<"}`},
		{`{"n":12345678901234567890,"a":"\ud800<"}`, `{"n":12345678901234567890,"a":"` + "\ufffd" + `<"}`},
		{`{"a":"\ud83e\udd80"}`, `{"a":"🦀"}`},
		{"{\"a\":\"\xff\"}", `{"a":"` + "\ufffd" + `"}`},
	} {
		if got := string(Args(&llm.ToolCall{Args: json.RawMessage(tt.in)})); got != tt.want {
			t.Errorf("Args(%s) = %s, want %s", tt.in, got, tt.want)
		}
	}
}

func FuzzAppendString(f *testing.F) {
	for _, s := range []string{"", "plain", "\"\\\n\r\t\x00\x1f\x7f", "\xff\xfe", "世界\u2028<&>", "\xe4\xb8"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		enc := AppendString([]byte("x"), s)[1:]
		var got string
		if err := json.Unmarshal(enc, &got); err != nil {
			t.Fatalf("AppendString(%q) = %s: %v", s, enc, err)
		}
		want := string([]rune(s)) // each bad byte is one U+FFFD
		if got != want || !utf8.Valid(enc) {
			t.Errorf("AppendString(%q) = %s, which reads %q, want %q", s, enc, got, want)
		}
	})
}

func FuzzArgs(f *testing.F) {
	for _, s := range []string{`{"a":1}`, `[]`, `{"a":"\ud800"}`, "{\"\xff\":1}", `{`, `-0`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got := Args(&llm.ToolCall{Args: raw})
		var o map[string]json.RawMessage
		if err := json.Unmarshal(got, &o); err != nil || o == nil || !utf8.Valid(got) {
			t.Errorf("Args(%q) = %q: %v", raw, got, err)
		}
	})
}
