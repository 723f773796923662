package matrix

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
)

// Limits of requests.
const (
	timeout   = 30 * time.Second
	maxAnswer = 4 << 20
	maxSync   = 32 << 20
)

// refusal is an error that the homeserver answered.
type refusal struct {
	Status       int    `json:"-"`
	Code         string `json:"errcode"`
	Message      string `json:"error"`
	RetryAfterMS int64  `json:"retry_after_ms"`
}

func (r *refusal) Error() string {
	const most = 200
	text := strings.ToValidUTF8(r.Message, "")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "")
	}
	if r.Code == "" {
		return fmt.Sprintf("the homeserver answered with status %d", r.Status)
	}
	return fmt.Sprintf("the homeserver answered %d %.60s: %s", r.Status, r.Code, text)
}

// is reports whether an error is a refusal with a code.
func is(err error, code string) bool {
	r, ok := errors.AsType[*refusal](err)
	return ok && r.Code == code
}

// final reports whether an error is a refusal that concerns only what was asked for, and
// that no new attempt mends.
func final(err error) bool {
	e, ok := errors.AsType[*channel.Error](err)
	return ok && e.Permanent && !is(err, "M_UNKNOWN_TOKEN") && !is(err, "M_MISSING_TOKEN")
}

// path formats a path, whose arguments it escapes.
func path(format string, args ...string) string {
	escaped := make([]any, len(args))
	for i, a := range args {
		escaped[i] = url.PathEscape(a)
	}
	return fmt.Sprintf(format, escaped...)
}

func (b *bot) get(ctx context.Context, path string, query url.Values, out any) error {
	return b.call(ctx, http.MethodGet, path, query, nil, out)
}

// call makes a request with a body of JSON.
func (b *bot) call(ctx context.Context, method, path string, query url.Values, in, out any) error {
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(data)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return b.do(ctx, method, path, query, "application/json", body, maxAnswer, out)
}

// do makes a request and decodes the answer.
func (b *bot) do(ctx context.Context, method, path string, query url.Values, kind string, body io.Reader,
	most int64, out any) error {
	answer, err := b.raw(ctx, method, path, query, kind, body, most)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(answer.Body, out); err != nil {
		return fmt.Errorf("matrix: the answer of the homeserver is not JSON as expected: %w", err)
	}
	return nil
}

// raw makes a request. Any status but 200 is an error.
func (b *bot) raw(ctx context.Context, method, path string, query url.Values, kind string, body io.Reader,
	most int64) (channel.Answer, error) {
	to := b.c.base.String() + path
	if len(query) > 0 {
		to += "?" + query.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, method, to, body)
	if err != nil {
		return channel.Answer{}, fmt.Errorf("matrix: %w", err)
	}
	r.Header.Set("User-Agent", "Chela")
	if body != nil {
		r.Header.Set("Content-Type", kind)
	}
	b.mu.Lock()
	token := b.token
	b.mu.Unlock()
	if !token.IsZero() {
		r.Header.Set("Authorization", "Bearer "+token.Reveal())
	}
	answer, err := channel.Call(b.client, r, most)
	if err != nil {
		return answer, fmt.Errorf("matrix: %w", err)
	}
	if answer.Status != http.StatusOK {
		return answer, refused(answer)
	}
	return answer, nil
}

// refused returns what an answer means that is no success.
func refused(a channel.Answer) error {
	r := &refusal{}
	if json.Unmarshal(a.Body, r) != nil {
		r = &refusal{}
	}
	r.Status = a.Status
	err := fmt.Errorf("matrix: %w", r)
	switch {
	case a.Status == http.StatusTooManyRequests || r.Code == "M_LIMIT_EXCEEDED":
		const longest = 24 * time.Hour
		after := max(a.RetryAfter(), time.Duration(min(max(r.RetryAfterMS, 0), longest.Milliseconds()))*time.Millisecond)
		return &channel.Error{RetryAfter: min(after, longest), Err: err}
	case r.Code == "M_UNKNOWN_TOKEN" || r.Code == "M_MISSING_TOKEN":
		return &channel.Error{Permanent: true,
			Err: fmt.Errorf("%w (get a new access token, then type: chela config set channels.matrix.accessToken TOKEN)", err)}
	case a.Status == http.StatusNotFound && r.Code != "M_UNRECOGNIZED":
		return &channel.Error{Permanent: true, Err: fmt.Errorf("%w: %w", err, channel.ErrGone)}
	case a.Status >= 500 || a.Status == http.StatusRequestTimeout:
		return &channel.Error{Err: err}
	}
	return &channel.Error{Permanent: true, Err: err}
}
