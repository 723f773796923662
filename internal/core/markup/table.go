package markup

import (
	"bytes"
	"strings"
	"unicode"

	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"
)

// table is a table.
type table struct {
	align []east.Alignment // of the columns
	rows  [][]cell         // the first one is the head
}

// cell is a cell of a table.
type cell struct {
	text  string       // as plain text
	write func(writer) // writes the content with its markup
}

// maxColumn is the width to which cells are filled up.
const maxColumn = 40

func (k *walker) table(t *east.Table) table {
	out := table{align: t.Alignments}
	for row := t.FirstChild(); row != nil; row = row.NextSibling() {
		var cells []cell
		for c := row.FirstChild(); c != nil; c = c.NextSibling() {
			cells = append(cells, cell{k.cell(c), func(w writer) { (&walker{k.src, w}).inlines(c) }})
		}
		out.rows = append(out.rows, cells)
	}
	return out
}

// cell returns the content of a cell as plain text.
func (k *walker) cell(n ast.Node) string {
	w := newLines(&plainDialect)
	(&walker{k.src, w}).inlines(n)
	return string(w.out)
}

// begin returns the position of the first line of a table, and of its first cell.
func (s *source) begin(t *east.Table) (line, cell int, ok bool) {
	head := t.FirstChild()
	if head == nil || head.FirstChild() == nil || head.FirstChild().Lines().Len() == 0 {
		return 0, 0, false
	}
	cell = head.FirstChild().Lines().At(0).Start
	return bytes.LastIndexByte(s.text[:cell], '\n') + 1, cell, true
}

// blankBefore reports whether an empty line is before a table.
func (s *source) blankBefore(t *east.Table) bool {
	at, _, ok := s.begin(t)
	if !ok || at == 0 {
		return false
	}
	above := s.text[bytes.LastIndexByte(s.text[:at-1], '\n')+1 : at]
	return len(bytes.Trim(above, "> \t\n")) == 0
}

// aligned returns a table as lines of text.
func (t table) aligned() string {
	if len(t.rows) == 0 {
		return ""
	}
	widths := make([]int, len(t.rows[0]))
	for _, row := range t.rows {
		for i := range min(len(row), len(widths)) {
			widths[i] = min(maxColumn, max(widths[i], 1, width(row[i].text)))
		}
	}
	var b strings.Builder
	for n, row := range t.rows {
		var l strings.Builder
		for i := range min(len(row), len(widths)) {
			if i > 0 {
				l.WriteString(" | ")
			}
			gap := max(0, widths[i]-width(row[i].text))
			left := 0
			if i < len(t.align) && t.align[i] == east.AlignRight {
				left = gap
			} else if i < len(t.align) && t.align[i] == east.AlignCenter {
				left = gap / 2
			}
			l.WriteString(strings.Repeat(" ", left) + row[i].text + strings.Repeat(" ", gap-left))
		}
		b.WriteString(strings.TrimRight(l.String(), " ") + "\n")
		if n == 0 {
			for i, w := range widths {
				if i > 0 {
					b.WriteString("-|-")
				}
				b.WriteString(strings.Repeat("-", w))
			}
			b.WriteByte('\n')
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

// wide contains the characters that take two columns.
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x1100, Hi: 0x115f, Stride: 1}, {Lo: 0x2e80, Hi: 0x303e, Stride: 1}, {Lo: 0x3041, Hi: 0x33ff, Stride: 1},
		{Lo: 0x3400, Hi: 0x4dbf, Stride: 1}, {Lo: 0x4e00, Hi: 0xa4cf, Stride: 1}, {Lo: 0xac00, Hi: 0xd7a3, Stride: 1},
		{Lo: 0xf900, Hi: 0xfaff, Stride: 1}, {Lo: 0xfe30, Hi: 0xfe6f, Stride: 1}, {Lo: 0xff00, Hi: 0xff60, Stride: 1},
		{Lo: 0xffe0, Hi: 0xffe6, Stride: 1},
	},
	R32: []unicode.Range32{{Lo: 0x1f300, Hi: 0x1f64f, Stride: 1}, {Lo: 0x1f680, Hi: 0x1f6ff, Stride: 1},
		{Lo: 0x1f900, Hi: 0x1f9ff, Stride: 1}, {Lo: 0x20000, Hi: 0x3fffd, Stride: 1}},
}

// width returns the number of columns that s takes.
func width(s string) int {
	n := 0
	for _, r := range s {
		switch {
		case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		case unicode.Is(wide, r):
			n += 2
		default:
			n++
		}
	}
	return n
}
