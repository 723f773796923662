package web

import (
	"bytes"
	"io"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/chela-ai/chela/internal/kit/humanize"
)

// skim converts HTML to text in one pass without building a tree, and accepts
// any input. Invisible elements are omitted, and blocks become lines. As
// Markdown the text has headings, lists, links and code. It is used for pages
// that are too large or too broken for the other extractors.
func skim(r io.Reader, at *url.URL, markdown bool) (title, text string) {
	s := skimmer{z: html.NewTokenizer(r), at: at, markdown: markdown}
	s.z.SetMaxBuf(4 << 20)
	for len(s.out) < maxText && s.next() {
	}
	return strings.Join(strings.Fields(s.title.String()), " "), tidy(s.out)
}

type skimmer struct {
	z        *html.Tokenizer
	at       *url.URL
	markdown bool

	out     []byte
	title   strings.Builder
	inTitle bool
	hidden  atom.Atom // the invisible element that is open; 0: none
	depth   int       // nesting depth of hidden
	pre     int       // nesting depth of pre
	href    string    // URL of the open link
	link    int       // offset of the link's text
}

// maxText limits the text of a page, in bytes.
const maxText = 1 << 20

// verbatim marks the beginning of a line whose blanks are preserved.
const verbatim = '\x00'

func (s *skimmer) next() bool {
	kind := s.z.Next()
	switch kind {
	case html.ErrorToken:
		return false
	case html.TextToken:
		s.text(s.z.Text())
		return true
	case html.StartTagToken, html.EndTagToken, html.SelfClosingTagToken:
	default:
		return true
	}
	name, _ := s.z.TagName()
	tag := atom.Lookup(name)
	switch {
	case tag == atom.Title && s.title.Len() == 0 || s.inTitle:
		s.inTitle = kind == html.StartTagToken
	case s.hidden != 0:
		if tag == s.hidden && kind == html.StartTagToken {
			s.depth++
		} else if tag == s.hidden && kind == html.EndTagToken {
			s.depth--
		}
		if s.depth == 0 {
			s.hidden = 0
		}
	case kind == html.StartTagToken && invisible(tag):
		s.hidden, s.depth = tag, 1
	case kind == html.EndTagToken:
		s.end(tag)
	default:
		s.start(tag)
	}
	return true
}

func (s *skimmer) text(b []byte) {
	if free := max(maxText-len(s.out), 0); len(b) > free {
		b = humanize.TrimPartial(b[:free])
	}
	switch {
	case s.inTitle:
		s.title.Write(humanize.TrimPartial(b[:min(len(b), 1000)]))
	case s.hidden != 0:
	case s.pre > 0:
		for _, c := range b {
			if c != verbatim {
				s.out = append(s.out, c)
			}
			if c == '\n' {
				s.out = append(s.out, verbatim)
			}
		}
	default:
		if n := len(s.out); n == 0 || s.out[n-1] == '\n' {
			b = bytes.TrimLeft(b, " \t\r\n")
		}
		for _, c := range b {
			switch c {
			case '\n', verbatim:
				c = ' '
			}
			s.out = append(s.out, c)
		}
	}
}

func (s *skimmer) start(tag atom.Atom) {
	switch tag {
	case atom.Br:
		s.out = append(s.out, '\n')
		s.startVerbatim()
	case atom.Hr:
		s.lines(2)
	case atom.Td, atom.Th:
		s.out = append(s.out, ' ')
	case atom.Pre:
		if s.pre++; s.pre == 1 {
			s.lines(2)
			s.markdownOnly("```\n")
			s.startVerbatim()
		}
	case atom.Li:
		s.lines(1)
		s.markdownOnly("- ")
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		s.lines(2)
		s.markdownOnly("######"[:tag.String()[1]-'0'] + " ")
	case atom.A:
		s.open()
	default:
		n := breaks(tag)
		if tag == atom.Ul || tag == atom.Ol {
			n = 1 // it may be part of a list item
		}
		// The first block of a list item or a heading continues its line.
		if n > 0 && len(bytes.Trim(s.out[bytes.LastIndexByte(s.out, '\n')+1:], "-# \x00")) > 0 {
			s.lines(n)
		}
	}
}

// breaks returns how many line breaks a block has at each end; 0: it is no block.
func breaks(tag atom.Atom) int {
	switch tag {
	case atom.P, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Ul, atom.Ol, atom.Dl, atom.Table,
		atom.Blockquote, atom.Section, atom.Article:
		return 2
	case atom.Div, atom.Li, atom.Tr, atom.Header, atom.Footer, atom.Nav, atom.Main, atom.Aside, atom.Dd,
		atom.Dt, atom.Figcaption:
		return 1
	}
	return 0
}

func (s *skimmer) end(tag atom.Atom) {
	switch tag {
	case atom.Pre:
		if s.pre == 0 {
			return
		}
		if s.pre--; s.pre == 0 {
			s.lines(1)
			s.markdownOnly("```")
			s.lines(2)
		}
	case atom.A:
		s.close()
	default:
		if n := breaks(tag); n > 0 {
			s.lines(n)
		}
	}
}

// lines ends the current line and ensures n line breaks.
func (s *skimmer) lines(n int) {
	s.out = bytes.TrimRight(s.out, " \x00")
	for rest := s.out; n > 0 && bytes.HasSuffix(rest, []byte("\n")); n-- {
		rest = rest[:len(rest)-1]
	}
	s.out = append(s.out, "\n\n"[:n]...)
	s.startVerbatim()
}

// startVerbatim marks the line that begins here as verbatim if it is inside
// pre.
func (s *skimmer) startVerbatim() {
	if s.pre > 0 && !bytes.HasSuffix(s.out, []byte{verbatim}) {
		s.out = append(s.out, verbatim)
	}
}

// markdownOnly adds text to Markdown output only.
func (s *skimmer) markdownOnly(text string) {
	if s.markdown {
		s.out = append(s.out, text...)
	}
}

// open begins a link if it has a web URL.
func (s *skimmer) open() {
	s.href = ""
	for more := s.markdown && s.pre == 0; more; {
		var key, val []byte
		key, val, more = s.z.TagAttr()
		if string(key) != "href" || len(val) > 2000 {
			continue
		}
		if u, err := s.at.Parse(string(val)); err == nil && (u.Scheme == "http" || u.Scheme == "https") &&
			!bytes.HasPrefix(val, []byte("#")) {
			s.href = u.String()
		}
	}
	if s.href != "" {
		s.markdownOnly("[")
		s.link = len(s.out)
	}
}

// close ends the open link. A link without text is removed.
func (s *skimmer) close() {
	if s.href == "" {
		return
	}
	if text := bytes.TrimSpace(s.out[s.link:]); len(text) == 0 {
		s.out = s.out[:s.link-1]
	} else {
		text = squeeze(text)
		s.out = append(append(s.out[:s.link], text...), "]("+s.href+")"...)
	}
	s.href = ""
}

// invisible reports whether the content of an element is never shown.
func invisible(tag atom.Atom) bool {
	switch tag {
	case atom.Script, atom.Style, atom.Noscript, atom.Template, atom.Svg, atom.Iframe, atom.Object,
		atom.Textarea, atom.Select:
		return true
	}
	return false
}

// tidy trims lines, joins runs of blanks, and leaves at most one empty line
// in a row. It modifies text.
func tidy(text []byte) string {
	out := text[:0] // the output is never longer than the input read so far
	empty := 0
	for line := range bytes.Lines(text) {
		if line[0] == verbatim {
			line = bytes.TrimRight(line[1:], " \t\r\n")
		} else {
			line = squeeze(line)
		}
		if len(line) == 0 {
			empty++
			continue
		}
		if len(out) > 0 {
			out = append(out, "\n\n"[:1+min(empty, 1)]...)
		}
		empty = 0
		out = append(out, line...)
	}
	return string(out)
}

// squeeze trims text and replaces each run of blanks by one blank, in place.
func squeeze(text []byte) []byte {
	out, blank := text[:0], false
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		if unicode.IsSpace(r) {
			blank = len(out) > 0
		} else {
			if blank {
				out, blank = append(out, ' '), false
			}
			out = append(out, text[:n]...)
		}
		text = text[n:]
	}
	return out
}
