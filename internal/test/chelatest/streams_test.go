//go:build unix

package chelatest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"
)

// slowService is a service whose answers never end and have a hundred words per
// second.
type slowService struct{ active atomic.Int64 }

// RoundTrip implements http.RoundTripper.
func (d *slowService) RoundTrip(r *http.Request) (*http.Response, error) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return nil, err
	}
	d.active.Add(1)
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Request: r,
		Body: &slowBody{of: d, gone: r.Context().Done(), tick: time.NewTicker(10 * time.Millisecond)},
	}, nil
}

type slowBody struct {
	of   *slowService
	gone <-chan struct{}
	tick *time.Ticker
	n    int
	rest []byte
}

// Read returns each event at its time.
func (d *slowBody) Read(p []byte) (int, error) {
	if len(d.rest) == 0 {
		select {
		case <-d.tick.C:
		case <-d.gone:
			return 0, io.ErrUnexpectedEOF
		}
		d.n++
		d.rest = fmt.Appendf(nil, `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m1","choices":[{"index":0,"delta":{"content":" word%d"},"logprobs":null,"finish_reason":null}]}`+"\n\n", d.n%10)
	}
	n := copy(p, d.rest)
	d.rest = d.rest[n:]
	return n, nil
}

// Close ends the answer.
func (d *slowBody) Close() error {
	d.tick.Stop()
	d.of.active.Add(-1)
	return nil
}

// BenchmarkStreams measures a hundred conversations with a hundred words per
// second each and no watching clients: from the bytes of the services to the
// bus. The result includes the timers of the service, which are the floor.
func BenchmarkStreams(b *testing.B) {
	const streams, span = 100, 3 * time.Second
	measure := func() float64 {
		begun, at := cpu(), time.Now()
		time.Sleep(span)
		return 100 * float64(cpu()-begun) / float64(time.Since(at))
	}
	b.Run("floor", func(b *testing.B) {
		d := &slowService{}
		for range streams {
			r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, "http://mine", bytes.NewReader(nil))
			if err != nil {
				b.Fatal(err)
			}
			res, err := d.RoundTrip(r)
			if err != nil {
				b.Fatal(err)
			}
			go func() { _, _ = io.Copy(io.Discard, res.Body) }()
		}
		for b.Loop() {
			b.ReportMetric(measure(), "%-of-a-core")
		}
	})
	b.Run("gateway", func(b *testing.B) {
		d := &slowService{}
		g := quiet(b, Options{HTTP: &http.Client{Transport: d}, Config: Config{
			"agents.defaults": json.RawMessage(`{"model": "mine/m1", "maxConcurrent": 200}`),
			"models": json.RawMessage(
				`{"providers": {"mine": {"baseUrl": "http://mine/v1", "models": [{"id": "m1"}]}}}`),
		}})
		c := g.Client()
		for i := range streams {
			c.Send(fmt.Sprint("agent:main:s", i), "begin")
		}
		for d.active.Load() < streams {
			time.Sleep(10 * time.Millisecond)
		}
		c.Close()
		time.Sleep(200 * time.Millisecond)
		for b.Loop() {
			b.ReportMetric(measure(), "%-of-a-core")
		}
		if n := d.active.Load(); n != streams {
			b.Errorf("%d streams at the end", n)
		}
	})
}
