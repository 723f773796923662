package markdown

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/surface/tui/ansi"
)

var update = flag.Bool("update", false, "write the golden files")

// TestGolden renders testdata/*.md in 60 and in 28 columns.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("testdata: %v, %d files", err, len(files))
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".md"), func(t *testing.T) {
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			for _, w := range [...]int{60, 28} {
				b.WriteString(Render(string(src), Options{Width: w}))
				b.WriteString("\n\n=====\n\n")
			}
			b.WriteString(strings.ReplaceAll(Render(string(src), Options{Width: 60, Styles: ansi.Colors()}), "\x1b", "␛"))
			b.WriteString("\n")
			golden := strings.TrimSuffix(file, ".md") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), b.String()); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

func TestCode(t *testing.T) {
	t.Run("lines that are too wide are broken between words, and keep their spaces", func(t *testing.T) {
		got := Render("```\n  it ran in the sandbox;  host gateway asks the person\n```", Options{Width: 40})
		if want := "│   it ran in the sandbox;  host gateway\n│ asks the person"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// foreign matches escape sequences that are not style sequences.
var ours = regexp.MustCompile(`\x1b\[[0-9;:]*m`)

func checkRendered(t *testing.T, src string, width int, styles ansi.Palette) {
	t.Helper()
	got := Render(src, Options{Width: width, Styles: styles})
	bare := ours.ReplaceAllString(got, "")
	if ansi.Clean(bare) != bare {
		t.Fatalf("Render(%q) lets through what a terminal obeys: %q", src, bare)
	}
	for l := range strings.SplitSeq(got, "\n") {
		if w := ansi.Width(l); w > max(width, 2) {
			t.Fatalf("Render(%q): line %q is %d columns wide, want at most %d", src, l, w, width)
		}
	}
}

func FuzzRender(f *testing.F) {
	for _, s := range []string{
		"# a\n\nb", "- a\n  - b\n\n    c", "> > a", "```go\nx\n", "|a|b|\n|-|:-:|\n|1|2|",
		"[a](b) ![i](u) <http://x>", "\x1b[31ma",
		"&#27;[31m \\\x1b[0m &#x202e;", "1. a\n2. b", "- [x] a", "你好*世界*", "a  \nb", "<b>\x1b</b>", "[a]: b\n\n[a]",
		"***", "`\x1b`", "~~a~~",
		"|你好|b|c|d|e|f|g|h|\n|-|-|-|-|-|-|-|-|\n|1|2|3|4|5|6|7|8|", strings.Repeat("> ", 50) + "a",
		strings.Repeat("- ", 50) + "a",
	} {
		f.Add(s, 40)
		f.Add(s, 3)
	}
	f.Fuzz(func(t *testing.T, src string, width int) {
		if len(src) > 4096 {
			return
		}
		width = 2 + (width&0x7fffffff)%120
		checkRendered(t, src, width, ansi.Colors())
		checkRendered(t, src, width, ansi.Palette{})
		if n := Cut(src); n < 0 || n > len(src) {
			t.Fatalf("Cut(%q) = %d", src, n)
		}
	})
}

func TestRenderEscapes(t *testing.T) {
	t.Parallel()
	for _, src := range []string{
		"a\x1b]0;owned\x07", "&#27;[31mred", "&#x9b;31m", "`\x1b[2J`", "```\x1b[2J\n\x1b[2J\n```",
		"[x\x1b[31m](http://a\x1b[0m)",
		"<http://a\u202eb>", "-\n- a\n- \n\n  b", "1.\n2. a", "- ***\n-   \n\n      x",
		"|\x1b[1m|b|\n|-|-|\n|\u200f|&#8238;|",
	} {
		for _, w := range []int{8, 80} {
			checkRendered(t, src, w, ansi.Colors())
		}
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, done, rest string }{
		{"a paragraph may grow", "", "hello wor"},
		{"a paragraph after an empty line", "one\n\n", "two"},
		{"an empty line alone does not end a block", "", "one\n\n"},
		{"open code fence", "", "```go\na\n\nb\n"},
		{"closed code fence", "```go\na\n\nb\n```\n\n", "then"},
		{"a longer code fence", "", "````\n```\n\nx\n"},
		{"a list may continue", "", "- a\n\n- b"},
		{"a list may continue indented", "", "- a\n\n  b"},
		{"a list followed by text", "- a\n- b\n\n", "text"},
		{"a number may become a list item", "", "1. a\n\n2"},
		{"a number that is not a list item", "1. a\n\n", "2x"},
		{"a star may become a list item", "", "* a\n\n*"},
		{"emphasis", "a\n\n", "**b"[:2] + "b"},
		{"several paragraphs", "a\n\nb\n\n", "c"},
		{"empty", "", ""},
	} {
		if tt.name == "emphasis" { // could become a thematic break
			tt.done, tt.rest = "", "a\n\n**b"
		}
		if got := Cut(tt.done + tt.rest); got != len(tt.done) {
			t.Errorf("%s: Cut(%q) = %d, want %d", tt.name, tt.done+tt.rest, got, len(tt.done))
		}
	}
}

// TestCutIsFinal renders a growing document in pieces, and as a whole.
func TestCutIsFinal(t *testing.T) {
	t.Parallel()
	src, err := os.ReadFile("testdata/answer.md")
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Width: 60}
	var pieces []string
	rest := ""
	for _, b := range src {
		rest += string([]byte{b})
		if n := Cut(rest); n > 0 {
			pieces = append(pieces, Render(rest[:n], o))
			rest = rest[n:]
		}
	}
	pieces = append(pieces, Render(rest, o))
	if len(pieces) < 5 {
		t.Fatalf("%d pieces: nothing was shown before the end", len(pieces))
	}
	if d := cmp.Diff(Render(string(src), o), strings.Join(pieces, "\n\n")); d != "" {
		t.Errorf("the pieces are rendered differently (-whole +pieces)\n%s", d)
	}
}
