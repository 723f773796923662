package markup

import (
	"strings"

	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/util"
)

// mark is a style of text.
type mark int

const (
	bold mark = iota
	italic
	strike
	mono
	marks // their number
)

// kind is what a block is.
type kind int

const (
	paragraph kind = iota
	line           // a paragraph in a list without empty lines
	heading
	quote
	list
	item
)

// block describes a block with content.
type block struct {
	kind    kind
	apart   bool   // an empty line is before it
	level   int    // of a heading
	ordered bool   // of a list
	start   int    // first number of an ordered list
	marker  string // of an item, such as "1."
	box     string // of an item of a task list: an empty or a checked box
}

// writer writes a document.
type writer interface {
	block(b block, body func())
	pre(lang, code string, apart bool)
	table(t table, apart bool)
	rule(apart bool)

	text(s string) // one line
	newline()
	mark(m mark, body func())
	code(s string)
	link(to []byte, label string)
}

// walker calls a writer for the nodes of a tree.
type walker struct {
	src *source
	w   writer
}

func (k *walker) blocks(n ast.Node) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		k.block(c)
	}
}

func (k *walker) block(n ast.Node) {
	apart := n.HasBlankPreviousLines()
	switch n := n.(type) {
	case *ast.Heading:
		k.w.block(block{kind: heading, level: n.Level, apart: apart}, func() { k.inlines(n) })
	case *ast.ThematicBreak:
		k.w.rule(apart)
	case *ast.FencedCodeBlock:
		k.w.pre(language(n.Language(k.src.text)), k.raw(n), apart)
	case *ast.CodeBlock:
		k.w.pre("", k.raw(n), apart)
	case *ast.Blockquote:
		k.w.block(block{kind: quote, apart: apart}, func() { k.blocks(n) })
	case *ast.List:
		k.list(n, apart)
	case *east.Table:
		k.w.table(k.table(n), k.src.blankBefore(n))
	case *ast.LinkReferenceDefinition:
		if k.src.used[util.ToLinkReference(n.Label)] {
			return
		}
		k.w.block(block{kind: paragraph, apart: apart}, func() {
			k.w.text("[" + plain(n.Label) + "]: ")
			k.w.link(n.Destination, string(n.Destination))
		})
	case *ast.TextBlock:
		k.w.block(block{kind: line, apart: apart}, func() { k.inlines(n) })
	default:
		k.w.block(block{kind: paragraph, apart: apart}, func() { k.inlines(n) })
	}
}

func (k *walker) list(n *ast.List, apart bool) {
	b := block{kind: list, apart: apart, ordered: n.IsOrdered(), start: n.Start}
	k.w.block(b, func() {
		number := n.Start
		for c := n.FirstChild(); c != nil; c = c.NextSibling() {
			i := block{kind: item, apart: c.HasBlankPreviousLines() && c != n.FirstChild(), marker: bullet, box: box(c)}
			if n.IsOrdered() {
				i.marker = itoa(number) + "."
				number++
			}
			k.w.block(i, func() { k.blocks(c) })
		}
	})
}

const (
	bullet    = "•"
	unchecked = "☐"
	checked   = "☑"
)

// box returns the check box with which an item begins.
func box(item ast.Node) string {
	first := item.FirstChild()
	if first == nil {
		return ""
	}
	switch b, ok := first.FirstChild().(*east.TaskCheckBox); {
	case !ok:
		return ""
	case b.IsChecked:
		return checked
	}
	return unchecked
}

// raw returns the lines of a block of code.
func (k *walker) raw(n ast.Node) string {
	var b strings.Builder
	for i := range n.Lines().Len() {
		s := n.Lines().At(i)
		b.Write(s.Value(k.src.text))
	}
	return strings.TrimRight(b.String(), "\n")
}

// language returns the name of a programming language, or "" if it is none.
func language(b []byte) string {
	const most = 32
	for _, c := range b {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '+' && c != '-' &&
			c != '#' && c != '_' && c != '.' {
			return ""
		}
	}
	if len(b) > most {
		return ""
	}
	return string(b)
}

// inlines writes the children of n. Text that the parser divided is written as a whole.
func (k *walker) inlines(n ast.Node) {
	var b []byte
	flush := func() {
		if len(b) > 0 {
			k.w.text(plain(b))
		}
		b = nil
	}
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		t, ok := c.(*ast.Text)
		if !ok {
			flush()
			k.inline(c)
			continue
		}
		b = append(b, t.Segment.Value(k.src.text)...)
		if (t.SoftLineBreak() || t.HardLineBreak()) && c.NextSibling() != nil {
			flush()
			k.w.newline()
		}
	}
	flush()
}

func (k *walker) inline(n ast.Node) {
	switch n := n.(type) {
	case *ast.Emphasis:
		m := italic
		if n.Level >= 2 {
			m = bold
		}
		k.w.mark(m, func() { k.inlines(n) })
	case *east.Strikethrough:
		k.w.mark(strike, func() { k.inlines(n) })
	case *ast.CodeSpan:
		k.w.code(k.label(n))
	case *ast.Link:
		k.w.link(n.Destination, k.label(n))
	case *ast.Image:
		k.w.link(n.Destination, k.label(n))
	case *ast.AutoLink:
		to := n.URL(k.src.text)
		if n.AutoLinkType == ast.AutoLinkEmail && !strings.HasPrefix(strings.ToLower(string(to)), "mailto:") {
			to = append([]byte("mailto:"), to...)
		}
		k.w.link(to, string(n.Label(k.src.text)))
	case *east.TaskCheckBox: // the item has it
	default:
		k.inlines(n)
	}
}

// label returns the text of a node on one line, without markup.
func (k *walker) label(n ast.Node) string {
	var b strings.Builder
	k.appendLabel(&b, n)
	return strings.TrimSpace(b.String())
}

func (k *walker) appendLabel(b *strings.Builder, n ast.Node) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		switch t := c.(type) {
		case *ast.Text:
			s := string(t.Segment.Value(k.src.text))
			if n.Kind() != ast.KindCodeSpan {
				s = plain([]byte(s))
			}
			b.WriteString(strings.ReplaceAll(s, "\n", " "))
			if t.SoftLineBreak() || t.HardLineBreak() {
				b.WriteByte(' ')
			}
		case *ast.AutoLink:
			b.Write(t.Label(k.src.text))
		default:
			k.appendLabel(b, c)
		}
	}
}
