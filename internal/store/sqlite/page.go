package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/bits"
)

// This file reads pages of a database and its log without SQLite, for salvage:
// https://www.sqlite.org/fileformat2.html.

const (
	headerSize   = 100  // of the file, at the start of page 1
	leaf         = 0x0d // a page with rows of a table
	walHeader    = 32
	frameHeader  = 24
	versionAt    = 60
	defaultPage  = 4096
	maxPayload   = 1 << 30
	maxOverflows = maxPayload / 512
)

// pages is the pages of a database, those in its log first.
type pages struct {
	db, log io.ReaderAt
	size    int            // of a page
	n       int            // pages of the file
	logged  map[int]int64  // offset in the log of a page's newest version
	bad     map[int]string // pages known to be unreadable, and why
}

// readPages looks at the headers of the file and the log (nil: none), and at
// the log's frames.
func readPages(db io.ReaderAt, dbSize int64, log io.ReaderAt) *pages {
	p := &pages{db: db, log: log, size: defaultPage, logged: make(map[int]int64), bad: make(map[int]string)}
	var h [headerSize]byte
	if _, err := db.ReadAt(h[:], 0); err == nil {
		if n := int(binary.BigEndian.Uint16(h[16:])); n >= 512 && bits.OnesCount(uint(n)) == 1 {
			p.size = n
		}
	}
	p.n = int((dbSize + int64(p.size) - 1) / int64(p.size))
	if log != nil {
		p.readLog()
	}
	return p
}

// readLog notes the frames of commits. A frame that is not what was written
// makes its page unreadable; those after it are checked from its checksum on,
// and hold.
func (p *pages) readLog() {
	var h [walHeader]byte
	if _, err := p.log.ReadAt(h[:], 0); err != nil {
		return
	}
	magic := binary.BigEndian.Uint32(h[:])
	if magic&^1 != 0x377f0682 || int(binary.BigEndian.Uint32(h[8:])) != p.size {
		return
	}
	var order binary.ByteOrder = binary.LittleEndian
	if magic&1 == 1 {
		order = binary.BigEndian
	}
	sum := checksum{binary.BigEndian.Uint32(h[24:]), binary.BigEndian.Uint32(h[28:])}
	frame := make([]byte, frameHeader+p.size)
	pending := make(map[int]int64) // offset, negative: bad
	misses := 0
	for off := int64(walHeader); ; off += int64(len(frame)) {
		if _, err := p.log.ReadAt(frame, off); err != nil {
			return
		}
		if string(frame[8:16]) != string(h[16:24]) { // of an older log
			return
		}
		sum.add(order, frame[:8])
		sum.add(order, frame[frameHeader:])
		stored := checksum{binary.BigEndian.Uint32(frame[16:]), binary.BigEndian.Uint32(frame[20:])}
		n := int(binary.BigEndian.Uint32(frame))
		if sum != stored {
			if misses++; misses > 1 { // not one frame, but the end of what was written
				return
			}
			pending[n] = -1
		} else {
			misses = 0
			pending[n] = off + frameHeader
		}
		sum = stored
		if size := binary.BigEndian.Uint32(frame[4:]); size != 0 && misses == 0 {
			p.commit(pending)
			clear(pending)
		}
	}
}

func (p *pages) commit(pending map[int]int64) {
	for n, off := range pending {
		delete(p.bad, n)
		if off < 0 {
			p.bad[n] = "its frame in the log is not what was written"
			continue
		}
		p.logged[n] = off
		p.n = max(p.n, n)
	}
}

// checksum is that of a log.
type checksum [2]uint32

func (s *checksum) add(order binary.ByteOrder, b []byte) {
	for ; len(b) >= 8; b = b[8:] {
		s[0] += order.Uint32(b) + s[1]
		s[1] += order.Uint32(b[4:]) + s[0]
	}
}

var errPage = errors.New("not readable")

// page returns page n, from 1.
func (p *pages) page(n int) ([]byte, error) {
	if n < 1 || n > p.n || p.bad[n] != "" {
		return nil, fmt.Errorf("page %d: %w", n, errPage)
	}
	b := make([]byte, p.size)
	src, off := p.db, int64(n-1)*int64(p.size)
	if at, ok := p.logged[n]; ok {
		src, off = p.log, at
	}
	if _, err := src.ReadAt(b, off); err != nil {
		return nil, fmt.Errorf("page %d: %w", n, errPage)
	}
	return b, nil
}

// version returns the version of the schema that the file names, 0 if it
// cannot be read.
func (p *pages) version() int64 {
	b, err := p.page(1)
	if err != nil || string(b[:16]) != "SQLite format 3\x00" {
		return 0
	}
	return int64(binary.BigEndian.Uint32(b[versionAt:]))
}

// record is a row as it is stored.
type record struct {
	page   int
	rowid  int64
	values []any // int64, string or nil
}

// rows gives the rows on all pages with rows of tables, whatever leads to
// them, and an error for each page or row that cannot be read.
func (p *pages) rows() iter.Seq2[record, error] {
	return func(yield func(record, error) bool) {
		for n := 1; n <= p.n; n++ {
			b, err := p.page(n)
			if err == nil {
				err = suspicious(b)
			}
			if err != nil {
				if !yield(record{page: n}, err) {
					return
				}
				continue
			}
			if !p.leaf(n, b, yield) {
				return
			}
		}
	}
}

// suspicious reports a page that is no page: all zero.
func suspicious(b []byte) error {
	for _, c := range b {
		if c != 0 {
			return nil
		}
	}
	return errPage
}

func (p *pages) leaf(n int, b []byte, yield func(record, error) bool) bool {
	h := b
	if n == 1 {
		h = b[headerSize:]
	}
	if h[0] != leaf {
		return true
	}
	cells := int(binary.BigEndian.Uint16(h[3:]))
	for i := range cells {
		if 8+2*i+2 > len(h) {
			return yield(record{page: n}, errPage)
		}
		r, err := p.cell(b, int(binary.BigEndian.Uint16(h[8+2*i:])))
		r.page = n
		if !yield(r, err) {
			return false
		}
	}
	return true
}

// cell reads the row at an offset of a page.
func (p *pages) cell(b []byte, at int) (record, error) {
	var r record
	if at >= len(b) {
		return r, errPage
	}
	size, n := varint(b[at:])
	rowid, m := varint(b[at+n:])
	r.rowid = rowid
	if n == 0 || m == 0 || size < 0 || size > maxPayload {
		return r, errPage
	}
	payload, err := p.payload(b[at+n+m:], int(size))
	if err != nil {
		return r, err
	}
	r.values, err = values(payload)
	return r, err
}

// payload collects a row from its page and those it flows over to.
func (p *pages) payload(b []byte, size int) ([]byte, error) {
	local := size
	if most := p.size - 35; size > most {
		least := (p.size-12)*32/255 - 23
		if local = least + (size-least)%(p.size-4); local > most {
			local = least
		}
	}
	if local > len(b) || local < size && local+4 > len(b) {
		return nil, errPage
	}
	out := append(make([]byte, 0, min(size, 1<<20)), b[:local]...)
	if local == size {
		return out, nil
	}
	next := int(binary.BigEndian.Uint32(b[local:]))
	for range maxOverflows {
		over, err := p.page(next)
		if err == nil {
			err = suspicious(over)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, over[4:min(len(over), 4+size-len(out))]...)
		if len(out) == size {
			return out, nil
		}
		next = int(binary.BigEndian.Uint32(over))
	}
	return nil, errPage
}

// values decodes a record.
func values(b []byte) ([]any, error) {
	size, n := varint(b)
	if n == 0 || size < int64(n) || size > int64(len(b)) {
		return nil, errPage
	}
	types, body := b[n:size], b[size:]
	var list []any
	for len(types) > 0 {
		t, n := varint(types)
		if n == 0 {
			return nil, errPage
		}
		types = types[n:]
		v, rest, err := serial(t, body)
		if err != nil {
			return nil, err
		}
		list, body = append(list, v), rest
	}
	if len(body) > 0 {
		return nil, errPage
	}
	return list, nil
}

// serial decodes a value of a serial type and returns what follows it.
func serial(t int64, b []byte) (any, []byte, error) {
	switch {
	case t == 0:
		return nil, b, nil
	case t == 8 || t == 9:
		return t - 8, b, nil
	case t >= 1 && t <= 6:
		n := [...]int{0, 1, 2, 3, 4, 6, 8}[t]
		if n > len(b) {
			break
		}
		v := int64(int8(b[0]))
		for _, c := range b[1:n] {
			v = v<<8 | int64(c)
		}
		return v, b[n:], nil
	case t >= 13 && t%2 == 1:
		n := (t - 13) / 2
		if n > int64(len(b)) {
			break
		}
		return string(b[:n]), b[n:], nil
	}
	return nil, nil, errPage
}

// varint decodes SQLite's variable-length integer and returns its length, 0
// when b is too short.
func varint(b []byte) (int64, int) {
	var v uint64
	for i, c := range b {
		if i == 8 {
			return int64(v<<8 | uint64(c)), 9
		}
		v = v<<7 | uint64(c&0x7f)
		if c < 0x80 {
			return int64(v), i + 1
		}
	}
	return 0, 0
}
