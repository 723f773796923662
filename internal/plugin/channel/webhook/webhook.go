// Package webhook sends messages as HTTP requests. The id of a peer is the URL, and the
// text of a message is the body of a POST request, as JSON. It receives nothing.
//
// A request has the header Idempotency-Key, which is the same at each attempt. With a token
// it has the header Authorization, and a signature that a receiver can verify; see package
// signature.
package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/egress"
	"github.com/chela-ai/chela/internal/core/signature"
	"github.com/chela-ai/chela/internal/kit/secret"
)

// Options configures the channel.
type Options struct {
	// Token returns the token of the requests; empty: they have none.
	Token func() secret.Value
	// Client returns the client for one request.
	Client func() *http.Client
}

// Factory returns the factory of the channel.
func Factory(name string, o Options) channel.Factory {
	return channel.Factory{
		Name: name, Internal: true, Limits: channel.Limits{Text: maxBody},
		New: func(channel.Env, string, json.RawMessage) (channel.Channel, error) { return &hook{o}, nil },
	}
}

const (
	timeout = 10 * time.Second // of a request
	maxBody = 1 << 20
	maxRead = 64 << 10 // of an answer
)

type hook struct{ o Options }

var (
	_ channel.Channel = (*hook)(nil)
	_ channel.Finder  = (*hook)(nil)
)

// Run waits for the end of ctx: nothing is received.
func (h *hook) Run(ctx context.Context, _ channel.Sink) error {
	<-ctx.Done()
	return nil
}

// Send sends one request.
func (h *hook) Send(ctx context.Context, p channel.Part) (channel.Receipt, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.Address.Peer.ID, strings.NewReader(p.Text))
	if err != nil {
		return channel.Receipt{}, &channel.Error{Permanent: true, Err: fmt.Errorf("webhook: %w", err)}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "Chela")
	req.Header.Set("Idempotency-Key", p.Key)
	if token := h.o.Token(); !token.IsZero() {
		req.Header.Set("Authorization", "Bearer "+token.Reveal())
		signature.Set(req.Header, token, time.Now(), []byte(p.Text))
	}
	client := h.o.Client()
	defer client.CloseIdleConnections()
	res, err := client.Do(req)
	if refused, ok := errors.AsType[*egress.Refused](err); ok {
		return channel.Receipt{},
			&channel.Error{Permanent: true,
				Err: fmt.Errorf(
					"webhook: %w (to allow a private host: chela config set cron.webhookSsrfPolicy.allowedHostnames '[\"%s\"]')",
					refused, refused.Host)}
	}
	if err != nil {
		return channel.Receipt{}, fmt.Errorf("webhook: %w", err)
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, maxRead)) // so that the connection can be closed in order
	return receipt(res, p)
}

// Find reports that there is no message, so that a request whose outcome is unknown is
// repeated. The receiver knows it by its key.
func (h *hook) Find(context.Context, chela.Address, string) (channel.Receipt, bool, error) {
	return channel.Receipt{}, false, nil
}

// receipt returns what the status of an answer means.
func receipt(res *http.Response, p channel.Part) (channel.Receipt, error) {
	err := fmt.Errorf("webhook: the receiver answered %s", res.Status)
	switch code := res.StatusCode; {
	case code < 300:
		return channel.Receipt{ID: p.Key, Time: time.Now()}, nil
	case code == http.StatusTooManyRequests || code == http.StatusRequestTimeout || code >= 500:
		e := &channel.Error{Err: err}
		if n, perr := strconv.Atoi(res.Header.Get("Retry-After")); perr == nil && n > 0 && n < 24*3600 {
			e.RetryAfter = time.Duration(n) * time.Second
		}
		return channel.Receipt{}, e
	case code < 400:
		err = errors.New("webhook: the receiver redirects, which is not followed")
	}
	return channel.Receipt{}, &channel.Error{Permanent: true, Err: err}
}
