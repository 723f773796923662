package markup

import (
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/kit/waittest"
)

var update = flag.Bool("update", false, "write the golden files")

// TestGolden renders each testdata/NAME.md and compares all results with NAME.golden.
func TestGolden(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.md")
	if err != nil || len(files) == 0 {
		t.Fatal("no test data", err)
	}
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		md := string(src)
		text, spans := Signal(md)
		got := fmt.Sprintf("== telegram\n%s\n== html\n%s\n== slack\n%s\n== discord\n%s\n== plain\n%s\n== signal\n%s\n%v\n",
			Telegram(md), HTML(md), Slack(md), Discord(md), Plain(md), text, spans)
		golden := strings.TrimSuffix(file, ".md") + ".golden"
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s: got\n%s\nwant\n%s", file, got, want)
		}
	}
}

func TestTexts(t *testing.T) {
	t.Parallel()
	const zero = "\u200b"
	for _, tt := range []struct{ md, telegram, slack, plain string }{
		{"", "", "", ""},
		{"two: <b>&amp; 汉字 😀", "two: &lt;b&gt;&amp;amp; 汉字 😀", "two: &lt;b&gt;&amp;amp; 汉字 😀", "two: <b>&amp; 汉字 😀"},
		{"2 < 3 & 4, snake_case", "2 &lt; 3 &amp; 4, snake_case", "2 &lt; 3 &amp; 4, snake_case", "2 < 3 & 4, snake_case"},
		{"2 * 3 * 4, ~/x", "2 * 3 * 4, ~/x", "2 * 3 * 4, ~/x", "2 * 3 * 4, ~/x"},
		{"a*b*c", "a<i>b</i>c", "a" + zero + "_b_" + zero + "c", "abc"},
		{"one\ntwo", "one\ntwo", "one\ntwo", "one\ntwo"},
		{"**a\nb**", "<b>a\nb</b>", "*a*\n*b*", "a\nb"},
		{`\*no\* \> x`, "*no* &gt; x", "*" + zero + "no* &gt; x", "*no* > x"},
		{`\> x`, "&gt; x", zero + "&gt; x", "> x"},
		{"<!everyone> <@U1> @here", "&lt;!everyone&gt; &lt;@U1&gt; @here", "&lt;!everyone&gt; &lt;@U1&gt; @here",
			"<!everyone> <@U1> @here"},
		{"[x](!everyone) [y](@U1)", "x (!everyone) y (@U1)", "x (!everyone) y (@U1)", "x (!everyone) y (@U1)"},
		{"[x](javascript:alert) [y](#z)", "x (javascript:alert) y", "x (javascript:alert) y", "x (javascript:alert) y"},
		{"[a|b>](https://x.y/|z>?a=1&b=2)", `<a href="https://x.y/%7Cz%3E?a=1&amp;b=2">a|b&gt;</a>`,
			"<https://x.y/%7Cz%3E?a=1&amp;b=2|a|b&gt;>", "a|b> (https://x.y/%7Cz%3E?a=1&b=2)"},
		{"``a`b``", "<code>a`b</code>", "a`b", "a`b"},
		{"```\n``` x\n```", "<pre>``` x</pre>", "```\n``" + zero + "` x\n```", "``` x"},
		{"```\n```", "```\n```", "```\n```", "```\n```"},
		{"[](x)", "x", "x", "x"},
		{"[2]: https://z", `[2]: <a href="https://z">https://z</a>`, "[2]: <https://z>", "[2]: https://z"},
		{"[a][1]\n\n[1]: https://z", `<a href="https://z">a</a>`, "<https://z|a>", "a (https://z)"},
		{"- - a", "• • a", "• • a", "• • a"},
		{"-\n- x", "• \n• x", "• \n• x", "• \n• x"},
		{"> > a", "<blockquote>a</blockquote>", "> > a", "> > a"},
		{"a\x00\x1b[1mb\r\nc", "a[1mb\nc", "a[1mb\nc", "a[1mb\nc"},
		{"a\xffb", "a\uFFFDb", "a\uFFFDb", "a\uFFFDb"},
	} {
		if got := Telegram(tt.md); got != tt.telegram {
			t.Errorf("Telegram(%q) = %q, want %q", tt.md, got, tt.telegram)
		}
		if got := Slack(tt.md); got != tt.slack {
			t.Errorf("Slack(%q) = %q, want %q", tt.md, got, tt.slack)
		}
		if got := Plain(tt.md); got != tt.plain {
			t.Errorf("Plain(%q) = %q, want %q", tt.md, got, tt.plain)
		}
		check(t, tt.md)
	}
}

var (
	allowedTelegram = regexp.MustCompile(`^(?:b|i|u|s|pre|blockquote|code( class="language-[A-Za-z0-9+#_.-]+")?|a href="(?:https?://|mailto:|tg://)[^"<>]+")$`)
	allowedHTML     = regexp.MustCompile(`^(?:p|h[1-6]|strong|em|del|pre|blockquote|ul|ol( start="\d+")?|li|table|thead|tbody|tr|th|td|br|hr|code( class="language-[A-Za-z0-9+#_.-]+")?|a href="(?:https?://|mailto:|matrix:)[^"<>]+")$`)
	tags            = regexp.MustCompile(`<[^>]*>`)
)

// balanced reports a problem of the tags in s.
func balanced(s string, allowed *regexp.Regexp) error {
	var open []string
	for _, tag := range tags.FindAllString(s, -1) {
		name := strings.ToLower(strings.Trim(tag, "</>"))
		if strings.HasPrefix(tag, "</") {
			if len(open) == 0 || open[len(open)-1] != name {
				return fmt.Errorf("%s closes %q", tag, open)
			}
			open = open[:len(open)-1]
			continue
		}
		if !allowed.MatchString(strings.Trim(tag, "<>")) {
			return fmt.Errorf("tag %s", tag)
		}
		word, _, _ := strings.Cut(name, " ")
		if word != "br" && word != "hr" {
			if word == "blockquote" && allowed == allowedTelegram && slices.Contains(open, word) {
				return errors.New("a quote in a quote")
			}
			open = append(open, word)
		}
	}
	rest := tags.ReplaceAllString(s, "")
	if len(open) > 0 || strings.ContainsAny(rest, "<>") {
		return fmt.Errorf("open tags %q, or a stray bracket in %q", open, rest)
	}
	return wellFormed(s)
}

// wellFormed reads s as XML.
func wellFormed(s string) error {
	s = strings.NewReplacer("<br>", "<br/>", "<hr>", "<hr/>").Replace(s)
	d := xml.NewDecoder(strings.NewReader("<x>" + s + "</x>"))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

var slackCommand = regexp.MustCompile(`<([^>|]*)`)

// check checks what holds for each text.
func check(t *testing.T, md string) {
	t.Helper()
	if s := Telegram(md); utf8.ValidString(s) {
		if err := balanced(s, allowedTelegram); err != nil {
			t.Errorf("Telegram(%q) = %q: %v", md, s, err)
		}
	} else {
		t.Errorf("Telegram(%q) is not UTF-8", md)
	}
	if err := balanced(HTML(md), allowedHTML); err != nil {
		t.Errorf("HTML(%q) = %q: %v", md, HTML(md), err)
	}
	for _, m := range slackCommand.FindAllStringSubmatch(Slack(md), -1) {
		if _, ok := cleanURL([]byte(m[1])); !ok {
			t.Errorf("Slack(%q) = %q contains <%s", md, Slack(md), m[1])
		}
	}
	text, spans := Signal(md)
	units := len(utf16.Encode([]rune(text)))
	for _, s := range spans {
		if s.Start < 0 || s.Length <= 0 || s.Start+s.Length > units {
			t.Errorf("Signal(%q) = %q with %v", md, text, s)
		}
	}
	for _, s := range []string{Plain(md), text, Discord(md)} {
		if !utf8.ValidString(s) || strings.ContainsAny(s, "\x00\x1b\r") {
			t.Errorf("%q: got %q", md, s)
		}
	}
	if strings.TrimSpace(clean(md)) != "" && strings.TrimSpace(Plain(md)) == "" {
		t.Errorf("Plain(%q) is empty", md)
	}
}

func FuzzMarkup(f *testing.F) {
	for _, s := range []string{
		"# a\n> - b\n>   1. **c *d*** ~~e~~ `f`\n\n| a | b |\n|---|:-:|\n| `x\\|y` | [z](https://x \"t\") |\n",
		"```go\n<a>\n```\n    code\n- [ ] x\n- [x] y", "<a href=\"javascript:x\" onclick=y>",
		"[a](<javascript:x>) ![](data:x)", "[a]: b 'c\nd'\n[a]",
		"a\\\n*[]()\nb*", "- > ```\n  > x\n", "&#60;script&#62; &lt;", "**a\n# b**", "a\n| - |\n|-|", "<https://x\">",
		"[a](https://x\" onclick=\"y)", "\u200b*a*", "___a_ b__",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, md string) {
		if len(md) < 4<<10 {
			check(t, md)
		}
	})
}

// TestLong renders texts for which a simple parser takes quadratic time or memory.
func TestLong(t *testing.T) {
	t.Parallel()
	const n = 1 << 16
	for _, unit := range []string{
		"> ", ">", "- ", "* a\n", "1. ", "[", "![", "[a](", "](", "*a ", "**a *", "*a_ ", "~~a ", "`a``", "<a@", "\\", "&a",
		"| ", "|-", "  ", "- a\n ", "> a\n\n", "https://a.b ", "a\n", "[a]: b\n", "#", "```\n", "word ",
	} {
		md := strings.Repeat(unit, n/len(unit))
		begin := time.Now()
		for i, f := range []func(string) string{HTML, Telegram, Slack, Discord, Plain} {
			if i == 1 { // they parse alike
				md = md[:n/4]
			}
			if out := f(md); len(out) > 64*n {
				t.Errorf("%q: %d bytes of %d", unit, len(out), n)
			}
		}
		if d := time.Since(begin); d > waittest.Limit {
			t.Errorf("%q took %v", unit, d)
		} else if testing.Verbose() {
			t.Log(unit, d)
		}
	}
	table := strings.Repeat("|a", 8000) + "\n" + strings.Repeat("|-", 8000) + "\n" + strings.Repeat("x\n", 4000)
	if out := HTML(table); len(out) > 1<<20 {
		t.Errorf("a table of %d bytes became %d bytes", len(table), len(out))
	}
	deep := strings.Repeat("> ", 100) + "x"
	if n := strings.Count(HTML(deep), "<blockquote>"); n != maxDepth {
		t.Errorf("%d quotes in each other, want %d", n, maxDepth)
	}
}

func BenchmarkMarkup(b *testing.B) {
	src, err := os.ReadFile("testdata/answer.md")
	if err != nil {
		b.Fatal(err)
	}
	md := string(src)
	for name, f := range map[string]func(string) string{
		"telegram": Telegram,
		"html":     HTML,
		"slack":    Slack,
		"discord":  Discord,
		"plain":    Plain,
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(md)))
			for b.Loop() {
				f(md)
			}
		})
	}
}
