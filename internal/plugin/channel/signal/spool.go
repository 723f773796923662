package signal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/chela-ai/chela/internal/kit/atomicfile"
)

// Limits of the file of events.
const (
	maxPending      = 500
	maxPendingBytes = 16 << 20
)

// spool holds the events that the sink has not accepted yet, oldest first. They are in a
// file, because the daemon will not send them again.
type spool struct {
	path   string
	events []json.RawMessage
	bytes  int
}

// load reads the file.
func (s *spool) load() error {
	s.events, s.bytes = nil, 0
	info, err := os.Stat(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && info.Size() > 2*maxPendingBytes {
		err = fmt.Errorf("%s has %d bytes", s.path, info.Size())
	}
	if err != nil {
		return err
	}
	data, err := os.ReadFile(s.path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, &s.events); err != nil {
		s.events = nil
		return fmt.Errorf("%s: %w", s.path, err)
	}
	for _, e := range s.events {
		s.bytes += len(e)
	}
	return nil
}

// add appends an event.
func (s *spool) add(event []byte) error {
	if len(s.events) >= maxPending || s.bytes+len(event) > maxPendingBytes {
		return errors.New("too many events wait for being accepted")
	}
	if !json.Valid(event) {
		return errors.New("the event is not JSON")
	}
	s.events = append(s.events, bytes.Clone(event))
	if err := s.save(); err != nil {
		s.events = s.events[:len(s.events)-1]
		return err
	}
	s.bytes += len(event)
	return nil
}

// drop removes the oldest event.
func (s *spool) drop() error {
	s.bytes -= len(s.events[0])
	s.events = s.events[1:]
	return s.save()
}

func (s *spool) save() error {
	if len(s.events) == 0 {
		if err := os.Remove(s.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	data, err := json.Marshal(s.events)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
		return err
	}
	return atomicfile.Write(s.path, data, 0o600)
}
