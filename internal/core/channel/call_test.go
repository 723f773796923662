package channel_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
)

func TestCall(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/cut":
			panic(http.ErrAbortHandler)
		case "/half":
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("half"))
		case "/long":
			_, _ = w.Write([]byte(strings.Repeat("x", 100)))
		default:
			w.Header().Set("Retry-After", "2.5")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	defer srv.Close()
	call := func(ctx context.Context, method, url string) (channel.Answer, error) {
		r, err := http.NewRequestWithContext(ctx, method, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		return channel.Call(srv.Client(), r, 50)
	}
	if a, err := call(t.Context(), "POST", srv.URL+"/"); err != nil || a.Status != 429 ||
		a.RetryAfter() != 2500*time.Millisecond {
		t.Errorf("%d, %v, %v", a.Status, a.RetryAfter(), err)
	}
	for _, path := range []string{"/cut", "/half", "/long"} {
		if _, err := call(t.Context(), "POST", srv.URL+path); !errors.Is(err, channel.ErrAmbiguous) {
			t.Errorf("POST %s: %v, want ErrAmbiguous", path, err)
		}
		if _, err := call(t.Context(), "GET", srv.URL+path); err == nil || errors.Is(err, channel.ErrAmbiguous) {
			t.Errorf("GET %s: %v, want an error that is not ambiguous", path, err)
		}
	}
	if _, err := call(t.Context(), "POST", "http://127.0.0.1:1/"); err == nil || errors.Is(err, channel.ErrAmbiguous) {
		t.Errorf("nobody listens: %v, want an error that is not ambiguous", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := call(ctx, "POST", srv.URL); !errors.Is(err, context.Canceled) || errors.Is(err, channel.ErrAmbiguous) {
		t.Errorf("cancelled before: %v", err)
	}
}
