package fs

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gogs/chardet"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"

	"github.com/chela-ai/chela/internal/core/pathpolicy"
)

// charset is the encoding of a text file. Models see its text in UTF-8, and changes are
// written in the encoding of the file. The zero charset is UTF-8.
type charset struct {
	name string
	enc  encoding.Encoding // nil: UTF-8
	mark []byte            // byte order mark
}

// sample is the number of bytes from which an encoding without a mark is detected.
const sample = 64 << 10

// marks are the byte order marks. That of UTF-32 comes before that of UTF-16, with
// which it begins.
var marks = [...]charset{
	{"UTF-8", nil, []byte("\xef\xbb\xbf")},
	{"UTF-32LE", utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM), []byte("\xff\xfe\x00\x00")},
	{"UTF-32BE", utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM), []byte("\x00\x00\xfe\xff")},
	{"UTF-16LE", unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), []byte("\xff\xfe")},
	{"UTF-16BE", unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM), []byte("\xfe\xff")},
}

// textCharset returns the encoding of a file, judging by its beginning, or by all of it
// if whole is set. It reports false for a file that is no text.
func textCharset(data []byte, whole bool) (charset, bool) {
	for _, c := range marks {
		if bytes.HasPrefix(data, c.mark) {
			return c, true
		}
	}
	if c, ok := wide(data); ok {
		return c, true
	}
	valid, invalid, controls := counts(data, whole)
	if invalid == 0 || valid > invalid { // UTF-8, perhaps with a few damaged bytes
		return charset{}, !binary(data)
	}
	if controls*50 > len(data) || bytes.IndexByte(data, 0) >= 0 {
		return charset{}, !binary(data)
	}
	return detect(data, whole), true
}

// counts counts the characters of several bytes, the bytes that are not UTF-8, and the
// control characters that texts do not have.
func counts(data []byte, whole bool) (valid, invalid, controls int) {
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		switch {
		case r == utf8.RuneError && n == 1 && !whole && !utf8.FullRune(data[i:]):
		case r == utf8.RuneError && n == 1:
			invalid++
		case n > 1:
			valid++
		case r < ' ' && !strings.ContainsRune("\t\n\r\f\b\x1b", r):
			controls++
		}
		i += n
	}
	return valid, invalid, controls
}

// wide returns UTF-16 without a mark, if most characters are those of ASCII.
func wide(data []byte) (charset, bool) {
	var zeros [2]int
	for i, b := range data {
		if b == 0 {
			zeros[i%2]++
		}
	}
	little, big := marks[3], marks[4]
	little.mark, big.mark = nil, nil
	switch most := len(data) / 2 * 7 / 10; {
	case len(data) < 4:
	case zeros[1] > most && zeros[0] == 0:
		return little, true
	case zeros[0] > most && zeros[1] == 0:
		return big, true
	}
	return charset{}, false
}

// detect returns the encoding of a text that is not Unicode. If it is not clear, it is
// windows-1252, or Latin-1 for bytes that windows-1252 does not have: a change in it
// leaves all other bytes as they are.
func detect(data []byte, whole bool) charset {
	part := data[:min(len(data), sample)]
	found, _ := chardet.NewTextDetector().DetectAll(part) // nothing is found on an error
	slices.SortStableFunc(found, func(a, b chardet.Result) int {
		return cmp.Or(cmp.Compare(b.Confidence, a.Confidence), cmp.Compare(a.Charset, b.Charset))
	})
	for _, r := range found {
		if r.Confidence < 30 {
			break
		}
		enc, err := htmlindex.Get(strings.Replace(r.Charset, "GB-", "GB", 1))
		if err != nil || enc == unicode.UTF8 {
			continue
		}
		name, err := htmlindex.Name(enc)
		if c := (charset{name: name, enc: enc}); err == nil && (!whole || c.fits(data)) {
			return c
		}
	}
	if c := (charset{name: "windows-1252", enc: charmap.Windows1252}); c.fits(part) {
		return c
	}
	return charset{name: "iso-8859-1", enc: charmap.ISO8859_1}
}

// fits reports whether the text of a file can be written back as it is.
func (c charset) fits(data []byte) bool {
	text, err := c.decode(data)
	if err != nil {
		return false
	}
	back, err := c.encode(text)
	return err == nil && bytes.Equal(back, data)
}

// decode returns the text of a file, without its mark.
func (c charset) decode(data []byte) ([]byte, error) {
	data = data[len(c.mark):]
	if c.enc == nil {
		return data, nil
	}
	return c.enc.NewDecoder().Bytes(data)
}

// encode returns a text as it is in the file.
func (c charset) encode(text []byte) ([]byte, error) {
	if c.enc == nil {
		if len(c.mark) == 0 {
			return text, nil
		}
		return slices.Concat(c.mark, bytes.TrimPrefix(text, c.mark)), nil
	}
	out, err := c.enc.NewEncoder().Bytes(text)
	if err != nil {
		return nil, err
	}
	return slices.Concat(c.mark, out), nil
}

// lines returns the lines of a file whose beginning was read by readHead.
func (c charset) lines(head []byte, rest io.Reader) *lines {
	head = head[len(c.mark):]
	if c.enc == nil {
		return newLines(head, rest)
	}
	var r io.Reader = bytes.NewReader(head)
	if rest != nil {
		r = io.MultiReader(r, rest)
	}
	return newLines(nil, c.enc.NewDecoder().Reader(r))
}

// note says in which encoding a file is; "" for UTF-8.
func (c charset) note() string {
	if c.enc == nil {
		return ""
	}
	return fmt.Sprintf("The file is in %s, which write, edit and apply_patch keep.", c.name)
}

// plainFile is the text of a file that is changed.
type plainFile struct {
	path, name string
	charset    charset
	raw        []byte // of the file; nil: there is none
	text       []byte
}

// openText returns the text of a file with this content. A file whose encoding cannot be
// kept is refused.
func openText(path, name string, raw []byte) (plainFile, error) {
	f := plainFile{path: path, name: name, raw: raw, text: raw}
	c, ok := textCharset(raw, true)
	if !ok { // what is not text is changed byte by byte
		return f, nil
	}
	if !c.fits(raw) {
		return f, fmt.Errorf("%s is in %s and has parts that are not valid in it; file tools would not keep them: convert it with a command first, such as iconv", pathpolicy.Show(path), c.name)
	}
	f.charset = c
	var err error
	f.text, err = c.decode(raw)
	return f, err
}

// typed returns a text as it is meant in the file: the symbols that stand for control
// characters of the file are these characters.
func (f *plainFile) typed(s string) string {
	return strings.Map(func(r rune) rune {
		if c, ok := f.standsFor(r); ok && !bytes.ContainsRune(f.text, r) {
			return c
		}
		return r
	}, s)
}

// standsFor returns the control character of the file that is shown as r.
func (f *plainFile) standsFor(r rune) (c rune, ok bool) {
	c = r - 0x2400
	return c, c >= 0 && c < ' ' && bytes.IndexByte(f.text, byte(c)) >= 0
}

// ambiguous returns a symbol of a text that stands for a control character in some places of
// the file and for itself in others; "": there is none.
func (f *plainFile) ambiguous(s string) string {
	for _, r := range s {
		if _, ok := f.standsFor(r); ok && bytes.ContainsRune(f.text, r) {
			return string(r)
		}
	}
	return ""
}

// encode returns the new content of the file. It refuses what stands for something
// hidden, and characters that the encoding of the file does not have.
func (f *plainFile) encode(text []byte) ([]byte, error) {
	if err := pathpolicy.CheckWritten(f.name, string(f.text), string(text)); err != nil {
		return nil, err
	}
	if f.hides() && bytes.Count(text, []byte("\ufffd")) > bytes.Count(f.text, []byte("\ufffd")) {
		return nil, fmt.Errorf("%s has bytes that are shown as \ufffd, and would be replaced by that character; nothing was written: change only other parts, with edit", pathpolicy.Show(f.path))
	}
	if r := f.ambiguous(string(text)); r != "" && bytes.Count(text, []byte(r)) != bytes.Count(f.text, []byte(r)) {
		return nil, fmt.Errorf("%s has the control character that is shown as %s, and that symbol itself, which cannot be told apart here; nothing was written: change only other parts, with edit", pathpolicy.Show(f.path), r)
	}
	out, err := f.charset.encode(text)
	if err == nil && f.charset.enc != nil {
		var back []byte
		if back, err = f.charset.decode(out); err == nil && !bytes.Equal(back, text) {
			err = encoding.ErrInvalidUTF8
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s is in %s, which has no %s; nothing was written: use other characters, or convert the file with a command first, such as iconv", pathpolicy.Show(f.path), f.charset.name, f.missing(text))
	}
	return out, nil
}

// hides reports whether characters of the file are shown as U+FFFD, see printable.
func (f *plainFile) hides() bool {
	return !utf8.Valid(f.text) || bytes.ContainsFunc(f.text, func(r rune) bool { return r >= 0x7f && r < 0xa0 })
}

// missing returns the first character of a text that the encoding of the file does not
// have.
func (f *plainFile) missing(text []byte) string {
	for _, r := range string(text) {
		out, err := f.charset.enc.NewEncoder().String(string(r))
		if err == nil {
			out, err = f.charset.enc.NewDecoder().String(out)
		}
		if err != nil || out != string(r) {
			return fmt.Sprintf("%q", r)
		}
	}
	return "such text"
}
