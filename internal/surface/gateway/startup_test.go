package gateway_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/surface/access"
	"github.com/chela-ai/chela/internal/surface/gateway"
	"github.com/chela-ai/chela/internal/surface/httpapi"
)

// TestStartupListener requests a port before and after the gateway is up.
func TestStartupListener(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	b := gateway.NewStartupListener(l, log, httpapi.New(httpapi.Options{
		Log: log, Auth: access.New(access.Options{Log: log}), Stage: func() httpapi.Stage { return httpapi.Starting },
	}))
	get := func(path string) string {
		t.Helper()
		res, err := http.Get("http://" + l.Addr().String() + path)
		if err != nil {
			return err.Error()
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.Status + " " + string(body)
	}
	if got := get("/readyz"); !strings.HasPrefix(got, "503 ") || !strings.Contains(got, "starting") {
		t.Errorf("before: %s", got)
	}
	next := b.Handover()
	served := make(chan error, 1)
	srv := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "up") })}
	go func() { served <- srv.Serve(next) }()
	http.DefaultClient.CloseIdleConnections()
	if got := get("/"); got != "200 OK up" {
		t.Errorf("after: %s", got)
	}
	srv.Close()
	<-served
	b.Close()
	if got := get("/"); !strings.Contains(got, "refused") {
		t.Errorf("when closed: %s", got)
	}
}

// TestStartupGrace checks requests made shortly before the gateway is up and
// long before.
func TestStartupGrace(t *testing.T) {
	for _, tt := range []struct {
		name  string
		start time.Duration
		want  string
	}{
		{"shortly before", 20 * time.Millisecond, "200 OK up"},
		{"long before", time.Second, "503 Service Unavailable starting"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := gateway.NewPipe()
				b := gateway.NewStartupListener(l, slog.New(slog.DiscardHandler),
					http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
						http.Error(w, "starting", http.StatusServiceUnavailable)
					}))
				got := make(chan string)
				go func() {
					tr := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return l.Dial(ctx) }}
					defer tr.CloseIdleConnections()
					res, err := (&http.Client{Transport: tr}).Get("http://gateway/")
					if err != nil {
						got <- err.Error()
						return
					}
					defer res.Body.Close()
					body, _ := io.ReadAll(res.Body)
					got <- res.Status + " " + strings.TrimSpace(string(body))
				}()
				srv := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					io.WriteString(w, "up")
				})}
				time.AfterFunc(tt.start, func() { _ = srv.Serve(b.Handover()) })
				if got := <-got; got != tt.want {
					t.Errorf("%s, want %s", got, tt.want)
				}
				time.Sleep(2 * tt.start)
				srv.Close()
				b.Close()
			})
		})
	}
}

// TestHandover checks that a connection that is kept open is handed over, too, and
// that closing the listener ends both servers.
func TestHandover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := gateway.NewPipe()
		answer := func(text string) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, text) }
		}
		b := gateway.NewStartupListener(l, slog.New(slog.DiscardHandler), answer("starting"))
		tr := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return l.Dial(ctx) }}
		defer tr.CloseIdleConnections()
		get := func() string {
			res, err := (&http.Client{Transport: tr}).Get("http://gateway/")
			if err != nil {
				return err.Error()
			}
			defer res.Body.Close()
			body, _ := io.ReadAll(res.Body)
			return string(body)
		}
		if got := get(); got != "starting" {
			t.Errorf("before: %s", got)
		}
		next := b.Handover()
		srv := http.Server{Handler: answer("up")}
		served := make(chan error, 1)
		go func() { served <- srv.Serve(next) }()
		time.Sleep(time.Second)
		if got := get(); got != "up" {
			t.Errorf("after: %s", got)
		}
		if next.Addr().String() != l.Addr().String() {
			t.Errorf("the address is %v, want %v", next.Addr(), l.Addr())
		}
		l.Close()
		synctest.Wait()
		select {
		case err := <-served:
			if !errors.Is(err, net.ErrClosed) {
				t.Errorf("Serve: %v", err)
			}
		default:
			t.Error("the server still accepts on a closed listener")
		}
		srv.Close()
		b.Close()
	})
}

// TestStarting checks what a client gets that connects while the gateway starts.
func TestStarting(t *testing.T) {
	for first, id := range map[string]string{`{"type":"req","id":"7","method":"connect"}`: "7", `hello?`: "invalid"} {
		synctest.Test(t, func(t *testing.T) {
			l := gateway.NewPipe()
			b := gateway.NewStartupListener(l, slog.New(slog.DiscardHandler), gateway.Starting(nil))
			defer b.Close()
			tb := &testbed{t: t, pipe: l}
			p := tb.dial("a")
			p.say(t, first)
			synctest.Wait()
			got := p.take()
			want := []string{
				`< {"type":"event","event":"connect.challenge","payload":{"nonce":"…","ts":946684800050}}`,
				`< {"type":"res","id":"` + id + `","ok":false,"error":{"code":"UNAVAILABLE","message":"gateway starting; retry shortly","details":{"reason":"startup-sidecars"},"retryable":true,"retryAfterMs":500}}`,
				`! 1013 gateway starting`,
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("first frame %s (-want +got):\n%s", first, diff)
			}
		})
	}
	t.Run("a standby says who serves", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := gateway.NewPipe()
			b := gateway.NewStartupListener(l, slog.New(slog.DiscardHandler), gateway.Starting(func() string { return "alpha" }))
			defer b.Close()
			p := (&testbed{t: t, pipe: l}).dial("a")
			p.say(t, `{"type":"req","id":"7","method":"connect"}`)
			synctest.Wait()
			want := []string{
				`< {"type":"res","id":"7","ok":false,"error":{"code":"UNAVAILABLE","message":"standby: alpha serves","details":{"owner":"alpha","reason":"standby"}}}`,
				`! 1013 standby`,
			}
			if diff := cmp.Diff(want, p.take()[1:]); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	})
	t.Run("nothing is said", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := gateway.NewPipe()
			b := gateway.NewStartupListener(l, slog.New(slog.DiscardHandler), gateway.Starting(nil))
			defer b.Close()
			p := (&testbed{t: t, pipe: l}).dial("a")
			time.Sleep(16 * time.Second)
			if got := p.take(); len(got) != 2 || got[1] != "! lost" {
				t.Errorf("after a while: %q, want it disconnected", got)
			}
		})
	})
}
