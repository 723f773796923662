package markdown

import (
	"strconv"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/chela-ai/chela/internal/surface/tui/ansi"
)

// Options configures the rendering. The zero value is 80 columns wide and has
// no styles.
type Options struct {
	Width  int
	Styles ansi.Palette
}

const (
	defaultWidth = 80
	minWidth     = 16 // minimum width of indented blocks
	maxDepth     = 32 // maximum nesting depth of indented blocks
)

// Render renders src as lines of at most the given width. There is no line end
// after the last line.
func Render(src string, o Options) string {
	if o.Width <= 0 {
		o.Width = defaultWidth
	}
	r := renderer{src: []byte(ansi.Clean(src)), styles: o.Styles}
	doc := newParser().Parse(text.NewReader(r.src))
	lines := r.blocks(doc, o.Width, 0, true)
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	return strings.Join(lines, "\n")
}

// newParser returns a parser for CommonMark with the extensions of GitHub: tables,
// task lists, strikethrough and bare links.
func newParser() parser.Parser {
	p := goldmark.DefaultParser()
	p.AddOptions(
		parser.WithInlineParsers(
			util.Prioritized(extension.NewTaskCheckBoxParser(), 0),
			util.Prioritized(extension.NewStrikethroughParser(), 500),
			util.Prioritized(extension.NewLinkifyParser(), 999),
		),
		parser.WithParagraphTransformers(util.Prioritized(extension.NewTableParagraphTransformer(), 200)),
		parser.WithASTTransformers(util.Prioritized(extension.NewTableASTTransformer(), 0)),
	)
	return p
}

// renderer renders blocks as lines.
type renderer struct {
	src    []byte
	styles ansi.Palette
}

// blocks renders the children of n. If they are loose, empty lines separate
// them.
func (r *renderer) blocks(n ast.Node, width, depth int, loose bool) []string {
	var lines []string
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		block := r.block(c, width, depth)
		if len(block) == 0 {
			continue
		}
		if loose && len(lines) > 0 {
			lines = append(lines, "")
		}
		lines = append(lines, block...)
	}
	return lines
}

func (r *renderer) block(n ast.Node, width, depth int) []string {
	switch n := n.(type) {
	case *ast.Heading:
		return r.heading(n, width)
	case *ast.ThematicBreak:
		return []string{r.styles.Dim.Paint(strings.Repeat("─", min(width, 40)))}
	case *ast.FencedCodeBlock:
		return r.code(n, string(n.Language(r.src)), width)
	case *ast.CodeBlock:
		return r.code(n, "", width)
	case *ast.HTMLBlock:
		return wrapped(r.styles.Dim.Paint(strings.TrimRight(r.raw(n), "\n")), width)
	case *ast.Blockquote:
		bar := r.styles.Dim.Paint("▌") + " "
		return r.indented(width, depth, bar, bar, func(w int) []string { return r.blocks(n, w, depth+1, true) })
	case *ast.List:
		return r.list(n, width, depth)
	case *east.Table:
		return r.table(n, width)
	}
	if n.HasChildren() && n.FirstChild().Type() == ast.TypeBlock {
		return r.blocks(n, width, depth, true)
	}
	return wrapped(r.inline(n, ""), width)
}

// wrapped splits a text into lines of at most the given width.
func wrapped(s string, width int) []string {
	if s == "" {
		return nil
	}
	return strings.Split(ansi.Wrap(s, width), "\n")
}

// indented returns the lines of f with the prefix first on the first line and
// the prefix rest on the others. If there is too little space or the nesting is
// too deep, there are no prefixes.
func (r *renderer) indented(width, depth int, first, rest string, f func(width int) []string) []string {
	w := max(ansi.Width(first), ansi.Width(rest))
	if width-w < minWidth || depth > maxDepth {
		return f(width)
	}
	lines := f(width - w)
	for i, l := range lines {
		if i == 0 {
			lines[i] = first + l
		} else {
			lines[i] = rest + l
		}
	}
	return lines
}

func (r *renderer) heading(n *ast.Heading, width int) []string {
	text := r.inline(n, r.styles.Head)
	if r.styles.Head == "" && text != "" { // without a style it needs a mark
		return wrapped(strings.Repeat("#", n.Level)+" "+text, width)
	}
	lines := wrapped(text, width)
	if n.Level != 1 || len(lines) == 0 {
		return lines
	}
	return append(lines, r.styles.Dim.Paint(strings.Repeat("━", min(width, ansi.Width(lines[0])))))
}

// raw returns the source lines of a block.
func (r *renderer) raw(n ast.Node) string {
	var b strings.Builder
	for i := range n.Lines().Len() {
		s := n.Lines().At(i)
		b.Write(s.Value(r.src))
	}
	return b.String()
}

// code renders code with a gutter. Lines that are too wide are broken, but not
// filled.
func (r *renderer) code(n ast.Node, lang string, width int) []string {
	body := strings.TrimRight(r.raw(n), "\n")
	gutter := r.styles.Dim.Paint("│") + " "
	lines := r.indented(width, 0, gutter, gutter, func(w int) []string {
		var out []string
		for l := range strings.SplitSeq(body, "\n") {
			for piece := range strings.SplitSeq(ansi.Wrap(l, w), "\n") {
				out = append(out, r.styles.Code.Paint(piece))
			}
		}
		return out
	})
	if lang = ansi.Truncate(ansi.Line(lang), width-2); lang != "" && width > minWidth {
		lines = append([]string{r.styles.Dim.Paint("╷ " + lang)}, lines...)
	}
	return lines
}

func (r *renderer) list(n *ast.List, width, depth int) []string {
	var lines []string
	number := n.Start
	digits := len(strconv.Itoa(n.Start + n.ChildCount() - 1))
	for item := n.FirstChild(); item != nil; item = item.NextSibling() {
		mark := "• "
		if depth%2 == 1 {
			mark = "◦ "
		}
		if n.IsOrdered() {
			s := strconv.Itoa(number)
			mark = strings.Repeat(" ", max(digits-len(s), 0)) + s + ". "
			number++
		}
		rest := strings.Repeat(" ", ansi.Width(mark))
		if isTask(item) { // the box replaces the bullet
			mark = ""
		}
		if !n.IsTight && len(lines) > 0 {
			lines = append(lines, "")
		}
		block := r.indented(width, depth, r.styles.Accent.Paint(mark), rest, func(w int) []string {
			if body := r.blocks(item, w, depth+1, !n.IsTight); len(body) > 0 {
				return body
			}
			return []string{""}
		})
		lines = append(lines, block...)
	}
	return lines
}

// isTask reports whether a list item begins with a check box.
func isTask(item ast.Node) bool {
	first := item.FirstChild()
	return first != nil && first.FirstChild() != nil && first.FirstChild().Kind() == east.KindTaskCheckBox
}
