package dialect

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/kit/secret"
	"github.com/chela-ai/chela/internal/kit/waittest"
)

// plainText decodes events that are text. The last event is "end".
type plainText struct{}

func (plainText) Complete(*Answer) bool { return false }

func (plainText) Decode(data []byte, a *Answer) (bool, error) {
	if string(data) == "end" {
		return true, nil
	}
	p, err := a.Last(llm.PartText)
	if err != nil {
		return false, err
	}
	return false, a.Add(p, string(data))
}

// ask returns the text of the answer and how it ended.
func ask(ctx context.Context, t *testing.T, base string, hc *http.Client, key string) (string, error) {
	t.Helper()
	u, err := BaseURL(base, "")
	h := http.Header{}
	h.Set("X-Api-Key", key)
	c := NewClient(Options{Name: "lab", HTTP: hc, Key: secret.New(key)}, u, err, h, nil, nil)
	body := &Body{}
	body.AddString(`{"hello":"world"}`)
	var text string
	for e, err := range c.Stream(ctx, &llm.Request{Model: "m"},
		func(*llm.Request) (*Body, error) { return body, nil }, plainText{}) {
		if err != nil {
			return text, err
		}
		text += e.Text
		if e.Kind == llm.Done && e.Message.PlainText() != text {
			t.Errorf("message %q, deltas %q", e.Message.PlainText(), text)
		}
	}
	return text, nil
}

func TestTransports(t *testing.T) {
	t.Parallel()
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Header.Get("Accept-Encoding") != "gzip" || string(body) != `{"hello":"world"}` ||
			r.ContentLength != int64(len(body)) {
			t.Errorf("request: %v, %s, length %d", r.Header, body, r.ContentLength)
		}
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = io.WriteString(z, "data: "+r.Proto+"\n\ndata: end\n\n")
		_ = z.Close()
	})
	for _, proto := range []string{"HTTP/1.1", "HTTP/2.0"} {
		t.Run("PROV-19 gzip over "+proto, func(t *testing.T) {
			srv := httptest.NewUnstartedServer(handler)
			srv.EnableHTTP2 = proto == "HTTP/2.0"
			srv.StartTLS()
			defer srv.Close()
			if got, err := ask(t.Context(), t, srv.URL, srv.Client(), "k"); got != proto || err != nil {
				t.Errorf("answer = %q, %v; want %q", got, err, proto)
			}
		})
	}
}

// TestOneWrite checks that a short request is sent in one write with its header. A
// second write costs more than a copy of the body.
func TestOneWrite(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, pass, _ := r.BasicAuth(); user != "crab" || pass != "password" {
			t.Errorf("the URL's name and password came as %q, %q", user, pass)
		}
		_, _ = io.WriteString(w, "data: x\n\ndata: end\n\n")
	}))
	defer srv.Close()
	var writes atomic.Int64
	transport := &http.Transport{WriteBufferSize: 4096,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, network, addr)
			return counted{c, &writes}, err
		}}
	defer transport.CloseIdleConnections()
	got, err := ask(t.Context(), t, strings.Replace(srv.URL, "http://", "http://crab:password@", 1),
		&http.Client{Transport: transport}, "k")
	if got != "x" || err != nil || writes.Load() != 1 {
		t.Errorf("answer %q, %v after %d writes, want 1", got, err, writes.Load())
	}
}

// counted is a connection that counts its writes.
type counted struct {
	net.Conn
	n *atomic.Int64
}

func (c counted) Write(b []byte) (int, error) {
	c.n.Add(1)
	return c.Conn.Write(b)
}

func TestRedirectKeepsTheKey(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the redirect was followed, with key %q", r.Header.Get("X-Api-Key"))
	}))
	defer elsewhere.Close()
	srv := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer srv.Close()
	_, err := ask(t.Context(), t, srv.URL, srv.Client(), "k")
	if e, ok := errors.AsType[*llm.Error](err); !ok || e.Status != http.StatusTemporaryRedirect ||
		!strings.Contains(e.Message, "redirects") {
		t.Errorf("error = %v", err)
	}
}

// TestServerStaysOpen checks that a server that keeps its response open after the
// last event does not delay the caller.
func TestServerStaysOpen(t *testing.T) {
	t.Parallel()
	closed := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "data: x\n\ndata: end\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(closed)
	}))
	defer srv.Close()
	if got, err := ask(t.Context(), t, srv.URL, srv.Client(), "k"); got != "x" || err != nil {
		t.Errorf("answer = %q, %v", got, err)
	}
	waittest.For(t, "the end of the connection", closed)
}

func TestConnectionRefused(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(nil)
	base := strings.Replace(srv.URL, "http://", "http://crab:password@", 1) + "?key=querykey"
	srv.Close()
	_, err := ask(t.Context(), t, base, srv.Client(), "k")
	if llm.ClassOf(err) != llm.ClassNetwork || strings.Contains(err.Error(), "password") ||
		strings.Contains(err.Error(), "querykey") {
		t.Errorf("error = %v", err)
	}
	if _, ok := errors.AsType[*net.OpError](err); !ok {
		t.Errorf("the cause is missing: %v", err)
	}
	if e, ok := errors.AsType[*llm.Error](err); !ok || e.Message != srv.Listener.Addr().String()+": connection refused" {
		t.Errorf("the message is %q", e.Message)
	}
	plain := httptest.NewServer(nil)
	defer plain.Close()
	_, err = ask(t.Context(), t, strings.Replace(plain.URL, "http://", "https://", 1), plain.Client(), "k")
	if e, ok := errors.AsType[*llm.Error](err); !ok || !strings.Contains(e.Message, "does not speak TLS") {
		t.Errorf("%v", err)
	}
	hc := &http.Client{Transport: &http.Transport{ResponseHeaderTimeout: time.Millisecond}}
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	defer slow.Close()
	if _, err := ask(t.Context(), t, slow.URL, hc, "k"); llm.ClassOf(err) != llm.ClassTimeout {
		t.Errorf("late headers: %v, want class %s", err, llm.ClassTimeout)
	}
}

// staleConn is a connection that the other side has given up, which is found out by
// the next write.
type staleConn struct {
	net.Conn
	stale atomic.Bool
}

func (c *staleConn) Write(b []byte) (int, error) {
	if c.stale.Load() {
		return 0, net.ErrClosed
	}
	return c.Conn.Write(b)
}

// TestStaleConnection asks on a connection that was kept and is stale: the request is
// sent again on a new one, with its body.
func TestStaleConnection(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: %s\n\ndata: end\n\n", body)
	}))
	defer srv.Close()
	var conns []*staleConn
	tr := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		conns = append(conns, &staleConn{Conn: c})
		return conns[len(conns)-1], err
	}}
	defer tr.CloseIdleConnections()
	for i := range 3 {
		if got, err := ask(t.Context(), t, srv.URL, &http.Client{Transport: tr}, "k"); err != nil ||
			got != `{"hello":"world"}` || len(conns) < i+1 {
			t.Errorf("request %d: %q, %v, %d connections", i, got, err, len(conns))
		}
		for _, c := range conns {
			c.stale.Store(true)
		}
	}
}

func TestBaseURL(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                       "https://fallback",
		" http://h/ ":            "http://h",
		"https://h:8/v1//":       "https://h:8/v1",
		"https://u:p@h/x?k=v#no": "https://u:p@h/x?k=v",
		"h:8080":                 "",
		"ftp://h":                "",
		"http://":                "",
		"http://h\x7f":           "",
	} {
		u, err := BaseURL(in, "https://fallback")
		got := ""
		if err == nil {
			got = u.String()
		}
		if got != want {
			t.Errorf("BaseURL(%q) = %q, %v; want %q", in, got, err, want)
		}
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, kind, message string }{
		{`{"type":"error","error":{"type":"overloaded_error","message":"Busy"}}`, "overloaded_error", "Busy"},
		{`{"error":{"message":"No","type":"x","code":"bad_key"}}`, "x bad_key", "No"},
		{`{"error":{"message":"No","code":429}}`, "429", "No"},
		{`[{"error":{"message":"No","code":400}}]`, "400", "No"},
		{`{"error":"just words"}`, "", "just words"},
		{`{"message":"flat"}`, "", "flat"},
		{`{"detail":"validation"}`, "", "validation"},
		{`{"detail":[{"loc":["x"]}]}`, "", "x"},
		{`{"other":1}`, "", `{"other":1}`},
		{`{"error":[1]}`, "", "[1]"},
		{` plain `, "", "plain"},
		{"<html>\r\n<head><title>502 Bad\nGateway &amp; more</title></head><body>x</body>", "",
			`it answered with a web page: "502 Bad Gateway & more"`},
		{"<!DOCTYPE html><p>Sign in", "", "it answered with a web page"},
		{``, "", ""},
	} {
		if kind, message := ParseError([]byte(tt.in)); kind != tt.kind || message != tt.message {
			t.Errorf("ParseError(%s) = %q, %q; want %q, %q", tt.in, kind, message, tt.kind, tt.message)
		}
	}
}

func TestErrorIsOneShortLine(t *testing.T) {
	t.Parallel()
	c := NewClient(Options{Name: "lab", Key: secret.New("topsecret")},
		&url.URL{Scheme: "http", Host: "h"}, nil, nil, nil, nil)
	e := c.Error("m", &llm.Error{Class: llm.ClassAuth, Message: "a\n\tb topsecret " + strings.Repeat("世", 400)})
	if !strings.HasPrefix(e.Message, "a b [redacted] 世") || len(e.Message) > 510 || strings.Contains(e.Message, "\ufffd") {
		t.Errorf("message = %q", e.Message)
	}
	if e.Provider != "lab" || e.Model != "m" {
		t.Errorf("error = %+v", e)
	}
}

// TestErrorsWithoutSecrets reads errors that quote what the request contained.
func TestErrorsWithoutSecrets(t *testing.T) {
	t.Parallel()
	secrets := []string{"key-4711-abcdefghijkl", "header-0815-abcdefghi", "pass-2342-abcdefghijk"}
	base := "http://me:" + secrets[2] + "@lab.test"
	u, err := BaseURL(base, "")
	if _, err := BaseURL(base+"\x7f", ""); err == nil || strings.Contains(err.Error(), secrets[2]) {
		t.Errorf("error of a URL: %v", err)
	}
	var answers []func() (*http.Response, error)
	c := NewClient(Options{
		Name: "lab", Key: secret.New(secrets[0]), Header: http.Header{"X-Lab": {"x", secrets[1]}},
		HTTP: &http.Client{Transport: service(func() (*http.Response, error) {
			next := answers[0]
			answers = answers[1:]
			return next()
		})},
	}, u, err, nil, nil, nil)
	reply := func(status int, text string) func() (*http.Response, error) {
		return func() (*http.Response, error) {
			return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text))}, nil
		}
	}
	body := &Body{}
	body.AddString("{}")
	// check calls the service, which gives the answers. Its error or note contains
	// want, and the beginning of no secret.
	check := func(what, want string, list ...func() (*http.Response, error)) {
		t.Helper()
		answers = list
		var got string
		r := &llm.Request{Model: "m",
			Messages: []*llm.Message{
				{Role: llm.RoleUser, Parts: []llm.Part{{Kind: llm.PartImage, MIME: "image/png", Data: []byte("x")}}}}}
		for e, err := range c.Stream(t.Context(), r, func(*llm.Request) (*Body, error) { return body, nil }, plainText{}) {
			got += e.Note
			if err != nil {
				got += err.Error()
			}
		}
		if !strings.Contains(got, want) || len(answers) > 0 {
			t.Errorf("%s: %q does not contain %q; %d answers are left", what, got, want, len(answers))
		}
		for _, s := range append(secrets, "query-1") {
			if strings.Contains(got, s[:6]) {
				t.Errorf("%s: a part of %s is in %q", what, s, got)
			}
		}
	}
	for _, s := range secrets {
		for before := 500 - len(s) - 1; before <= 500; before++ {
			check(fmt.Sprintf("%d bytes before it", before), "xxx",
				reply(401, strings.Repeat("x", before)+s+strings.Repeat("y", 100)))
		}
		check("the connection", "dial [redacted]", func() (*http.Response, error) { return nil, errors.New("dial " + s) })
		check("a note", "left out: the service refused it: bad image, [redacted]", reply(400, "bad image, "+s),
			reply(200, "data: hi\n\ndata: end\n\n"))
	}
	check("the address", ": no route", func() (*http.Response, error) {
		return nil, &url.Error{Op: "Post", URL: "http://lab.test/?key=query-1", Err: errors.New("no route")}
	})
}

// TestTooManyParts checks that many small parts use little memory.
func TestTooManyParts(t *testing.T) {
	t.Parallel()
	a := &Answer{yield: func(llm.Event, error) bool { return true }}
	for i := range maxPieces + 1 {
		if _, err := a.Begin(llm.PartText); (err != nil) != (i == maxPieces) {
			t.Fatalf("part %d: %v", i, err)
		}
	}
}

// endless is a body without an end that counts the bytes read.
type endless struct{ n int }

func (e *endless) Read(p []byte) (int, error) {
	if e.n += len(p); e.n > 16<<20 {
		return 0, errors.New("far too much was read")
	}
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func (e *endless) Close() error { return nil }

// service answers each request with a function.
type service func() (*http.Response, error)

func (s service) RoundTrip(*http.Request) (*http.Response, error) { return s() }

// TestEndlessError reads an error response without an end.
func TestEndlessError(t *testing.T) {
	t.Parallel()
	body := &endless{}
	_, err := ask(t.Context(), t, "http://lab.test", &http.Client{Transport: service(func() (*http.Response, error) {
		return &http.Response{StatusCode: 429, Header: http.Header{}, Body: body}, nil
	})}, "k")
	if e, ok := errors.AsType[*llm.Error](err); !ok || e.Class != llm.ClassRate ||
		len(e.Message) > 1000 || body.n > 1<<20 {
		t.Errorf("after %d bytes: %.100v", body.n, err)
	}
}

// reports is a decoder of an answer with a usage.
type reports struct {
	plainText
	usage llm.Usage
}

func (c reports) Decode(data []byte, a *Answer) (bool, error) {
	a.Usage, a.Reported = c.usage, true
	return c.plainText.Decode(data, a)
}

// TestImplausibleUsage reads answers whose usage cannot be right: it is estimated, so
// that neither a budget nor the price is computed from it.
func TestImplausibleUsage(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		usage llm.Usage
		kept  bool
	}{
		{llm.Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4}, true},
		{llm.Usage{Input: 1 << 32}, true},
		{llm.Usage{Input: 1<<32 + 1}, false}, {llm.Usage{Output: 1 << 62}, false}, {llm.Usage{CacheRead: 1 << 40}, false},
		{llm.Usage{CacheWrite: 1 << 40}, false},
		{llm.Usage{Input: -1}, false}, {llm.Usage{Output: -1}, false}, {llm.Usage{Input: 5, CacheRead: -1}, false},
		{llm.Usage{Input: 5, CacheWrite: -1}, false},
	} {
		u, err := BaseURL("http://lab.test", "")
		c := NewClient(Options{Name: "lab", HTTP: &http.Client{Transport: service(func() (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{},
				Body: io.NopCloser(strings.NewReader("data: hi\n\ndata: end\n\n"))}, nil
		})}}, u, err, http.Header{}, nil, nil)
		var got llm.Usage
		body := &Body{}
		body.AddString("{}")
		for e, err := range c.Stream(t.Context(), &llm.Request{Model: "m"},
			func(*llm.Request) (*Body, error) { return body, nil }, reports{usage: tt.usage}) {
			if err != nil {
				t.Fatal(err)
			}
			got = e.Usage
		}
		if tt.kept && got != tt.usage || !tt.kept && (!got.Estimated || got.Total() > 100) {
			t.Errorf("reported %+v: %+v", tt.usage, got)
		}
	}
}

func TestLimited(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		left int64
		ok   bool
	}{{10, false}, {11, true}} {
		got, err := io.ReadAll(&limited{r: bytes.NewReader(make([]byte, 10)), left: tt.left, alive: func() {}})
		if (err == nil) != tt.ok || len(got) != 10 {
			t.Errorf("limit %d: %d bytes, %v", tt.left, len(got), err)
		}
	}
}

// FuzzParseError checks that every error response has a message.
func FuzzParseError(f *testing.F) {
	for _, s := range []string{
		`{"error":{"message":"no","type":"t","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"inner\"}}"}}}`,
		`{"message":{"detail":[{"loc":["body",1],"msg":"m"}]},"type":7}`, `{"object":"error","message":"{\"detail\":[{}]}"}`,
		`[{"error":"x"}]`,
		`{"detail":{"a":[]}}`, `{"error":null}`, `{"error":{"message":"{}"}}`,
		`{"error":{"metadata":{"raw":{"a":1}}}}`, "\xff", ``,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, message := ParseError(data); message == "" && len(bytes.TrimSpace(data)) > 0 &&
			!bytes.ContainsAny(data, "{[\"") {
			t.Errorf("%q has no message", data)
		}
	})
}
