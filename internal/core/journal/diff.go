package journal

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/chela-ai/chela/internal/core/charset"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// maxDiff is the size of the largest content that is compared line by line, in bytes.
const maxDiff = 1 << 20

// Diff is the difference between two contents.
type Diff struct {
	Text           string // in the unified format; a sentence for contents that are not compared by lines
	Added, Removed int    // lines
	Binary         bool   // the contents are not compared by lines
}

// DiffOf compares two contents. The labels stand before them in the text.
func DiffOf(oldLabel, newLabel string, old, new []byte) Diff {
	if bytes.Equal(old, new) {
		return Diff{}
	}
	a, ok := textOf(old)
	b, ok2 := textOf(new)
	if !ok || !ok2 || a == b { // equal texts in other encodings
		return Diff{Binary: true, Text: fmt.Sprintf("%s (%s) and %s (%s) differ\n", oldLabel, humanize.Bytes(int64(len(old))),
			newLabel, humanize.Bytes(int64(len(new))))}
	}
	edits := udiff.Lines(a, b)
	d := Diff{}
	for _, e := range edits {
		d.Removed += lines(a[e.Start:e.End])
		d.Added += lines(e.New)
	}
	text, err := udiff.ToUnified(oldLabel, newLabel, a, edits, udiff.DefaultContextLines)
	if err != nil { // cannot happen: the edits are those of the text
		text = err.Error()
	}
	d.Text = text
	return d
}

// Size returns the difference in a few characters.
func (d Diff) Size() string {
	if d.Binary {
		return "other content"
	}
	return fmt.Sprintf("+%d -%d", d.Added, d.Removed)
}

// textOf returns the text of a content, in whatever encoding it is; false: it is none.
func textOf(data []byte) (string, bool) {
	if len(data) > maxDiff {
		return "", false
	}
	text, _, ok := charset.Text(data)
	return text, ok
}

// lines returns the number of lines of a text.
func lines(s string) int {
	n := strings.Count(s, "\n")
	if s != "" && !strings.HasSuffix(s, "\n") {
		n++
	}
	return n
}

// Blame finds the change that introduced a line, counted from 0, of a text. changes are
// those of the text's file, newest first; the newest one led to text, and each earlier one
// to what the next one changed. content returns the content of a version. It returns the
// index of the change; -1 if the line is older than all of them.
func Blame(text []byte, line int, changes []Change, content func(Version) ([]byte, error)) (int, error) {
	after := text
	for i, c := range changes {
		if c.Seen() {
			continue
		}
		before, err := content(c.Before)
		if err != nil {
			return -1, err
		}
		old, ok := textOf(before)
		now, ok2 := textOf(after)
		if !ok || !ok2 {
			return i, nil
		}
		at, ok := earlier(old, now, line)
		if !ok {
			return i, nil
		}
		line, after = at, before
	}
	return -1, nil
}

// earlier returns the number that a line of after has in before; false: it is new.
func earlier(before, after string, line int) (int, bool) {
	oldLine, newLine, at := 0, 0, 0
	for _, e := range udiff.Lines(before, after) {
		same := lines(before[at:e.Start])
		if line < newLine+same {
			return oldLine + line - newLine, true
		}
		oldLine, newLine = oldLine+same, newLine+same
		added := lines(e.New)
		if line < newLine+added {
			return 0, false
		}
		oldLine, newLine, at = oldLine+lines(before[e.Start:e.End]), newLine+added, e.End
	}
	return oldLine + line - newLine, true
}
