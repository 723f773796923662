package exec

import (
	"errors"
	"fmt"
	"io"
	"os"
)

const (
	memRoom  = 128 << 10 // bytes of output that are held in memory
	fileRoom = 8 << 20   // bytes that are held in a file
)

// spool keeps the newest bytes of what is written to it: in memory as long as
// they are few, then in a file that has no name.
type spool struct {
	dir string // where the file is made; "": there is none

	mem   []byte
	file  *os.File
	size  int64 // bytes written
	first int64 // the oldest byte there can be: what was before it is lost
}

// room is how many bytes are kept.
func (s *spool) room() int64 {
	if s.file != nil {
		return fileRoom
	}
	return memRoom
}

// start is the offset of the oldest byte that is kept.
func (s *spool) start() int64 { return max(s.first, s.size-s.room()) }

func (s *spool) write(p []byte) {
	if s.file == nil && s.dir != "" && s.size+int64(len(p)) > memRoom {
		s.spill()
	}
	if n := int64(len(p)) - s.room(); n > 0 {
		s.size += n
		p = p[n:]
	}
	for len(p) > 0 {
		at := s.size % s.room()
		n := min(int64(len(p)), s.room()-at)
		if s.file != nil {
			if _, err := s.file.WriteAt(p[:n], at); err != nil {
				s.retreat()
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

// spill moves what is kept into a file. Without one it goes on in memory.
func (s *spool) spill() {
	err := os.MkdirAll(s.dir, 0o700)
	var f *os.File
	if err == nil {
		f, err = os.CreateTemp(s.dir, "output-*")
	}
	if err == nil {
		_, err = f.WriteAt(s.mem, 0) // so far nothing has gone round
	}
	if err != nil {
		s.dir = ""
		if f != nil {
			discard(f)
		}
		return
	}
	_ = os.Remove(f.Name()) // where an open file keeps its name, it goes with the end
	s.file, s.mem = f, nil
}

// retreat goes on in memory after the file failed; what is in it is lost.
func (s *spool) retreat() {
	s.close()
	s.dir, s.first = "", s.size
}

// close drops what is kept.
func (s *spool) close() {
	if s.file != nil {
		discard(s.file)
	}
	s.file, s.mem, s.first = nil, nil, s.size
}

// discard closes and removes a file of which nothing is needed any more.
func discard(f *os.File) {
	_ = f.Close()
	_ = os.Remove(f.Name())
}

// readAt reads from an offset that is kept, or io.EOF.
func (s *spool) readAt(p []byte, off int64) (int, error) {
	if off >= s.size {
		return 0, io.EOF
	}
	if off < s.start() {
		return 0, errors.New("output: these bytes are not kept any more")
	}
	at := off % s.room()
	p = p[:min(int64(len(p)), s.room()-at, s.size-off)]
	if s.file == nil {
		return copy(p, s.mem[at:]), nil
	}
	n, err := s.file.ReadAt(p, at)
	if n > 0 {
		return n, nil
	}
	return 0, fmt.Errorf("output: %w", err)
}
