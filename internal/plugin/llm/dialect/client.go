package dialect

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/kit/backoff"
	"github.com/chela-ai/chela/internal/kit/secret"
	"github.com/chela-ai/chela/internal/kit/sse"
)

const (
	maxAnswer = 64 << 20 // bytes of one answer
	maxError  = 64 << 10 // bytes of an error response
	drainTime = 100 * time.Millisecond
)

// Decoder decodes a wire format. Each answer has its own.
type Decoder interface {
	// Decode decodes the data of an event and adds it to a. It reports whether
	// this was the last event. An error of type *[llm.Error] was reported by
	// the service; any other error means that the data is invalid. Invalid data
	// after a complete answer is ignored.
	Decode(data []byte, a *Answer) (last bool, err error)
	// Complete reports whether an answer may end here, without a last event.
	Complete(a *Answer) bool
}

// Client calls an endpoint of a service.
type Client struct {
	// Address returns the address of requests for a model, below the endpoint; nil: all
	// go to the endpoint.
	Address func(endpoint *url.URL, model string) *url.URL

	images    Images
	tiers     Tiers
	name      string
	err       error // set if there is no valid URL
	transport http.RoundTripper
	template  *http.Request // the common part of all requests
	redactor  secret.Redactor
}

// NewClient returns a client for the endpoint u. If err is not nil, it is the
// error of each call. The header h is sent with each request, overridden by the
// options. The key and the values of the options' headers are kept out of errors. Only the transport of the HTTP client
// is used: redirects are not followed, because they would get the key. vision
// reports whether a model supports images; see [Images]. fast reports whether the service has
// a faster tier for a model; see [Tiers].
func NewClient(o Options, u *url.URL, err error, h http.Header, vision, fast func(model string) bool) *Client {
	h = h.Clone()
	if h == nil {
		h = http.Header{}
	}
	for k, v := range o.Header {
		h[http.CanonicalHeaderKey(k)] = v
	}
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "text/event-stream")
	if h.Get("User-Agent") == "" {
		h.Set("User-Agent", "chela")
	}
	c := &Client{name: o.Name, err: err, transport: noTransport{},
		template: &http.Request{Method: http.MethodPost, URL: u, Header: h}}
	c.images.Load, c.images.Vision, c.tiers.Has = o.Image, vision, fast
	if o.HTTP != nil && o.HTTP.Transport != nil {
		c.transport = o.HTTP.Transport
	}
	c.redactor.Add(o.Key)
	for _, values := range o.Header {
		for _, v := range values {
			c.redactor.Add(secret.New(v))
		}
	}
	if err == nil && u.User != nil {
		pass, _ := u.User.Password()
		c.redactor.Add(secret.New(pass))
		if h.Get("Authorization") == "" {
			c.template.SetBasicAuth(u.User.Username(), pass)
		}
	}
	return c
}

// noTransport is the transport of a client without one.
type noTransport struct{}

func (noTransport) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("the provider has no HTTP client")
}

// BaseURL parses the base URL of a service, or fallback if it is empty.
func BaseURL(base, fallback string) (*url.URL, error) {
	u, err := url.Parse(cmp.Or(strings.TrimSpace(base), fallback))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		// Not err: it contains the URL, which may have a password.
		return nil, chela.Errorf(chela.CodeInvalid, "base URL: want http(s)://host[:port][/path]")
	}
	u.Path = strings.TrimRight(u.Path, "/")
	u.RawPath, u.Fragment = "", ""
	return u, nil
}

// Stream implements the Stream method of a provider: it sends the body that
// build returns and yields what d decodes. If build fails, the error is of
// class format.
//
// Each retry has a new Answer. It loses nothing, because a service refuses a request before it
// sends an event. The context of the call ends with it, so that a response that was not read to
// its end does not keep its connection.
func (c *Client) Stream(ctx context.Context, r *llm.Request, build func(*llm.Request) (*Body, error),
	d Decoder) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(llm.Event{}, err)
			return
		}
		inner, cancel := context.WithCancel(ctx)
		defer cancel()
		r = c.tiers.fill(c.images.fill(r))
		body, err := build(r)
		a := &Answer{Fast: r.Fast, yield: yield}
		if err == nil {
			err = c.stream(inner, cancel, r.Model, body, d, a)
		} else {
			err = &llm.Error{Class: llm.ClassFormat, Message: err.Error()}
		}
		again := func(retry *llm.Request, note string) {
			next, berr := build(retry)
			if berr != nil {
				return
			}
			yield := withNote(note, a.yield)
			r, body, a = retry, next, &Answer{Fast: retry.Fast, yield: yield}
			err = c.stream(inner, cancel, r.Model, body, d, a)
		}
		if retry, note := c.tiers.without(r, c.serviceError(err)); retry != nil {
			again(retry, note)
		}
		if retry, note := c.images.without(r, body, c.serviceError(err)); retry != nil {
			again(retry, note)
		}
		switch {
		case err == nil, errors.Is(err, errBroken):
		case ctx.Err() != nil:
			yield(llm.Event{Usage: a.reportedUsage()}, ctx.Err())
		default:
			yield(llm.Event{Usage: a.reportedUsage()}, c.Error(r.Model, err))
		}
	}
}

// serviceError returns the error that the service reported, without secrets, or
// nil if err is another error.
func (c *Client) serviceError(err error) *llm.Error {
	e, ok := errors.AsType[*llm.Error](err)
	if !ok {
		return nil
	}
	clean := *e
	clean.Message = c.line(e.Message)
	return &clean
}

// withNote adds a note for the user to the Done event.
func withNote(note string, yield func(llm.Event, error) bool) func(llm.Event, error) bool {
	return func(e llm.Event, err error) bool {
		if e.Kind == llm.Done {
			e.Note = strings.TrimPrefix(e.Note+"; "+note, "; ")
		}
		return yield(e, err)
	}
}

func (c *Client) stream(
	ctx context.Context, cancel func(), model string, body *Body, d Decoder, a *Answer,
) error {
	resp, err := c.post(ctx, model, body)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	alive := llm.Alive(ctx)
	alive()
	if resp.StatusCode != http.StatusOK {
		return c.responseError(resp)
	}
	if err := read(resp, alive, d, a); err != nil {
		return err
	}
	err = a.done(c.name, model, body.Size())
	drain(resp.Body, cancel)
	return err
}

func (c *Client) post(ctx context.Context, model string, body *Body) (*http.Response, error) {
	if c.err != nil {
		return nil, &llm.Error{Class: llm.ClassFormat, Message: c.err.Error()}
	}
	var connected atomic.Bool
	req := c.template.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	}))
	if c.Address != nil {
		req.URL = c.Address(req.URL, model)
	}
	req.Body, req.ContentLength = body.Reader(), int64(body.Size())
	// The transport sends the request again if an idle connection turns out to be closed.
	req.GetBody = func() (io.ReadCloser, error) { return body.Reader(), nil }
	resp, err := c.transport.RoundTrip(req)
	if err != nil && !connected.Load() {
		return nil, &unreached{err}
	}
	return resp, err
}

// unreached is the error of a request for which there was no connection.
type unreached struct{ error }

func (u *unreached) Unwrap() error { return u.error }

// ErrNoMessages is the error of a request without any message to send.
var ErrNoMessages = errors.New("the request has no message to send")

// errCut is the error of an answer without a last event.
var errCut = errors.New("the answer was cut off")

// read passes the events of the response to d until the last one. It calls alive
// whenever something has arrived.
func read(resp *http.Response, alive func(), d Decoder, a *Answer) error {
	in := &limited{r: resp.Body, left: maxAnswer, alive: alive}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch kind {
	case "text/html":
		return errors.New("the answer is a web page (text/html), not a stream of events: is the base URL right?")
	case "application/json":
		data, err := io.ReadAll(in)
		if err != nil {
			return fmt.Errorf("%w: %w", errCut, err)
		}
		if last, err := d.Decode(data, a); err != nil || last {
			return err
		}
	default:
		events := sse.Read(in, 0)
		if kind == "application/x-ndjson" {
			events = lines(in)
		}
		for data, err := range events {
			if err != nil {
				return fmt.Errorf("%w: %w", errCut, err)
			}
			if len(bytes.TrimSpace(data)) == 0 {
				continue // some servers send an event without data to keep the connection alive
			}
			last, err := d.Decode(data, a)
			if err != nil && d.Complete(a) && !isReported(err) {
				return nil
			}
			if err != nil || last {
				return err
			}
		}
	}
	if !d.Complete(a) {
		return errCut
	}
	return nil
}

// lines returns the lines of a stream of JSON values, one a line, without blank ones. A line
// is valid until the next iteration.
func lines(r io.Reader) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		s := bufio.NewScanner(r)
		s.Buffer(nil, sse.DefaultLimit)
		for s.Scan() {
			if line := bytes.TrimSpace(s.Bytes()); len(line) > 0 && !yield(line, nil) {
				return
			}
		}
		if err := s.Err(); err != nil {
			yield(nil, err)
		}
	}
}

// isReported reports whether an error of a Decoder is of the service, or of the
// caller, rather than of the data.
func isReported(err error) bool {
	_, ok := errors.AsType[*llm.Error](err)
	return ok || errors.Is(err, errBroken)
}

// limited is a reader that fails at its limit, where an io.LimitReader returns
// EOF. It calls alive when it has read something.
type limited struct {
	r     io.Reader
	left  int64
	alive func()
}

func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, fmt.Errorf("the answer is larger than %d MiB", maxAnswer>>20)
	}
	n, err := l.r.Read(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	if n > 0 {
		l.alive()
	}
	return n, err
}

// drain reads the short rest after the last event, so that the connection can
// be reused. It does not wait for a server that keeps the response open.
func drain(body io.Reader, cancel func()) {
	t := time.AfterFunc(drainTime, cancel)
	defer t.Stop()
	_, _ = io.CopyN(io.Discard, body, 4096)
}

// responseError returns the error of a response with an error status.
func (c *Client) responseError(resp *http.Response) error {
	data, _ := io.ReadAll(io.LimitReader(resp.Body, maxError))
	kind, message := ParseError(data)
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		message = "the service redirects, which is not followed: is the base URL right?"
	}
	return &llm.Error{
		Class: llm.Classify(resp.StatusCode, kind, message), Status: resp.StatusCode,
		Message: message, RetryAfter: backoff.RetryAfter(resp.Header, time.Now()),
	}
}

// Error returns err as an *llm.Error of this provider, without secrets.
func (c *Client) Error(model string, err error) *llm.Error {
	e, ok := errors.AsType[*llm.Error](err)
	if !ok {
		_, never := errors.AsType[*unreached](err)
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err // the URL may contain a password or a key
		}
		e = &llm.Error{Class: llm.ClassNetwork, Message: networkText(err), Err: err, Unreached: never}
		if n, ok := errors.AsType[net.Error](err); ok && n.Timeout() {
			e.Class = llm.ClassTimeout
		}
	}
	e.Provider, e.Model = c.name, model
	e.Message = c.line(e.Message)
	return e
}

// networkText returns the text of a network error without the names of functions.
func networkText(err error) string {
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return "the server does not speak TLS: is it http:// in the base URL?"
	}
	if e, ok := errors.AsType[*net.DNSError](err); ok && e.IsNotFound {
		return "there is no host " + e.Name
	}
	op, ok := errors.AsType[*net.OpError](err)
	if !ok || op.Addr == nil {
		return err.Error()
	}
	err = op.Err
	if e, ok := errors.AsType[*os.SyscallError](err); ok {
		err = e.Err
	}
	return op.Addr.String() + ": " + err.Error()
}

// line returns the text on one line, truncated and without secrets.
func (c *Client) line(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "\ufffd")), " ")
	s = c.redactor.Redact(s)
	const limit = 500
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "") + "…"
	}
	return s
}
