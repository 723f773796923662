// Package charset finds out the encodings of text files. People's files are not always in
// UTF-8: some editors write UTF-16 with a byte order mark, and old files are in
// windows-1252. Whoever reads a file of a person reads its text with [Text]; whoever changes
// one writes it back in its encoding.
package charset

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gogs/chardet"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
)

// Charset is the encoding of a text file. The zero Charset is UTF-8.
type Charset struct {
	Name     string
	Encoding encoding.Encoding // nil: UTF-8
	Mark     []byte            // byte order mark
}

// Sample is the number of bytes from which an encoding without a mark is detected.
const Sample = 64 << 10

// marks are the byte order marks. That of UTF-32 comes before that of UTF-16, with
// which it begins.
var marks = [...]Charset{
	{"UTF-8", nil, []byte("\xef\xbb\xbf")},
	{"UTF-32LE", utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM), []byte("\xff\xfe\x00\x00")},
	{"UTF-32BE", utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM), []byte("\x00\x00\xfe\xff")},
	{"UTF-16LE", unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), []byte("\xff\xfe")},
	{"UTF-16BE", unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM), []byte("\xfe\xff")},
}

// Text returns the text of a whole file in UTF-8, without a mark, and its encoding. It
// reports false for a file that is no text, and returns its bytes as they are.
func Text(data []byte) (text string, c Charset, ok bool) {
	if len(data) == 0 {
		return "", c, true
	}
	if c, ok = Detect(data, true); ok {
		if out, err := c.Decode(data); err == nil {
			return string(out), c, true
		}
	}
	return string(data), Charset{}, false
}

// Detect returns the encoding of a file, judging by its beginning, or by all of it
// if whole is set. It reports false for a file that is no text.
func Detect(data []byte, whole bool) (Charset, bool) {
	for _, c := range marks {
		if bytes.HasPrefix(data, c.Mark) {
			return c, true
		}
	}
	if c, ok := wide(data); ok {
		return c, true
	}
	valid, invalid, controls := counts(data, whole)
	if invalid == 0 || valid > invalid { // UTF-8, perhaps with a few damaged bytes
		return Charset{}, !Binary(data)
	}
	if controls*50 > len(data) || bytes.IndexByte(data, 0) >= 0 {
		return Charset{}, !Binary(data)
	}
	return guess(data, whole), true
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
func wide(data []byte) (Charset, bool) {
	var zeros [2]int
	for i, b := range data {
		if b == 0 {
			zeros[i%2]++
		}
	}
	little, big := marks[3], marks[4]
	little.Mark, big.Mark = nil, nil
	switch most := len(data) / 2 * 7 / 10; {
	case len(data) < 4:
	case zeros[1] > most && zeros[0] == 0:
		return little, true
	case zeros[0] > most && zeros[1] == 0:
		return big, true
	}
	return Charset{}, false
}

// guess returns the encoding of a text that is not Unicode. If it is not clear, it is
// windows-1252, or Latin-1 for bytes that windows-1252 does not have: a change in it
// leaves all other bytes as they are.
func guess(data []byte, whole bool) Charset {
	part := data[:min(len(data), Sample)]
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
		if c := (Charset{Name: name, Encoding: enc}); err == nil && (!whole || c.Fits(data)) {
			return c
		}
	}
	if c := (Charset{Name: "windows-1252", Encoding: charmap.Windows1252}); c.Fits(part) {
		return c
	}
	return Charset{Name: "iso-8859-1", Encoding: charmap.ISO8859_1}
}

// Fits reports whether the text of a file can be written back as it is.
func (c Charset) Fits(data []byte) bool {
	text, err := c.Decode(data)
	if err != nil {
		return false
	}
	back, err := c.Encode(text)
	return err == nil && bytes.Equal(back, data)
}

// Decode returns the text of a file, without its mark.
func (c Charset) Decode(data []byte) ([]byte, error) {
	data = data[len(c.Mark):]
	if c.Encoding == nil {
		return data, nil
	}
	return c.Encoding.NewDecoder().Bytes(data)
}

// Encode returns a text as it is in the file.
func (c Charset) Encode(text []byte) ([]byte, error) {
	if c.Encoding == nil {
		if len(c.Mark) == 0 {
			return text, nil
		}
		return slices.Concat(c.Mark, bytes.TrimPrefix(text, c.Mark)), nil
	}
	out, err := c.Encoding.NewEncoder().Bytes(text)
	if err != nil {
		return nil, err
	}
	return slices.Concat(c.Mark, out), nil
}

// Binary reports whether the beginning of a file is not text. Trailing NUL
// bytes are ignored, because they may be a hole.
func Binary(head []byte) bool {
	for len(head) > 0 && head[len(head)-1] == 0 {
		head = head[:len(head)-1]
	}
	if len(head) == 0 {
		return true
	}
	invalid := 0
	for i := 0; i < len(head); {
		r, n := utf8.DecodeRune(head[i:])
		bad := r == utf8.RuneError && n == 1 && utf8.FullRune(head[i:])
		if bad || r < 0x20 && r != '\n' && r != '\r' && r != '\t' && r != '\f' && r != 0x1b && r != '\b' {
			invalid++
		}
		i += n
	}
	return invalid*10 > len(head)
}
