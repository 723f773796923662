package acp

import (
	"bytes"
	"io"
	"sync"
)

// output writes to an editor, and does what is due after an answer was written: the editor
// knows a session only when it was told its id.
type output struct {
	io.Writer // gets a whole message at a time

	mu    sync.Mutex
	later map[string]func() // by the id of a new session
}

// after calls f when the answer that names a new session was written.
func (o *output) after(id string, f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.later[id] = f
}

// Write implements io.Writer.
func (o *output) Write(message []byte) (int, error) {
	n, err := o.Writer.Write(message)
	o.mu.Lock()
	defer o.mu.Unlock()
	for id, f := range o.later {
		if bytes.Contains(message, []byte(`"result":`)) && bytes.Contains(message, []byte(id)) {
			delete(o.later, id)
			go f()
		}
	}
	return n, err
}
