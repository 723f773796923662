package dialect

import (
	"bytes"
	"io"
	"net"
	"slices"
)

// Body is a request body in pieces. Long pieces, such as stored encodings of
// messages, are not copied, so that sending a long conversation again needs no
// memory and no encoding. Short pieces are copied together, because a piece
// costs more than a copy.
type Body struct {
	pieces [][]byte
	size   int
	chunk  []byte // buffer of copied pieces
	open   bool   // the last piece is the end of chunk: a short addition extends it
}

const (
	maxCopied = 1 << 10 // bytes; longer pieces are not copied
	minChunk  = 4 << 10
	maxChunk  = 64 << 10
)

// Add appends a piece, which must not be modified afterwards.
func (b *Body) Add(piece []byte) {
	if len(piece) <= maxCopied {
		appendCopy(b, piece)
		return
	}
	b.pieces = append(b.pieces, piece)
	b.size += len(piece)
	b.open = false
}

// AddString appends a copy of s.
func (b *Body) AddString(s string) { appendCopy(b, s) }

func appendCopy[T string | []byte](b *Body, s T) {
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

// Trim removes n bytes from the end of the last piece, which must be longer.
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

// Reader returns a reader of the body. A short body is copied, because net/http
// sends a bytes.Reader in one write with the header.
func (b *Body) Reader() io.ReadCloser {
	if b.size <= maxChunk {
		return io.NopCloser(bytes.NewReader(b.Bytes()))
	}
	pieces := net.Buffers(slices.Clone(b.pieces))
	return io.NopCloser(&pieces)
}

// Bytes returns a copy of the body.
func (b *Body) Bytes() []byte { return slices.Concat(b.pieces...) }
