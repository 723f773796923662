package cli

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/wire"
)

// The port to which a browser returns takes the answer of the login that waits, once.
func TestLoginPort(t *testing.T) {
	t.Parallel()
	for name, result := range map[string]error{"You are logged in": nil, "The login failed": errors.New("no")} {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		at := "http://" + l.Addr().String()
		answers := make(chan answer, 1)
		stop := receive(l, wire.MCPLoginStarted{Redirect: at + "/callback", URL: "https://login.example.com/a?state=s%2B1"},
			answers)
		get := func(method, path string) (int, string) {
			t.Helper()
			r, err := http.NewRequestWithContext(t.Context(), method, at+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			res, err := http.DefaultTransport.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			b, _ := io.ReadAll(res.Body)
			if res.Header.Get("Cache-Control") != "no-store" ||
				!strings.HasPrefix(res.Header.Get("Content-Type"), "text/plain") {
				t.Errorf("headers %v", res.Header)
			}
			return res.StatusCode, string(b)
		}
		for _, tt := range []struct {
			method, path string
			want         int
		}{
			{"GET", "/", 404}, {"GET", "/other?state=s%2B1&code=x", 404}, {"GET", "/callback", 400},
			{"GET", "/callback?state=other&code=x", 400}, {"POST", "/callback?state=s%2B1&code=x", 400},
		} {
			if got, _ := get(tt.method, tt.path); got != tt.want {
				t.Errorf("%s %s: %d, want %d", tt.method, tt.path, got, tt.want)
			}
		}
		page := make(chan string, 1)
		go func() {
			_, text := get("GET", "/callback?state=s%2B1&code=x")
			page <- text
		}()
		a := waittest.For(t, "the answer", answers)
		if a.address != at+"/callback?state=s%2B1&code=x" {
			t.Errorf("address %s", a.address)
		}
		if got, _ := get("GET", "/callback?state=s%2B1&code=y"); got != 409 {
			t.Errorf("a second answer: %d", got)
		}
		a.result <- result
		stop()
		if text := waittest.For(t, "the page", page); !strings.Contains(text, name) {
			t.Errorf("page %q", text)
		}
	}
}
