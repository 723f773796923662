package markdown

import (
	"strings"

	east "github.com/yuin/goldmark/extension/ast"

	"github.com/chela-ai/chela/internal/surface/tui/ansi"
)

// minColumn is the minimum width of a column. If the table does not fit, its
// rows are rendered as records.
const minColumn = 6

// table renders a table that fits the width.
func (r *renderer) table(t *east.Table, width int) []string {
	var rows [][]string
	for row := t.FirstChild(); row != nil; row = row.NextSibling() {
		var cells []string
		style := ansi.Style("")
		if _, ok := row.(*east.TableHeader); ok {
			style = r.styles.Bold
		}
		for c := row.FirstChild(); c != nil; c = c.NextSibling() {
			cells = append(cells, r.inline(c, style))
		}
		rows = append(rows, cells)
	}
	if len(rows) == 0 || len(rows[0]) == 0 {
		return nil
	}
	columns, ok := fit(rows, width-3*(len(rows[0])-1))
	if !ok {
		return r.records(rows, width)
	}
	var lines []string
	for i, row := range rows {
		lines = append(lines, r.row(row, columns, t.Alignments)...)
		if i == 0 {
			lines = append(lines, r.rule(columns))
		}
	}
	return lines
}

// fit returns the widths of the columns; false if they do not fit.
func fit(rows [][]string, width int) ([]int, bool) {
	columns := make([]int, len(rows[0]))
	total := 0
	for i := range columns {
		columns[i] = 1
		for _, row := range rows {
			if i < len(row) {
				columns[i] = max(columns[i], ansi.Width(row[i]))
			}
		}
		total += columns[i]
	}
	for ; total > width; total-- {
		widest := 0
		for i := range columns {
			if columns[i] > columns[widest] {
				widest = i
			}
		}
		if columns[widest] <= minColumn {
			return nil, false
		}
		columns[widest]--
	}
	return columns, true
}

func (r *renderer) row(cells []string, columns []int, align []east.Alignment) []string {
	wrappedCells := make([][]string, len(columns))
	height := 1
	for i := range columns {
		if i < len(cells) {
			wrappedCells[i] = wrapped(cells[i], columns[i])
		}
		height = max(height, len(wrappedCells[i]))
	}
	lines := make([]string, height)
	for l := range lines {
		var b strings.Builder
		for i, w := range columns {
			s := ""
			if l < len(wrappedCells[i]) {
				s = wrappedCells[i][l]
			}
			if i > 0 {
				b.WriteString(r.styles.Dim.Paint(" │ "))
			}
			a := east.AlignNone
			if i < len(align) {
				a = align[i]
			}
			b.WriteString(pad(s, w, a))
		}
		lines[l] = b.String()
	}
	return lines
}

func pad(s string, width int, a east.Alignment) string {
	gap := max(width-ansi.Width(s), 0)
	switch a {
	case east.AlignRight:
		return strings.Repeat(" ", gap) + s
	case east.AlignCenter:
		return strings.Repeat(" ", gap/2) + s + strings.Repeat(" ", gap-gap/2)
	}
	return s + strings.Repeat(" ", gap)
}

func (r *renderer) rule(columns []int) string {
	parts := make([]string, len(columns))
	for i, w := range columns {
		parts[i] = strings.Repeat("─", w)
	}
	return r.styles.Dim.Paint(strings.Join(parts, "─┼─"))
}

// records renders a table that is too wide: each row becomes lines of a title
// and a value.
func (r *renderer) records(rows [][]string, width int) []string {
	var lines []string
	for n, row := range rows[1:] {
		if n > 0 {
			lines = append(lines, "")
		}
		for i, cell := range row {
			title := ""
			if i < len(rows[0]) && rows[0][i] != "" {
				title = rows[0][i] + ": "
			}
			lines = append(lines, wrapped(title+cell, width)...)
		}
	}
	if len(rows) == 1 {
		lines = wrapped(strings.Join(rows[0], " "), width)
	}
	return lines
}
