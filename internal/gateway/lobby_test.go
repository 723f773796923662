package gateway_test

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/access"
	"github.com/chela-ai/chela/internal/gateway"
	"github.com/chela-ai/chela/internal/httpapi"
)

// TestLobby asks a port before and after its gateway is up.
func TestLobby(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	b := gateway.NewLobby(l, log, httpapi.New(httpapi.Options{
		Log: log, Door: access.New(access.Options{Log: log}), Stage: func() httpapi.Stage { return httpapi.Starting },
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
	next := b.Next()
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
		t.Errorf("when it is closed: %s", got)
	}
}
