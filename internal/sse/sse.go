// Package sse reads server-sent events, as in the event stream format of the
// HTML standard: lines that end in LF, CR or CRLF, comments, a byte order
// mark, data of several lines. How the stream is cut into reads makes no
// difference to the events.
package sse

import (
	"bytes"
	"errors"
	"io"
	"iter"
	"strconv"
	"time"
)

// DefaultLimit is the size that [Read] allows an event when no other is given.
const DefaultLimit = 16 << 20

// ErrTooLong says that a line or the data of an event passed the limit.
var ErrTooLong = errors.New("sse: event is too long")

// Event is one event of a stream.
type Event struct {
	Type  string        // of the field event; empty: not given
	Data  []byte        // the data lines, joined by LF; valid until the next event is asked for
	ID    string        // the last id that the stream gave
	Retry time.Duration // what this event's retry field asks for; 0: not given
}

// Read returns the events of r. An event that is not followed by a blank line
// is not one, and an event without data is none either, both as the standard
// says. limit bounds the bytes of a line and of an event's data; 0 takes
// [DefaultLimit].
//
// The iterator ends at EOF, or after an error of r or [ErrTooLong], which come
// with a zero event. It reads no further than it must to give an event.
func Read(r io.Reader, limit int) iter.Seq2[Event, error] {
	if limit <= 0 {
		limit = DefaultLimit
	}
	return func(yield func(Event, error) bool) {
		p := parser{lines: lines{r: r, limit: limit, lf: -1}}
		for {
			line, err := p.lines.next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(Event{}, err)
				return
			}
			if len(line) > 0 {
				if !p.field(line) {
					yield(Event{}, ErrTooLong)
					return
				}
				continue
			}
			if e, ok := p.take(); ok && !yield(e, nil) {
				return
			}
		}
	}
}

// parser puts lines together to events.
type parser struct {
	lines lines
	data  []byte
	some  bool // data holds a line, perhaps an empty one
	kind  string
	last  string // the kind of an event before, which is mostly the next one's too
	id    string
	retry time.Duration
}

// take returns the event that a blank line ends, and begins the next one.
func (p *parser) take() (Event, bool) {
	e := Event{Type: p.kind, Data: p.data, ID: p.id, Retry: p.retry}
	some := p.some
	p.kind, p.data, p.some, p.retry = "", p.data[:0], false, 0
	return e, some
}

// field takes a line in and reports whether the event is still within the limit.
func (p *parser) field(line []byte) bool {
	name, value := line, []byte(nil)
	if i := bytes.IndexByte(line, ':'); i >= 0 {
		name, value = line[:i], line[i+1:]
		if len(value) > 0 && value[0] == ' ' {
			value = value[1:]
		}
	}
	switch string(name) {
	case "data":
		if len(p.data)+len(value)+1 > p.lines.limit {
			return false
		}
		if p.some {
			p.data = append(p.data, '\n')
		}
		p.data, p.some = append(p.data, value...), true
	case "event":
		if p.last != string(value) {
			p.last = string(value)
		}
		p.kind = p.last
	case "id":
		if p.id != string(value) && bytes.IndexByte(value, 0) < 0 {
			p.id = string(value)
		}
	case "retry":
		if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
			p.retry = time.Duration(ms) * time.Millisecond
		}
	}
	return true
}

// lines cuts what a reader gives into lines.
type lines struct {
	r      io.Reader
	limit  int
	buf    []byte
	off    int  // buf[off:] is not consumed
	seen   int  // buf[off:seen] holds no line end
	lf     int  // where the first LF from seen on is, len(buf) for none; below seen: not known
	begun  bool // past the byte order mark
	skipLF bool // the last line ended in CR: an LF that follows belongs to it
	empty  int  // reads in a row that gave nothing
}

var bom = []byte("\xef\xbb\xbf")

// next returns the next line without its end; it is valid until the next call.
// A last line without an end is left out.
func (l *lines) next() ([]byte, error) {
	for {
		line, ok := l.cut()
		if !ok {
			line = l.buf[l.off:]
		}
		if len(line) > l.limit {
			return nil, ErrTooLong
		}
		if ok {
			return line, nil
		}
		if err := l.fill(); err != nil {
			return nil, err
		}
	}
}

// cut takes a line from the buffer, if there is a whole one.
func (l *lines) cut() ([]byte, bool) {
	if !l.start() {
		return nil, false
	}
	if l.lf < l.seen { // kept, so that a long run of lines that end in CR is searched once
		l.lf = len(l.buf)
		if n := bytes.IndexByte(l.buf[l.seen:], '\n'); n >= 0 {
			l.lf = l.seen + n
		}
	}
	end := l.lf
	cr := bytes.IndexByte(l.buf[l.seen:end], '\r')
	if cr >= 0 {
		end = l.seen + cr
	}
	if end == len(l.buf) {
		l.seen = end
		return nil, false
	}
	line := l.buf[l.off:end]
	l.skipLF = cr >= 0
	l.off, l.seen = end+1, end+1
	return line, true
}

// start skips what may stand before a line: the rest of the last line's end,
// and the byte order mark. It reports whether a line may begin.
func (l *lines) start() bool {
	if l.skipLF && l.off < len(l.buf) {
		l.skipLF = false
		if l.buf[l.off] == '\n' {
			l.off++
			l.seen = max(l.seen, l.off)
		}
	}
	if l.begun {
		return true
	}
	if len(l.buf) < len(bom) && bytes.HasPrefix(bom, l.buf) {
		return false
	}
	if l.begun = true; bytes.HasPrefix(l.buf, bom) {
		l.off, l.seen = len(bom), len(bom)
	}
	return true
}

// fill reads more behind what is not consumed.
func (l *lines) fill() error {
	if l.off > 0 {
		n := copy(l.buf, l.buf[l.off:])
		l.buf, l.seen, l.off = l.buf[:n], l.seen-l.off, 0
	}
	l.lf = -1
	if len(l.buf) == cap(l.buf) {
		grown := make([]byte, len(l.buf), max(4096, 2*cap(l.buf)))
		copy(grown, l.buf)
		l.buf = grown
	}
	for {
		n, err := l.r.Read(l.buf[len(l.buf):cap(l.buf)])
		l.buf = l.buf[:len(l.buf)+n]
		if n > 0 {
			l.empty = 0
			return nil // err comes again with the next read
		}
		if err != nil {
			return err
		}
		if l.empty++; l.empty > 100 {
			return io.ErrNoProgress
		}
	}
}
