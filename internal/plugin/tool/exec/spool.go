package exec

import (
	"errors"
	"fmt"
	"io"
	"os"
)

const (
	memCapacity  = 128 << 10 // bytes of output held in memory
	fileCapacity = 8 << 20   // bytes of output held in a file
)

// spool retains the most recent bytes written to it, in memory at first and
// then in an unnamed file.
type spool struct {
	dir string // directory of the file; "": memory only

	mem   []byte
	file  *os.File
	size  int64 // bytes written
	first int64 // offset of the oldest byte that may be retained
}

// capacity returns how many bytes are retained.
func (s *spool) capacity() int64 {
	if s.file != nil {
		return fileCapacity
	}
	return memCapacity
}

// start returns the offset of the oldest retained byte.
func (s *spool) start() int64 { return max(s.first, s.size-s.capacity()) }

func (s *spool) write(p []byte) {
	if s.file == nil && s.dir != "" && s.size+int64(len(p)) > memCapacity {
		s.spill()
	}
	if n := int64(len(p)) - s.capacity(); n > 0 {
		s.size += n
		p = p[n:]
	}
	for len(p) > 0 {
		at := s.size % s.capacity()
		n := min(int64(len(p)), s.capacity()-at)
		if s.file != nil {
			if _, err := s.file.WriteAt(p[:n], at); err != nil {
				s.fallBack()
				continue
			}
		} else {
			if more := at + n - int64(len(s.mem)); more > 0 {
				s.mem = append(s.mem, make([]byte, more)...)
			}
			copy(s.mem[at:], p[:n])
		}
		s.size += n
		p = p[n:]
	}
}

// spill moves the content into a file. If that fails, it stays in memory.
func (s *spool) spill() {
	err := os.MkdirAll(s.dir, 0o700)
	var f *os.File
	if err == nil {
		f, err = os.CreateTemp(s.dir, "output-*")
	}
	if err == nil {
		_, err = f.WriteAt(s.mem, 0) // the buffer has not wrapped around yet
	}
	if err != nil {
		s.dir = ""
		if f != nil {
			discard(f)
		}
		return
	}
	_ = os.Remove(f.Name()) // on systems that cannot remove open files it is removed at the end
	s.file, s.mem = f, nil
}

// fallBack continues in memory after the file failed. The content of the file
// is lost.
func (s *spool) fallBack() {
	s.close()
	s.dir, s.first = "", s.size
}

// close releases the content.
func (s *spool) close() {
	if s.file != nil {
		discard(s.file)
	}
	s.file, s.mem, s.first = nil, nil, s.size
}

// discard closes and removes a file.
func discard(f *os.File) {
	_ = f.Close()
	_ = os.Remove(f.Name())
}

// readAt reads from a retained offset. At the end it returns io.EOF.
func (s *spool) readAt(p []byte, off int64) (int, error) {
	if off >= s.size {
		return 0, io.EOF
	}
	if off < s.start() {
		return 0, errors.New("output: these bytes were dropped")
	}
	at := off % s.capacity()
	p = p[:min(int64(len(p)), s.capacity()-at, s.size-off)]
	if s.file == nil {
		return copy(p, s.mem[at:]), nil
	}
	n, err := s.file.ReadAt(p, at)
	if n > 0 {
		return n, nil
	}
	return 0, fmt.Errorf("output: %w", err)
}

// from returns all bytes from a retained offset on.
func (s *spool) from(off int64) ([]byte, error) {
	b := make([]byte, s.size-off)
	for n := 0; n < len(b); {
		k, err := s.readAt(b[n:], off+int64(n))
		if err != nil {
			return nil, err
		}
		n += k
	}
	return b, nil
}
