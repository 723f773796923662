package mcp_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	core "github.com/chela-ai/chela/internal/core/mcp"
	"github.com/chela-ai/chela/internal/core/untrusted"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/internal/plugin/tool/mcp"
)

// patientMS is a time limit of a server that only a defect exceeds.
const patientMS = int(2 * waittest.Limit / time.Millisecond)

// httpPool returns a Pool that reaches servers with a client of its own.
func httpPool(t *testing.T, changed func()) *mcp.Pool {
	t.Helper()
	transport := &http.Transport{}
	p := mcp.New(mcp.Options{
		Log:     slog.New(slog.DiscardHandler),
		Broker:  &memory{server: always},
		State:   t.TempDir(),
		Label:   untrusted.New(),
		Changed: changed,
		HTTP:    func(core.Server) *http.Client { return &http.Client{Transport: transport} },
	})
	p.Discover()
	t.Cleanup(func() {
		if err := p.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		transport.CloseIdleConnections()
	})
	return p
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

func TestHTTP(t *testing.T) {
	t.Parallel()
	type get = func(*http.Request) *sdk.Server
	for _, tt := range []struct {
		name, transport string
		handler         func(get) http.Handler
	}{
		{"streams", core.HTTP, func(g get) http.Handler { return sdk.NewStreamableHTTPHandler(g, nil) }},
		{"JSON", core.HTTP, func(g get) http.Handler {
			return sdk.NewStreamableHTTPHandler(g, &sdk.StreamableHTTPOptions{JSONResponse: true})
		}},
		{"stateless", core.HTTP, func(g get) http.Handler {
			return sdk.NewStreamableHTTPHandler(g, &sdk.StreamableHTTPOptions{Stateless: true})
		}},
		{"SSE", core.SSE, func(g get) http.Handler { return sdk.NewSSEHandler(g, nil) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := good()
			defer func() {
				for s := range server.Sessions() {
					s.Close()
				}
			}()
			handler := tt.handler(func(*http.Request) *sdk.Server { return server })
			var down atomic.Bool
			other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Authorization") != "" {
					t.Error("a redirect got the header")
				}
			}))
			defer other.Close()
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.Header.Get("Authorization") != "Bearer t0ken":
					http.Error(w, "who are you?", http.StatusUnauthorized)
				case r.URL.Path == "/away":
					http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
				case down.Load():
					panic(http.ErrAbortHandler)
				default:
					handler.ServeHTTP(w, r)
				}
			}))
			defer srv.Close()
			defer srv.CloseClientConnections()
			changed, notify := signal()
			p := httpPool(t, notify)
			s := core.Server{
				URL:       srv.URL + "/mcp",
				Transport: tt.transport,
				Headers:   map[string]string{"Authorization": "Bearer t0ken"},
				ConnectMS: patientMS,
				RequestMS: patientMS,
			}
			tools := inForce(t, p, map[string]core.Server{"srv": s}, changed, 1)
			for range 3 {
				if text, err := call(t, tools["srv__echo"], "hello"); err != nil || !strings.Contains(text, "hello") {
					t.Errorf("%s, %v", text, err)
				}
			}
			file := filepath.Join(t.TempDir(), "cancelled")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := make(chan error, 1)
			go func() {
				_, err := run(ctx, tools["srv__wait"], file)
				done <- err
			}()
			waittest.Until(t, "the call has begun", func() bool { return exists(file + ".begun") })
			cancel()
			if err := waittest.For(t, "the cancelled call", done); !errors.Is(err, context.Canceled) {
				t.Errorf("cancelled: %v", err)
			}
			if tt.name != "stateless" { // which cannot know whose call is cancelled
				waittest.Until(t, "the server was told", func() bool { return exists(file) })
			}
			if err := os.WriteFile(file+".end", nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if st := p.Status()[0]; st.State != mcp.Running || st.PID != 0 {
				t.Errorf("%+v", st)
			}
			down.Store(true)
			srv.CloseClientConnections()
			if _, err := call(t, tools["srv__echo"], ""); err == nil || !strings.HasPrefix(err.Error(), "MCP server srv") {
				t.Errorf("a server that is gone: %v", err)
			}
			down.Store(false)
			waittest.Until(t, "a call of the server that is back",
				func() bool { _, err := call(t, tools["srv__echo"], ""); return err == nil })

			wrong := s
			wrong.Headers = nil
			if _, err := p.Probe(t.Context(), "srv", wrong); err == nil ||
				!strings.Contains(err.Error(), "it wants you to log in") {
				t.Errorf("MCP-05 without the header: %v", err)
			}
			p.Use(map[string]core.Server{"srv": wrong}, time.Minute)
			if _, err := call(t, tools["srv__echo"], ""); err == nil ||
				!strings.Contains(err.Error(), "log in: chela mcp login srv") || p.Status()[0].State != mcp.NeedsAuth {
				t.Errorf("MCP-05 a call without the header: %v, %+v", err, p.Status())
			}
			wrong = s
			wrong.URL = srv.URL + "/away"
			if _, err := p.Probe(t.Context(), "srv", wrong); err == nil {
				t.Error("a redirect to a page succeeded")
			}
		})
	}
}

// A body without an end is cut.
func TestHTTPFlood(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":"`)
		for text := strings.Repeat("a", 1<<16); ; {
			if _, err := io.WriteString(w, text); err != nil {
				return
			}
		}
	}))
	defer srv.Close()
	p := httpPool(t, nil)
	_, err := p.Probe(t.Context(), "srv",
		core.Server{URL: srv.URL, Transport: core.HTTP, ConnectMS: patientMS, RequestMS: patientMS})
	if err == nil || !strings.Contains(err.Error(), "larger than 16 MB") {
		t.Errorf("error %v", err)
	}
}
