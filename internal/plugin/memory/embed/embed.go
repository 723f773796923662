package embed

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/memory"
	"github.com/chela-ai/chela/internal/kit/backoff"
	"github.com/chela-ai/chela/internal/kit/secret"
	"github.com/chela-ai/chela/internal/plugin/llm/dialect"
)

// Options configure an embedder.
type Options struct {
	Provider string       // openai, gemini, voyage, mistral, ollama, or another one of OpenAI's format
	Model    string       // "": that of the provider
	BaseURL  string       // "": that of the provider
	Key      secret.Value // empty for most local servers
	Header   http.Header  // sent with each request; replaces other headers
	HTTP     *http.Client // only its transport is used: redirects would get the key
}

// Limits of a request.
const (
	maxTexts    = 32
	maxBatch    = 32 << 10 // bytes of the texts: the smallest limit of a service is 16,000 tokens
	maxText     = 8000     // bytes of a text; the rest is left out
	maxResponse = 32 << 20 // bytes
	maxFailure  = 16 << 10 // bytes of the response of a failed request
	maxNumbers  = 16_384   // of a vector
	attempts    = 4
	longestWait = time.Minute // that a service may ask for between two attempts
)

// format is the format of a service's requests and responses.
type format struct {
	url   string // of the service
	model string // "": it must be named
	// request returns the path below the URL and the body.
	request func(model string, p memory.Purpose, texts []string) (path string, body any)
	decode  func(body []byte) ([][]float32, error)
	base    func(path string) string // corrects the path of a URL for chat; nil: it is right
	header  string                   // for the key; "": Authorization
}

// formats are the formats of providers. Other providers have that of openai.
var formats = map[string]format{
	"openai":  openai,
	"gemini":  gemini,
	"voyage":  voyage,
	"mistral": mistral,
	"ollama":  ollama,
}

type client struct {
	o        Options
	format   format
	base     *url.URL
	redactor secret.Redactor
}

// New returns an embedder.
func New(o Options) (memory.Embedder, error) {
	f, ok := formats[o.Provider]
	if !ok {
		f = openai
		f.url, f.model = "", ""
	}
	c := &client{o: o, format: f}
	if c.o.Model = cmp.Or(o.Model, f.model); c.o.Model == "" {
		return nil, fmt.Errorf("%s: there is no default model: name one with memorySearch.model", o.Provider)
	}
	var err error
	if c.base, err = dialect.BaseURL(o.BaseURL, f.url); err != nil {
		return nil, fmt.Errorf("%s: %w", o.Provider, err)
	}
	if f.base != nil {
		c.base.Path = f.base(c.base.Path)
	}
	c.redactor.Add(o.Key)
	for _, values := range o.Header {
		for _, v := range values {
			c.redactor.Add(secret.New(v))
		}
	}
	if c.base.User != nil {
		pass, _ := c.base.User.Password()
		c.redactor.Add(secret.New(pass))
	}
	return c, nil
}

// Model implements [memory.Embedder].
func (c *client) Model() string {
	name := c.o.Provider + "/" + c.o.Model
	if own, err := url.Parse(c.format.url); err != nil || own.Host != c.base.Host {
		name += " at " + c.base.Host
	}
	return name
}

// Embed implements [memory.Embedder].
func (c *client) Embed(ctx context.Context, p memory.Purpose, texts []string) ([][]float32, error) {
	var out [][]float32
	for len(texts) > 0 {
		n, size := 0, 0
		batch := make([]string, 0, min(len(texts), maxTexts))
		for n < len(texts) && n < maxTexts {
			t := prepare(texts[n])
			if size += len(t); n > 0 && size > maxBatch {
				break
			}
			batch = append(batch, t)
			n++
		}
		some, err := c.batch(ctx, p, batch)
		if err != nil {
			return nil, err
		}
		if len(out) > 0 && len(out[0]) != len(some[0]) {
			return nil, c.error(errLengths)
		}
		out, texts = append(out, some...), texts[n:]
	}
	return out, nil
}

// prepare returns a text that every service accepts: not empty, and not too long.
func prepare(text string) string {
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", " "), "\uFFFD")
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "")
	}
	if strings.TrimSpace(text) == "" {
		return "-"
	}
	return text
}

// batch sends a request, and repeats it when that may help.
func (c *client) batch(ctx context.Context, p memory.Purpose, texts []string) ([][]float32, error) {
	for attempt := 1; ; attempt++ {
		vectors, err := c.request(ctx, p, texts)
		if err == nil {
			return vectors, nil
		}
		err = c.error(err)
		wait, again := delay(err, attempt)
		if ctx.Err() != nil || !again {
			return nil, cmp.Or(context.Cause(ctx), err)
		}
		if end, ok := ctx.Deadline(); ok && time.Until(end) < wait {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(wait):
		}
	}
}

// delay returns how long to wait before the next attempt, and whether there is one.
func delay(err error, attempt int) (time.Duration, bool) {
	e, ok := errors.AsType[*llm.Error](err)
	if !ok || attempt == attempts {
		return 0, false
	}
	switch e.Class {
	case llm.ClassRate, llm.ClassOverload, llm.ClassNetwork, llm.ClassTimeout:
	case llm.ClassContext: // also with the status 500
		return 0, false
	default:
		if e.Status < 500 {
			return 0, false
		}
	}
	wait := max(e.RetryAfter, backoff.Policy{Jitter: 0.5}.Delay(attempt, rand.Float64()))
	return wait, wait <= longestWait
}

// request sends a request.
func (c *client) request(ctx context.Context, p memory.Purpose, texts []string) ([][]float32, error) {
	path, body := c.format.request(c.o.Model, p, texts)
	b, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	u := *c.base
	u.User = nil
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String()+path, bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "chela")
	if user := c.base.User; user != nil {
		pass, _ := user.Password()
		req.SetBasicAuth(user.Username(), pass)
	}
	switch key := c.o.Key.Reveal(); {
	case key == "":
	case c.format.header != "":
		req.Header.Set(c.format.header, key)
	default:
		req.Header.Set("Authorization", "Bearer "+key)
	}
	for name, values := range c.o.Header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	if c.o.HTTP == nil || c.o.HTTP.Transport == nil {
		return nil, errors.New("the provider has no HTTP client")
	}
	resp, err := c.o.HTTP.Transport.RoundTrip(req)
	if err != nil {
		return nil, network(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, failure(resp)
	}
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse+1))
	if err != nil {
		return nil, network(err)
	}
	if len(answer) > maxResponse {
		return nil, errors.New("the answer is too long")
	}
	vectors, err := c.format.decode(answer)
	if err != nil {
		return nil, err
	}
	return vectors, check(vectors, len(texts))
}

// network returns the error of a request without an answer.
func network(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // the URL may contain a password
	}
	e := &llm.Error{Class: llm.ClassNetwork, Message: err.Error(), Err: err}
	if n, ok := errors.AsType[net.Error](err); ok && n.Timeout() {
		e.Class = llm.ClassTimeout
	}
	return e
}

// failure returns the error of a response with an error status.
func failure(resp *http.Response) error {
	data, _ := io.ReadAll(io.LimitReader(resp.Body, maxFailure))
	kind, message := dialect.ParseError(data)
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		message = "the service redirects, which is not followed: is the base URL right?"
	}
	return &llm.Error{
		Class: llm.Classify(resp.StatusCode, kind, message), Status: resp.StatusCode, Message: message,
		RetryAfter: backoff.RetryAfter(resp.Header, time.Now()),
	}
}

// error returns an error with the name of the provider and without secrets.
func (c *client) error(err error) error {
	const limit = 300
	e, ok := errors.AsType[*llm.Error](err)
	if !ok {
		e = &llm.Error{Class: llm.ClassFormat, Message: err.Error(), Err: err}
	}
	clean := *e
	clean.Provider, clean.Model = c.o.Provider, c.o.Model
	clean.Message = c.redactor.Redact(strings.Join(strings.Fields(strings.ToValidUTF8(e.Message, "\uFFFD")), " "))
	if len(clean.Message) > limit {
		clean.Message = strings.ToValidUTF8(clean.Message[:limit], "") + "…"
	}
	return &clean
}

var (
	errLengths = errors.New("the vectors have different lengths")
	errAnswer  = errors.New(
		"the answer contains no vectors: does the server have this model for embeddings, and is the base URL right?")
)

// check reports what is wrong with the vectors for n texts.
func check(vectors [][]float32, n int) error {
	if len(vectors) == 0 {
		return errAnswer
	}
	if len(vectors) != n {
		return fmt.Errorf("the answer has %d vectors for %d texts", len(vectors), n)
	}
	for _, v := range vectors {
		if len(v) == 0 {
			return errAnswer
		}
		if len(v) != len(vectors[0]) {
			return errLengths
		}
		if len(v) > maxNumbers {
			return fmt.Errorf("a vector has %d numbers: at most %d are possible", len(v), maxNumbers)
		}
		sum := 0.0
		for _, f := range v {
			sum += float64(f) * float64(f)
		}
		if sum == 0 || math.IsNaN(sum) || math.IsInf(sum, 0) {
			return errors.New("a vector has no direction")
		}
	}
	return nil
}

// nomic returns a text as the models named nomic-embed-text expect it: what it is for
// stands first.
func nomic(model string, p memory.Purpose, texts []string) []string {
	if !strings.Contains(model, "nomic-embed-text") {
		return texts
	}
	out := make([]string, len(texts))
	for i, t := range texts {
		out[i] = "search_" + string(p) + ": " + t
	}
	return out
}
