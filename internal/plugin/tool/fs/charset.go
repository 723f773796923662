package fs

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"

	"github.com/chela-ai/chela/internal/core/charset"
	"github.com/chela-ai/chela/internal/core/pathpolicy"
)

// linesOf returns the lines of a file whose beginning was read by readHead.
func linesOf(c charset.Charset, head []byte, rest io.Reader) *lines {
	head = head[len(c.Mark):]
	if c.Encoding == nil {
		return newLines(head, rest)
	}
	var r io.Reader = bytes.NewReader(head)
	if rest != nil {
		r = io.MultiReader(r, rest)
	}
	return newLines(nil, c.Encoding.NewDecoder().Reader(r))
}

// note says in which encoding a file is; "" for UTF-8.
func note(c charset.Charset) string {
	if c.Encoding == nil {
		return ""
	}
	return fmt.Sprintf("The file is in %s, which write, edit and apply_patch keep.", c.Name)
}

// plainFile is the text of a file that is changed.
type plainFile struct {
	path, name string
	charset    charset.Charset
	raw        []byte // of the file; nil: there is none
	text       []byte
}

// openText returns the text of a file with this content. A file whose encoding cannot be
// kept is refused.
func openText(path, name string, raw []byte) (plainFile, error) {
	f := plainFile{path: path, name: name, raw: raw, text: raw}
	c, ok := charset.Detect(raw, true)
	if !ok { // what is not text is changed byte by byte
		return f, nil
	}
	if !c.Fits(raw) {
		return f, fmt.Errorf("%s is in %s and has parts that are not valid in it; file tools would not keep them: convert it with a command first, such as iconv", pathpolicy.Show(path), c.Name)
	}
	f.charset = c
	var err error
	f.text, err = c.Decode(raw)
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
	out, err := f.charset.Encode(text)
	if err == nil && f.charset.Encoding != nil {
		var back []byte
		if back, err = f.charset.Decode(out); err == nil && !bytes.Equal(back, text) {
			err = encoding.ErrInvalidUTF8
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s is in %s, which has no %s; nothing was written: use other characters, or convert the file with a command first, such as iconv", pathpolicy.Show(f.path), f.charset.Name, f.missing(text))
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
		out, err := f.charset.Encoding.NewEncoder().String(string(r))
		if err == nil {
			out, err = f.charset.Encoding.NewDecoder().String(out)
		}
		if err != nil || out != string(r) {
			return fmt.Sprintf("%q", r)
		}
	}
	return "such text"
}
