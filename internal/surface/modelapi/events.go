package modelapi

import (
	"encoding/json"
	"io"
	"net/http"
	"time"
)

// writeTime is how long a client may take to receive an event.
const writeTime = 30 * time.Second

// events writes server-sent events. After an error it writes nothing.
type events struct {
	w   http.ResponseWriter
	c   *http.ResponseController
	err error
}

// newEvents begins an answer of events.
func newEvents(w http.ResponseWriter) *events {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // proxies pass each event on
	w.WriteHeader(http.StatusOK)
	return &events{w: w, c: http.NewResponseController(w)}
}

// send sends an event; kind may be empty.
func (e *events) send(kind string, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // cannot fail for values of this package
	}
	if kind != "" {
		kind = "event: " + kind + "\n"
	}
	e.write(kind + "data: " + string(b) + "\n\n")
}

// done sends the mark of OpenAI for the end.
func (e *events) done() { e.write("data: [DONE]\n\n") }

// ping sends a comment, so that nobody on the way takes the connection for dead.
func (e *events) ping() { e.write(": the assistant is working\n\n") }

// close leaves the connection to the next request.
func (e *events) close() { _ = e.c.SetWriteDeadline(time.Time{}) }

func (e *events) write(s string) {
	if e.err != nil {
		return
	}
	_ = e.c.SetWriteDeadline(time.Now().Add(writeTime)) // not every connection supports deadlines
	if _, e.err = io.WriteString(e.w, s); e.err == nil {
		e.err = e.c.Flush()
	}
}
