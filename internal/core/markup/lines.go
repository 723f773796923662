package markup

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

func itoa(n int) string { return strconv.Itoa(n) }

// dialect is how a platform writes markup in lines of text.
type dialect struct {
	escape func(s string) string // makes s stand literally; nil: it does
	tags   [marks][2]string      // before and after text with a mark
	styles [marks]string         // names of marks in spans

	quote   [2]string // before and after a quote; empty: each line has a prefix
	pre     func(lang, code string) string
	code    func(s string) string            // nil: as text with the mark mono
	link    func(url, label string) string   // nil: the label with the URL in parentheses
	guard   func(s string, last rune) string // before escape: prevents that text becomes markup; last is what precedes it
	schemes []string                         // of links, besides the usual ones
	perLine bool                             // marks end with the line and need a boundary of words
}

// prefix is what stands before the lines of a block.
type prefix struct {
	first, rest string
	used        bool // first was written
}

// lines writes a document as lines of text.
type lines struct {
	d        *dialect
	out      []byte
	units    int // of UTF-16 in out
	counted  int // bytes of out in units
	spans    []Span
	prefixes []*prefix
	begun    bool // the current line has its prefix
	blank    bool // the line before is empty
	depth    [marks]int
	active   []mark // those written before the text and not after it yet
	closed   bool   // a mark was just closed
	quotes   int
}

func newLines(d *dialect) *lines { return &lines{d: d} }

// start begins a line unless it has begun.
func (l *lines) start() {
	if l.begun {
		return
	}
	l.begun, l.blank = true, false
	for _, p := range l.prefixes {
		if p.used {
			l.out = append(l.out, p.rest...)
		} else {
			l.out = append(l.out, p.first...)
		}
		p.used = true
	}
	if l.d.perLine {
		for _, m := range l.active {
			l.out = append(l.out, l.d.tags[m][0]...)
		}
	}
}

// end ends the current line if it has begun.
func (l *lines) end() {
	if !l.begun {
		return
	}
	if l.d.perLine {
		for i := len(l.active) - 1; i >= 0; i-- {
			l.out = append(l.out, l.d.tags[l.active[i]][1]...)
		}
	}
	l.out = append(l.out, '\n')
	l.begun, l.closed = false, false
}

// next begins a block.
func (l *lines) next(apart bool) {
	l.end()
	if !apart || len(l.out) == 0 || l.blank || l.pending() {
		return
	}
	var b strings.Builder
	for _, p := range l.prefixes {
		b.WriteString(p.rest)
	}
	l.out = append(l.out, strings.TrimRight(b.String(), " ")...)
	l.out = append(l.out, '\n')
	l.blank = true
}

// pending reports whether the innermost block has no content yet.
func (l *lines) pending() bool {
	return len(l.prefixes) > 0 && !l.prefixes[len(l.prefixes)-1].used
}

// marked reports whether the innermost block is an item whose marker was not written.
func (l *lines) marked() bool {
	return l.pending() && l.prefixes[len(l.prefixes)-1].first != l.prefixes[len(l.prefixes)-1].rest
}

func (l *lines) within(p prefix, body func()) {
	l.prefixes = append(l.prefixes, &p)
	body()
	if l.marked() { // an item without content
		l.start()
	}
	l.prefixes = l.prefixes[:len(l.prefixes)-1]
}

func (l *lines) block(b block, body func()) {
	switch b.kind {
	case list:
		l.next(b.apart)
		body()
	case item:
		l.next(b.apart)
		marker := b.marker + " "
		if b.box != "" {
			marker = strings.TrimPrefix(marker, bullet+" ") + b.box + " "
		}
		l.within(prefix{first: marker, rest: strings.Repeat(" ", utf8.RuneCountInString(marker))}, body)
	case quote:
		l.next(b.apart)
		l.quote(body)
	case heading:
		l.next(b.apart)
		l.mark(bold, body)
	default:
		l.next(b.apart)
		body()
	}
}

func (l *lines) quote(body func()) {
	if l.d.quote[0] == "" {
		l.within(prefix{first: "> ", rest: "> "}, body)
		return
	}
	l.quotes++
	defer func() { l.quotes-- }()
	if l.quotes > 1 { // platforms with tags have no quotes in quotes
		body()
		return
	}
	before := len(l.out)
	l.out = append(l.out, l.d.quote[0]...)
	opened := len(l.out)
	// The quote is on lines of its own: a prefix without text makes its first block begin
	// without an empty line.
	l.within(prefix{}, body)
	if len(l.out) == opened {
		l.out = l.out[:before]
		return
	}
	l.out = append(l.out, l.d.quote[1]...)
}

func (l *lines) pre(lang, code string, apart bool) {
	if l.marked() && l.d.pre != nil {
		l.start()
	}
	l.next(apart)
	if strings.TrimSpace(code) == "" {
		return
	}
	if l.d.pre == nil {
		l.mark(mono, func() {
			for i, s := range strings.Split(code, "\n") {
				if i > 0 {
					l.newline()
				}
				l.start()
				l.out = append(l.out, s...)
			}
		})
		return
	}
	for _, p := range l.prefixes {
		if strings.HasPrefix(p.first, ">") { // the lines of a quote
			l.start()
			code = strings.ReplaceAll(l.d.pre(lang, code), "\n", "\n"+p.rest)
			l.out = append(l.out, code...)
			return
		}
	}
	l.begun, l.blank = true, false
	l.out = append(l.out, l.d.pre(lang, code)...)
}

func (l *lines) table(t table, apart bool) { l.pre("", t.aligned(), apart) }

func (l *lines) rule(apart bool) {
	l.next(apart)
	l.start()
	l.out = append(l.out, "──────────"...)
}

func (l *lines) text(s string) {
	if s == "" {
		return
	}
	fresh := !l.begun
	l.start()
	last := l.last(fresh)
	if l.d.guard != nil {
		s = l.d.guard(s, last)
	}
	if r, _ := utf8.DecodeRuneInString(s); l.closed && l.d.perLine && isWord(r) {
		l.out = append(l.out, boundary...)
	}
	l.closed = false
	if l.d.escape != nil {
		s = l.d.escape(s)
	}
	l.out = append(l.out, s...)
}

// last returns the character before the current position; 0 at the beginning of a line.
func (l *lines) last(fresh bool) rune {
	if fresh || len(l.out) == 0 {
		return 0
	}
	r, _ := utf8.DecodeLastRune(l.out)
	return r
}

func (l *lines) newline() {
	l.start()
	l.end()
}

func (l *lines) mark(m mark, body func()) {
	if l.depth[m] > 0 || l.d.tags[m][0] == "" && l.d.styles[m] == "" {
		body()
		return
	}
	l.depth[m]++
	defer func() { l.depth[m]-- }()
	l.start()
	if l.d.styles[m] != "" {
		start := l.position()
		body()
		if n := l.position() - start; n > 0 {
			l.spans = append(l.spans, Span{Start: start, Length: n, Style: l.d.styles[m]})
		}
		return
	}
	before := len(l.out)
	if l.d.perLine && isWord(l.last(false)) {
		l.out = append(l.out, boundary...)
	}
	l.out = append(l.out, l.d.tags[m][0]...)
	opened := len(l.out)
	l.active = append(l.active, m)
	body()
	l.active = l.active[:len(l.active)-1]
	if len(l.out) == opened {
		l.out = l.out[:before]
		return
	}
	if !l.begun { // the mark ended with its line
		return
	}
	l.out = append(l.out, l.d.tags[m][1]...)
	l.closed = true
}

func (l *lines) code(s string) {
	if l.d.code != nil {
		if marked := l.d.code(s); marked != "" {
			l.mark(mono, func() {})
			l.start()
			if l.d.perLine && isWord(l.last(false)) {
				l.out = append(l.out, boundary...)
			}
			l.out = append(l.out, marked...)
			l.closed = true
			return
		}
		l.text(s)
		return
	}
	l.mark(mono, func() { l.text(s) })
}

func (l *lines) link(to []byte, label string) {
	url, ok := cleanURL(to, l.d.schemes...)
	if label == "" {
		label = url
	}
	if ok && l.d.link != nil {
		l.start()
		l.closed = false
		l.out = append(l.out, l.d.link(url, label)...)
		return
	}
	l.text(label)
	if url != "" && !strings.HasPrefix(url, "#") && !same(url, label) {
		l.text(" (" + url + ")")
	}
}

// same reports whether a label says the same as the URL.
func same(url, label string) bool {
	return url == label || url == "mailto:"+label || url == "http://"+label
}

// position returns the length of the output in units of UTF-16.
func (l *lines) position() int {
	for _, r := range string(l.out[l.counted:]) {
		l.units += utf16.RuneLen(r)
	}
	l.counted = len(l.out)
	return l.units
}

// boundary separates words without being visible.
const boundary = "\u200b"

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' }
