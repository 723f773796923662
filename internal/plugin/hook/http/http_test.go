package http_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/hook"
	"github.com/chela-ai/chela/internal/kit/waittest"
	hookhttp "github.com/chela-ai/chela/internal/plugin/hook/http"
)

func TestEndpoint(t *testing.T) {
	t.Parallel()
	var got *http.Request
	var body string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got, body = r, string(b)
		switch r.URL.Path {
		case "/fails":
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprint(w, `{"block": true}`)
		case "/moved":
			w.WriteHeader(http.StatusFound)
			fmt.Fprint(w, `{"block": true}`)
		case "/big":
			fmt.Fprint(w, strings.Repeat(" ", hook.MaxAnswer)+`{"block": true}`)
		case "/hangs":
			<-r.Context().Done()
		default:
			fmt.Fprint(w, `{"block": true}`)
		}
	}))
	t.Cleanup(srv.Close)
	call := func(path string, limit time.Duration) (string, error) {
		f := hookhttp.Endpoint{
			URL: srv.URL + path, Headers: map[string]string{"X-Key": "k"}, Client: srv.Client(),
			Redact: func(s string) string { return strings.ReplaceAll(s, "s3cret", "[redacted]") },
		}.Func()
		ctx, cancel := context.WithTimeoutCause(hook.WithDepth(t.Context(), 2), limit, errors.New("the time is over"))
		defer cancel()
		answer, err := f(ctx, []byte(`{"text": "s3cret"}`))
		return string(answer), err
	}
	answer, err := call("/", waittest.Limit)
	if err != nil || answer != `{"block": true}` {
		t.Errorf("%q %v", answer, err)
	}
	if body != `{"text": "[redacted]"}` || got.Method != http.MethodPost || got.Header.Get("X-Key") != "k" ||
		got.Header.Get("Chela-Hook-Depth") != "2" || got.Header.Get("Content-Type") != "application/json" {
		t.Errorf("request %s %v %s", got.Method, got.Header, body)
	}
	for path, want := range map[string]string{
		"/fails": "500",
		"/big":   "more than",
		"/hangs": "the time is over",
		"/moved": "",
	} {
		limit := waittest.Limit
		if path == "/hangs" {
			limit = 300 * time.Millisecond
		}
		if answer, err := call(path, limit); err == nil || answer != "" || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q %v", path, answer, err)
		}
	}
}
