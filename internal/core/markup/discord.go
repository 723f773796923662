package markup

import (
	"bytes"
	"strings"

	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"
)

// Discord renders Markdown as Discord's own, which is nearly the same: tables become
// blocks of code, images links, and headings that Discord does not know bold text.
// Mentions stay as they are; the message has to be sent with allowed_mentions.
func Discord(md string) string {
	var out []string
	for _, s := range pieces(md) {
		out = append(out, s.discord())
	}
	return strings.Join(out, "\n")
}

// edit replaces a part of the source.
type edit struct {
	start, end int
	with       string
}

func (s *source) discord() string {
	var edits []edit
	k := &walker{src: s}
	_ = ast.Walk(s.root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *east.Table:
			if e, ok := s.tableEdit(n, k.table(n)); ok {
				edits = append(edits, e)
			}
			return ast.WalkSkipChildren, nil
		case *ast.Heading:
			if e, ok := s.headingEdit(n); ok {
				edits = append(edits, e)
				return ast.WalkSkipChildren, nil
			}
		case *ast.Image:
			if e, ok := s.imageEdit(n); ok {
				edits = append(edits, e)
			}
			return ast.WalkSkipChildren, nil
		}
		return ast.WalkContinue, nil
	})
	var b strings.Builder
	at := 0
	for _, e := range edits {
		if e.start < at {
			continue
		}
		b.Write(s.text[at:e.start])
		b.WriteString(e.with)
		at = e.end
	}
	b.Write(s.text[at:])
	return b.String()
}

// tableEdit replaces a table by a block of code. What stands before the table in its first
// line, such as the mark of a quote, stands before each of the new lines.
func (s *source) tableEdit(n *east.Table, t table) (edit, bool) {
	begin, first, ok := s.begin(n)
	if !ok {
		return edit{}, false
	}
	last := s.lineEnd(s.lineEnd(first) + 1) // the line below the head
	for row := n.FirstChild().NextSibling(); row != nil; row = row.NextSibling() {
		if row.FirstChild() != nil && row.FirstChild().Lines().Len() > 0 {
			last = max(last, s.lineEnd(row.FirstChild().Lines().At(0).Start))
		}
	}
	before := strings.TrimRight(string(s.text[begin:first]), "| ")
	rest := strings.Map(func(r rune) rune {
		if r == '>' {
			return r
		}
		return ' '
	}, before)
	if before != "" {
		before, rest = before+" ", rest+" "
	}
	code := strings.ReplaceAll(t.aligned(), "```", "``"+boundary+"`")
	return edit{begin, last, before + strings.ReplaceAll("```\n"+code+"\n```", "\n", "\n"+rest)}, true
}

// lineEnd returns the position of the end of the line at i.
func (s *source) lineEnd(i int) int {
	if i >= len(s.text) {
		return len(s.text)
	}
	if n := bytes.IndexByte(s.text[i:], '\n'); n >= 0 {
		return i + n
	}
	return len(s.text)
}

// headingEdit replaces a heading that is underlined or of a low level.
func (s *source) headingEdit(n *ast.Heading) (edit, bool) {
	if n.Lines().Len() != 1 {
		return edit{}, false
	}
	l := n.Lines().At(0)
	begin := bytes.LastIndexByte(s.text[:l.Start], '\n') + 1
	hashes := bytes.LastIndexByte(s.text[begin:l.Start], '#')
	content := strings.TrimSpace(string(l.Value(s.text)))
	switch {
	case content == "":
		return edit{}, false
	case hashes < 0: // underlined
		return edit{l.Start, s.lineEnd(s.lineEnd(l.Start) + 1), strings.Repeat("#", n.Level) + " " + content}, true
	case n.Level > 3:
		return edit{begin + hashes + 1 - n.Level, s.lineEnd(l.Start), "**" + strings.ReplaceAll(content, "**", "") + "**"},
			true
	}
	return edit{}, false
}

// imageEdit removes the exclamation mark before an image.
func (s *source) imageEdit(n *ast.Image) (edit, bool) {
	i := n.Pos()
	if i < 0 || i >= len(s.text) || s.text[i] != '!' {
		return edit{}, false
	}
	return edit{i, i + 1, ""}, true
}
