package secret

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const word = "hunter2-öß\"%41"

func TestValueNeverShows(t *testing.T) {
	t.Parallel()
	v := New(word)
	type holder struct {
		Public Value
		hidden Value
		list   []Value
		in     struct{ p *Value }
	}
	h := holder{v, v, []Value{v}, struct{ p *Value }{&v}}
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "v", v, "h", h)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "v", v, "h", h)
	js, err := json.Marshal(map[string]any{"v": v, "h": h})
	if err != nil {
		t.Fatal(err)
	}
	keyed, _ := json.Marshal(map[Value]int{v: 1})
	out := log.String() + string(js) + string(keyed) + v.String() + fmt.Sprint(v, h, &v)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%p", "%T", "%10.2s"} {
		out += fmt.Sprintf(verb, v) + fmt.Sprintf(verb, h) + fmt.Sprintf(verb, &h)
	}
	if strings.Contains(out, "hunter2") || strings.Contains(out, fmt.Sprintf("%x", "hunter2")) {
		t.Errorf("the secret shows: %s", out)
	}
	if got := v.Reveal(); got != word {
		t.Errorf("Reveal() = %q, want %q", got, word)
	}
	if got := (Value{}).String(); got != "" {
		t.Errorf("an empty value prints as %q, want nothing", got)
	}
}

func TestValueEqual(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		a, b string
		want bool
	}{{"a", "a", true}, {"a", "b", false}, {"a", "aa", false}, {"", "", false}, {"a", "", false}} {
		if got := New(tc.a).Equal(New(tc.b)); got != tc.want {
			t.Errorf("%q equal %q = %v, want %v", tc.a, tc.b, got, tc.want)
		}
	}
}

func TestValueDecodes(t *testing.T) {
	t.Parallel()
	var v Value
	if err := json.Unmarshal([]byte(`"abc"`), &v); err != nil || v.Reveal() != "abc" {
		t.Errorf("decoded %q, %v", v.Reveal(), err)
	}
	if err := json.Unmarshal([]byte(`4711471147114711`), &v); err == nil || strings.Contains(err.Error(), "4711") {
		t.Errorf("error %v, want one that does not contain the number", err)
	}
}

func TestRef(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "key")
	if err := os.WriteFile(file, []byte("from file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := func(k string) string { return map[string]string{"KEY": "from env"}[k] }
	for _, tc := range []struct{ in, want, show, err string }{
		{`"plain text"`, "plain text", Redacted, ""},
		{`"env:KEY"`, "from env", "env:KEY", ""},
		{`"env:no name"`, "env:no name", Redacted, ""},
		{`{"source":"env","provider":"default","id":"KEY"}`, "from env", "env:KEY", ""},
		{`"env:GONE"`, "", "env:GONE", "secret env:GONE: the variable is not set"},
		{mustJSON("file:" + file), "from file", "file:" + file, ""},
		{mustJSON("file:" + empty), "", "file:" + empty, "the file is empty"},
		{`"file:key"`, "", "file:key", "want an absolute path"},
		{mustJSON("file:" + dir), "", "file:" + dir, "want a file"},
		{mustJSON("file:" + dir + "/none"), "", "file:" + dir + "/none", "no such file"},
		{`""`, "", "", ""},
	} {
		var r Ref
		if err := json.Unmarshal([]byte(tc.in), &r); err != nil {
			t.Errorf("%s: %v", tc.in, err)
			continue
		}
		v, err := r.Resolve(env)
		if v.Reveal() != tc.want || r.String() != tc.show || (err == nil) != (tc.err == "") {
			t.Errorf("%s: %q, shown as %q, %v; want %q, %q, %q", tc.in, v.Reveal(), r, err, tc.want, tc.show, tc.err)
		}
		if err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: error %v, want %q", tc.in, err, tc.err)
		}
	}
	for _, in := range []string{`1`, `{"source":"exec","id":"x"}`, `{"source":"env","id":"a b"}`} {
		if err := json.Unmarshal([]byte(in), new(Ref)); err == nil {
			t.Errorf("%s was accepted, want an error", in)
		}
	}
}

func mustJSON(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func TestRedactor(t *testing.T) {
	t.Parallel()
	var r Redactor
	if got := r.Redact("as it is"); got != "as it is" {
		t.Errorf("Redact without secrets = %q", got)
	}
	r.Add(New("sk-abc"), New("sk-abcdef"), New(`qu"ote/d`), New("tiny"), Value{})
	in := `sk-abcdef sk-abc qu"ote/d "qu\"ote/d" qu%22ote%2Fd tiny`
	want := `[redacted] [redacted] [redacted] "[redacted]" [redacted] tiny`
	if got := r.Redact(in); got != want {
		t.Errorf("Redact(%q)\n got %q\nwant %q", in, got, want)
	}
}
