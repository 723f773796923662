// Package sse reads server-sent events in the event stream format of the HTML
// standard. Lines end in LF, CR or CRLF; comments, a byte order mark and data
// of several lines are supported. The events do not depend on how the stream is
// split into reads.
package sse

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"iter"
)

// DefaultLimit is the limit that [Read] uses if limit is 0.
const DefaultLimit = 16 << 20

// ErrTooLong is the error of a line or event that exceeds the limit.
var ErrTooLong = errors.New("sse: event is too long")

// Read returns the data of the events of r: their data lines, joined by LF. It is
// valid until the next iteration. As the standard requires, Read drops an event
// without data. Unlike the standard, it returns a final event that EOF ends
// instead of a blank line, because many servers omit it; such an event may be
// truncated. limit is the maximum size in bytes of a line and of an event's data;
// 0 means [DefaultLimit].
//
// The iterator ends at EOF, or after an error: of r, or [ErrTooLong]. It
// returns an event as soon as it has arrived, without waiting for what follows.
func Read(r io.Reader, limit int) iter.Seq2[[]byte, error] {
	if limit <= 0 {
		limit = DefaultLimit
	}
	return func(yield func([]byte, error) bool) {
		lines := bufio.NewScanner(r)
		lines.Buffer(nil, limit+len(bom)+len("\r\n"))
		lines.Split(new(splitter).split)
		var data []byte
		some := false // data has at least one line, possibly empty
		for lines.Scan() {
			line := lines.Bytes()
			name, value, _ := bytes.Cut(line, []byte(":"))
			value = bytes.TrimPrefix(value, []byte(" "))
			switch {
			case len(line) > limit || len(data)+len(value)+1 > limit && string(name) == "data":
				yield(nil, ErrTooLong)
				return
			case len(line) == 0:
				if some && !yield(data, nil) {
					return
				}
				data, some = data[:0], false
			case string(name) == "data":
				if some {
					data = append(data, '\n')
				}
				data, some = append(data, value...), true
			}
		}
		err := lines.Err()
		if errors.Is(err, bufio.ErrTooLong) {
			err = ErrTooLong
		}
		switch {
		case err != nil:
			yield(nil, err)
		case some:
			yield(data, nil)
		}
	}
}

var bom = []byte("\xef\xbb\xbf")

// splitter splits a stream into lines.
type splitter struct {
	begun    bool // past the byte order mark
	skipLF   bool // the last line ended in CR; skip an LF that follows
	searched int  // number of bytes without a line end
}

// split is a [bufio.SplitFunc]. A final line may have no end. A line that ends in
// CR is returned before it is known whether LF follows.
func (s *splitter) split(data []byte, atEOF bool) (advance int, line []byte, err error) {
	start := 0
	switch {
	case s.begun:
		if s.skipLF && bytes.HasPrefix(data, []byte("\n")) {
			start = 1
		}
	case bytes.HasPrefix(data, bom):
		start = len(bom)
	case bytes.HasPrefix(bom, data) && !atEOF:
		return 0, nil, nil
	}
	from := max(start, s.searched)
	n := bytes.IndexAny(data[from:], "\r\n")
	switch {
	case n < 0 && atEOF && start < len(data):
		*s = splitter{begun: true}
		return len(data), data[start:], nil
	case n < 0:
		s.searched = len(data)
		return 0, nil, nil
	}
	end := from + n
	*s = splitter{begun: true, skipLF: data[end] == '\r'}
	return end + 1, data[start:end], nil
}
