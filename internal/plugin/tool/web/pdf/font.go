package pdf

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

const (
	maxRanges   = 70_000 // ranges in one character map
	costOfWidth = 64     // bytes
)

// font maps codes to characters and widths.
type font struct {
	wide    bool // codes have two bytes
	utf16   bool // codes are UTF-16
	unicode []span
	simple  *[256]string
	widths  map[int]float64 // in thousandths of an em
	other   float64         // width of codes without an entry
}

// span maps the codes from lo to hi to text. The last character of the text
// increases with the code.
type span struct {
	lo, hi uint32
	to     string
}

// glyph is a piece of text.
type glyph struct {
	text  string
	width float64 // in ems
	blank bool    // a space code, to which word spacing applies
}

func (f *file) font(v any) *font {
	d := f.dict(v)
	out := &font{widths: map[int]float64{}, other: 500}
	if r, ok := d["ToUnicode"].(ref); ok {
		out.unicode = readMap(f.decode(f.object(int(r))))
	}
	if f.resolve(d["Subtype"]) == name("Type0") {
		out.wide, out.other = true, 1000
		encoding, _ := f.resolve(d["Encoding"]).(name)
		out.utf16 = strings.Contains(string(encoding), "UCS2") || strings.Contains(string(encoding), "UTF16")
		if below := f.list(d["DescendantFonts"]); len(below) > 0 {
			f.wideWidths(out, f.dict(below[0]))
		}
		return out
	}
	out.simple = f.encoding(d)
	first, _ := f.resolve(d["FirstChar"]).(float64)
	for i, w := range f.list(d["Widths"]) {
		if w, ok := f.resolve(w).(float64); ok && i < 256 {
			out.widths[int(first)+i] = w
		}
	}
	return out
}

// wideWidths reads the widths of a font with two-byte codes: a first code and
// an array, or a first code, a last code and a width.
func (f *file) wideWidths(out *font, d dict) {
	if w, ok := f.resolve(d["DW"]).(float64); ok {
		out.other = w
	}
	a := f.list(d["W"])
	for i := 0; i+1 < len(a) && f.left > 0; {
		first, _ := f.resolve(a[i]).(float64)
		switch second := f.resolve(a[i+1]).(type) {
		case array:
			for j, w := range second {
				if w, ok := f.resolve(w).(float64); ok {
					out.widths[int(first)+j] = w
				}
			}
			f.left -= costOfWidth * len(second)
			i += 2
		case float64:
			if i+2 < len(a) {
				w, _ := f.resolve(a[i+2]).(float64)
				for c := int(first); c <= int(min(second, first+0xffff)) && f.left > 0; c++ {
					out.widths[c] = w
					f.left -= costOfWidth
				}
			}
			i += 3
		default:
			return
		}
	}
}

// encoding returns the characters of the codes of a simple font.
func (f *file) encoding(d dict) *[256]string {
	page := charmap.Windows1252
	base, _ := f.resolve(d["Encoding"]).(name)
	custom := f.dict(d["Encoding"])
	if b, ok := f.resolve(custom["BaseEncoding"]).(name); ok {
		base = b
	}
	if base == "MacRomanEncoding" {
		page = charmap.Macintosh
	}
	var out [256]string
	for i := range out {
		if r := page.DecodeByte(byte(i)); i >= 0x20 && r != utf8.RuneError {
			out[i] = string(r)
		}
	}
	code := 0
	for _, v := range f.list(custom["Differences"]) {
		switch v := f.resolve(v).(type) {
		case float64:
			code = int(v)
		case name:
			if code >= 0 && code < 256 {
				out[code] = f.glyphText(string(v))
			}
			code++
		}
	}
	return &out
}

// glyphs splits a string into glyphs.
func (ft *font) glyphs(s text) []glyph {
	step := 1
	if ft.wide {
		step = 2
	}
	out := make([]glyph, 0, len(s)/step)
	for ; len(s) >= step; s = s[step:] {
		code := uint32(s[0])
		if ft.wide {
			code = uint32(s[0])<<8 | uint32(s[1])
		}
		w, ok := ft.widths[int(code)]
		if !ok {
			w = ft.other
		}
		out = append(out, glyph{ft.char(code), w / 1000, code == ' ' && !ft.wide})
	}
	return out
}

// char returns the text of a code.
func (ft *font) char(code uint32) string {
	i, found := slices.BinarySearchFunc(ft.unicode, code, func(s span, c uint32) int {
		switch {
		case s.hi < c:
			return -1
		case s.lo > c:
			return 1
		}
		return 0
	})
	if found {
		s := ft.unicode[i]
		r, n := utf8.DecodeLastRuneInString(s.to)
		return s.to[:len(s.to)-n] + string(r+rune(code-s.lo))
	}
	switch {
	case ft.simple != nil && code < 256:
		return ft.simple[code]
	case ft.utf16:
		return string(rune(code))
	}
	return ""
}

// readMap reads the text of codes from a ToUnicode map.
func readMap(data []byte) []span {
	var out []span
	var stack []any
	p := parser{data: data}
	for len(out) < maxRanges {
		v, ok := p.next(false)
		if !ok {
			break
		}
		word, isWord := v.(keyword)
		if !isWord {
			if len(stack) < 3*maxRanges {
				stack = append(stack, v)
			}
			continue
		}
		switch word {
		case "endbfchar":
			for i := 0; i+1 < len(stack); i += 2 {
				out = addSpan(out, stack[i], stack[i], stack[i+1])
			}
		case "endbfrange":
			for i := 0; i+2 < len(stack); i += 3 {
				out = addSpan(out, stack[i], stack[i+1], stack[i+2])
			}
		}
		stack = stack[:0]
	}
	slices.SortStableFunc(out, func(a, b span) int { return cmp.Compare(a.lo, b.lo) })
	return slices.CompactFunc(out, func(a, b span) bool { return a.lo == b.lo })
}

func addSpan(out []span, lo, hi, to any) []span {
	from, ok1 := lo.(text)
	until, ok2 := hi.(text)
	if !ok1 || !ok2 || len(from) > 4 || len(until) > 4 {
		return out
	}
	first, last := number(from), number(until)
	switch to := to.(type) {
	case text:
		if s := fromUTF16(to); s != "" && last >= first && last-first <= math.MaxUint16 {
			out = append(out, span{first, last, s})
		}
	case array:
		for i, v := range to {
			if s, ok := v.(text); ok && uint32(i) <= last-first && len(out) < maxRanges {
				out = append(out, span{first + uint32(i), first + uint32(i), fromUTF16(s)})
			}
		}
	}
	return out
}

func number(s text) uint32 {
	var n uint32
	for _, c := range []byte(s) {
		n = n<<8 | uint32(c)
	}
	return n
}

func fromUTF16(s text) string {
	if len(s) == 1 {
		return string(rune(s[0]))
	}
	units := make([]uint16, 0, len(s)/2)
	for b := []byte(s); len(b) >= 2 && len(units) < 64; b = b[2:] {
		units = append(units, binary.BigEndian.Uint16(b))
	}
	return string(utf16.Decode(units))
}

// glyphText returns the text of a named glyph.
func (f *file) glyphText(s string) string {
	s, _, _ = strings.Cut(s, ".")
	if len(s) == 1 {
		return s
	}
	if t, ok := f.glyphs[s]; ok {
		return t
	}
	for _, prefix := range []string{"uni", "u"} {
		if hex, ok := strings.CutPrefix(s, prefix); ok && len(hex) >= 4 {
			if n, err := strconv.ParseUint(hex[:min(len(hex), 6)], 16, 32); err == nil {
				return string(rune(n))
			}
		}
	}
	for accent, mark := range f.accents {
		if letter, ok := strings.CutSuffix(s, accent); ok && len(letter) == 1 {
			return letter + mark
		}
	}
	return ""
}
