// Package http calls hooks that are HTTP endpoints. The event is the body of a POST
// request, and the body of a 2xx response is the answer.
package http

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/chela-ai/chela/internal/core/hook"
)

// Endpoint is an HTTP endpoint.
type Endpoint struct {
	URL     string
	Headers map[string]string
	Client  *http.Client        // of package egress
	Redact  func(string) string // removes known secrets from events; nil: nothing is removed
}

// Func returns the function of a hook that calls the endpoint.
func (e Endpoint) Func() func(context.Context, []byte) ([]byte, error) {
	return func(ctx context.Context, event []byte) ([]byte, error) {
		if e.Redact != nil {
			event = []byte(e.Redact(string(event)))
		}
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.URL, bytes.NewReader(event))
		if err != nil {
			return nil, err
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json")
		r.Header.Set("Chela-Hook-Depth", strconv.Itoa(hook.Depth(ctx)))
		for name, value := range e.Headers {
			r.Header.Set(name, value)
		}
		res, err := e.Client.Do(r)
		if err != nil {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			return nil, err
		}
		defer res.Body.Close()
		body, err := io.ReadAll(io.LimitReader(res.Body, hook.MaxAnswer+1))
		switch {
		case err != nil && ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil:
			return nil, err
		case res.StatusCode < 200 || res.StatusCode > 299:
			return nil, fmt.Errorf("the endpoint answered %s", res.Status)
		case len(body) > hook.MaxAnswer:
			return nil, fmt.Errorf("the endpoint answered with more than %d bytes", hook.MaxAnswer)
		}
		return body, nil
	}
}
