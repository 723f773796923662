package dialect

import (
	"bytes"
	"io"
	"slices"
)

// Body is a request body in pieces. Long pieces that belong to others (kept
// encodings of messages) are not copied: a long conversation costs no memory
// and no encoding when it is sent again. Short ones are gathered, because a
// piece costs more than its copy.
type Body struct {
	pieces [][]byte
	size   int
	chunk  []byte // in which short pieces are gathered
	open   bool   // the last piece is the end of chunk
}

const (
	short    = 1 << 10 // bytes of a piece that is copied
	minChunk = 4 << 10
	maxChunk = 64 << 10
)

// Add appends a piece. Nobody may change it from then on.
func (b *Body) Add(piece []byte) {
	if len(piece) <= short {
		gather(b, piece)
		return
	}
	b.pieces = append(b.pieces, piece)
	b.size += len(piece)
	b.open = false
}

// AddString appends a piece, which is copied.
func (b *Body) AddString(s string) { gather(b, s) }

func gather[T string | []byte](b *Body, s T) {
	if len(s) == 0 {
		return
	}
	if len(s) > cap(b.chunk)-len(b.chunk) {
		room := min(max(2*cap(b.chunk), minChunk), maxChunk)
		b.chunk, b.open = make([]byte, 0, max(room, len(s))), false
	}
	from := len(b.chunk)
	b.chunk = append(b.chunk, s...)
	b.size += len(s)
	if b.open {
		last := &b.pieces[len(b.pieces)-1]
		*last = (*last)[:len(*last)+len(s)]
		return
	}
	b.pieces, b.open = append(b.pieces, b.chunk[from:]), true
}

// Trim takes n bytes off the end of the last piece, which has more than that.
func (b *Body) Trim(n int) {
	last := &b.pieces[len(b.pieces)-1]
	*last = (*last)[:len(*last)-n]
	b.size -= n
	if b.open {
		b.chunk = b.chunk[:len(b.chunk)-n]
	}
}

// Size returns the length in bytes.
func (b *Body) Size() int { return b.size }

// Reader returns a reader of the whole body. A body that is not long is copied
// for that: what net/http knows to be in memory it sends in one go with the
// header.
func (b *Body) Reader() io.ReadCloser {
	if b.size <= maxChunk {
		return io.NopCloser(bytes.NewReader(b.Bytes()))
	}
	return &reader{rest: b.pieces}
}

// Bytes returns a copy of the whole body.
func (b *Body) Bytes() []byte { return slices.Concat(b.pieces...) }

// reader reads pieces as one.
type reader struct {
	rest [][]byte
	off  int // into rest[0]
}

func (r *reader) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) && len(r.rest) > 0 {
		c := copy(p[n:], r.rest[0][r.off:])
		n += c
		if r.off += c; r.off == len(r.rest[0]) {
			r.rest, r.off = r.rest[1:], 0
		}
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (r *reader) Close() error { return nil }
