package channel

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/chela-ai/chela/internal/kit/backoff"
)

// Answer is the answer to an HTTP request to a platform.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Call sends an HTTP request and reads the answer, of at most most bytes. An error after
// the platform may have received the request wraps [ErrAmbiguous] unless the request only
// reads (GET, HEAD). Any status is an answer.
func Call(c *http.Client, r *http.Request, most int64) (Answer, error) {
	var sent atomic.Bool
	trace := &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }}
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	res, err := c.Do(r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
	if err != nil {
		if ctx := r.Context().Err(); ctx != nil && (reads || !sent.Load()) {
			return Answer{}, ctx
		}
		if sent.Load() && !reads {
			return Answer{}, fmt.Errorf("%w: %w", ErrAmbiguous, err)
		}
		return Answer{}, err
	}
	defer res.Body.Close()
	a := Answer{Status: res.StatusCode, Header: res.Header}
	a.Body, err = io.ReadAll(io.LimitReader(res.Body, most+1))
	if err == nil && int64(len(a.Body)) > most {
		err = fmt.Errorf("the answer has more than %d bytes", most)
	}
	if err != nil && !reads {
		err = fmt.Errorf("%w: %w", ErrAmbiguous, err)
	}
	return a, err
}

// RetryAfter returns how long an answer asks to wait before the next request; 0: it does
// not say.
func (a Answer) RetryAfter() time.Duration { return backoff.RetryAfter(a.Header, time.Now()) }
