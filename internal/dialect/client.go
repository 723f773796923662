package dialect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/backoff"
	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/internal/secret"
	"github.com/chela-ai/chela/internal/sse"
)

const (
	maxAnswer = 64 << 20 // bytes of one answer
	maxError  = 64 << 10 // bytes of an answer that is an error
	drainTime = 100 * time.Millisecond
)

// Decoder reads a wire format. It serves one answer.
type Decoder interface {
	// Decode takes the data of an event and adds what is new to a. It reports
	// whether this was the last event. An *[llm.Error] is what the service
	// said instead; any other error says that the data makes no sense.
	Decode(data []byte, a *Answer) (last bool, err error)
	// Complete reports whether an answer may end here, without a last event.
	Complete(a *Answer) bool
}

// Client calls one endpoint of a service.
type Client struct {
	Images Images // set before the first call

	name  string
	err   error             // why there is no URL
	way   http.RoundTripper // the way out
	blank *http.Request     // what all requests have in common
	clean secret.Redactor
}

// NewClient returns a client for the provider of that name. The header goes
// with each request; the secrets are kept out of errors. Of hc only the
// transport is used: a redirect is not followed, because the key would go along.
func NewClient(name string, u *url.URL, err error, hc *http.Client, h http.Header, secrets ...secret.Value) *Client {
	c := &Client{name: name, err: err, way: noWay{}, blank: &http.Request{Method: http.MethodPost, URL: u, Header: h.Clone()}}
	if c.blank.Header == nil {
		c.blank.Header = http.Header{}
	}
	c.blank.Header.Set("Content-Type", "application/json")
	c.blank.Header.Set("Accept", "text/event-stream")
	if c.blank.Header.Get("User-Agent") == "" {
		c.blank.Header.Set("User-Agent", "chela")
	}
	if hc != nil && hc.Transport != nil {
		c.way = hc.Transport
	}
	c.clean.Add(secrets...)
	if err == nil && u.User != nil {
		pass, _ := u.User.Password()
		c.clean.Add(secret.New(pass))
		if c.blank.Header.Get("Authorization") == "" {
			c.blank.SetBasicAuth(u.User.Username(), pass)
		}
	}
	return c
}

// noWay is the transport of a client that was given none.
type noWay struct{}

func (noWay) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("the provider was made without an HTTP client")
}

// BaseURL parses the base URL of a service; empty takes fallback.
func BaseURL(base, fallback string) (*url.URL, error) {
	u, err := url.Parse(cmp.Or(strings.TrimSpace(base), fallback))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		// Not err: it quotes the URL, which may hold a password.
		return nil, errors.New("base URL: want http(s)://host[:port][/path]")
	}
	u.Path = strings.TrimRight(u.Path, "/")
	u.RawPath, u.Fragment = "", ""
	return u, nil
}

// Stream sends the body that build makes of the request, and yields what d
// makes of the answer: it is all of an llm.Provider's Stream. A request of which
// no body can be made is refused as its format.
func (c *Client) Stream(ctx context.Context, r *llm.Request, build func(*llm.Request) (*Body, error), d Decoder) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(llm.Event{}, err)
			return
		}
		inner, cancel := context.WithCancel(ctx)
		defer cancel()
		r = c.Images.fill(r)
		body, err := build(r)
		a := &Answer{yield: yield}
		if err == nil {
			err = c.stream(inner, cancel, r.Model, body, d, a)
		} else {
			err = &llm.Error{Class: llm.ClassFormat, Message: err.Error()}
		}
		if again, note := c.Images.without(r, body, c.refusal(err)); again != nil {
			if body, berr := build(again); berr == nil {
				a = &Answer{yield: noted(note, yield)}
				err = c.stream(inner, cancel, r.Model, body, d, a)
			}
		}
		switch {
		case err == nil, errors.Is(err, errBroken):
		case ctx.Err() != nil:
			yield(llm.Event{Usage: a.counted()}, ctx.Err())
		default:
			yield(llm.Event{Usage: a.counted()}, c.Error(r.Model, err))
		}
	}
}

// refusal is what the service answered in place of an answer, in words that may
// be shown; nil: err is something else.
func (c *Client) refusal(err error) *llm.Error {
	e, ok := errors.AsType[*llm.Error](err)
	if !ok {
		return nil
	}
	clean := *e
	clean.Message = c.line(e.Message)
	return &clean
}

// noted adds to the answer what the person is to know of it.
func noted(note string, yield func(llm.Event, error) bool) func(llm.Event, error) bool {
	return func(e llm.Event, err error) bool {
		if e.Kind == llm.Done {
			e.Note = note
		}
		return yield(e, err)
	}
}

func (c *Client) stream(
	ctx context.Context, cancel func(), model string, body *Body, d Decoder, a *Answer,
) error {
	resp, err := c.post(ctx, body)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return c.refused(resp)
	}
	if err := read(resp, d, a); err != nil {
		return err
	}
	err = a.done(c.name, model, body.Size())
	drain(resp.Body, cancel)
	return err
}

func (c *Client) post(ctx context.Context, body *Body) (*http.Response, error) {
	if c.err != nil {
		return nil, &llm.Error{Class: llm.ClassFormat, Message: c.err.Error()}
	}
	req := c.blank.WithContext(ctx)
	req.Body, req.ContentLength = body.Reader(), int64(body.Size())
	req.GetBody = func() (io.ReadCloser, error) { return body.Reader(), nil }
	return c.way.RoundTrip(req)
}

// errCut says that an answer ended before its last event.
var errCut = errors.New("the answer was cut off")

// read hands the events of the answer to d until the last one.
func read(resp *http.Response, d Decoder, a *Answer) error {
	in := &limited{r: resp.Body, left: maxAnswer}
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
		for e, err := range sse.Read(in, 0) {
			if err != nil {
				return fmt.Errorf("%w: %w", errCut, err)
			}
			if last, err := d.Decode(e.Data, a); err != nil || last {
				return err
			}
		}
	}
	if !d.Complete(a) {
		return errCut
	}
	return nil
}

// limited is a reader that fails where io.LimitReader would say EOF.
type limited struct {
	r    io.Reader
	left int64
}

func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, fmt.Errorf("the answer is larger than %d MiB", maxAnswer>>20)
	}
	n, err := l.r.Read(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	return n, err
}

// drain reads what little follows the last event, so that the connection can
// be used again, but does not wait for a server that keeps it open.
func drain(body io.Reader, cancel func()) {
	t := time.AfterFunc(drainTime, cancel)
	defer t.Stop()
	_, _ = io.CopyN(io.Discard, body, 4096)
}

// refused returns the error that the answer is.
func (c *Client) refused(resp *http.Response) error {
	data, _ := io.ReadAll(io.LimitReader(resp.Body, maxError))
	kind, message := Words(data)
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		message = "the service redirects, which is not followed: is the base URL right?"
	}
	return &llm.Error{
		Class: llm.Classify(resp.StatusCode, kind, message), Status: resp.StatusCode,
		Message: message, RetryAfter: backoff.RetryAfter(resp.Header, time.Now()),
	}
}

// Error returns err as an error of the service, without secrets.
func (c *Client) Error(model string, err error) *llm.Error {
	e, ok := errors.AsType[*llm.Error](err)
	if !ok {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err // the URL may hold a password or a key
		}
		e = &llm.Error{Class: llm.ClassNetwork, Message: err.Error(), Err: err}
		if n, ok := errors.AsType[net.Error](err); ok && n.Timeout() {
			e.Class = llm.ClassTimeout
		}
	}
	e.Provider, e.Model = c.name, model
	e.Message = c.line(e.Message)
	return e
}

// line returns the text in one line of bounded length, without secrets.
func (c *Client) line(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "\ufffd")), " ")
	s = c.clean.Redact(s)
	const most = 500
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
