package markdown

import (
	"bytes"

	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// rows transforms paragraphs to tables: a line of titles, a line of dashes, and
// lines of cells.
type rows struct{}

func (t rows) Transform(p *ast.Paragraph, reader text.Reader, _ parser.Context) {
	lines, src := p.Lines(), reader.Source()
	for i := 1; i < lines.Len(); i++ {
		dashes := lines.At(i)
		columns := alignments(dashes.Value(src))
		if columns == nil {
			continue
		}
		titles := cells(lines.At(i-1), src)
		if len(titles) > len(columns) {
			return
		}
		table := east.NewTable()
		table.Alignments = columns
		table.AppendChild(table, east.NewTableHeader(row(titles, columns)))
		for j := i + 1; j < lines.Len(); j++ {
			table.AppendChild(table, row(cells(lines.At(j), src), columns))
		}
		p.Parent().InsertAfter(p.Parent(), p, table)
		lines.SetSliced(0, i-1)
		if i == 1 {
			p.Parent().RemoveChild(p.Parent(), p)
			return
		}
		last := lines.At(i - 2)
		last.Stop-- // remove the line end
		lines.Set(i-2, last)
		return
	}
}

// alignments parses a line of dashes; nil if it is not one.
func alignments(line []byte) []east.Alignment {
	if w, _ := util.IndentWidth(line, 0); w > 3 || len(bytes.Trim(line, "-")) == 0 {
		return nil
	}
	columns := bytes.Split(line, []byte("|"))
	if util.IsBlank(columns[0]) {
		columns = columns[1:]
	}
	if len(columns) > 0 && util.IsBlank(columns[len(columns)-1]) {
		columns = columns[:len(columns)-1]
	}
	var all []east.Alignment
	for _, c := range columns {
		c = util.TrimLeftSpace(util.TrimRightSpace(c))
		dashes := bytes.TrimSuffix(bytes.TrimPrefix(c, []byte(":")), []byte(":"))
		if len(dashes) == 0 || len(bytes.Trim(dashes, "-")) > 0 {
			return nil
		}
		switch left, right := c[0] == ':', c[len(c)-1] == ':'; {
		case left && right:
			all = append(all, east.AlignCenter)
		case left:
			all = append(all, east.AlignLeft)
		case right:
			all = append(all, east.AlignRight)
		default:
			all = append(all, east.AlignNone)
		}
	}
	return all
}

// cells splits a line at the bars that are not escaped with a backslash. The
// backslashes themselves are removed when the cells are rendered.
func cells(s text.Segment, src []byte) []text.Segment {
	s = s.TrimLeftSpace(src)
	s = s.TrimRightSpace(src)
	line := s.Value(src)
	pos, end := 0, len(line)
	if end > 0 && line[0] == '|' {
		pos++
	}
	if end > 0 && line[end-1] == '|' {
		end--
	}
	var all []text.Segment
	for pos < end {
		bar := pos
		for bar < end && (line[bar] != '|' || bar > 0 && line[bar-1] == '\\') {
			bar++
		}
		c := text.NewSegment(s.Start+pos, s.Start+bar)
		c = c.TrimLeftSpace(src)
		all = append(all, c.TrimRightSpace(src))
		pos = bar + 1
	}
	return all
}

// row returns a row with one cell for each column.
func row(cells []text.Segment, columns []east.Alignment) *east.TableRow {
	r := east.NewTableRow(columns)
	for i := range columns {
		c := east.NewTableCell()
		if i < len(cells) {
			c.Lines().Append(cells[i])
		}
		r.AppendChild(r, c)
	}
	return r
}
