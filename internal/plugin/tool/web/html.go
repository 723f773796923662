package web

import (
	"bytes"
	"io"
	"net/url"
	"strings"
	"unicode/utf8"

	"codeberg.org/readeck/go-readability"
	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/transform"

	"github.com/chela-ai/chela/internal/kit/humanize"
)

const (
	maxWeight  = 1_250_000 // limit for parsing a page into a tree, which takes up to 16 MB
	leastMain  = 200       // minimum number of characters of a main part
	maxNesting = 120
)

// decoded returns a reader of body as UTF-8. The encoding is determined by a
// byte order mark, the header, or the page; the default is UTF-8.
func decoded(body []byte, contentType string) io.Reader {
	enc, _, certain := charset.DetermineEncoding(body, contentType)
	if trimmed := humanize.TrimPartial(body); !certain && utf8.Valid(trimmed) {
		enc, body = encoding.Nop, trimmed
	}
	for _, mark := range []string{"\uFEFF", "\xFF\xFE", "\xFE\xFF"} {
		body = bytes.TrimPrefix(body, []byte(mark))
	}
	if enc == encoding.Nop {
		return bytes.NewReader(body)
	}
	return transform.NewReader(bytes.NewReader(body), enc.NewDecoder())
}

// extract returns the text of a page: of its main part if main is set and
// there is one, else of the whole page. markdown preserves the structure.
func extract(body []byte, contentType string, at *url.URL, markdown, main bool) (title, text, extractor string) {
	if weight(body) > maxWeight {
		title, text = skim(decoded(body, contentType), at, markdown)
		return title, text, "html"
	}
	if main {
		if title, text = article(body, contentType, at, markdown); text != "" {
			return title, text, "readability"
		}
	}
	title, text = skim(decoded(body, contentType), at, markdown)
	if markdown {
		if doc := tree(body, contentType); doc != nil {
			if whole := toMarkdown(doc, at); whole != "" {
				text = whole
			}
		}
	}
	return title, text, "html"
}

// weight estimates the cost of parsing a page into a tree and searching it:
// its size without scripts, plus a constant per element.
func weight(body []byte) int {
	z := html.NewTokenizer(bytes.NewReader(body))
	n, hidden := 0, false
	for {
		switch kind := z.Next(); kind {
		case html.ErrorToken:
			return n
		case html.TextToken:
			if !hidden {
				n += 2 * len(z.Raw())
			}
		case html.StartTagToken, html.EndTagToken, html.SelfClosingTagToken:
			n += 2*len(z.Raw()) + 50
			name, _ := z.TagName()
			tag := atom.Lookup(name)
			hidden = kind == html.StartTagToken && (tag == atom.Script || tag == atom.Style)
		}
	}
}

// tree parses a page. It returns nil if elements nest too deeply, because the
// cost of processing grows with the depth.
func tree(body []byte, contentType string) *html.Node {
	doc, err := html.Parse(decoded(body, contentType))
	if err != nil || deeper(doc, maxNesting) {
		return nil
	}
	return doc
}

// deeper reports whether an element has descendants more than n levels below
// it.
func deeper(e *html.Node, n int) bool {
	for c := range e.ChildNodes() {
		if n == 0 || deeper(c, n-1) {
			return true
		}
	}
	return false
}

// article returns the main part of a page, or no text if there is none.
func article(body []byte, contentType string, at *url.URL, markdown bool) (title, text string) {
	doc := tree(body, contentType)
	if doc == nil {
		return "", ""
	}
	p := readability.NewParser()
	a, err := p.ParseAndMutate(doc, at)
	switch {
	case err != nil || a.Node == nil || a.Length < leastMain:
		return "", ""
	case markdown:
		return a.Title, toMarkdown(a.Node, at)
	}
	_, text = skim(strings.NewReader(a.Content), at, false)
	return a.Title, text
}

// toMarkdown returns the Markdown of a tree, or "" on failure. It modifies
// the tree: images embedded in the page are removed, because they would be
// long meaningless lines.
func toMarkdown(n *html.Node, at *url.URL) string {
	for d := range n.Descendants() {
		for i, a := range d.Attr {
			if (a.Key == "src" || a.Key == "href") && strings.HasPrefix(strings.TrimSpace(a.Val), "data:") {
				d.Attr[i].Val = ""
			}
		}
	}
	c := converter.NewConverter(converter.WithPlugins(base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(),
		table.NewTablePlugin()))
	b, err := c.ConvertNode(n, converter.WithDomain(at.Scheme+"://"+at.Host))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
