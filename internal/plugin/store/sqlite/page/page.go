// Package page reads the rows of a SQLite file from its pages, without using
// SQLite or indexes. It can read the intact part of a damaged file. The format is
// documented at https://www.sqlite.org/fileformat2.html.
package page

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"math/bits"
	"os"

	"github.com/chela-ai/chela/internal/kit/process"
)

const (
	fileHeader  = 100  // size of the header in page 1
	leaf        = 0x0d // first byte of a leaf page of a table
	interior    = 0x05 // first byte of an interior page of a table
	logHeader   = 32
	frameHeader = 24
	versionAt   = 60
	defaultSize = 4096 // page size
	logMagic    = 0x377f0682
)

// ErrUnreadable is the error for a damaged page or row.
var ErrUnreadable = errors.New("not readable")

// File is the pages of a database. Pages in its log take precedence. The log is
// read up to its last commit.
type File struct {
	db, log io.ReaderAt
	close   func() error
	size    int           // page size
	n       int           // number of pages
	logged  map[int]int64 // offset in the log of the newest version of a page
	bad     map[int]bool  // pages whose newest version is unreadable
}

// Open opens the database in the file path, and its log if there is one.
func Open(path string) (*File, error) {
	f, err := open(path)
	if err == nil && f.log != nil {
		f.readLog()
	}
	return f, err
}

// open is [Open] without reading the log.
func open(path string) (*File, error) {
	db, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	fi, err := db.Stat()
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	log, err := os.Open(path + "-wal")
	if err != nil {
		f := read(db, fi.Size())
		f.close = db.Close
		return f, nil
	}
	f := read(db, fi.Size())
	f.log = log
	f.close = func() error { return errors.Join(db.Close(), log.Close()) }
	return f, nil
}

// Close closes the file and its log.
func (f *File) Close() error { return f.close() }

// Pages returns the number of pages.
func (f *File) Pages() int { return f.n }

// read reads the header of the file.
func read(db io.ReaderAt, dbSize int64) *File {
	f := &File{db: db, size: defaultSize, logged: make(map[int]int64), bad: make(map[int]bool)}
	var h [fileHeader]byte
	if _, err := db.ReadAt(h[:], 0); err == nil {
		if n := int(binary.BigEndian.Uint16(h[16:])); n >= 512 && bits.OnesCount(uint(n)) == 1 {
			f.size = n
		}
	}
	f.n = int((dbSize + int64(f.size) - 1) / int64(f.size))
	return f
}

// readLog records the frames of committed transactions. A damaged frame makes its
// page unreadable.
func (f *File) readLog() {
	pending := make(map[int]int64) // offset, negative for a damaged frame
	for r := range f.frames() {
		switch {
		case r.intact:
			pending[r.page] = r.off
		case r.page > 0:
			pending[r.page] = -1
		}
		if r.intact && r.commits {
			f.commit(pending)
			clear(pending)
		}
	}
}

// frame is a part of the log with a version of a page.
type frame struct {
	page    int   // 0: unknown
	off     int64 // of the page in the log
	intact  bool
	commits bool // it is the last one of its transaction
}

// frames reads the log to its end. A frame is verified starting from the stored
// checksum of the frame before it, so that frames after a damaged one are verified
// too. Frames of an older log are not intact.
func (f *File) frames() iter.Seq[frame] {
	return func(yield func(frame) bool) {
		h, ok := f.readLogHeader()
		b := make([]byte, frameHeader+f.size)
		for off := int64(logHeader); ; off += int64(len(b)) {
			if _, err := f.log.ReadAt(b, off); err != nil {
				return
			}
			if !ok { // the salt of the first frame whose successor is intact is that of the log
				copy(h.salt[:], b[8:16])
			}
			stored := checksum{binary.BigEndian.Uint32(b[16:]), binary.BigEndian.Uint32(b[20:])}
			r := frame{off: off + frameHeader}
			if string(b[8:16]) == string(h.salt[:]) {
				h.sum.add(h.order, b[:8])
				h.sum.add(h.order, b[frameHeader:])
				r.page, r.commits = int(binary.BigEndian.Uint32(b)), binary.BigEndian.Uint32(b[4:]) != 0
				r.intact = h.sum == stored
				ok = ok || r.intact
			}
			h.sum = stored
			if !yield(r) {
				return
			}
		}
	}
}

// head is the header of a log.
type head struct {
	order binary.ByteOrder
	salt  [8]byte
	sum   checksum
}

// readLogHeader reads the header of the log, and reports whether it is intact.
func (f *File) readLogHeader() (h head, intact bool) {
	h.order = binary.LittleEndian
	var b [logHeader]byte
	if _, err := f.log.ReadAt(b[:], 0); err != nil {
		return h, false
	}
	magic := binary.BigEndian.Uint32(b[:])
	if magic == logMagic|1 {
		h.order = binary.BigEndian
	}
	copy(h.salt[:], b[16:24])
	h.sum.add(h.order, b[:24])
	stored := checksum{binary.BigEndian.Uint32(b[24:]), binary.BigEndian.Uint32(b[28:])}
	intact = magic&^1 == logMagic && h.sum == stored && int(binary.BigEndian.Uint32(b[8:])) == f.size
	h.sum = stored
	return h, intact
}

func (f *File) commit(pending map[int]int64) {
	for n, off := range pending {
		delete(f.bad, n)
		if off < 0 {
			f.bad[n] = true
			continue
		}
		f.logged[n] = off
		f.n = max(f.n, n)
	}
}

// checksum is the running checksum of a log.
type checksum [2]uint32

func (s *checksum) add(order binary.ByteOrder, b []byte) {
	for ; len(b) >= 8; b = b[8:] {
		s[0] += order.Uint32(b) + s[1]
		s[1] += order.Uint32(b[4:]) + s[0]
	}
}

// Log says what SQLite does not read of a log. It reads up to the last commit before
// the first damaged frame.
type Log struct {
	Frames  int // that SQLite reads
	Missing int // frames that the last process had written and that SQLite does not read
	After   int // intact commits after a damaged frame, if it is unknown what was written
}

// ReadLog reads the log of the database in the file path, which no process uses. If
// the last process was killed, its index of the log is beside it and tells how much
// it had written. Without the index a power failure can look like damage: it may have
// interrupted a sync that had written a later frame before an earlier one.
func ReadLog(path string) (Log, error) {
	var l Log
	x, known := readIndex(path + "-shm")
	log, err := os.Stat(path + "-wal")
	if errors.Is(err, fs.ErrNotExist) || err == nil && log.Size() == 0 {
		l.Missing = x.frames - min(x.copied, x.frames)
		return l, nil
	}
	if err != nil {
		return l, err
	}
	f, err := open(path)
	if err != nil {
		return l, err
	}
	defer f.Close()
	h, intact := f.readLogHeader()
	known = known && (x.salt == h.salt || !intact)
	n, broken := 0, !intact
	for r := range f.frames() {
		n++
		broken = broken || !r.intact
		switch {
		case !r.intact || !r.commits:
		case broken:
			l.After++
		default:
			l.Frames = n
		}
	}
	if known {
		l.Missing, l.After = max(0, x.frames-l.Frames), 0
	}
	return l, nil
}

// index is what the index of a log contained when its process ended.
type index struct {
	frames, copied int // in the log, and those also in the database
	salt           [8]byte
}

// readIndex reads an index and reports whether it is intact. Its header is stored
// twice, in the byte order of the machine.
func readIndex(path string) (index, bool) {
	f, err := os.Open(path)
	if err != nil {
		return index{}, false
	}
	defer f.Close()
	// A power failure may have kept the index and lost what the system had not yet
	// written of the log, which nobody was told was safe.
	if info, err := f.Stat(); err != nil || info.ModTime().Before(process.Booted()) {
		return index{}, false
	}
	const size = 48
	var b [2*size + 4]byte
	if _, err := f.ReadAt(b[:], 0); err != nil || string(b[:size]) != string(b[size:2*size]) {
		return index{}, false
	}
	order := binary.NativeEndian
	var sum checksum
	sum.add(order, b[:size-8])
	if sum != (checksum{order.Uint32(b[size-8:]), order.Uint32(b[size-4:])}) || sum == (checksum{}) {
		return index{}, false
	}
	return index{int(order.Uint32(b[16:])), int(order.Uint32(b[2*size:])), [8]byte(b[32:40])}, true
}

// page returns page n; the first page is 1.
func (f *File) page(n int) ([]byte, error) {
	if n < 1 || n > f.n || f.bad[n] {
		return nil, fmt.Errorf("page %d: %w", n, ErrUnreadable)
	}
	b := make([]byte, f.size)
	src, off := f.db, int64(n-1)*int64(f.size)
	if at, ok := f.logged[n]; ok {
		src, off = f.log, at
	}
	if _, err := src.ReadAt(b, off); err != nil {
		return nil, fmt.Errorf("page %d: %w", n, ErrUnreadable)
	}
	return b, nil
}

// Version returns the schema version in the file header, or 0 if the header is
// unreadable.
func (f *File) Version() int64 {
	b, err := f.page(1)
	if err != nil || string(b[:16]) != "SQLite format 3\x00" {
		return 0
	}
	return int64(binary.BigEndian.Uint32(b[versionAt:]))
}

// Schema is the table that contains the definitions of all tables and indexes.
const Schema = "sqlite_schema"

// tables returns the table of each page that a root page in the schema leads to.
// The pages below a damaged page are missing.
func (f *File) tables() map[int]string {
	of := make(map[int]string)
	f.walk(1, Schema, of)
	for n := range maps.Clone(of) {
		b, err := f.page(n)
		if err != nil {
			continue
		}
		f.leaf(n, b, func(r Row, err error) bool {
			if err != nil || len(r.Values) < 4 || r.Values[0] != "table" {
				return true
			}
			name, _ := r.Values[1].(string)
			root, _ := r.Values[3].(int64)
			f.walk(int(root), name, of)
			return true
		})
	}
	return of
}

// walk assigns the pages of the b-tree with that root to a table.
func (f *File) walk(root int, table string, of map[int]string) {
	for todo := []int{root}; len(todo) > 0; {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		b, err := f.page(n)
		if err != nil || of[n] != "" { // a page with two references: one is damaged
			continue
		}
		h := header(n, b)
		if h[0] != leaf && h[0] != interior {
			continue
		}
		of[n] = table
		if h[0] == leaf {
			continue
		}
		todo = append(todo, int(binary.BigEndian.Uint32(h[8:])))
		for i := range int(binary.BigEndian.Uint16(h[3:])) {
			if 12+2*i+2 > len(h) {
				break
			}
			if at := int(binary.BigEndian.Uint16(h[12+2*i:])); at+4 <= len(b) {
				todo = append(todo, int(binary.BigEndian.Uint32(b[at:])))
			}
		}
	}
}

// header returns the part of a page that begins with the header of its b-tree.
func header(n int, b []byte) []byte {
	if n == 1 {
		return b[fileHeader:]
	}
	return b
}

// Row is a row of a table in its stored form. It has no values for columns that
// were added to the table later.
type Row struct {
	Table  string // "" if the page was not reached from the schema
	Page   int
	ID     int64 // rowid; the column that is the rowid has a nil value
	Values []any // int64, string or nil
}

// Rows returns the rows of all leaf pages of tables, whether or not the page is
// part of a b-tree, and an error for each unreadable page or row.
func (f *File) Rows() iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		of := f.tables()
		for n := 1; n <= f.n; n++ {
			b, err := f.page(n)
			if err == nil {
				err = blank(b)
			}
			if err != nil {
				if !yield(Row{Page: n}, err) {
					return
				}
				continue
			}
			if !f.leaf(n, b, func(r Row, err error) bool { r.Table = of[n]; return yield(r, err) }) {
				return
			}
		}
	}
}

// blank returns an error for a page of zeros. No page in use is zero.
func blank(b []byte) error {
	for _, c := range b {
		if c != 0 {
			return nil
		}
	}
	return ErrUnreadable
}

func (f *File) leaf(n int, b []byte, yield func(Row, error) bool) bool {
	h := header(n, b)
	if h[0] != leaf {
		return true
	}
	cells := int(binary.BigEndian.Uint16(h[3:]))
	for i := range cells {
		if 8+2*i+2 > len(h) {
			return yield(Row{Page: n}, ErrUnreadable)
		}
		r, err := f.cell(b, int(binary.BigEndian.Uint16(h[8+2*i:])))
		r.Page = n
		if !yield(r, err) {
			return false
		}
	}
	return true
}

// cell reads the row at offset at of a page.
func (f *File) cell(b []byte, at int) (Row, error) {
	var r Row
	if at >= len(b) {
		return r, ErrUnreadable
	}
	size, n := varint(b[at:])
	rowid, m := varint(b[at+n:])
	r.ID = rowid
	if n == 0 || m == 0 || size < 0 || size > int64(f.n)*int64(f.size) {
		return r, ErrUnreadable
	}
	payload, err := f.payload(b[at+n+m:], int(size))
	if err != nil {
		return r, err
	}
	r.Values, err = values(payload)
	return r, err
}

// payload collects the payload of a row from its page and its overflow pages.
func (f *File) payload(b []byte, size int) ([]byte, error) {
	local := size
	if most := f.size - 35; size > most {
		least := (f.size-12)*32/255 - 23
		if local = least + (size-least)%(f.size-4); local > most {
			local = least
		}
	}
	if local > len(b) || local < size && local+4 > len(b) {
		return nil, ErrUnreadable
	}
	out := append(make([]byte, 0, min(size, 1<<20)), b[:local]...)
	if local == size {
		return out, nil
	}
	next := int(binary.BigEndian.Uint32(b[local:]))
	for range f.n { // bounds the loop if the chain has a cycle
		over, err := f.page(next)
		if err == nil {
			err = blank(over)
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
	return nil, ErrUnreadable
}

// values decodes a record.
func values(b []byte) ([]any, error) {
	size, n := varint(b)
	if n == 0 || size < int64(n) || size > int64(len(b)) {
		return nil, ErrUnreadable
	}
	types, body := b[n:size], b[size:]
	var list []any
	for len(types) > 0 {
		t, n := varint(types)
		if n == 0 {
			return nil, ErrUnreadable
		}
		types = types[n:]
		v, rest, err := serial(t, body)
		if err != nil {
			return nil, err
		}
		list, body = append(list, v), rest
	}
	if len(body) > 0 {
		return nil, ErrUnreadable
	}
	return list, nil
}

// serial decodes a value of serial type t and returns the bytes after it.
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
	return nil, nil, ErrUnreadable
}

// varint decodes SQLite's variable-length integer and returns its length, or 0 if b
// is too short.
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
