package chunk

import (
	"cmp"
	"slices"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"
)

// span is emphasised text or code in a line or paragraph.
type span struct {
	start, from int // of the opening marker: begin and end
	to, end     int // of the closing marker: begin and end
	around      int // index of the smallest span that contains it; -1: none
}

// block is a part of the text that a span cannot leave, with its spans by start.
type block struct {
	start, end int
	spans      []span
}

// maxOpen is how many spans are closed and reopened at one position.
const maxOpen = 8

// open returns the spans that contain i, outer ones first. i must be outside of code blocks.
func (s *splitter) open(i int) []span {
	if i == 0 || i >= len(s.text) {
		return nil
	}
	if b := &s.block; i < b.start || i > b.end || b.end == 0 {
		b.start, b.end = s.around(i)
		b.spans = spans(s.text[b.start:b.end], b.start, s.growing && b.end == len(s.text))
	}
	var out []span
	k := sort.Search(len(s.block.spans), func(k int) bool { return s.block.spans[k].start >= i }) - 1
	for ; k >= 0; k = s.block.spans[k].around {
		if sp := s.block.spans[k]; i < sp.end {
			out = append(out, sp)
		}
	}
	slices.Reverse(out)
	return out
}

// marked reports whether i is next to the text of a span or inside one of its markers, so that
// a piece which ends there would have a span without text.
func (s *splitter) marked(i int) bool {
	for _, sp := range s.open(i) {
		if i <= sp.from || i >= sp.to {
			return true
		}
	}
	return false
}

// around returns the block that contains i: up to a blank line, a code block, or a line that
// begins something else. It is empty if the block ends at i.
func (s *splitter) around(i int) (start, end int) {
	for start = i; start > 0; {
		begin := strings.LastIndexByte(s.text[:start-1], '\n') + 1
		if start < i && begins(s.text[start:]) || strings.TrimSpace(s.text[begin:start]) == "" || s.at(start-1) != nil {
			break
		}
		start = begin
	}
	for end = i; end < len(s.text); {
		next := strings.IndexByte(s.text[end:], '\n') + 1
		if next == 0 {
			return start, len(s.text)
		}
		atLine := end == 0 || s.text[end-1] == '\n'
		if atLine && (strings.TrimSpace(s.text[end:end+next]) == "" || begins(s.text[end:]) || s.at(end+1) != nil) {
			break
		}
		end += next
	}
	return start, end
}

// begins reports whether a line begins an item of a list, a heading, a quote or a row of a table.
func begins(ln string) bool {
	ln = strings.TrimLeft(ln, " \t")
	if ln == "" {
		return false
	}
	if strings.IndexByte("#>|", ln[0]) >= 0 {
		return true
	}
	rest := strings.TrimLeft(ln, "0123456789")
	if rest == ln {
		rest = strings.TrimLeft(ln, "-+*")
		return len(ln)-len(rest) == 1 && strings.HasPrefix(rest, " ")
	}
	return strings.HasPrefix(rest, ". ") || strings.HasPrefix(rest, ") ")
}

// run is a run of one marker character that has no partner yet.
type run struct {
	char   byte
	pos, n int
}

// spans finds the spans of a block as CommonMark does, except for links and for the lengths
// of runs that may not belong together. base is added to the positions. If the block is still
// growing, a span that is not closed extends beyond its end.
func spans(t string, base int, growing bool) []span {
	if !strings.ContainsAny(t, "*_~`") {
		return nil
	}
	var out []span
	var opened []run
	for i := 0; i < len(t); {
		c := t[i]
		if c == '\\' {
			i += 2
			continue
		}
		if strings.IndexByte("*_~`", c) < 0 {
			i++
			continue
		}
		n := len(t[i:]) - len(strings.TrimLeft(t[i:], t[i:i+1]))
		if c == '`' {
			if to := closing(t, i+n, n); to > 0 {
				out = append(out, span{start: base + i, from: base + i + n, to: base + to, end: base + to + n})
				i = to + n
				continue
			}
			if growing {
				out = append(out, beyond(base, i, n, len(t)))
			}
			i += n
			continue
		}
		opens, closes := flanks(t, i, n)
		if c == '~' && n != 2 {
			opens, closes = false, false
		}
		pos, left := i, n
		for k := len(opened) - 1; closes && left > 0 && k >= 0; k-- {
			o := &opened[k]
			if o.char != c {
				continue
			}
			for left > 0 && o.n > 0 {
				use := min(left, o.n, 2)
				o.n -= use
				at := o.pos + o.n
				out = append(out, span{start: base + at, from: base + at + use, to: base + pos, end: base + pos + use})
				pos, left = pos+use, left-use
			}
			opened = opened[:k+1]
			if o.n == 0 {
				opened = opened[:k]
			}
		}
		if opens && left > 0 && len(opened) < maxOpen {
			opened = append(opened, run{char: c, pos: pos, n: left})
		}
		i += n
	}
	for _, o := range opened {
		if growing {
			out = append(out, beyond(base, o.pos, o.n, len(t)))
		}
	}
	slices.SortFunc(out, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	last := -1
	for i := range out {
		for last >= 0 && out[last].end <= out[i].start {
			last = out[last].around
		}
		out[i].around, last = last, i
	}
	return out
}

// beyond returns a span that begins with n markers at i and is open at the end of its block.
func beyond(base, i, n, end int) span {
	return span{start: base + i, from: base + i + n, to: base + end + 1, end: base + end + 1}
}

// closing returns the position of a run of exactly n backticks from i on; 0: there is none.
func closing(t string, i, n int) int {
	for i < len(t) {
		k := strings.IndexByte(t[i:], '`')
		if k < 0 {
			return 0
		}
		i += k
		m := len(t[i:]) - len(strings.TrimLeft(t[i:], "`"))
		if m == n {
			return i
		}
		i += m
	}
	return 0
}

// flanks reports whether the run of n markers at i may open and may close a span.
func flanks(t string, i, n int) (opens, closes bool) {
	prev, next := ' ', ' '
	if i > 0 {
		prev, _ = utf8.DecodeLastRuneInString(t[:i])
	}
	if i+n < len(t) {
		next, _ = utf8.DecodeRuneInString(t[i+n:])
	}
	spaceBefore, spaceAfter := unicode.IsSpace(prev), unicode.IsSpace(next)
	pointBefore, pointAfter := isPoint(prev), isPoint(next)
	left := !spaceAfter && (!pointAfter || spaceBefore || pointBefore)
	right := !spaceBefore && (!pointBefore || spaceAfter || pointAfter)
	if t[i] == '_' {
		return left && (!right || pointBefore), right && (!left || pointAfter)
	}
	return left, right
}

func isPoint(r rune) bool { return unicode.IsPunct(r) || unicode.IsSymbol(r) }
