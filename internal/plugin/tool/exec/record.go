package exec

import (
	"bufio"
	"bytes"
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
	maxUnread    = 30_000 // characters of new output in one poll
	maxMarks     = 2048   // remembered changes of the stream
	maxLineBytes = 4096   // bytes shown of a line
)

// stream is the stream that a program wrote to.
type stream string

const (
	both   stream = "" // in a query: all streams; of output: unknown
	stdout stream = "stdout"
	stderr stream = "stderr"
)

// mark records that the output from an offset on belongs to a stream.
type mark struct {
	from int64
	of   stream
}

// record is the retained output of a command.
type record struct {
	onCursorQuery func() // called when the program queries the cursor position; may be nil

	copying sync.Mutex // held while output is written to the record and to the result

	mu    sync.Mutex
	spool spool
	marks []mark
	chars int64     // characters written
	last  time.Time // time of the last write
	modes modes     // terminal modes set by the program

	polled      int64 // bytes returned by polls so far
	polledChars int64 // the same in characters
}

// write appends p.
func (r *record) write(of stream, p []byte) {
	if queries := r.append(of, p); queries > 0 && r.onCursorQuery != nil {
		r.onCursorQuery()
	}
}

func (r *record) append(of stream, p []byte) (queries int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = time.Now()
	if n := len(r.marks); n == 0 || r.marks[n-1].of != of {
		if n == maxMarks {
			r.marks = slices.Delete(r.marks, 0, n/2)
		}
		r.marks = append(r.marks, mark{r.spool.size, of})
	}
	r.chars += countRunes(p)
	r.spool.write(p)
	return r.modes.scan(p)
}

// countRunes returns the number of characters that begin in p.
func countRunes(p []byte) (n int64) {
	for _, c := range p {
		if utf8.RuneStart(c) {
			n++
		}
	}
	return n
}

// unread returns the output since the last call, limited to the most recent
// part, and the number of characters dropped before it. An incomplete
// character or escape sequence is left for the next call unless the command
// has ended.
func (r *record) unread(ended bool) (text string, dropped int64, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	from := max(r.polled, r.spool.start(), r.spool.size-maxUnread*utf8.UTFMax)
	b, err := r.spool.from(from)
	if err != nil {
		return "", 0, err
	}
	rest := 0
	if !ended {
		rest = unfinished(b)
	}
	seen := r.chars - countRunes(b[len(b)-rest:])
	b = b[:len(b)-rest]
	r.polled = from + int64(len(b))
	for len(b) > 0 && from > 0 && !utf8.RuneStart(b[0]) {
		b = b[1:]
	}
	b = b[len(b)-lastRunes(b, maxUnread):]
	dropped = max(0, seen-r.polledChars-countRunes(b))
	r.polledChars = seen
	return plain(b), dropped, nil
}

// lastRunes returns the length in bytes of the last n characters of b.
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

// tail returns the last n characters as text.
func (r *record) tail(n int) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	from := max(r.spool.start(), r.spool.size-4096)
	b, err := r.spool.from(from)
	if err != nil {
		return ""
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

// reader reads the retained output of one stream. It can be used while the
// command writes; output that is overwritten is skipped.
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

// streamAt returns the stream of the byte at an offset, and the offset up to
// which it extends.
func (r *record) streamAt(off int64) (stream, int64) {
	i := sort.Search(len(r.marks), func(i int) bool { return r.marks[i].from > off })
	end := r.spool.size
	if i < len(r.marks) {
		end = r.marks[i].from
	}
	if i == 0 {
		return both, max(end, off+1) // the mark was dropped, or there is no output
	}
	return r.marks[i-1].of, max(end, off+1)
}

// page is a range of lines of a record.
type page struct {
	lines []string
	from  int  // index of the first line
	total int  // number of retained lines
	lost  bool // older lines were dropped
}

// lines returns limit lines starting at offset. A negative offset counts from
// the end. A limit of 0 means all.
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

// truncate drops lines of a page that is too long: the first ones, or the
// last ones.
func (p *page) truncate(first bool) {
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

// scan calls f for each line until f returns false.
func (r *record) scan(of stream, f func(n int, text func() string) bool) error {
	b := bufio.NewReaderSize(&reader{r: r, of: of}, 64<<10)
	var line []byte
	for n, some := 0, false; ; {
		part, err := b.ReadSlice('\n')
		line = append(line, part[:min(len(part), maxLineBytes-len(line))]...)
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

// pipe writes into a record as one stream, and to another writer.
type pipe struct {
	r  *record
	of stream
	to io.Writer // may be nil
}

func (w pipe) Write(p []byte) (int, error) {
	w.r.copying.Lock()
	defer w.r.copying.Unlock()
	w.r.write(w.of, p)
	if w.to == nil {
		return len(p), nil
	}
	return w.to.Write(p)
}

// drop releases the output.
func (r *record) drop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spool.close()
	r.marks = nil
}

// memSize returns the number of bytes of output in memory.
func (r *record) memSize() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.spool.mem)
}

func (r *record) empty() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.spool.size == 0
}

// touch records activity of the command.
func (r *record) touch() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = time.Now()
}
