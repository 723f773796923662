package email

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/chela-ai/chela/internal/kit/humanize"
)

// maxHTML is how many bytes of text are made of a page.
const maxHTML = 4 * maxText

// page makes text of HTML. It needs no tree, so that deeply nested elements are harmless.
type page struct {
	out    strings.Builder
	line   strings.Builder
	quotes int // open blockquote elements
	pre    int // open pre elements
	hidden int // open elements within one that is not shown
	within atom.Atom
	href   string // of the open link
	label  int    // where its text begins in line
	blank  bool   // an empty line is wanted before the next text
}

// fromHTML returns the text of an HTML document. Lines of quotations begin with "> ".
func fromHTML(s string) string {
	p := &page{}
	z := html.NewTokenizer(strings.NewReader(s))
	for p.out.Len() < maxHTML {
		kind := z.Next()
		if kind == html.ErrorToken {
			break
		}
		t := z.Token()
		switch kind {
		case html.TextToken:
			if p.hidden == 0 {
				p.text(t.Data)
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			p.start(t, kind == html.SelfClosingTagToken)
		case html.EndTagToken:
			p.end(t)
		}
	}
	p.flush(false)
	return strings.Trim(p.out.String(), "\n")
}

// start handles the beginning of an element.
func (p *page) start(t html.Token, closed bool) {
	if p.hidden > 0 {
		if t.DataAtom == p.within && !closed {
			p.hidden++
		}
		return
	}
	if !closed && !void(t.DataAtom) && notShown(t) {
		p.hidden, p.within = 1, t.DataAtom
		return
	}
	switch t.DataAtom {
	case atom.Br:
		p.flush(true)
	case atom.Hr:
		p.flush(false)
	case atom.Li:
		p.flush(false)
		p.line.WriteString("- ")
	case atom.Td, atom.Th:
		if p.line.Len() > 0 {
			p.line.WriteString(" ")
		}
	case atom.A:
		p.href, p.label = attribute(t, "href"), p.line.Len()
	case atom.Img:
		if alt := humanize.OneLine(attribute(t, "alt")); alt != "" {
			p.text("[" + alt + "]")
		}
	case atom.Pre:
		p.flush(false)
		p.pre++
	case atom.Blockquote:
		p.flush(false)
		p.quotes++
	default:
		p.block(t.DataAtom)
	}
}

// end handles the end of an element.
func (p *page) end(t html.Token) {
	if p.hidden > 0 {
		if t.DataAtom == p.within {
			p.hidden--
		}
		return
	}
	switch t.DataAtom {
	case atom.A:
		if p.label <= p.line.Len() {
			shown := strings.TrimSpace(p.line.String()[p.label:])
			if (strings.HasPrefix(p.href, "https://") || strings.HasPrefix(p.href, "http://")) && len(p.href) < 2000 &&
				shown != "" && !strings.Contains(p.href, shown) {
				p.line.WriteString(" (" + humanize.OneLine(p.href) + ")")
			}
		}
		p.href = ""
	case atom.Pre:
		p.flush(false)
		p.pre = max(p.pre-1, 0)
	case atom.Blockquote:
		p.flush(false)
		p.quotes = max(p.quotes-1, 0)
	default:
		p.block(t.DataAtom)
	}
}

// block ends the line at the beginning and the end of a block.
func (p *page) block(a atom.Atom) {
	switch a {
	case atom.P, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Ul, atom.Ol, atom.Table, atom.Dl:
		p.flush(false)
		p.blank = p.out.Len() > 0
	case atom.Div, atom.Tr, atom.Section, atom.Article, atom.Header, atom.Footer, atom.Main, atom.Aside, atom.Nav,
		atom.Center, atom.Address,
		atom.Dt, atom.Dd, atom.Form, atom.Fieldset, atom.Figure, atom.Figcaption, atom.Body, atom.Html, atom.Li:
		p.flush(false)
	}
}

// text adds text to the line.
func (p *page) text(s string) {
	if p.pre > 0 {
		for i, l := range strings.Split(s, "\n") {
			if i > 0 {
				p.flush(true)
			}
			p.line.WriteString(strings.TrimRight(l, "\r"))
		}
		return
	}
	if words := strings.Fields(s); len(words) > 0 {
		if strings.TrimLeft(s, " \t\r\n\f\u00a0") != s && p.line.Len() > 0 {
			p.space()
		}
		p.line.WriteString(strings.Join(words, " "))
		if strings.TrimRight(s, " \t\r\n\f\u00a0") != s {
			p.space()
		}
	} else if s != "" && p.line.Len() > 0 {
		p.space()
	}
}

func (p *page) space() {
	if !strings.HasSuffix(p.line.String(), " ") {
		p.line.WriteString(" ")
	}
}

// flush ends the line. An empty one is written only if it is forced.
func (p *page) flush(forced bool) {
	l := strings.TrimRight(p.line.String(), " ")
	p.line.Reset()
	p.label = 0
	prefix := ""
	if p.quotes > 0 {
		prefix = strings.Repeat(">", min(p.quotes, 10)) + " "
	}
	if l == "" {
		if forced && p.out.Len() > 0 {
			p.out.WriteString(strings.TrimRight(prefix, " ") + "\n")
			p.blank = false
		}
		return
	}
	if p.blank && !strings.HasSuffix(p.out.String(), "\n\n") {
		p.out.WriteString(strings.TrimRight(prefix, " ") + "\n")
	}
	p.blank = false
	p.out.WriteString(prefix + l + "\n")
}

// notShown reports whether a browser does not show an element.
func notShown(t html.Token) bool {
	switch t.DataAtom {
	case atom.Script, atom.Style, atom.Head, atom.Title, atom.Template, atom.Noscript, atom.Object, atom.Svg, atom.Select,
		atom.Textarea, atom.Iframe:
		return true
	}
	for _, a := range t.Attr {
		if a.Key == "hidden" {
			return true
		}
		style := strings.ToLower(strings.Join(strings.Fields(a.Val), ""))
		if a.Key == "style" && (strings.Contains(style, "display:none") || strings.Contains(style, "visibility:hidden")) {
			return true
		}
	}
	return false
}

// void reports whether an element has no end.
func void(a atom.Atom) bool {
	switch a {
	case atom.Area, atom.Base, atom.Br, atom.Col, atom.Embed, atom.Hr, atom.Img, atom.Input, atom.Link, atom.Meta,
		atom.Source, atom.Track, atom.Wbr:
		return true
	}
	return false
}

func attribute(t html.Token, key string) string {
	for _, a := range t.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}
