package markup

import (
	"bytes"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/chela-ai/chela/internal/kit/chunk"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// Limits. They make the time linear in the length of the source.
const (
	maxPiece = 16 << 10 // in bytes; a longer source is rendered in pieces
	maxDepth = 16       // of quotes and lists in each other; deeper ones are text
	maxCells = 20_000   // of the tables in a piece; if there may be more, tables are text
)

// source is a parsed piece of Markdown.
type source struct {
	text []byte
	root ast.Node
	used map[string]bool // labels of link definitions that a link uses
}

// pieces parses Markdown.
func pieces(md string) []*source {
	md = clean(md)
	if len(md) <= maxPiece {
		return []*source{parse(md)}
	}
	var out []*source
	for _, s := range chunk.Split(md, chunk.Options{Limit: maxPiece, Size: size}) {
		out = append(out, parse(s))
	}
	return out
}

// size returns the number of bytes of a rune.
func size(r rune) int { return len(string(r)) }

// clean makes the text valid and removes its control characters.
func clean(s string) string {
	s = humanize.Breaks(strings.ToValidUTF8(s, "\uFFFD"))
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 {
			return -1
		}
		return r
	}, s)
}

func parse(md string) *source {
	s := &source{text: []byte(md), used: map[string]bool{}}
	s.root = newParser(cells(md) <= maxCells).Parse(text.NewReader(s.text))
	_ = ast.Walk(s.root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if ref := reference(n); entering && ref != nil {
			s.used[util.ToLinkReference(ref.Value)] = true
		}
		return ast.WalkContinue, nil
	})
	return s
}

// reference returns the reference to a definition that a link or an image has, or nil.
func reference(n ast.Node) *ast.ReferenceLink {
	switch n := n.(type) {
	case *ast.Link:
		return n.Reference
	case *ast.Image:
		return n.Reference
	}
	return nil
}

// newParser returns a parser that does not know HTML.
func newParser(tables bool) parser.Parser {
	paragraphs := []util.PrioritizedValue{util.Prioritized(parser.LinkReferenceParagraphTransformer, 100)}
	var documents []util.PrioritizedValue
	if tables {
		paragraphs = append(paragraphs, util.Prioritized(extension.NewTableParagraphTransformer(), 200))
		documents = append(documents, util.Prioritized(extension.NewTableASTTransformer(), 0))
	}
	return parser.NewParser(
		parser.WithBlockParsers(
			util.Prioritized(parser.NewSetextHeadingParser(), 100),
			util.Prioritized(parser.NewThematicBreakParser(), 200),
			util.Prioritized(bounded{parser.NewListParser()}, 300),
			util.Prioritized(parser.NewListItemParser(), 400),
			util.Prioritized(parser.NewCodeBlockParser(), 500),
			util.Prioritized(parser.NewATXHeadingParser(), 600),
			util.Prioritized(parser.NewFencedCodeBlockParser(), 700),
			util.Prioritized(bounded{parser.NewBlockquoteParser()}, 800),
			util.Prioritized(parser.NewParagraphParser(), 1000),
		),
		parser.WithInlineParsers(
			util.Prioritized(extension.NewTaskCheckBoxParser(), 0),
			util.Prioritized(parser.NewCodeSpanParser(), 100),
			util.Prioritized(parser.NewLinkParser(), 200),
			util.Prioritized(parser.NewAutoLinkParser(), 300),
			util.Prioritized(parser.NewEmphasisParser(), 500),
			util.Prioritized(extension.NewStrikethroughParser(), 500),
			util.Prioritized(extension.NewLinkifyParser(), 999),
		),
		parser.WithParagraphTransformers(paragraphs...),
		parser.WithASTTransformers(documents...),
	)
}

// bounded parses blocks that contain others, up to the maximum depth.
type bounded struct{ parser.BlockParser }

// Open implements parser.BlockParser.
func (b bounded) Open(parent ast.Node, reader text.Reader, pc parser.Context) (ast.Node, parser.State) {
	depth := 0
	for n := parent; n != nil; n = n.Parent() {
		if k := n.Kind(); k == ast.KindBlockquote || k == ast.KindList {
			depth++
		}
	}
	if depth >= maxDepth {
		return nil, parser.NoChildren
	}
	return b.BlockParser.Open(parent, reader, pc)
}

// cells returns an upper bound of the number of cells in the tables of a text. Each row of
// a table gets as many cells as its head has.
func cells(md string) int {
	total, columns := 0, 0
	for line := range strings.Lines(md) {
		switch {
		case strings.TrimLeft(line, "> \t\n") == "":
			columns = 0
		case strings.Contains(line, "-"):
			columns = max(columns, strings.Count(line, "|")+1)
		}
		total += columns
	}
	return total
}

// plain returns text without the backslashes that escape characters.
func plain(b []byte) string { return string(util.UnescapePunctuations(bytes.Clone(b))) }

// schemes are those of links that every platform may open.
var schemes = [...]string{"http://", "https://", "mailto:"}

// cleanURL returns the destination of a link, with its special characters encoded, and
// whether its scheme is permitted.
func cleanURL(to []byte, more ...string) (string, bool) {
	s := string(util.URLEscape(bytes.Clone(to), true))
	s = strings.NewReplacer(`"`, "%22", "<", "%3C", ">", "%3E", "|", "%7C", "`", "%60", "\n", "").Replace(clean(s))
	for _, list := range [2][]string{schemes[:], more} {
		for _, scheme := range list {
			if len(s) > len(scheme) && strings.EqualFold(s[:len(scheme)], scheme) {
				return s, true
			}
		}
	}
	return s, false
}
