package access

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"time"
)

// Body reads the body of a request, JSON of at most most bytes, within a time. If it cannot,
// status is that of the answer, and why is its text.
func Body(w http.ResponseWriter, r *http.Request, most int64,
	within time.Duration) (body []byte, status int, why string) {
	// A form or a plain text can be sent by any web page without asking first.
	if kind := r.Header.Get("Content-Type"); kind != "" {
		if t, _, err := mime.ParseMediaType(kind); err != nil || t != "application/json" {
			return nil, http.StatusUnsupportedMediaType, "send the body as JSON, with Content-Type: application/json"
		}
	}
	c := http.NewResponseController(w)
	_ = c.SetReadDeadline(time.Now().Add(within)) // not every connection supports deadlines
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	switch _, large := errors.AsType[*http.MaxBytesError](err); {
	case large:
		return nil, http.StatusRequestEntityTooLarge, "Payload too large"
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, http.StatusRequestTimeout, "Request body timeout"
	case err != nil:
		return nil, http.StatusBadRequest, "cannot read the request body"
	}
	_ = c.SetReadDeadline(time.Time{})
	return body, 0, ""
}
