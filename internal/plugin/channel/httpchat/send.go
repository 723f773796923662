package httpchat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/egress"
	"github.com/chela-ai/chela/internal/core/signature"
	"github.com/chela-ai/chela/internal/plugin/channel/chatjson"
)

const (
	callTime  = 30 * time.Second // of a request
	maxAnswer = 64 << 10         // bytes
	maxMedia  = 20 << 20         // bytes of all attachments of a message
)

// hook has the operations that not every receiver supports.
type hook struct{ *account }

var (
	_ channel.Editor  = hook{}
	_ channel.Deleter = hook{}
	_ channel.Reactor = hook{}
	_ channel.Typer   = hook{}
)

// head is what all requests have.
type head struct {
	Op      string          `json:"op"`
	Account chela.AccountID `json:"account"`
}

func (a *account) head(op string) head { return head{op, a.id} }

// Send implements channel.Channel.
func (a *account) Send(ctx context.Context, p channel.Part) (channel.Receipt, error) {
	switch n := chatjson.MediaBytes(p); {
	case p.Text == "" && len(p.Media) == 0:
		return channel.Receipt{}, permanent(errors.New("the message is empty"))
	case n > maxMedia:
		return channel.Receipt{},
			permanent(fmt.Errorf("the attachments have %d bytes; at most %d are sent at once", n, maxMedia))
	}
	got, err := a.call(ctx, p.Key, struct {
		head
		chatjson.Part
	}{a.head("send"), chatjson.PartOf(p)})
	if err != nil {
		return channel.Receipt{}, err
	}
	sent := chatjson.Receipt{ID: p.Key} // without an answer the message is known by its key
	var named struct {
		ID *string `json:"id"`
	}
	if json.Unmarshal(got.Body, &named) == nil && named.ID != nil {
		sent.ID = *named.ID
	}
	receipt, err := sent.Receipt()
	if err != nil {
		return receipt, fmt.Errorf("httpchat: %w: %w", channel.ErrAmbiguous, err)
	}
	return receipt, nil
}

// Find reports that there is no message, so that a request whose outcome is unknown is
// repeated. The receiver knows it by its key.
func (a *account) Find(context.Context, chela.Address, string) (channel.Receipt, bool, error) {
	return channel.Receipt{}, false, nil
}

// Edit implements channel.Editor.
func (h hook) Edit(ctx context.Context, a chela.Address, id, text string) error {
	return h.change(ctx, struct {
		head
		chatjson.Edit
	}{h.head("edit"), chatjson.Edit{Destination: chatjson.DestinationOf(a), ID: id, Text: text}})
}

// Delete implements channel.Deleter.
func (h hook) Delete(ctx context.Context, a chela.Address, id string) error {
	return h.change(ctx, struct {
		head
		chatjson.Named
	}{h.head("delete"), chatjson.Named{Destination: chatjson.DestinationOf(a), ID: id}})
}

// React implements channel.Reactor.
func (h hook) React(ctx context.Context, a chela.Address, id, emoji string) error {
	return h.change(ctx, struct {
		head
		chatjson.Reaction
	}{h.head("react"), chatjson.Reaction{Destination: chatjson.DestinationOf(a), ID: id, Emoji: emoji}})
}

// Typing implements channel.Typer.
func (h hook) Typing(ctx context.Context, a chela.Address) error {
	return h.change(ctx, struct {
		head
		chatjson.Destination
	}{h.head("typing"), chatjson.DestinationOf(a)})
}

// change posts an operation on what exists. A receiver that answers 404 does not know it.
func (h hook) change(ctx context.Context, op any) error {
	got, err := h.call(ctx, "", op)
	if got.Status == http.StatusNotFound {
		return permanent(fmt.Errorf("%w: %w", channel.ErrGone, err))
	}
	return err
}

// call posts an operation to the webhook. The answer has a status below 300, or the error
// says what the status means.
func (a *account) call(ctx context.Context, key string, op any) (channel.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	body, err := json.Marshal(op)
	if err != nil {
		return channel.Answer{}, permanent(err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url, bytes.NewReader(body))
	if err != nil {
		return channel.Answer{}, permanent(errors.New("the url is not valid"))
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "Chela")
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	signature.Set(r.Header, a.secret, time.Now(), body)
	got, err := channel.Call(a.client, r, maxAnswer)
	switch {
	case err != nil:
		return channel.Answer{}, fmt.Errorf("httpchat: %w", withoutURL(err))
	case got.Status >= 300:
		return got, status("the receiver of the answers", got)
	}
	return got, nil
}

// withoutURL returns an error without the URL of the request, which may contain a secret.
func withoutURL(err error) error {
	failed, ok := errors.AsType[*url.Error](err)
	if !ok {
		return err
	}
	inner := failed.Err
	if refused, ok := errors.AsType[*egress.Refused](inner); ok {
		return &channel.Error{Permanent: true, Err: refused}
	}
	if errors.Is(err, channel.ErrAmbiguous) {
		return fmt.Errorf("%w: %w", channel.ErrAmbiguous, inner)
	}
	return inner
}

func permanent(err error) error {
	return &channel.Error{Permanent: true, Err: fmt.Errorf("httpchat: %w", err)}
}

// status returns what the status of an answer means.
func status(who string, got channel.Answer) error {
	err := fmt.Errorf("%s answered with status %d %s", who, got.Status, http.StatusText(got.Status))
	switch code := got.Status; {
	case code == http.StatusTooManyRequests || code == http.StatusRequestTimeout ||
		code == http.StatusTooEarly || code >= 500:
		return &channel.Error{RetryAfter: got.RetryAfter(), Err: fmt.Errorf("httpchat: %w", err)}
	case code == http.StatusGone:
		return permanent(fmt.Errorf("%w: %w", channel.ErrGone, err))
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return permanent(fmt.Errorf("%w (has it the same secret?)", err))
	case code < 400:
		return permanent(fmt.Errorf("%w: a redirection is not followed", err))
	}
	return permanent(err)
}
