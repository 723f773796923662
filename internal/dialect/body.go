package dialect

import (
	"io"
	"slices"
)

// Body is a request body in pieces. Pieces that belong to others (kept
// encodings of messages) are not copied: a long conversation costs no memory
// and no encoding when it is sent again.
type Body struct {
	pieces  [][]byte
	size    int
	scratch []byte
}

// Add appends a piece. Nobody may change it from then on.
func (b *Body) Add(piece []byte) {
	if len(piece) > 0 {
		b.pieces = append(b.pieces, piece)
		b.size += len(piece)
	}
}

// AddString appends a short piece, which is copied.
func (b *Body) AddString(s string) {
	b.scratch = append(b.scratch, s...) // what stood before it stays where it is when this grows
	b.Add(b.scratch[len(b.scratch)-len(s):])
}

// Trim takes n bytes off the end of the last piece, which has more than that.
func (b *Body) Trim(n int) {
	last := &b.pieces[len(b.pieces)-1]
	*last = (*last)[:len(*last)-n]
	b.size -= n
}

// Size returns the length in bytes.
func (b *Body) Size() int { return b.size }

// Reader returns a reader of the whole body.
func (b *Body) Reader() io.ReadCloser { return &reader{rest: b.pieces} }

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
