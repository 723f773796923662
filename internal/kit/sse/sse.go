// Package sse reads server-sent events in the event stream format of the HTML
// standard. Lines end in LF, CR or CRLF; comments, a byte order mark and data
// of several lines are supported. The events do not depend on how the stream is
// split into reads.
package sse

import (
	"bytes"
	"errors"
	"io"
	"iter"
	"strconv"
	"time"
)

// DefaultLimit is the limit that [Read] uses if limit is 0.
const DefaultLimit = 16 << 20

// ErrTooLong is the error of a line or event that exceeds the limit.
var ErrTooLong = errors.New("sse: event is too long")

// Event is one event of a stream.
type Event struct {
	Type  string        // event field; empty if absent
	Data  []byte        // data lines joined by LF; valid until the next iteration
	ID    string        // last id of the stream
	Retry time.Duration // retry field of this event; 0 if absent
}

// Read returns the events of r. As the standard requires, it drops an event
// without data and a final event that is not followed by a blank line. limit is
// the maximum size in bytes of a line and of an event's data; 0 means
// [DefaultLimit].
//
// The iterator ends at EOF, or after an error: of r, or [ErrTooLong]. The error
// comes with a zero event. Read consumes no more of r than an event needs.
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

// parser assembles events from lines.
type parser struct {
	lines lines
	data  []byte
	some  bool // data has at least one line, possibly empty
	kind  string
	last  string // type of the previous event, reused because it rarely changes
	id    string
	retry time.Duration
}

// take returns the event that a blank line ends, and resets the parser.
func (p *parser) take() (Event, bool) {
	e := Event{Type: p.kind, Data: p.data, ID: p.id, Retry: p.retry}
	some := p.some
	p.kind, p.data, p.some, p.retry = "", p.data[:0], false, 0
	return e, some
}

// field adds a line and reports whether the event is within the limit.
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

// lines splits the input of a reader into lines.
type lines struct {
	r      io.Reader
	limit  int
	buf    []byte
	off    int  // buf[off:] is unread
	seen   int  // buf[off:seen] contains no line end
	lf     int  // index of the first LF from seen on; len(buf) if none; less than seen if unknown
	begun  bool // past the byte order mark
	skipLF bool // the last line ended in CR; skip an LF that follows
	empty  int  // consecutive empty reads
}

var bom = []byte("\xef\xbb\xbf")

// next returns the next line without its end, valid until the next call. A
// final line without an end is dropped.
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

// cut takes a complete line from the buffer, if there is one.
func (l *lines) cut() ([]byte, bool) {
	if !l.start() {
		return nil, false
	}
	if l.lf < l.seen { // cached: otherwise many lines that end in CR would search the buffer repeatedly
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

// start skips the rest of the previous line end and the byte order mark. It
// reports whether a line can begin.
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

// fill reads more input behind the unread bytes.
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
			return nil // the reader returns err again
		}
		if err != nil {
			return err
		}
		if l.empty++; l.empty > 100 {
			return io.ErrNoProgress
		}
	}
}
