package markdown

import (
	"bytes"
	"strings"

	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// Extensions of GitHub Flavored Markdown. The ones of goldmark include HTML
// renderers and package-level initialization, which a terminal does not need.
// Tables are in rows.go.

// taskBox parses the check box at the beginning of a list item: [ ] or [x].
type taskBox struct{}

func (taskBox) Trigger() []byte { return []byte{'['} }

func (taskBox) Parse(parent ast.Node, block text.Reader, _ parser.Context) ast.Node {
	item, ok := parent.Parent().(*ast.ListItem)
	if !ok || item.FirstChild() != parent || parent.HasChildren() {
		return nil
	}
	line, _ := block.PeekLine()
	if len(line) < 3 || line[2] != ']' || !util.IsSpace(line[1]) && line[1]|' ' != 'x' {
		return nil
	}
	end := 3
	for end < len(line) && util.IsSpace(line[end]) {
		end++
	}
	block.Advance(end)
	return east.NewTaskCheckBox(line[1]|' ' == 'x')
}

// strike parses strikethrough text: ~text~ or ~~text~~.
type strike struct{}

func (strike) IsDelimiter(b byte) bool                        { return b == '~' }
func (strike) CanOpenCloser(open, end *parser.Delimiter) bool { return open.Char == end.Char }
func (strike) OnMatch(int) ast.Node                           { return east.NewStrikethrough() }
func (strike) Trigger() []byte                                { return []byte{'~'} }

func (s strike) Parse(_ ast.Node, block text.Reader, pc parser.Context) ast.Node {
	before := block.PrecendingCharacter()
	line, segment := block.PeekLine()
	d := parser.ScanDelimiter(line, before, 1, s)
	if d == nil || d.OriginalLength > 2 || before == '~' {
		return nil
	}
	d.Segment = segment.WithStop(segment.Start + d.OriginalLength)
	block.Advance(d.OriginalLength)
	pc.PushDelimiter(d)
	return d
}

// bareLink parses URLs and email addresses in plain text.
type bareLink struct{}

// Trigger returns the characters that may precede an address. The space stands
// for any white space and for the beginning of a line.
func (bareLink) Trigger() []byte { return []byte(" *_~(") }

func (bareLink) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	if pc.IsInLinkLabel() {
		return nil
	}
	line, segment := block.PeekLine()
	before := 0
	if bytes.IndexByte([]byte(" *_~("), line[0]) >= 0 {
		before = 1
	}
	line = line[before:]
	kind := ast.AutoLinkURL
	n := urlLength(line)
	if n == 0 {
		kind = ast.AutoLinkEmail
		n = emailLength(line)
	}
	if n == 0 {
		return nil
	}
	n = untrailed(line, n)
	if before > 0 {
		ast.MergeOrAppendTextSegment(parent, segment.WithStop(segment.Start+1))
	}
	block.Advance(before + n)
	start := segment.Start + before
	return ast.NewAutoLink(kind, ast.NewTextSegment(text.NewSegment(start, start+n)))
}

// urlLength returns the length of the URL at the beginning of line, or 0.
func urlLength(line []byte) int {
	for _, scheme := range []string{"http://", "https://", "ftp://", "www."} {
		if !bytes.HasPrefix(line, []byte(scheme)) {
			continue
		}
		end := hostEnd(line, len(scheme))
		if end == 0 || end == len(line) {
			return end
		}
		if line[end] == ':' {
			port := end + 1
			for port < len(line) && util.IsNumeric(line[port]) {
				port++
			}
			if port > end+1 {
				end = port
			}
		}
		if end < len(line) && strings.IndexByte("/#?", line[end]) >= 0 {
			end = while(line, end, "-@:%_+.~#$!?&/=();,'\">^{}[]`")
		}
		return end
	}
	return 0
}

// maxHost is the maximum length of a host name before its last label.
const maxHost = 256

// hostEnd returns the end of the host name at start, which must end with a dot
// and a label of lower-case letters; 0 if there is none.
func hostEnd(line []byte, start int) int {
	stop := while(line, start, "-@:%._+~#=")
	for dot := min(stop, start+maxHost, len(line)-1); dot > start; dot-- {
		end := dot + 1
		for end < len(line) && 'a' <= line[end] && line[end] <= 'z' {
			end++
		}
		if line[dot] == '.' && end > dot+1 {
			return end
		}
	}
	return 0
}

// while returns the end of the letters, digits and other characters that start
// at i.
func while(line []byte, i int, others string) int {
	for i < len(line) && (util.IsAlphaNumeric(line[i]) || strings.IndexByte(others, line[i]) >= 0) {
		i++
	}
	return i
}

// emailLength returns the length of the email address at the beginning of line,
// or 0.
func emailLength(line []byte) int {
	if len(line) == 0 || util.IsPunct(line[0]) {
		return 0
	}
	n := util.FindEmailIndex(line)
	if n < 0 || bytes.IndexByte(line[bytes.IndexByte(line, '@'):n-1], '.') < 0 {
		return 0
	}
	if line[n-1] == '.' {
		n--
	}
	if n < len(line) && (line[n] == '-' || line[n] == '_') {
		return 0
	}
	return n
}

// untrailed returns n without the characters at the end of an address that
// belong to the sentence: punctuation, an unmatched closing bracket, an entity.
func untrailed(line []byte, n int) int {
	brackets := bytes.Count(line[:n], []byte(")")) - bytes.Count(line[:n], []byte("("))
	for n > 1 {
		switch c := line[n-1]; {
		case strings.IndexByte("?!.,:*_~", c) >= 0:
			n--
		case c == ')' && brackets > 0:
			brackets--
			n--
		case c == ';':
			name := n - 2
			for name > 0 && util.IsAlphaNumeric(line[name]) {
				name--
			}
			if name == n-2 || line[name] != '&' {
				return n
			}
			n = name
		default:
			return n
		}
	}
	return n
}
