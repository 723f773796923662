package pdf

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"
)

const (
	maxPages = 5000
	maxSteps = 4_000_000 // operators on all pages
	maxText  = 1 << 20   // bytes
	maxForms = 6         // nesting depth of forms
	maxFonts = 2000      // number of fonts read
)

// Text returns the text of a PDF, page by page, and the number of pages. The
// error is ctx's, ErrEncrypted, or says that there is no page.
func Text(ctx context.Context, data []byte) (string, int, error) {
	f, err := open(ctx, data)
	if err != nil {
		return "", 0, err
	}
	pages := f.pages()
	if len(pages) == 0 {
		return "", 0, errors.New("no page was found in the PDF")
	}
	w := &writer{file: f, fonts: map[ref]*font{}, steps: maxSteps}
	for _, p := range pages {
		w.page(f.content(p.dict["Contents"]), p.resources)
		if err := ctx.Err(); err != nil {
			return "", 0, err
		}
		if w.steps <= 0 || w.out.Len() > maxText {
			break
		}
	}
	return norm.NFC.String(ligatures().Replace(clean(w.out.String()))), len(pages), nil
}

// content returns the content of a page, which may be split into several
// streams.
func (f *file) content(v any) []byte {
	parts := array{v}
	if a, ok := f.resolve(v).(array); ok {
		parts = a
	}
	var out []byte
	for _, part := range parts {
		if r, ok := part.(ref); ok {
			out = append(append(out, f.decode(f.object(int(r)))...), '\n')
		}
	}
	return out
}

// clean trims lines, and leaves at most one empty line in a row.
func clean(s string) string {
	var b strings.Builder
	empty := 0
	for line := range strings.Lines(s) {
		line = strings.TrimSpace(line)
		if line == "" {
			empty++
			continue
		}
		if b.Len() > 0 {
			b.WriteString("\n\n"[:1+min(empty, 1)])
		}
		empty = 0
		b.WriteString(line)
	}
	return b.String()
}

// sheet is a page with its inherited resources.
type sheet struct {
	dict      dict
	resources dict
}

// pages returns the pages in document order or, without a page tree, in the
// order of their objects.
func (f *file) pages() []sheet {
	root := f.dict(f.root)
	if root == nil {
		for _, n := range slices.Sorted(maps.Keys(f.locations)) {
			if d := f.dict(ref(n)); d["Type"] == name("Catalog") {
				root = d
			}
		}
	}
	var out []sheet
	seen := map[ref]bool{}
	var walk func(v any, resources dict, depth int)
	walk = func(v any, resources dict, depth int) {
		r, isRef := v.(ref)
		if len(out) >= maxPages || depth > maxDepth || isRef && seen[r] {
			return
		}
		seen[r] = isRef
		d := f.dict(v)
		if inner := f.dict(d["Resources"]); inner != nil {
			resources = inner
		}
		if kids := f.list(d["Kids"]); kids != nil {
			for _, kid := range kids {
				walk(kid, resources, depth+1)
			}
		} else if d["Contents"] != nil {
			out = append(out, sheet{d, resources})
		}
	}
	walk(root["Pages"], nil, 0)
	if out != nil {
		return out
	}
	for _, n := range slices.Sorted(maps.Keys(f.locations)) {
		if d := f.dict(ref(n)); d["Type"] == name("Page") && len(out) < maxPages {
			out = append(out, sheet{d, f.dict(d["Resources"])})
		}
	}
	return out
}

// matrix is a transformation: x' = ax + cy + e, y' = bx + dy + f.
type matrix struct{ a, b, c, d, e, f float64 }

func (m matrix) moved(x, y float64) matrix {
	m.e, m.f = m.e+x*m.a+y*m.c, m.f+x*m.b+y*m.d
	return m
}

// writer executes the operators of a page and collects its text.
type writer struct {
	file      *file
	fonts     map[ref]*font
	fontsRead int // number of fonts read
	out       strings.Builder
	steps     int

	font    *font
	size    float64
	char    float64 // spacing after characters
	word    float64 // and after spaces
	scale   float64
	leading float64
	tm, tlm matrix

	shown      bool // text was shown on this page
	endX, endY float64
}

func (w *writer) page(content []byte, resources dict) {
	if w.out.Len() > 0 {
		w.out.WriteString("\n\n")
	}
	w.shown, w.scale, w.font = false, 1, nil
	w.run(content, resources, 0)
}

func (w *writer) run(content []byte, resources dict, depth int) {
	p := parser{data: content}
	var args []any
	for ; w.steps > 0 && w.out.Len() < maxText; w.steps-- {
		if w.steps%4096 == 0 && w.file.ctx.Err() != nil {
			return
		}
		v, ok := p.next(false)
		if !ok {
			return
		}
		op, isOp := v.(keyword)
		if !isOp {
			if len(args) < 64 {
				args = append(args, v)
			}
			continue
		}
		switch op {
		case "BI":
			if end := bytes.Index(p.data[p.at:], []byte("EI")); end >= 0 {
				p.at += end + 2
			}
		case "Do":
			w.form(args, resources, depth)
		default:
			w.do(string(op), args, resources)
		}
		args = args[:0]
	}
}

// form executes a form, which is a page within a page.
func (w *writer) form(args []any, resources dict, depth int) {
	if len(args) == 0 || depth >= maxForms {
		return
	}
	key, _ := args[0].(name)
	r, ok := w.file.dict(resources["XObject"])[key].(ref)
	if !ok {
		return
	}
	o := w.file.object(int(r))
	d, _ := o.value.(dict)
	if w.file.resolve(d["Subtype"]) != name("Form") {
		return
	}
	if inner := w.file.dict(d["Resources"]); inner != nil {
		resources = inner
	}
	w.run(w.file.decode(o), resources, depth+1)
}

func num(args []any, i int) float64 {
	if i < len(args) {
		if n, ok := args[i].(float64); ok {
			return n
		}
	}
	return 0
}

// do executes a text operator.
func (w *writer) do(op string, args []any, resources dict) {
	switch op {
	case "BT":
		w.tm = matrix{a: 1, d: 1}
		w.tlm = w.tm
	case "Tf":
		w.size = num(args, 1)
		if len(args) > 0 {
			key, _ := args[0].(name)
			w.font = w.fontFor(w.file.dict(resources["Font"])[key])
		}
	case "Tc":
		w.char = num(args, 0)
	case "Tw":
		w.word = num(args, 0)
	case "Tz":
		w.scale = num(args, 0) / 100
	case "TL":
		w.leading = num(args, 0)
	case "Td":
		w.line(num(args, 0), num(args, 1))
	case "TD":
		w.leading = -num(args, 1)
		w.line(num(args, 0), num(args, 1))
	case "T*":
		w.line(0, -w.leading)
	case "Tm":
		w.tm = matrix{num(args, 0), num(args, 1), num(args, 2), num(args, 3), num(args, 4), num(args, 5)}
		w.tlm = w.tm
	case "'", "\"":
		if op == "\"" {
			w.word, w.char = num(args, 0), num(args, 1)
		}
		w.line(0, -w.leading)
		if len(args) > 0 {
			w.show(args[len(args)-1])
		}
	case "Tj":
		if len(args) > 0 {
			w.show(args[0])
		}
	case "TJ":
		if len(args) > 0 {
			a, _ := args[0].(array)
			for _, v := range a {
				if n, ok := v.(float64); ok {
					w.tm = w.tm.moved(-n/1000*w.size*w.scale, 0)
					continue
				}
				w.show(v)
			}
		}
	}
}

func (w *writer) line(x, y float64) {
	w.tlm = w.tlm.moved(x, y)
	w.tm = w.tlm
}

func (w *writer) fontFor(v any) *font {
	r, isRef := v.(ref)
	if isRef && w.fonts[r] != nil {
		return w.fonts[r]
	}
	if w.fontsRead++; w.fontsRead > maxFonts {
		return nil
	}
	ft := w.file.font(v)
	if isRef {
		w.fonts[r] = ft
	}
	return ft
}

// show writes a string, preceded by a line break if it is on another line, or
// by a blank if there is a gap.
func (w *writer) show(v any) {
	s, ok := v.(text)
	if !ok || w.font == nil {
		return
	}
	for _, g := range w.font.glyphs(s) {
		em := math.Abs(w.size) * math.Hypot(w.tm.a, w.tm.b)
		visible := strings.TrimSpace(g.text) != ""
		if visible {
			w.gap(em)
			w.out.WriteString(g.text)
		} else if g.text != "" && w.shown {
			w.blank()
		}
		advance := g.width*w.size + w.char
		if g.blank {
			advance += w.word
		}
		w.tm = w.tm.moved(advance*w.scale, 0)
		if visible {
			w.endX, w.endY, w.shown = w.tm.e, w.tm.f, true
		}
	}
}

// gap separates the next text from the previous one.
func (w *writer) gap(em float64) {
	if !w.shown || em == 0 {
		return
	}
	across, down := w.tm.e-w.endX, math.Abs(w.tm.f-w.endY)
	if w.tm.b != 0 && math.Abs(w.tm.b) > math.Abs(w.tm.a) { // the text is vertical
		across, down = w.tm.f-w.endY, math.Abs(w.tm.e-w.endX)
	}
	switch {
	case down > 1.8*em:
		w.out.WriteString("\n\n")
	case down > 0.5*em:
		w.out.WriteByte('\n')
	case across > 0.15*em || across < -em:
		w.blank()
	}
}

func (w *writer) blank() {
	if s := w.out.String(); s != "" && s[len(s)-1] != ' ' && s[len(s)-1] != '\n' {
		w.out.WriteByte(' ')
	}
}
