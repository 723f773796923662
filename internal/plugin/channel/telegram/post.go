package telegram

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/kit/backoff"
	"github.com/chela-ai/chela/internal/kit/secret"
)

const (
	maxPost   = 1 << 20 // bytes
	checkTime = 5 * time.Minute
)

// post is how an account receives posts.
type post struct {
	url    string // the public URL; "": the account polls
	path   string // below the gateway's address
	secret secret.Value
}

// awaitPosts asks Telegram to post updates, and waits. It checks from time to time that the
// webhook is still set, because another program with the same token may remove it.
func (b *bot) awaitPosts(ctx context.Context, sink channel.Sink, up func()) error {
	b.setSink(sink)
	defer b.setSink(nil)
	// With one connection, Telegram posts an update after the one before it was accepted.
	in := params{"url": b.post.url, "secret_token": b.post.secret.Reveal(),
		"allowed_updates": allowedUpdates, "max_connections": 1}
	if err := b.api.call(ctx, "setWebhook", in, nil); err != nil {
		return transient(err)
	}
	up()
	for {
		if err := backoff.Sleep(ctx, checkTime); err != nil {
			return err
		}
		var info struct {
			URL string `json:"url"`
		}
		if err := b.api.call(ctx, "getWebhookInfo", nil, &info); err != nil {
			return transient(err)
		}
		if info.URL != b.post.url {
			return errors.New("telegram: another program has changed the webhook of this bot")
		}
	}
}

func (b *bot) setSink(sink channel.Sink) {
	b.posting.Lock()
	defer b.posting.Unlock()
	b.sink = sink
}

// Path returns the path of the webhook; "": the account polls.
func (b *bot) Path() string { return b.post.path }

// ServeHTTP receives an update.
func (b *bot) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case b.post.url == "":
		http.NotFound(w, r)
		return
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "want POST", http.StatusMethodNotAllowed)
		return
	case !b.post.secret.Equal(secret.New(r.Header.Get("X-Telegram-Bot-Api-Secret-Token"))):
		http.Error(w, "wrong secret token", http.StatusUnauthorized)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxPost))
	if err != nil {
		status := http.StatusBadRequest
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			status = http.StatusRequestEntityTooLarge
		}
		http.Error(w, "the update could not be read", status)
		return
	}
	b.posting.Lock()
	defer b.posting.Unlock()
	if b.sink == nil {
		unavailable(w)
		return
	}
	u := parseUpdate(body)
	if in, ok := b.inbound([]*update{u}); ok {
		if err := b.sink(r.Context(), in); err != nil && !channel.Refused(err) {
			b.env.Log.Warn("message not accepted; Telegram will post it again", "chat", in.Address.Peer.ID,
				"message", in.ID, "err", err)
			unavailable(w)
			return
		}
	}
	// Before the button is answered: Telegram posts nothing more until it has the status.
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
	b.answerCallback(r.Context(), u)
}

// unavailable asks Telegram to post the update again.
func unavailable(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "1")
	http.Error(w, "try again", http.StatusServiceUnavailable)
}
