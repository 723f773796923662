package tui

import (
	"bytes"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/muesli/cancelreader"

	"github.com/chela-ai/chela/internal/kit/escape"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
)

// How long to wait for the rest of what has arrived in part.
const (
	escapeTime = 300 * time.Millisecond // of an escape sequence, whose begin may be a key
	burstTime  = 20 * time.Millisecond  // of a paste
)

// keyboard reads what a terminal sends, and returns it with two corrections: text with line
// breaks that arrives at once is marked as pasted, since no person types so fast and not
// every terminal marks pastes; and an escape sequence that arrives in parts is joined, since
// its parts would be keys.
type keyboard struct {
	*io.PipeReader
	tty  cancelreader.CancelReader
	done chan struct{}
}

// newKeyboard returns a keyboard that must be closed.
func newKeyboard(in io.Reader) (*keyboard, error) {
	tty, err := cancelreader.NewReader(in)
	if err != nil {
		return nil, err
	}
	r, w := io.Pipe()
	k := &keyboard{r, tty, make(chan struct{})}
	parts := make(chan []byte)
	var failed error
	go func() {
		defer close(parts)
		for {
			b := make([]byte, 4096)
			n, err := tty.Read(b)
			if n > 0 {
				select {
				case parts <- b[:n]:
				case <-k.done:
					return
				}
			}
			if err != nil {
				failed = err
				return
			}
		}
	}()
	go func() {
		var m marker
		m.copy(w, parts) // until there are no more parts, or nobody reads them
		if _, open := <-parts; !open {
			_ = w.CloseWithError(failed) // never fails
		}
	}()
	return k, nil
}

// Close ends the reading. What the person types next is left to other programs.
func (k *keyboard) Close() error {
	close(k.done)
	k.tty.Cancel()
	_ = k.PipeReader.Close() // never fails
	return k.tty.Close()
}

// marker makes the corrections of a [keyboard].
type marker struct {
	marked bool   // within a paste that the terminal has marked
	begun  []byte // the last part, if it was taken for a key but may have begun a reply
}

const (
	pasteStart = "\x1b[200~"
	pasteEnd   = "\x1b[201~"
)

// copy writes the parts to w, as soon as it is known what they are.
func (m *marker) copy(w io.Writer, parts <-chan []byte) {
	var got []byte
	for part := range parts {
		if both := slices.Concat(m.begun, part); len(m.begun) > 0 && reply().Match(both) {
			part = both // it was not a key
		}
		got = append(got, part...)
		for waiting := true; waiting; {
			wait := pause(got)
			if wait == 0 {
				break
			}
			select {
			case part, ok := <-parts:
				got = append(got, part...)
				waiting = ok
			case <-time.After(wait):
				waiting = false
			}
		}
		n := len(got)
		if rest := got[n-unfinished(got):]; !mayBeKey(rest) {
			n -= len(rest) // what completes it will come
		}
		m.begun = slices.Clone(got[n-unfinished(got[:n]) : n])
		if n > 0 {
			if _, err := w.Write(m.mark(got[:n])); err != nil {
				return
			}
		}
		got = append([]byte(nil), got[n:]...)
	}
}

// reply matches what begins as replies of terminals do, and as nothing that a person types
// after Escape: reports of modes, attributes, the cursor position, the state, colors, names.
var reply = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\x1b(\[[?>]|\[\d+;\d+R|\[\d+n|\]\d+;|P[>!\d])`)
})

// pause returns how long to wait for the rest of b; 0: it is complete.
func pause(b []byte) time.Duration {
	switch {
	case unfinished(b) > 0:
		return escapeTime
	case utf8.RuneCount(b) > 1 && b[0] != 0x1b:
		return burstTime
	}
	return 0
}

// unfinished returns the length of the incomplete escape sequence at the end of b.
func unfinished(b []byte) int {
	i := bytes.LastIndexByte(b, 0x1b)
	switch {
	case i < 0:
		return 0
	case i == len(b)-1:
		return 1
	}
	n, complete := escape.Len(b[i+1], b[i+2:])
	if complete || i+2+n < len(b) || bytes.ContainsAny(b[i:], "\r\x03\x04") { // a person types
		return 0
	}
	return len(b) - i
}

// mayBeKey reports whether the begin of an escape sequence may be a whole key: Escape, or a
// character with Alt.
func mayBeKey(b []byte) bool {
	switch {
	case len(b) < 2:
		return true
	case b[1] == '[':
		return false
	}
	return len(b) == 2 || b[2] != '>' && b[2] != '!' && (b[2] < '0' || b[2] > '9')
}

// mark marks the text in b that was pasted.
func (m *marker) mark(b []byte) []byte {
	var out []byte
	for len(b) > 0 {
		if m.marked {
			n := len(b)
			if i := bytes.Index(b, []byte(pasteEnd)); i >= 0 {
				n, m.marked = i+len(pasteEnd), false
			}
			out, b = append(out, b[:n]...), b[n:]
			continue
		}
		n := text(b)
		out, b = append(out, markText(b[:n])...), b[n:]
		if m.marked = bytes.HasPrefix(b, []byte(pasteStart)); !m.marked && len(b) > 0 { // a reply
			n, _ := escape.Len(b[1], b[2:])
			out, b = append(out, b[:2+n]...), b[2+n:]
		}
	}
	return out
}

// text returns the length of the text at the beginning of b, which ends before a paste that
// the terminal has marked, and before its replies.
func text(b []byte) int {
	n := len(b)
	for _, next := range [...]string{pasteStart, "\x1b[?"} {
		if i := bytes.Index(b, []byte(next)); i >= 0 {
			n = min(n, i)
		}
	}
	return n
}

// markText marks b, which arrived at once, as pasted if it has several characters and a
// line break or tab among them. A line break at the end of a single line is a key: Enter.
func markText(b []byte) []byte {
	body := bytes.TrimRight(b, "\r\n\t")
	end := b[len(body):]
	lines := bytes.ContainsAny(body, "\r\n\t")
	switch {
	case len(strings.Join(strings.Fields(ansi.Clean(string(body))), "")) < 2:
		return b
	case lines:
		body, end = b, nil
	case string(end) != "\r" || bytes.IndexByte(body, 0x1b) >= 0:
		return b
	}
	return slices.Concat([]byte(pasteStart), body, []byte(pasteEnd), end)
}
