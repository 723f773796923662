package egress_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"

	"github.com/chela-ai/chela/internal/core/egress"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
)

// world is a simulated network of names, addresses and servers.
type world struct {
	t       *testing.T
	mu      sync.Mutex
	names   map[string][][]string // answers in turn; the last one repeats
	servers map[string]*llmtest.Listener
	dials   []string
}

func newWorld(t *testing.T) *world {
	return &world{t: t, names: map[string][][]string{}, servers: map[string]*llmtest.Listener{}}
}

// name sets the answers of successive lookups of a name.
func (w *world) name(name string, answers ...[]string) { w.names[name] = answers }

// serve starts a server at an address with its port.
func (w *world) serve(addr string, h http.HandlerFunc) *httptest.Server {
	s := httptest.NewUnstartedServer(h)
	_ = s.Listener.Close()
	m := llmtest.Pipe()
	s.Listener = m
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	w.servers[addr] = m
	if netip.MustParseAddrPort(addr).Port() == 443 {
		s.StartTLS()
	} else {
		s.Start()
	}
	w.t.Cleanup(s.Close)
	return s
}

func (w *world) resolve(_ context.Context, host string) ([]netip.Addr, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	answers := w.names[host]
	if len(answers) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	if len(answers) > 1 {
		w.names[host] = answers[1:]
	}
	var out []netip.Addr
	for _, a := range answers[0] {
		out = append(out, netip.MustParseAddr(a))
	}
	return out, nil
}

func (w *world) dial(ctx context.Context, _, addr string) (net.Conn, error) {
	w.mu.Lock()
	w.dials = append(w.dials, addr)
	m := w.servers[addr]
	w.mu.Unlock()
	if m == nil {
		return nil, fmt.Errorf("dial %s: connection refused", addr)
	}
	return m.Dial(ctx)
}

func (w *world) client(o egress.Options) *http.Client {
	o.Resolve, o.Dial = w.resolve, w.dial
	c := egress.Client(o)
	w.t.Cleanup(c.CloseIdleConnections)
	return c
}

// get returns the body at a URL.
func get(t *testing.T, c *http.Client, url string, header ...string) (string, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := c.Do(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return string(b), err
}

func respond(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
}

func redirectTo(url string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, url, http.StatusFound) }
}

func refused(err error) bool {
	_, ok := errors.AsType[*egress.Refused](err)
	return ok
}
