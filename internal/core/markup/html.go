package markup

import "strings"

// page writes a document as HTML.
type page struct {
	out   []byte
	depth [marks]int
	box   string // of a task, before the text of the item
}

var htmlTags = [marks][2]string{
	bold: {"<strong>", "</strong>"}, italic: {"<em>", "</em>"}, strike: {"<del>", "</del>"}, mono: {"<code>", "</code>"},
}

var htmlEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;")

func (p *page) raw(s string) { p.out = append(p.out, s...) }

func (p *page) around(before string, body func(), after string) {
	p.raw(before)
	body()
	p.raw(after)
}

func (p *page) block(b block, body func()) {
	switch b.kind {
	case line:
		p.task()
		body()
	case heading:
		p.around("<h"+itoa(b.level)+">", body, "</h"+itoa(b.level)+">")
	case quote:
		p.around("<blockquote>", body, "</blockquote>")
	case list:
		switch {
		case !b.ordered:
			p.around("<ul>", body, "</ul>")
		case b.start != 1:
			p.around(`<ol start="`+itoa(b.start)+`">`, body, "</ol>")
		default:
			p.around("<ol>", body, "</ol>")
		}
	case item:
		p.box = b.box
		p.around("<li>", body, "</li>")
	default:
		p.around("<p>", func() { p.task(); body() }, "</p>")
	}
}

// task writes the box of a task.
func (p *page) task() {
	if p.box != "" {
		p.raw(p.box + " ")
	}
	p.box = ""
}

func (p *page) pre(lang, code string, _ bool) {
	p.raw("<pre><code")
	if lang != "" {
		p.raw(` class="language-` + lang + `"`)
	}
	p.raw(">")
	p.text(code)
	p.raw("</code></pre>")
}

func (p *page) table(t table, _ bool) {
	p.raw("<table>")
	for n, row := range t.rows {
		name := "td"
		switch n {
		case 0:
			name = "th"
			p.raw("<thead>")
		case 1:
			p.raw("<tbody>")
		}
		p.raw("<tr>")
		for _, c := range row {
			p.around("<"+name+">", func() { c.write(p) }, "</"+name+">")
		}
		p.raw("</tr>")
		if n == 0 {
			p.raw("</thead>")
		}
	}
	if len(t.rows) > 1 {
		p.raw("</tbody>")
	}
	p.raw("</table>")
}

func (p *page) rule(bool)     { p.raw("<hr>") }
func (p *page) text(s string) { p.raw(htmlEscaper.Replace(s)) }
func (p *page) newline()      { p.raw("<br>") }

func (p *page) mark(m mark, body func()) {
	if p.depth[m] > 0 {
		body()
		return
	}
	p.depth[m]++
	p.around(htmlTags[m][0], body, htmlTags[m][1])
	p.depth[m]--
}

func (p *page) code(s string) { p.mark(mono, func() { p.text(s) }) }

func (p *page) link(to []byte, label string) {
	url, ok := cleanURL(to, "matrix:")
	if label == "" {
		label = url
	}
	if ok {
		p.around(`<a href="`+htmlEscaper.Replace(url)+`">`, func() { p.text(label) }, "</a>")
		return
	}
	p.text(label)
	if url != "" && !strings.HasPrefix(url, "#") && !same(url, label) {
		p.text(" (" + url + ")")
	}
}
