package discord

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/kit/backoff"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

const (
	callTimeout = 30 * time.Second
	fileTimeout = 2 * time.Minute // of a request with files
	maxAnswer   = 4 << 20         // bytes
	maxHold     = 5 * time.Second // a longer wait for a limit is left to the caller
	maxRoutes   = 1000            // limits that are remembered
	userAgent   = "DiscordBot (https://github.com/chela-ai/chela, 1)"
)

// Codes of Discord's errors.
const (
	unknownChannel = 10003
	unknownMember  = 10007
	unknownMessage = 10008
	unknownUser    = 10013
)

// body is the content of a request.
type body struct {
	contentType string
	data        []byte
	timeout     time.Duration
}

// jsonBody returns v as the content of a request.
func jsonBody(v any) (body, error) {
	data, err := json.Marshal(v)
	return body{"application/json", data, callTimeout}, err
}

// do calls a method of the REST API. in is the content as JSON, or a body; nil: none. out
// receives the answer; nil: it is ignored.
func (b *bot) do(ctx context.Context, method, path string, in, out any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	content, ok := in.(body)
	if !ok {
		content.timeout = callTimeout
		if in != nil {
			var err error
			if content, err = jsonBody(in); err != nil {
				return refused("%w", err)
			}
		}
	}
	route := routeOf(method, path)
	if err := b.limits.wait(ctx, route); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, content.timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, b.root+path, bytes.NewReader(content.data))
	if err != nil {
		return refused("%s: the address of the request is not valid", route)
	}
	if content.data != nil {
		r.Header.Set("Content-Type", content.contentType)
	}
	r.Header.Set("Authorization", "Bot "+b.token.Reveal())
	r.Header.Set("User-Agent", userAgent)
	a, err := channel.Call(b.http, r, maxAnswer)
	if err != nil {
		return fmt.Errorf("discord: %s: %w", route, withoutURL(err))
	}
	b.limits.note(route, a)
	if a.Status < 200 || a.Status > 299 {
		return b.failure(route, a)
	}
	if out != nil {
		if err := json.Unmarshal(a.Body, out); err != nil {
			return fmt.Errorf("discord: %s: the answer is not valid: %w", route, err)
		}
	}
	return nil
}

// withoutURL removes the URL from an error of an HTTP client, because it may contain the
// token of an interaction. The chain keeps channel.ErrAmbiguous.
func withoutURL(err error) error {
	u, ok := errors.AsType[*url.Error](err)
	switch {
	case !ok:
		return err
	case errors.Is(err, channel.ErrAmbiguous):
		return fmt.Errorf("%w: %w", channel.ErrAmbiguous, u.Err)
	}
	return u.Err
}

// failure returns the error that an answer means.
func (b *bot) failure(route string, a channel.Answer) error {
	var e struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Errors  json.RawMessage `json:"errors"`
	}
	_ = json.Unmarshal(a.Body, &e) // proxies answer with other content
	text := http.StatusText(a.Status)
	if e.Message != "" {
		text = e.Message
	}
	if len(e.Errors) > 0 {
		text += " " + string(e.Errors)
	}
	err := fmt.Errorf("discord: %s: %d %s", route, a.Status, truncate(humanize.OneLine(text), 300))
	switch {
	case a.Status == http.StatusUnauthorized:
		return b.unauthorized()
	case a.Status == http.StatusTooManyRequests:
		return &channel.Error{RetryAfter: retryAfter(a), Err: err}
	case a.Status == http.StatusNotFound:
		switch e.Code {
		case unknownChannel, unknownMember, unknownMessage, unknownUser:
			err = fmt.Errorf("%w: %w", err, channel.ErrGone)
		}
		return &channel.Error{Permanent: true, Err: err}
	case a.Status >= 500 || a.Status == http.StatusRequestTimeout:
		return &channel.Error{RetryAfter: a.RetryAfter(), Err: err}
	}
	return &channel.Error{Permanent: true, Err: err}
}

// retryAfter returns how long an answer with the status 429 asks to wait.
func retryAfter(a channel.Answer) time.Duration {
	var limit struct {
		RetryAfter float64 `json:"retry_after"` // seconds
	}
	_ = json.Unmarshal(a.Body, &limit) // the header says it too
	d := a.RetryAfter()
	if s := limit.RetryAfter; s > 0 && s < 24*3600 {
		d = time.Duration(s * float64(time.Second))
	}
	return max(d, 100*time.Millisecond)
}

// routeOf returns the name of a request for limits and errors: its method and path without
// the ids after the first one and without tokens.
func routeOf(method, path string) string {
	path, _, _ = strings.Cut(path, "?")
	parts := strings.Split(path, "/")
	for i, p := range parts {
		switch {
		case i > 0 && parts[i-1] == "reactions":
			parts[i] = "EMOJI"
		case i > 2 && snowflake(p):
			parts[i] = "ID"
		case i == 3 && (parts[1] == "interactions" || parts[1] == "webhooks"):
			parts[2], parts[i] = "ID", "TOKEN"
		}
	}
	return method + " " + strings.Join(parts, "/")
}

// limits are the rate limits that Discord announced. The zero limits is ready to use.
type limits struct {
	mu    sync.Mutex
	all   time.Time            // until when no request is allowed
	until map[string]time.Time // until when requests of a route are not allowed; past times stay
}

// wait waits until a request of a route is allowed. It returns an error with RetryAfter
// instead if that is not soon.
func (l *limits) wait(ctx context.Context, route string) error {
	l.mu.Lock()
	until := l.all
	if t := l.until[route]; t.After(until) {
		until = t
	}
	l.mu.Unlock()
	pause := time.Until(until)
	if pause <= 0 {
		return nil
	}
	if pause > maxHold {
		return &channel.Error{RetryAfter: pause, Err: fmt.Errorf("discord: %s: rate limit reached", route)}
	}
	return backoff.Sleep(ctx, pause)
}

// note records what an answer says about limits.
func (l *limits) note(route string, a channel.Answer) {
	now := time.Now()
	var pause time.Duration
	global := false
	switch {
	case a.Status == http.StatusTooManyRequests:
		var limit struct {
			Global bool `json:"global"`
		}
		_ = json.Unmarshal(a.Body, &limit) // the header says it too
		pause, global = retryAfter(a), limit.Global || a.Header.Get("X-RateLimit-Global") == "true"
	case a.Header.Get("X-RateLimit-Remaining") == "0":
		if s, err := strconv.ParseFloat(a.Header.Get("X-RateLimit-Reset-After"), 64); err == nil && s > 0 && s < 24*3600 {
			pause = time.Duration(s * float64(time.Second))
		}
	}
	if pause <= 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if global {
		l.all = now.Add(pause)
		return
	}
	if l.until == nil || len(l.until) >= maxRoutes {
		l.until = map[string]time.Time{}
	}
	l.until[route] = now.Add(pause)
}
