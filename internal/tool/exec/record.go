package exec

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

const (
	maxPending = 30_000 // characters of new output that one look gives
	maxMarks   = 2048   // changes of the stream that are remembered
	maxShown   = 4096   // bytes of a line that are shown
)

// stream is where a program wrote to.
type stream string

const (
	both   stream = "" // of a question: all; of what was written: it cannot be told
	stdout stream = "stdout"
	stderr stream = "stderr"
)

// mark says that from an offset on the output is another stream's.
type mark struct {
	from int64
	of   stream
}

// record is what a command wrote, as far as it is kept.
type record struct {
	asked func() // is called when the program asks where the cursor is; nil: nobody answers

	mu    sync.Mutex
	spool spool
	marks []mark
	chars int64     // characters written
	last  time.Time // when something was written last
	modes modes     // what the program has asked of its terminal

	polled      int64 // what a look has given already, in bytes
	polledChars int64 // and in characters
}

// write keeps p.
func (r *record) write(of stream, p []byte) {
	if asked := r.keep(of, p); asked > 0 && r.asked != nil {
		r.asked()
	}
}

func (r *record) keep(of stream, p []byte) (asked int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = time.Now()
	if n := len(r.marks); n == 0 || r.marks[n-1].of != of {
		if n == maxMarks {
			r.marks = slices.Delete(r.marks, 0, n/2)
		}
		r.marks = append(r.marks, mark{r.spool.size, of})
	}
	r.chars += starts(p)
	r.spool.write(p)
	return r.modes.look(p)
}

// starts returns how many characters begin in p.
func starts(p []byte) (n int64) {
	for ; len(p) >= 8; p = p[8:] {
		n += 8
		if binary.LittleEndian.Uint64(p)&0x8080808080808080 == 0 {
			continue // ASCII
		}
		for _, c := range p[:8] {
			if !utf8.RuneStart(c) {
				n--
			}
		}
	}
	for _, c := range p {
		if utf8.RuneStart(c) {
			n++
		}
	}
	return n
}

// news returns what was written since it was asked last: the newest of it, and
// how many characters before that were left out. What is not whole yet is left
// for the next time, unless the command has ended.
func (r *record) news(ended bool) (text string, dropped int64, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	from := max(r.polled, r.spool.start(), r.spool.size-maxPending*utf8.UTFMax)
	b := make([]byte, r.spool.size-from)
	for n := 0; n < len(b); {
		k, err := r.spool.readAt(b[n:], from+int64(n))
		if err != nil {
			return "", 0, err
		}
		n += k
	}
	rest := 0
	if !ended {
		rest = unfinished(b)
	}
	seen := r.chars - starts(b[len(b)-rest:])
	b = b[:len(b)-rest]
	r.polled = from + int64(len(b))
	for len(b) > 0 && from > 0 && !utf8.RuneStart(b[0]) {
		b = b[1:]
	}
	b = b[len(b)-lastRunes(b, maxPending):]
	dropped = max(0, seen-r.polledChars-starts(b))
	r.polledChars = seen
	return plain(b), dropped, nil
}

// lastRunes returns how many bytes the last n characters of b are.
func lastRunes(b []byte, n int) int {
	i := len(b)
	for range n {
		if i == 0 {
			break
		}
		_, k := utf8.DecodeLastRune(b[:i])
		i -= k
	}
	return len(b) - i
}

// end returns the last n characters as text.
func (r *record) end(n int) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	from := max(r.spool.start(), r.spool.size-4096)
	b := make([]byte, r.spool.size-from)
	for k := 0; k < len(b); {
		m, err := r.spool.readAt(b[k:], from+int64(k))
		if err != nil {
			return ""
		}
		k += m
	}
	for len(b) > 0 && from > 0 && !utf8.RuneStart(b[0]) {
		b = b[1:]
	}
	s := []rune(strings.TrimSpace(plain(b)))
	if len(s) > n {
		return "…" + string(s[len(s)-n:])
	}
	return string(s)
}

// reader reads what is kept of one stream. It may be read while more is
// written; what is overwritten meanwhile is passed over.
type reader struct {
	r   *record
	of  stream
	off int64
}

func (d *reader) Read(p []byte) (int, error) {
	d.r.mu.Lock()
	defer d.r.mu.Unlock()
	d.off = max(d.off, d.r.spool.start())
	for {
		of, end := d.r.streamAt(d.off)
		if d.of == both || of == both || of == d.of {
			p = p[:min(int64(len(p)), end-d.off)]
			n, err := d.r.spool.readAt(p, d.off)
			d.off += int64(n)
			return n, err
		}
		if end >= d.r.spool.size {
			return 0, io.EOF
		}
		d.off = end
	}
}

// streamAt returns whose the byte at an offset is, and up to where.
func (r *record) streamAt(off int64) (stream, int64) {
	i := sort.Search(len(r.marks), func(i int) bool { return r.marks[i].from > off })
	end := r.spool.size
	if i < len(r.marks) {
		end = r.marks[i].from
	}
	if i == 0 {
		return both, max(end, off+1) // a mark that was forgotten, or nothing at all
	}
	return r.marks[i-1].of, max(end, off+1)
}

// page is some lines of a record.
type page struct {
	lines []string
	from  int  // of the first, from 0
	total int  // lines there are
	lost  bool // older ones are not kept
}

// lines returns limit lines from offset on; a negative offset counts from the
// end, a limit of 0 is all.
func (r *record) lines(of stream, offset, limit int) (page, error) {
	p := page{}
	if err := r.scan(of, func(int, func() string) bool { p.total++; return true }); err != nil {
		return p, err
	}
	if offset < 0 {
		offset = max(0, p.total+offset)
	}
	p.from = min(offset, p.total)
	err := r.scan(of, func(n int, text func() string) bool {
		if n >= p.from {
			p.lines = append(p.lines, text())
		}
		return limit == 0 || n+1 < p.from+limit
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	p.lost = r.spool.start() > 0
	return p, err
}

// bound drops lines of a page that is too long: the first, or the last.
func (p *page) bound(first bool) {
	size, n := 0, len(p.lines)
	for i := range n {
		if first {
			i = n - 1 - i
		}
		if size += len(p.lines[i]) + 1; size <= maxLog {
			continue
		}
		if first {
			p.lines = p.lines[i+1:]
			p.from += i + 1
		} else {
			p.lines = p.lines[:i]
		}
		return
	}
}

// scan gives each line to f, until it returns false.
func (r *record) scan(of stream, f func(n int, text func() string) bool) error {
	b := bufio.NewReaderSize(&reader{r: r, of: of}, 64<<10)
	var line []byte
	for n, some := 0, false; ; {
		part, err := b.ReadSlice('\n')
		line = append(line, part[:min(len(part), maxShown-len(line))]...)
		some = some || len(part) > 0
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return err
		case !some:
			return nil
		}
		if !f(n, func() string { return plain(bytes.TrimRight(line, "\r\n")) }) || err != nil {
			return nil
		}
		n++
		line, some = line[:0], false
	}
}

// pipe writes into a record as one stream, and on to another writer.
type pipe struct {
	r  *record
	of stream
	to io.Writer // nil: there is none
}

func (w pipe) Write(p []byte) (int, error) {
	w.r.write(w.of, p)
	if w.to == nil {
		return len(p), nil
	}
	return w.to.Write(p)
}
