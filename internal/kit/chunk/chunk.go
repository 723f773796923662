// Package chunk splits a text into pieces of limited length. It splits between
// paragraphs if possible, otherwise between lines, sentences or words, and only
// as a last resort inside a word. A code block is not split unless it is longer
// than a piece; then it is closed at the end of the piece and reopened in the
// next one, as is emphasised text.
package chunk

import (
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limit is the default limit of a piece.
const Limit = 4000

// Options configures Split.
type Options struct {
	Limit int            // maximum length of a piece, in the unit of Size; < 1: the constant Limit
	Size  func(rune) int // length of a rune; nil: 1
}

// Len returns the length of s in the unit of Size.
func (o Options) Len(s string) int {
	n := 0
	for _, r := range s {
		n += o.size(r)
	}
	return n
}

func (o Options) size(r rune) int {
	if o.Size == nil {
		return 1
	}
	return o.Size(r)
}

// Split returns the pieces of text, in order. Concatenated, they equal the text
// except for the markers that were added to close and reopen code blocks and
// emphasised text, and the white space beside those of emphasised text. No rune
// is split. No piece is longer than the limit, unless a single rune is. The empty
// text has no pieces.
func Split(text string, o Options) []string {
	var out []string
	for _, p := range split(text, o) {
		out = append(out, p.whole())
	}
	return out
}

// Cut returns the length in bytes of the beginning of a growing text that can be sent as a
// piece of its own: at least least long, at most as long as the limit, in the unit of Size,
// and outside of code blocks and emphasised text. It ends between paragraphs; or, if the text is longer than the
// limit, between lines, sentences or words. 0: there is no such beginning yet.
func Cut(text string, least int, o Options) int {
	if o.Limit < 1 {
		o.Limit = Limit
	}
	s := splitter{o: o, text: text, fences: fences(text, o.Limit/8), growing: true}
	most := s.most(o.Limit)
	var best [4]int // by kind: the last position
	n := 0
	for i, r := range text[:most] {
		if k, ok := s.kind(i); ok && n >= least && s.at(i) == nil && (k == paragraph || len(s.open(i)) == 0) {
			best[k] = i
		}
		n += o.size(r)
	}
	if most == len(text) {
		return best[paragraph]
	}
	for _, i := range best {
		if i > 0 {
			return i
		}
	}
	return 0
}

// piece is a part of the text and what is added around it: the lines of a fence, or the
// markers of emphasised text.
type piece struct {
	open, text, shut string
	begin, end       string // markers of emphasised text
}

// whole returns the piece with what is added. Markers stand next to the text that they mark.
func (p piece) whole() string {
	text := p.text
	if p.begin != "" {
		rest := strings.TrimLeft(text, " \t\n")
		text = text[:len(text)-len(rest)] + p.begin + rest
	}
	if p.end != "" {
		text = strings.TrimRight(text, " \t\n") + p.end
	}
	return p.open + text + p.shut
}

func split(text string, o Options) []piece {
	if o.Limit < 1 {
		o.Limit = Limit
	}
	s := splitter{o: o, text: text, fences: fences(text, o.Limit/8)}
	var out []piece
	for s.pos < len(text) {
		out = append(out, s.next())
	}
	return out
}

// splitter splits text from pos on.
type splitter struct {
	o      Options
	text   string
	fences []fence
	pos    int
	block  block // with the spans that open was asked for last

	growing bool // more text follows
}

// fence is a code block in the text.
type fence struct {
	start    int    // start of the opening line
	marked   int    // end of the opening marker
	closing  int    // start of the closing line; len(text) if there is none
	end      int    // end of the closing marker
	marker   string // closing marker
	reopened string // line that reopens the block
}

// at returns the code block that contains position i, or nil.
func (s *splitter) at(i int) *fence {
	k := sort.Search(len(s.fences), func(k int) bool { return s.fences[k].start >= i })
	if k > 0 && i < s.fences[k-1].end {
		return &s.fences[k-1]
	}
	return nil
}

// shut returns the text that closes the code block left open by a piece that ends
// at i.
func (s *splitter) shut(i int) string {
	f := s.at(i)
	if n := len(s.fences); i == len(s.text) && n > 0 && s.fences[n-1].closing == len(s.text) {
		f = &s.fences[n-1]
	}
	if f == nil {
		return ""
	}
	if strings.HasSuffix(s.text[:i], "\n") {
		return f.marker
	}
	return "\n" + f.marker
}

// next returns the next piece.
func (s *splitter) next() piece {
	var p piece
	if f := s.at(s.pos); f != nil {
		p.open = f.reopened + "\n"
	} else {
		for _, sp := range s.open(s.pos) {
			p.begin += s.text[sp.start:sp.from]
		}
	}
	if 2*s.o.Len(p.begin) > s.o.Limit/8 {
		p.begin = ""
	}
	added := s.o.Len(p.open + p.begin)
	end := s.most(s.o.Limit - added)
	if end < len(s.text) || added+s.o.Len(s.text[s.pos:]+s.shut(end)) > s.o.Limit {
		end = s.cut(end)
	}
	s.finish(&p, end)
	for s.o.Len(p.whole()) > s.o.Limit { // make room for what closes the piece
		shorter := s.cut(s.most(s.o.Limit - added - s.o.Len(p.shut+p.end)))
		if shorter >= end {
			p.shut, p.end = "", "" // it does not fit
			break
		}
		end = shorter
		s.finish(&p, end)
	}
	s.pos = end
	return p
}

// finish ends a piece at end.
func (s *splitter) finish(p *piece, end int) {
	p.text, p.shut, p.end = s.text[s.pos:end], s.shut(end), ""
	if p.shut == "" && s.at(end) == nil {
		for _, sp := range s.open(end) {
			p.end = s.text[sp.to:sp.end] + p.end
		}
	}
	if 2*s.o.Len(p.end) > s.o.Limit/8 {
		p.end = ""
	}
	if strings.TrimSpace(p.text) == "" {
		p.begin, p.end = "", ""
	}
}

// most returns the end of the longest piece that fits into room; it has at least
// one rune.
func (s *splitter) most(room int) int {
	i := s.pos
	for _, r := range s.text[s.pos:] {
		room -= s.o.size(r)
		if room < 0 && i > s.pos {
			break
		}
		_, n := utf8.DecodeRuneInString(s.text[i:])
		i += n
	}
	return i
}

// cut returns the best position to end the piece, not after end.
func (s *splitter) cut(end int) int {
	half := max(s.pos+(end-s.pos)/2, s.pos+1)
	for _, least := range [...]int{half, s.pos + 1} {
		var best [4]int // by kind: the last position
		for i := end; i >= least && best[paragraph] == 0; i-- {
			if k, ok := s.kind(i); ok && best[k] == 0 && s.at(i) == nil && (k == paragraph || !s.marked(i)) {
				best[k] = i
			}
		}
		for _, i := range best {
			if i > 0 {
				return i
			}
		}
	}
	if f := s.at(end); f != nil { // the code block is too long: split it between lines
		from := max(s.pos, f.marked)
		if i := strings.LastIndexByte(s.text[from:end], '\n'); i > 0 {
			return from + i + 1
		}
	}
	return s.hard(end)
}

// The kinds of split positions, best first.
const (
	paragraph = iota
	line
	sentence
	blank
)

// kind returns the kind of the split position i, and false if the text must not be
// split there.
func (s *splitter) kind(i int) (int, bool) {
	t := s.text
	if i >= len(t) || i == 0 || !utf8.RuneStart(t[i]) {
		return 0, false
	}
	prev, n := utf8.DecodeLastRuneInString(t[:i])
	switch {
	case prev == '\n' && strings.HasSuffix(t[:i-1], "\n"):
		return paragraph, true
	case prev == '\n':
		return line, true
	case fakes(t[i:]):
		return 0, false
	case strings.ContainsRune("。！？；…", prev):
		return sentence, true
	case !unicode.IsSpace(prev):
		return 0, false
	}
	if before, _ := utf8.DecodeLastRuneInString(t[:i-n]); strings.ContainsRune(".!?", before) {
		return sentence, true
	}
	return blank, true
}

// hard returns a position inside a word, not after end: not inside a fence marker,
// not before text that would be read as one, and not inside a grapheme.
func (s *splitter) hard(end int) int {
	if f := s.at(end); f != nil {
		if end < f.marked && f.start > s.pos {
			return f.start
		}
		if end > f.closing && f.closing > s.pos {
			return f.closing
		}
	}
	i := end
	for range 16 {
		if i >= len(s.text) || i <= s.pos || !s.joins(i) {
			break
		}
		_, n := utf8.DecodeLastRuneInString(s.text[:i])
		i -= n
	}
	if i <= s.pos || i < len(s.text) && s.joins(i) {
		return end
	}
	return i
}

// joins reports whether the text must not be split at i.
func (s *splitter) joins(i int) bool {
	const joiner = 0x200d
	r, _ := utf8.DecodeRuneInString(s.text[i:])
	prev, _ := utf8.DecodeLastRuneInString(s.text[:i])
	return r == joiner || prev == joiner || unicode.Is(unicode.M, r) || r >= 0x1f3fb && r <= 0x1f3ff ||
		prev != '\n' && fakes(s.text[i:]) || s.at(i) == nil && s.marked(i)
}

// fakes reports whether t would be read as a fence at the start of a line.
func fakes(t string) bool {
	for range 3 {
		t = strings.TrimPrefix(t, " ")
	}
	return strings.HasPrefix(t, "```") || strings.HasPrefix(t, "~~~")
}

// fences finds the code blocks. Markers longer than most are ignored.
func fences(text string, most int) []fence {
	var out []fence
	var open *fence
	for i := 0; i < len(text); {
		eol := strings.IndexByte(text[i:], '\n')
		if eol < 0 {
			eol = len(text) - i
		}
		ln := text[i : i+eol]
		indent := len(ln) - len(strings.TrimLeft(ln, " "))
		marker, info := mark(ln[indent:])
		switch {
		case indent > 3 || marker == "":
		case open == nil && (marker[0] == '~' || !strings.Contains(info, "`")) && len(marker) <= most:
			out = append(out, fence{
				start: i, marked: i + indent + len(marker), closing: len(text), end: len(text),
				marker: marker, reopened: marker,
			})
			open = &out[len(out)-1]
			if info = strings.TrimSpace(info); len(info) <= most && utf8.ValidString(info) {
				open.reopened += info
			}
		case open != nil && marker[0] == open.marker[0] && len(marker) >= len(open.marker) && strings.TrimSpace(info) == "":
			open.closing, open.end = i, i+indent+len(marker)
			open = nil
		}
		i += eol + 1
	}
	return out
}

// mark returns the fence marker at the start of a line and the text after it.
func mark(ln string) (marker, info string) {
	if ln == "" || ln[0] != '`' && ln[0] != '~' {
		return "", ""
	}
	info = strings.TrimLeft(ln, ln[:1])
	if n := len(ln) - len(info); n >= 3 {
		return ln[:n], info
	}
	return "", ""
}

// Fenced returns text as a code block. The fence is longer than any fence in text.
func Fenced(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "\n" + strings.TrimSuffix(text, "\n") + "\n" + fence
}
