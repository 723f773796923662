package secret

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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
	if got := fmt.Sprintf("%v %d %s %s", v, v, v.GoString(), v.LogValue()); got !=
		strings.Join([]string{Redacted, Redacted, Redacted, Redacted}, " ") {
		t.Errorf("printed as %q", got)
	}
	if !strings.Contains(string(keyed), Redacted) || !strings.Contains(string(js), `"v":"`+Redacted+`"`) {
		t.Errorf("encoded as %s and %s", keyed, js)
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
	if err := v.UnmarshalText([]byte("def")); err != nil || v.Reveal() != "def" {
		t.Errorf("decoded text %q, %v", v.Reveal(), err)
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
	large := filepath.Join(dir, "large")
	if err := os.WriteFile(large, make([]byte, maxFile+1), 0o600); err != nil {
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
		{`{"source":"file","id":` + mustJSON(file) + `}`, "from file", "file:" + file, ""},
		{`"file:"`, "file:", Redacted, ""},
		{`"x-env:KEY"`, "x-env:KEY", Redacted, ""},
		{mustJSON("file:" + large), "", "file:" + large, "at most 65536 bytes"},
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
		if r.IsZero() != (tc.in == `""`) {
			t.Errorf("%s: zero: %v", tc.in, r.IsZero())
		}
		v, err := r.Resolve(env)
		if v.Reveal() != tc.want || r.String() != tc.show || (err == nil) != (tc.err == "") {
			t.Errorf("%s: %q, shown as %q, %v; want %q, %q, %q", tc.in, v.Reveal(), r, err, tc.want, tc.show, tc.err)
		}
		if err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: error %v, want %q", tc.in, err, tc.err)
		}
	}
	if r := (Ref{}); !r.IsZero() || r.String() != "" {
		t.Errorf("the zero reference: %q, zero: %v", r, r.IsZero())
	}
	for _, in := range []string{`1`, `{"source":"exec","id":"x"}`, `{"source":"env","id":"a b"}`,
		`{"source":"file","id":""}`, `{"source":"env","id":7}`} {
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
	in := `sk-abcdef sk-abc qu"ote/d "qu\"ote/d" qu%22ote%2Fd qu%22ote%2fd tiny`
	want := `[redacted] [redacted] [redacted] "[redacted]" [redacted] [redacted] tiny`
	if got := r.Redact(in); got != want {
		t.Errorf("Redact(%q)\n got %q\nwant %q", in, got, want)
	}
	for _, in := range []string{"sk-ab", "sk-abcdef", "x sk-abcsk-abcdefsk-ab"} {
		if got := r.Redact(in); got != strings.ReplaceAll(strings.ReplaceAll(in, "sk-abcdef", Redacted), "sk-abc", Redacted) {
			t.Errorf("Redact(%q) = %q", in, got)
		}
	}
}

func TestRedactForms(t *testing.T) {
	t.Parallel()
	const key = `k<3Y/+"&\ pâSs42`
	var r Redactor
	r.Add(New(key))
	back := []rune(key)
	slices.Reverse(back)
	encoded := []string{key, string(back), hex.EncodeToString([]byte(key)),
		strings.ToUpper(hex.EncodeToString([]byte(key))), url.QueryEscape(key), url.PathEscape(key), mustJSON(key)}
	var plain strings.Builder
	e := json.NewEncoder(&plain)
	e.SetEscapeHTML(false)
	if err := e.Encode(key); err != nil {
		t.Fatal(err)
	}
	encoded = append(encoded, plain.String())
	escape := regexp.MustCompile(`%..`)
	for _, s := range []string{url.QueryEscape(key), url.PathEscape(key)} {
		encoded = append(encoded, escape.ReplaceAllStringFunc(s, strings.ToLower))
	}
	for _, s := range encoded {
		if got := r.Redact("a " + s + " b"); strings.Count(got, Redacted) != 1 || len(got) > len(Redacted)+7 {
			t.Errorf("Redact(%q) = %q", s, got)
		}
	}
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding,
		base64.RawURLEncoding} {
		for _, before := range []string{"", "a", "ab", "abc", "user:"} {
			for _, after := range []string{"", "\n", "yz"} {
				s := enc.EncodeToString([]byte(before + key + after))
				got := strings.TrimRight(r.Redact(s), "=")
				// what remains are the characters that also encode a byte of the text around
				if rest := strings.Replace(got, Redacted, "", 1); rest == got || len(rest) > 2+(len(before)+len(after)+2)*8/6 {
					t.Errorf("Redact(%q of %q) = %q", s, before+"…"+after, got)
				}
			}
		}
	}
	const file = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\nAQEFAASCBKcwggSjAgEAAoIB\nshort line\n-----END PRIVATE KEY-----\n"
	r.Add(New(file))
	if got, want := r.Redact(
		"1: -----BEGIN PRIVATE KEY-----\n2: MIIEvQIBADANBgkqhkiG9w0B\n3: AQEFAASCBKcwggSjAgEAAoIB\n4: short line\n"),
		"1: -----BEGIN PRIVATE KEY-----\n2: [redacted]\n3: [redacted]\n4: short line\n"; got != want {
		t.Errorf("lines of a secret: %q", got)
	}
}

// TestCommon checks that values that occur in ordinary text do not mangle it.
func TestCommon(t *testing.T) {
	t.Parallel()
	var r Redactor
	for _, s := range []string{"true", "false", "12345678", "2024-01-01", "127.0.0.1", "password", "Password",
		"DEBUG", "abc12", "x"} {
		r.Add(New(s))
		if got := r.Redact("x is " + s + "."); got != "x is "+s+"." {
			t.Errorf("%q is redacted: %q", s, got)
		}
	}
	for _, s := range []string{"hunter2", "pass-word", "correct horse", "123456789012", "Zebraquartz", "abcdefghij"} {
		r.Add(New(s))
		if got := r.Redact("x is " + s + "."); got != "x is "+Redacted+"." {
			t.Errorf("%q is not redacted: %q", s, got)
		}
	}
}

func BenchmarkRedact(b *testing.B) {
	var r Redactor
	for i := range 20 {
		r.Add(New(fmt.Sprintf("sk-ant-%032x", i*7919)))
	}
	text := strings.Repeat("func main() { fmt.Println(\"hello, world\", os.Args[1:]) } // a line of ordinary text\n", 800)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		r.Redact(text)
	}
}
