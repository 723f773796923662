package fs

import (
	"errors"
	"fmt"
	"strings"

	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// maxPatch is the maximum size of a patch in bytes.
const maxPatch = 8 << 20

// maxQuoted is the number of characters of a line that are quoted in an error.
const maxQuoted = 80

// The directive lines of a patch.
const (
	beginPatch = "*** Begin Patch"
	endPatch   = "*** End Patch"
	addFile    = "*** Add File:"
	updateFile = "*** Update File:"
	deleteFile = "*** Delete File:"
	moveTo     = "*** Move to:"
	endOfFile  = "*** End of File"
)

// section is the part of a patch about one file.
type section struct {
	op    string // addFile, updateFile or deleteFile
	path  string
	to    string   // new path; "": the file is not moved
	text  []string // content of a new file
	hunks []hunk
}

// hunk is one change to a file.
type hunk struct {
	line    int    // line in the patch, from 1
	context string // a line that precedes the change
	anchor  bool   // there is a context
	lines   []change
	end     bool // it extends to the end of the file
}

// change is a line that is kept (' '), removed ('-') or added ('+').
type change struct {
	kind byte
	text string
}

// patchReader reads the lines of a patch.
type patchReader struct {
	lines []string
	n     int // number of lines read
}

func (r *patchReader) peek() (string, bool) {
	if r.n == len(r.lines) {
		return "", false
	}
	return r.lines[r.n], true
}

func (r *patchReader) errorf(format string, args ...any) error {
	return fmt.Errorf("patch, line %d: "+format, append([]any{r.n + 1}, args...)...)
}

// parsePatch parses a patch.
func parsePatch(input string) ([]section, error) {
	if len(input) > maxPatch {
		return nil, fmt.Errorf("the patch is too long (%s; the limit is %s)", humanize.Bytes(int64(len(input))),
			humanize.Bytes(maxPatch))
	}
	r := &patchReader{lines: strings.Split(unwrap(input), "\n")}
	for i, l := range r.lines {
		r.lines[i] = strings.TrimSuffix(l, "\r")
	}
	if l, _ := r.peek(); strings.TrimSpace(l) != beginPatch {
		return nil, fmt.Errorf("the first line of a patch must be %q", beginPatch)
	}
	r.n++
	var out []section
	for {
		l, ok := r.peek()
		switch {
		case !ok:
			return nil, fmt.Errorf("the last line of a patch must be %q", endPatch)
		case strings.TrimSpace(l) == endPatch:
			if r.n != len(r.lines)-1 {
				r.n++
				return nil, r.errorf("unexpected text after %q", endPatch)
			}
			if len(out) == 0 {
				return nil, errors.New("the patch is empty")
			}
			return out, nil
		case strings.TrimSpace(l) == "":
			r.n++
			continue
		}
		s, err := r.section(l)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
}

// unwrap removes what models put around a patch: blank lines, a code fence, a
// here-document.
func unwrap(s string) string {
	s = strings.TrimSpace(s)
	first, rest, ok := strings.Cut(s, "\n")
	first = strings.TrimSpace(first)
	if !ok || first == beginPatch {
		return s
	}
	i := strings.LastIndexByte(rest, '\n')
	if i < 0 {
		return s
	}
	body, last := strings.TrimSpace(rest[:i]), strings.TrimSpace(rest[i+1:])
	_, word, here := strings.Cut(first, "<<")
	if word = strings.Trim(word, `-'" `); here && word != "" && last == word ||
		strings.HasPrefix(first, "```") && last == "```" {
		return body
	}
	return s
}

// section parses the part about one file. l is its first line.
func (r *patchReader) section(l string) (section, error) {
	for _, op := range [...]string{addFile, updateFile, deleteFile} {
		path, ok := strings.CutPrefix(strings.TrimLeft(l, " "), op)
		if !ok {
			continue
		}
		s := section{op: op, path: strings.TrimSpace(path)}
		if s.path == "" {
			return s, r.errorf("the path is missing")
		}
		r.n++
		var err error
		switch op {
		case addFile:
			err = r.text(&s)
		case updateFile:
			err = r.update(&s)
		}
		return s, err
	}
	return section{}, r.errorf("%q: want %q, %q or %q", humanize.Truncate(l, maxQuoted), addFile, updateFile, deleteFile)
}

// text reads the lines of a new file.
func (r *patchReader) text(s *section) error {
	for {
		l, ok := r.peek()
		if !ok || strings.HasPrefix(l, "*** ") {
			return nil
		}
		if l == "" || l[0] != '+' {
			return r.errorf("the lines of a new file must begin with +")
		}
		s.text = append(s.text, l[1:])
		r.n++
	}
}

// update reads the hunks of a file.
func (r *patchReader) update(s *section) error {
	if l, ok := r.peek(); ok && strings.HasPrefix(l, moveTo) {
		if s.to = strings.TrimSpace(l[len(moveTo):]); s.to == "" {
			return r.errorf("the path is missing")
		}
		r.n++
	}
	for {
		l, ok := r.peek()
		if !ok || strings.HasPrefix(l, "*** ") && l != endOfFile {
			break
		}
		if strings.TrimSpace(l) == "" && r.skipBlank() {
			continue
		}
		h, err := r.hunk(len(s.hunks) == 0)
		if err != nil {
			return err
		}
		s.hunks = append(s.hunks, h)
	}
	if len(s.hunks) == 0 && s.to == "" {
		return r.errorf("there are no changes for %s", pathpolicy.Show(s.path))
	}
	return nil
}

// skipBlank skips empty lines that precede a new section or the end.
func (r *patchReader) skipBlank() bool {
	i := r.n
	for i < len(r.lines) && strings.TrimSpace(r.lines[i]) == "" {
		i++
	}
	if i < len(r.lines) && (!strings.HasPrefix(r.lines[i], "*** ") || r.lines[i] == endOfFile) {
		return false
	}
	r.n = i
	return true
}

// hunk reads one change. The first change of a file does not require @@.
func (r *patchReader) hunk(first bool) (hunk, error) {
	h := hunk{line: r.n + 1}
	l, _ := r.peek()
	switch {
	case l == "@@":
		r.n++
	case strings.HasPrefix(l, "@@ "):
		h.context, h.anchor = l[3:], true
		r.n++
	case !first:
		return h, r.errorf("a change must begin with @@")
	}
	for {
		l, ok := r.peek()
		switch {
		case ok && strings.TrimRight(l, " ") == endOfFile:
			h.end = true
			r.n++
			ok = false
		case !ok, l == "@@", strings.HasPrefix(l, "@@ "), strings.HasPrefix(l, "*** "):
			ok = false
		case l == "":
			if r.skipBlank() {
				ok = false
				break
			}
			h.lines = append(h.lines, change{' ', ""})
		case l[0] == ' ' || l[0] == '-' || l[0] == '+':
			h.lines = append(h.lines, change{l[0], l[1:]})
		default:
			return h, r.errorf("%q: lines must begin with a blank, - or +", humanize.Truncate(l, maxQuoted))
		}
		if !ok {
			break
		}
		r.n++
	}
	if len(h.lines) == 0 {
		return h, r.errorf("the change is empty")
	}
	return h, nil
}
