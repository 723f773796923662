package telegram

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/kit/secret"
)

// Limits of calls.
const (
	callTime   = 30 * time.Second
	uploadTime = 5 * time.Minute // of a call with a file, and of a download
	maxAnswer  = 8 << 20         // bytes
)

// api calls methods of the Bot API. Its errors never contain the token, which is part of
// every URL.
type api struct {
	client *http.Client
	root   string // without a slash at the end
	token  secret.Value
}

func newAPI(client *http.Client, root string, token secret.Value) *api {
	own := *client
	// A redirected request would show the URL, with the token, to another server.
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &api{client: &own, root: root, token: token}
}

// download names the download of a file in errors, as if it were a method.
const download = "download"

// params are the parameters of a method.
type params map[string]any

// call calls a method and decodes its result into out, which may be nil.
func (a *api) call(ctx context.Context, method string, in params, out any) error {
	return a.callWithin(ctx, callTime, method, in, out)
}

func (a *api) callWithin(ctx context.Context, limit time.Duration, method string, in params, out any) error {
	body, err := json.Marshal(in)
	if in == nil {
		body = []byte("{}")
	}
	if err != nil {
		return &channel.Error{Permanent: true, Err: fmt.Errorf("telegram %s: %w", method, err)}
	}
	return a.do(ctx, limit, method, "application/json", body, out)
}

// upload calls a method with a file in the parameter field.
func (a *api) upload(ctx context.Context, method string, in params, field, name string, data []byte, out any) error {
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	for key, value := range in {
		text, ok := value.(string)
		if !ok {
			b, err := json.Marshal(value)
			if err != nil {
				return &channel.Error{Permanent: true, Err: fmt.Errorf("telegram %s: %w", method, err)}
			}
			text = string(b)
		}
		_ = w.WriteField(key, text) // to memory
	}
	if f, err := w.CreateFormFile(field, name); err == nil {
		_, _ = f.Write(data)
	}
	_ = w.Close()
	return a.do(ctx, uploadTime, method, w.FormDataContentType(), body.Bytes(), out)
}

// do sends a request and reads the answer.
func (a *api) do(ctx context.Context, limit time.Duration, method, contentType string, body []byte, out any) error {
	in, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r, err := http.NewRequestWithContext(in, http.MethodPost, a.root+"/bot"+a.token.Reveal()+"/"+
		method, bytes.NewReader(body))
	if err != nil {
		return &channel.Error{Permanent: true, Err: fmt.Errorf("telegram %s: invalid URL", method)}
	}
	r.Header.Set("Content-Type", contentType)
	answer, err := channel.Call(a.client, r, maxAnswer)
	if err != nil {
		return broken(ctx, method, limit, err)
	}
	return read(method, answer, out)
}

// creates reports whether a method creates something, so that repeating it after an unknown
// outcome could create it twice.
func creates(method string) bool {
	return strings.HasPrefix(method, "send") && method != "sendChatAction" || method == "createForumTopic"
}

// broken returns the error of a request that got no answer. The end of ctx says nothing about the
// request: one that may have created something is ambiguous even then.
func broken(ctx context.Context, method string, limit time.Duration, err error) error {
	unknown := errors.Is(err, channel.ErrAmbiguous) && creates(method)
	if ctx.Err() != nil && !unknown {
		return ctx.Err()
	}
	cause := withoutURL(err)
	if errors.Is(err, context.DeadlineExceeded) {
		cause = fmt.Errorf("no answer within %s", limit)
	}
	if unknown {
		return fmt.Errorf("telegram %s: %w: %w", method, channel.ErrAmbiguous, cause)
	}
	return fmt.Errorf("telegram %s: %w", method, cause)
}

// withoutURL returns the cause of an error of an HTTP request, because the text of the error
// itself contains the URL.
func withoutURL(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// refusal is an answer that says why a call failed.
type refusal struct {
	method      string
	code        int
	description string
	newChat     int64 // the chat has become this one; 0: it has not
}

// Error returns the description.
func (r *refusal) Error() string {
	s := fmt.Sprintf("telegram %s: %s (%d)", r.method, r.description, r.code)
	switch {
	case r.code == http.StatusUnauthorized || r.code == http.StatusNotFound && r.method != download:
		s += "; check the token with @BotFather, then: chela config set channels.telegram.botToken TOKEN"
	case r.code == http.StatusConflict:
		s += "; another program receives the messages of this bot: stop it, or create a bot for each with @BotFather"
	case r.newChat != 0:
		s += fmt.Sprintf("; the chat has now the id %d", r.newChat)
	}
	return s
}

// says reports whether err is a refusal whose description contains one of the texts, in
// lower case.
func says(err error, texts ...string) bool {
	r, ok := errors.AsType[*refusal](err)
	if !ok {
		return false
	}
	description := strings.ToLower(r.description)
	for _, s := range texts {
		if strings.Contains(description, s) {
			return true
		}
	}
	return false
}

// read decodes the answer to a call.
func read(method string, answer channel.Answer, out any) error {
	var a struct {
		OK          bool            `json:"ok"`
		Result      json.RawMessage `json:"result"`
		Code        int             `json:"error_code"`
		Description string          `json:"description"`
		Parameters  struct {
			RetryAfter float64 `json:"retry_after"`
			NewChat    int64   `json:"migrate_to_chat_id"`
		} `json:"parameters"`
	}
	err := json.Unmarshal(answer.Body, &a)
	if err == nil && a.OK && out != nil {
		err = json.Unmarshal(a.Result, out)
	}
	if err == nil && a.OK {
		return nil
	}
	// Status 200 without an answer of the Bot API comes from something in between, such as a
	// proxy. The request may have reached Telegram.
	if answer.Status == http.StatusOK && (err != nil || a.Code == 0) {
		if creates(method) {
			return fmt.Errorf("telegram %s: %w: the answer is not one of the Bot API", method, channel.ErrAmbiguous)
		}
		return fmt.Errorf("telegram %s: the answer is not one of the Bot API", method)
	}
	r := &refusal{method: method, code: a.Code, description: a.Description, newChat: a.Parameters.NewChat}
	if err != nil || r.code == 0 {
		r.code, r.description = answer.Status, http.StatusText(answer.Status)
	}
	const longest = 24 * 60 * 60 // seconds
	wait := time.Duration(min(max(a.Parameters.RetryAfter, 0), longest) * float64(time.Second))
	return r.classify(max(wait, answer.RetryAfter()))
}

// classify returns the error of the channel that a refusal means.
func (r *refusal) classify(wait time.Duration) error {
	switch {
	case r.code == http.StatusTooManyRequests:
		return &channel.Error{RetryAfter: max(wait, time.Second), Err: r}
	case r.code == http.StatusConflict || r.code == http.StatusRequestTimeout:
		return &channel.Error{RetryAfter: wait, Err: r}
	case r.code == http.StatusBadGateway || r.code == http.StatusServiceUnavailable, r.code >= 500 && !creates(r.method):
		return &channel.Error{RetryAfter: wait, Err: r} // the request did not reach the server, or can be repeated
	case r.code >= 500:
		return fmt.Errorf("%w: %w", channel.ErrAmbiguous, r)
	case says(r, "chat not found", "thread not found", "topic_deleted", "topic_id_invalid", "message to edit not found",
		"message to delete not found",
		"message to pin not found", "message to unpin not found", "message to react not found",
		"message_id_invalid", "message not found"):
		return &channel.Error{Permanent: true, Err: fmt.Errorf("%w: %w", channel.ErrGone, r)}
	}
	return &channel.Error{Permanent: true, Err: r}
}

// transient returns the error of a call that receives messages. Only the refusal of the
// token is permanent. Receiving is tried again for as long as the account is configured, whatever
// else Telegram says.
func transient(err error) error {
	e, ok := errors.AsType[*channel.Error](err)
	if !ok || !e.Permanent {
		return err
	}
	if r, ok := errors.AsType[*refusal](err); ok && (r.code == http.StatusUnauthorized || r.code == http.StatusForbidden ||
		r.code == http.StatusNotFound) {
		return err
	}
	return &channel.Error{Err: e.Err}
}
