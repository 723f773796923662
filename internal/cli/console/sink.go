package console

import "io"

// Sink is a file or a pipe that answers are written to. It remembers what could
// not be written: who prints line by line does not look.
type Sink struct {
	W   io.Writer
	Err error // of the first write that failed
}

// Write writes p.
func (s *Sink) Write(p []byte) (int, error) {
	n, err := s.W.Write(p)
	if s.Err == nil {
		s.Err = err
	}
	return n, err
}
