package speech_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/core/speech"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ raw, older, want, err string }{
		{"", "", "off", ""},
		{`{"auto": "inbound"}`, `{"auto": "always"}`, "inbound", ""},
		{"", `{"auto": "always"}`, "always", ""},
		{`{"enabled": true}`, "", "always", ""},
		{`{"enabled": true, "auto": "tagged"}`, "", "tagged", ""},
		{`{"auto": "loud"}`, "", "", `tts.auto: "loud" is not one of`},
		{"", `{"auto": 1}`, "", "messages.tts"},
		{`{"providers": {"x": {"outputFormat": "flac"}}}`, "", "", "tts.providers.x: the format"},
	} {
		c, err := speech.Parse([]byte(tt.raw), []byte(tt.older))
		if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s %s: %v", tt.raw, tt.older, err)
		} else if err == nil && string(c.Auto) != tt.want {
			t.Errorf("%s %s: %s, want %s", tt.raw, tt.older, c.Auto, tt.want)
		}
	}
	c, err := speech.Parse([]byte(`{"timeoutMs": 5000, "providers": {"a": {"voiceId": " v ", "modelId": "m", "timeoutMs": 70000}, "b": {"baseUrl": "http://x"}}}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	a, b := c.Providers["a"], c.Providers["b"]
	if a.VoiceOf() != "v" || a.ModelOf() != "m" || c.Patience(a) != 70*time.Second ||
		c.Patience(b) != 5*time.Second || c.Limit() != 4000 {
		t.Errorf("%+v", c)
	}
	if u := c.URLs(); len(u) != 1 || u[0] != "http://x" || !c.Chosen() || (speech.Config{Auto: speech.Off}).Chosen() {
		t.Errorf("%v", u)
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain words":                                              "plain words",
		"# Title\n\n**Bold** and _thin_ `code`":                    "Title\n\nBold and thin code",
		"- one\n- [x] two\n1. three":                               "one\ntwo\n1. three",
		"a_snake_case and 3 * 4 * 5":                               "a_snake_case and 3 * 4 * 5",
		"see [the page](https://a.example/b) or https://c.example": "see the page or",
		"before\n```go\nx := 1\n```\nafter":                        "before\n\nafter",
		"open\n```\nnever closed":                                  "open",
		"> quoted\n\n---\n\nend":                                   "quoted\n\nend",
		"| a | b |\n|---|---|\n| 1 | 2 |":                          "a, b.\n\n1, 2.",
		"你好 **世界** 🎉":                                              "你好 世界",
		"\x1b[31mred\x07":                                          "[31mred",
		"":                                                         "",
	} {
		if got := speech.Words(in, 1000); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	for _, tt := range []struct {
		in   string
		most int
		want string
	}{
		{"One two. Three four. Five", 22, "One two. Three four."},
		{"第一句。第二句。第三句", 9, "第一句。第二句。"},
		{"no sentence ends in this text", 10, "no senten…"},
	} {
		if got := speech.Words(tt.in, tt.most); got != tt.want {
			t.Errorf("%q in %d: %q, want %q", tt.in, tt.most, got, tt.want)
		}
	}
}

func TestTags(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		in, clean, say string
		found          bool
	}{
		{"no tag [[reply_to_current]]", "no tag [[reply_to_current]]", "", false},
		{"hello [[tts]]", "hello", "", true},
		{"[[tts:voice=x speed=1.1]] hello", "hello", "", true},
		{"a\n[[tts:text]](laughs) again[[/tts:text]]\nb", "a\n\nb", "(laughs) again", true},
		{"[[tts:text]]one[[/tts:text]][[tts:text]]two[[/tts:text]]", "", "one\ntwo", true},
		{"[[tts:text]]open", "open", "", true},
		{"a [[ttsx]] b", "a [[ttsx]] b", "", false},
	} {
		if clean, say, found := speech.Tags(tt.in); clean != tt.clean || say != tt.say || found != tt.found {
			t.Errorf("%q: %q, %q, %v", tt.in, clean, say, found)
		}
	}
}

func FuzzWords(f *testing.F) {
	for _, s := range []string{"# a\n**b**", "```\nx", "| a |\n|-|", "[[tts:text]]x[[/tts:text]]",
		"[a](b) <https://c>", "长。句"} {
		f.Add(s, 10)
	}
	f.Fuzz(func(t *testing.T, md string, limit int) {
		limit = min(max(limit, 1), 5000)
		got := speech.Words(md, limit)
		if n := utf8.RuneCountInString(got); n > limit {
			t.Errorf("%d characters, at most %d", n, limit)
		}
		if utf8.ValidString(md) && !utf8.ValidString(got) {
			t.Errorf("%q", got)
		}
		clean, _, found := speech.Tags(md)
		if !found && clean != md {
			t.Errorf("changed without a tag: %q", clean)
		}
	})
}
