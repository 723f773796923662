package markdown

import (
	"strings"

	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/util"

	"github.com/chela-ai/chela/internal/surface/tui/ansi"
)

// inline renders the children of n in a style.
func (r *renderer) inline(n ast.Node, under ansi.Style) string {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		b.WriteString(r.span(c, under))
	}
	return b.String()
}

func (r *renderer) span(n ast.Node, under ansi.Style) string {
	switch n := n.(type) {
	case *ast.Text:
		s := under.Paint(r.plain(n.Segment.Value(r.src)))
		switch {
		case n.HardLineBreak():
			s += "\n"
		case n.SoftLineBreak():
			s += r.soft(n)
		}
		return s
	case *ast.String:
		return under.Paint(r.plain(n.Value))
	case *ast.CodeSpan:
		return r.codeSpan(n, under)
	case *ast.Emphasis:
		style := r.styles.Italic
		if n.Level >= 2 {
			style = r.styles.Bold
		}
		return r.inline(n, style.Over(under))
	case *east.Strikethrough:
		return r.inline(n, r.styles.Strike.Over(under))
	case *ast.Link:
		return r.link(r.inline(n, r.styles.Link.Over(under)), string(n.Destination))
	case *ast.AutoLink:
		return r.styles.Link.Over(under).Paint(ansi.Clean(string(n.Label(r.src))))
	case *ast.Image:
		return r.link(r.styles.Dim.Over(under).Paint("image: ")+r.inline(n, under), string(n.Destination))
	case *ast.RawHTML:
		var b strings.Builder
		for i := range n.Segments.Len() {
			s := n.Segments.At(i)
			b.Write(s.Value(r.src))
		}
		return r.styles.Dim.Over(under).Paint(b.String())
	case *east.TaskCheckBox:
		if n.IsChecked {
			return r.styles.Good.Paint("☑") + " "
		}
		return "☐ "
	}
	return r.inline(n, under)
}

// plain returns text with its escapes and entities resolved. It cleans the
// result, because entities can encode control characters.
func (r *renderer) plain(b []byte) string {
	b = util.UnescapePunctuations(b)
	b = util.ResolveNumericReferences(b)
	b = util.ResolveEntityNames(b)
	return strings.ReplaceAll(ansi.Clean(string(b)), "\n", " ")
}

func (r *renderer) codeSpan(n ast.Node, under ansi.Style) string {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			b.Write(t.Segment.Value(r.src))
		}
	}
	code := strings.ReplaceAll(b.String(), "\n", " ")
	if r.styles.Code == "" {
		return under.Paint("`" + code + "`")
	}
	return r.styles.Code.Over(under).Paint(code)
}

// link returns the text of a link and its destination, unless both are the same.
func (r *renderer) link(shown, to string) string {
	to = ansi.Line(to)
	if to == "" || strings.Contains(shown, to) || strings.HasPrefix(to, "#") {
		return shown
	}
	return shown + r.styles.Dim.Paint(" ("+to+")")
}

// soft returns the replacement of a line end within a paragraph: a space, or
// nothing between wide characters, because Chinese and Japanese use no spaces.
func (r *renderer) soft(n *ast.Text) string {
	next, ok := n.NextSibling().(*ast.Text)
	if !ok {
		return " "
	}
	before, after := []rune(string(n.Segment.Value(r.src))), []rune(string(next.Segment.Value(r.src)))
	if len(before) > 0 && len(after) > 0 && ansi.Width(string(before[len(before)-1])) == 2 &&
		ansi.Width(string(after[0])) == 2 {
		return ""
	}
	return " "
}
