package markdown

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/chela-ai/chela/internal/surface/tui/ansi"
)

// theirs returns goldmark's own parser for the same extensions.
func theirs() parser.Parser {
	return parser.NewParser(
		parser.WithBlockParsers(parser.DefaultBlockParsers()...),
		parser.WithInlineParsers(append(parser.DefaultInlineParsers(),
			util.Prioritized(extension.NewTaskCheckBoxParser(), 0),
			util.Prioritized(extension.NewStrikethroughParser(), 500),
			util.Prioritized(extension.NewLinkifyParser(), 999),
		)...),
		parser.WithParagraphTransformers(append(parser.DefaultParagraphTransformers(),
			util.Prioritized(extension.NewTableParagraphTransformer(), 200),
		)...),
		parser.WithASTTransformers(util.Prioritized(extension.NewTableASTTransformer(), 0)),
	)
}

// aside matches the intended differences: a host that begins with www may have a
// port and a $ in its path, and one of two backslashes before a bar is kept.
var aside = regexp.MustCompile(`www\..*[:$]|\\\\\|`)

func checkAgrees(t *testing.T, src string) {
	t.Helper()
	src = ansi.Clean(src)
	if aside.MatchString(src) {
		return
	}
	show := func(p parser.Parser) string {
		r := renderer{src: []byte(src), styles: ansi.Colors()}
		return strings.Join(r.blocks(p.Parse(text.NewReader(r.src)), 60, 0, true), "\n")
	}
	if d := cmp.Diff(show(theirs()), show(newParser())); d != "" {
		t.Errorf("%q is rendered differently (-goldmark +ours)\n%s", src, d)
	}
}

var github = []string{
	"- [ ] a\n- [x] b\n- [X]c\n- [\tx] d\n- x [ ] e\n- [y] f\n- [ ", "~a~ ~~b~~ ~~~c~~~ a~b~c ~~d\ne~~ **~~f~~** ~ g ~",
	"http://a.com https://a.b.co/x?y=1#z ftp://a.org. (http://a.com/b_(c)) http://a.com/x). http://localhost:80/ http://a.com:8080/p?q http://a.com:x",
	"www.a.com, *www.b.com/x* _www.c.org_ ~www.d.com~ www.x www. www.a.com/&amp; www.a.com/&; http://a.com/a;b;", "http://a.com.5/x http://a-b.c_d.com/ http://.com http://a..com",
	"a@b.com, a.b+c@d.org. a@b <a@b.c> a@b.c- a@b.c_ a@b.c-d .a@b.c mail a@b.com!", "[http://a.com](http://b.com) [a www.b.com](c) `http://a.com`",
	"http://" + strings.Repeat("a", 300) + ".com http://" + strings.Repeat("a.", 200) + "com", "http://a.com\nhttp://b.com", "éhttp://a.com é http://a.com/é",
	"|a|b|\n|-|:-:|\n|1|2|", "a|b\n-|-:\n1\n1|2|3", "x\n|a|b|\n|:-|-|\n|`c \\| d`|\\||\n\ny", "|a|\n|-|-|", "|a|b|\n|-|", "a\n-\n", "|a|\n|::|", "|a|\n| |-|", "> |a|\n> |-|\n> |b|\n",
	"- a | b\n  --|--\n  1 | 2", "|a|\n|-|\n\n|b", "|a\\|b|c|\n|-|-|\n| |x|", "||\n|-|", "|\n-|", "a\n    |-|", "|a|\n|-|\n|b|\n|-|\n|c|",
}

func TestAgrees(t *testing.T) {
	t.Parallel()
	for _, src := range github {
		checkAgrees(t, src)
	}
}

func FuzzAgrees(f *testing.F) {
	for _, src := range github {
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src string) {
		if len(src) <= 4096 {
			checkAgrees(t, src)
		}
	})
}
