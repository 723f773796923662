package json5

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestToJSON(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ in, want string }{
		{"{}", "{}"},
		{"\ufeff[1,]", "[1]"},
		{"{a:1,b_$:2,'c d':3,\"e\":4,}", `{"a":1,"b_$":2,"c d":3,"e":4}`},
		{"{ключ: 'значение', \\u0061b: 1}", `{"ключ":"значение","ab":1}`},
		{"[.5, 5., +1, -.5, 1e3, 5.e-3, 0, -0]", "[0.5,5,1,-0.5,1e3,5e-3,0,-0]"},
		{"[0xff, -0XdecAF, 0xffffffffffffffffffff]", "[255,-912559,1208925819614629174706175]"},
		{`['it\'s', "say \"hi\"", 'a"b']`, `["it's","say \"hi\"","a\"b"]`},
		{`['\x41\u0042\v\f\b\0\t\n\r\q\/']`, `["AB\u000b\u000c\u0008\u0000\t\n\rq/"]`},
		{"'a\\\nb\\\r\nc\\\u2028d'", `"abcd"`},
		{"'a\u2028b'", `"a\u2028b"`},
		{`"\ud83d\ude00 \ud83d \ude00\ud83d\u0041"`, `"😀 ` + "\ufffd \ufffd\ufffd" + `A"`},
		{"// c\n[1, /* 2, */ 3] // end", "[1,3]"},
		{"/**/[\u00a0\v\f\u2003null,true,false\u2029]", "[null,true,false]"},
		{"{a:1,a:2}", `{"a":1,"a":2}`},
		{"{null:1,true:2,Infinity:3}", `{"null":1,"true":2,"Infinity":3}`},
		{"'\t'", `"\t"`},
	} {
		got, err := ToJSON([]byte(tc.in))
		if err != nil || string(got) != tc.want {
			t.Errorf("ToJSON(%q) = %s, %v; want %s", tc.in, got, err, tc.want)
		}
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		in        string
		line, col int
		reason    string
	}{
		{"", 1, 1, "the source ends where a value is expected"},
		{"{\n  a: 1\n  b: 2\n}", 3, 3, `'b' where a comma or '}' is expected`},
		{"{a: hello}", 1, 5, `"hello" is not a value; text needs quotes`},
		{"{a: 'x\n'}", 1, 5, "this string is not closed in its line"},
		{"{a: 'x", 1, 5, "this string is never closed"},
		{"['\\", 1, 3, "this string is never closed"},
		{"[1, /* x", 1, 5, "this comment is never closed"},
		{"[1", 1, 1, `this '[' is never closed`},
		{"{a 1}", 1, 4, `want a colon after the key "a"`},
		{"{,}", 1, 2, `',' where a key is expected`},
		{"[,]", 1, 2, `',' where a value is expected`},
		{"[1,,2]", 1, 4, `',' where a value is expected`},
		{"010", 1, 1, "a number cannot begin with 0"},
		{"[1.2.3]", 1, 5, `'.' cannot follow a number`},
		{"1e", 1, 3, "want the digits of the exponent here"},
		{"0x", 1, 3, "want 1 to 256 hexadecimal digits here"},
		{".", 1, 1, "want a number here"},
		{"+Inf", 1, 2, `"Inf" is not a number`},
		{"[1] 2", 1, 5, `'2' after the end of the value`},
		{`"\1"`, 1, 2, `unknown escape \1`},
		{`"\xZZ"`, 1, 4, "want 2 hexadecimal digits here"},
		{`{a\x: 1}`, 1, 3, `only \u escapes are allowed in a key without quotes`},
		{"{é: [1, Infinity]}", 1, 9, "Infinity has no JSON form"},
		{"-Infinity", 1, 1, "-Infinity has no JSON form"},
		{"NaN", 1, 1, "NaN has no JSON form"},
		{"\xff\xfe{\x00}\x00", 1, 1, "the text is UTF-16; save it as UTF-8"},
		{"\x00", 1, 1, `'\x00' where a value is expected`},
	} {
		_, err := ToJSON([]byte(tc.in))
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("ToJSON(%q): error %v, want an *Error", tc.in, err)
			continue
		}
		if e.Line != tc.line || e.Column != tc.col || !strings.HasPrefix(e.Reason, tc.reason) {
			t.Errorf("ToJSON(%q): %v; want line %d, column %d: %s", tc.in, e, tc.line, tc.col, tc.reason)
		}
	}
}

func TestBounds(t *testing.T) {
	t.Parallel()
	if _, err := Parse([]byte(strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth))); err != nil {
		t.Errorf("depth %d: %v", MaxDepth, err)
	}
	if _, err := Parse([]byte(strings.Repeat("[", MaxDepth+1) + strings.Repeat("]", MaxDepth+1))); err == nil {
		t.Errorf("depth %d was accepted", MaxDepth+1)
	}
	if _, err := Parse([]byte(strings.Repeat("[", 1_000_000))); err == nil {
		t.Error("a million brackets were accepted")
	}
	if _, err := Parse(bytes.Repeat([]byte(" "), MaxSize+1)); err == nil {
		t.Error("a source beyond MaxSize was accepted")
	}
}

func TestSet(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, in, path, value, want string }{
		{"replace keeps comments", "{\n  // port\n  port: 1, // why\n}", "port", "2", "{\n  // port\n  port: 2, // why\n}"},
		{"add after a trailing comma", "{\n  a: 1, // one\n}\n", "b", "2", "{\n  a: 1, // one\n  b: 2,\n}\n"},
		{"add without a trailing comma", "{\n  a: 1 // one\n}\n", "b", "2", "{\n  a: 1, // one\n  b: 2\n}\n"},
		{"add to a line", "{a: 1}", "b", "2", "{a: 1, b: 2}"},
		{"add to a line with a comma", "{a: 1,}", "b", "2", "{a: 1, b: 2,}"},
		{"quotes of the neighbours", "{'a': 'x'}", "b", `"it's"`, `{'a': 'x', 'b': 'it\'s'}`},
		{"double quotes", `{"a": "x"}`, "b", `"y"`, `{"a": "x", "b": "y"}`},
		{"a key that needs quotes", "{a: 1}", "b-c", "2", `{a: 1, "b-c": 2}`},
		{"objects on the way", "{\n\ta: {\n\t\tb: 1,\n\t},\n}", "a/c/d", "true",
			"{\n\ta: {\n\t\tb: 1,\n\t\tc: {\n\t\t\td: true\n\t\t},\n\t},\n}"},
		{"empty document", "{}", "a", "1", "{\n  \"a\": 1\n}"},
		{"empty with comment", "{\n  // nothing yet\n}", "a", "1", "{\n  // nothing yet\n  \"a\": 1\n}"},
		{"empty object in a line", "{a: {}}", "a/b", "1", "{a: {b: 1}}"},
		{"null in the way", "{a: null}", "a/b", "1", "{a: {\n  b: 1\n}}"},
		{"element", "[1, 2, 3]", "1", `"x"`, `[1, "x", 3]`},
		{"element at the end", "[\n  1\n]", "1", "2", "[\n  1,\n  2\n]"},
		{"the last of equal keys", "{a: 1, a: 2}", "a", "3", "{a: 1, a: 3}"},
		{"carriage returns", "{\r\n  a: 1,\r\n}\r\n", "b", "2", "{\r\n  a: 1,\r\n  b: 2,\r\n}\r\n"},
		{"block comment in the line", "{\n  a: 1 /* one */ /* two */\n}", "b", "2",
			"{\n  a: 1, /* one */ /* two */\n  b: 2\n}"},
		{"root", " 1 // x", "", "2", " 2 // x"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d, err := Parse([]byte(tc.in))
			if err != nil {
				t.Fatal(err)
			}
			got, err := d.Set(split(tc.path), []byte(tc.value))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestSetErrors(t *testing.T) {
	t.Parallel()
	d, err := Parse([]byte("{a: 'x', l: [1]}"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"a/b", "l/2", "l/x", "l/01"} {
		if got, err := d.Set(split(path), []byte("1")); err == nil {
			t.Errorf("Set(%s) = %s, want an error", path, got)
		}
	}
	if _, err := d.Set(split("a"), []byte("{a:1}")); err == nil {
		t.Error("Set accepted an invalid JSON value")
	}
}

func TestUnset(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, in, path, want string }{
		{"line", "{\n  a: 1,\n  b: 2,\n}", "a", "{\n  b: 2,\n}"},
		{"last line", "{\n  a: 1,\n  b: 2,\n}", "b", "{\n  a: 1,\n}"},
		{"last line without a comma", "{\n  a: 1,\n  b: 2\n}", "b", "{\n  a: 1\n}"},
		{"first in a line", "{a: 1, b: 2}", "a", "{b: 2}"},
		{"last in a line", "{a: 1, b: 2}", "b", "{a: 1}"},
		{"comments remain", "{\n  // one\n  a: 1, // uno\n  b: 2\n}", "a", "{\n  // one\n   // uno\n  b: 2\n}"},
		{"comment before the comma", "{a: 1 /* x */, b: 2}", "a", "{ /* x */ b: 2}"},
		{"equal keys", "{a: 1, b: 2, a: 3}", "a", "{b: 2,}"},
		{"equal keys in a row", "{a: 1, a: 2}", "a", "{}"},
		{"element", "[1, 2, 3]", "1", "[1, 3]"},
		{"only", "{a: {b: 1}}", "a/b", "{a: {}}"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d, err := Parse([]byte(tc.in))
			if err != nil {
				t.Fatal(err)
			}
			got, ok := d.Unset(split(tc.path))
			if diff := cmp.Diff(tc.want, string(got)); !ok || diff != "" {
				t.Errorf("found %v; -want +got:\n%s", ok, diff)
			}
		})
	}
	d, _ := Parse([]byte("{a: 1}"))
	for _, path := range []string{"b", "a/b", "", "x/y"} {
		if got, ok := d.Unset(split(path)); ok || string(got) != "{a: 1}" {
			t.Errorf("Unset(%q) = %s, %v; want nothing changed", path, got, ok)
		}
	}
}

func split(path string) []string {
	if path == "" {
		return nil
	}
	return strings.Split(path, "/")
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"{}", "[1,.5,+0x1F,-Infinity,NaN]", "{a:'b',\"c\":[null,true]}//x", "'\\u0041\\x41\\\n'", "{\\u0061:1}",
		"\ufeff/* */ 1e5", `{"a":{"b":[1,2.5e-3,"\ud83d\ude00\ud800"]}}`, "[[[[", "\"\xff\"", "{a:1,,}",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		got, err := ToJSON(src)
		if err == nil && !json.Valid(got) {
			t.Fatalf("ToJSON(%q) = %q, which is not valid JSON", src, got)
		}
		var want any
		if json.Unmarshal(src, &want) != nil {
			return
		}
		if err != nil {
			if strings.Contains(err.Error(), "nested deeper") {
				return
			}
			t.Fatalf("ToJSON(%q): %v, but it is JSON", src, err)
		}
		var have any
		if err := json.Unmarshal(got, &have); err != nil || !reflect.DeepEqual(have, want) {
			t.Fatalf("ToJSON(%q) = %q (%v); want the same value", src, got, err)
		}
	})
}

func FuzzEdit(f *testing.F) {
	f.Add([]byte("{\n  // c\n  a: 1, // d\n  'b': {c: [1, 2]}, /* e */\n}"), "a/x", "k")
	f.Add([]byte("{a:{}} // end"), "a/b/c", "v")
	f.Add([]byte("[ /* x */ ]"), "0", "v")
	f.Add([]byte("{a:1 /* y */ , a:2 // z\n}"), "a", "v'\"")
	f.Add([]byte("null"), "a", "\u2028")
	f.Fuzz(func(t *testing.T, src []byte, path, text string) {
		d, err := Parse(src)
		if err != nil {
			return
		}
		steps := split(path)
		value, _ := json.Marshal(text)
		var want string
		_ = json.Unmarshal(value, &want)
		for i, s := range steps {
			steps[i] = strings.ToValidUTF8(s, "\ufffd")
		}
		set, err := d.Set(steps, value)
		if err != nil {
			return
		}
		e, err := Parse(set)
		if err != nil {
			t.Fatalf("Set(%q) of %q = %q: %v", steps, src, set, err)
		}
		n := e.Get(steps...)
		if n == nil || n.Kind != String || n.Text != want {
			t.Fatalf("Set(%q, %q) of %q = %q: the value is missing", steps, want, src, set)
		}
		if had := d.Get(steps...); had == nil {
			checkComments(t, d, nil, set)
		}
		if len(steps) == 0 {
			return
		}
		unset, ok := e.Unset(steps)
		u, err := Parse(unset)
		if !ok || err != nil {
			t.Fatalf("Unset(%q) of %q = %q, %v, %v", steps, set, unset, ok, err)
		}
		if e.Get(steps[:len(steps)-1]...).Kind == Object && u.Get(steps...) != nil {
			t.Fatalf("Unset(%q) of %q = %q: the value is still there", steps, set, unset)
		}
		checkComments(t, e, steps, unset)
	})
}

// checkComments fails if a comment of d outside the slots at cut is missing from
// after, or out of order.
func checkComments(t *testing.T, d *Document, cut []string, after []byte) {
	t.Helper()
	src := bytes.Clone(d.src)
	if len(cut) > 0 {
		n, key := d.Get(cut[:len(cut)-1]...), cut[len(cut)-1]
		for i, s := range n.Slots {
			if i == n.find(key) || n.Kind == Object && s.Key == key {
				copy(src[s.Pos:s.Value.End], bytes.Repeat([]byte(" "), s.Value.End-s.Pos))
			}
		}
	}
	rest := after
	for _, c := range comments(src) {
		i := bytes.Index(rest, c)
		if i < 0 {
			t.Fatalf("the comment %q of %q is lost in %q", c, src, after)
		}
		rest = rest[i+len(c):]
	}
}

// comments returns the comments of a source that parses.
func comments(src []byte) [][]byte {
	var out [][]byte
	s := &scanner{src: src}
	for s.pos < len(src) {
		switch rest := src[s.pos:]; {
		case rest[0] == '"' || rest[0] == '\'':
			s.quoted()
		case bytes.HasPrefix(rest, []byte("//")):
			n := lineComment(rest)
			out = append(out, rest[:n])
			s.pos += n
		case bytes.HasPrefix(rest, []byte("/*")):
			n := blockComment(rest)
			out = append(out, rest[:n])
			s.pos += n
		default:
			s.pos++
		}
	}
	return out
}
