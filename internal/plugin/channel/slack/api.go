package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/secret"
)

const (
	callTime  = 20 * time.Second
	maxAnswer = 4 << 20 // bytes of an answer of the API
)

// status is the part that all answers of the API have.
type status struct {
	OK     bool   `json:"ok"`
	Error  string `json:"error"`
	Needed string `json:"needed"`
	Meta   struct {
		Next string `json:"next_cursor"`
	} `json:"response_metadata"`
}

// call calls a method that changes something, or whose repetition is harmless.
func (b *bot) call(ctx context.Context, method string, params url.Values, out any) error {
	_, err := b.request(ctx, http.MethodPost, method, b.token, params, out)
	return err
}

// read calls a method that only reads. It returns the cursor of the next page.
func (b *bot) read(ctx context.Context, method string, params url.Values, out any) (next string, err error) {
	return b.request(ctx, http.MethodGet, method, b.token, params, out)
}

// settled is like call, for methods that show nothing in a chat: their outcome is not
// ambiguous, because they may be repeated.
func (b *bot) settled(ctx context.Context, method string, params url.Values, out any) error {
	return certain(b.call(ctx, method, params, out))
}

// certain returns err as one that says that nothing was sent. Callers use it where a repetition
// does no harm, or where nothing is shown.
func certain(err error) error {
	if errors.Is(err, channel.ErrAmbiguous) {
		return &channel.Error{Err: errors.New(strings.ReplaceAll(err.Error(), channel.ErrAmbiguous.Error()+": ", ""))}
	}
	return err
}

// request calls a method of the API.
func (b *bot) request(ctx context.Context, verb, method string, token secret.Value, params url.Values,
	out any) (next string, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	where := *b.root
	where.Path += "/" + method
	var body *strings.Reader
	if verb == http.MethodGet {
		where.RawQuery = params.Encode()
		body = strings.NewReader("")
	} else {
		body = strings.NewReader(params.Encode())
	}
	req, err := http.NewRequestWithContext(ctx, verb, where.String(), body)
	if err != nil {
		return "", fmt.Errorf("slack: %s: %w", method, bare(err))
	}
	req.Header.Set("Authorization", "Bearer "+token.Reveal())
	if verb == http.MethodPost {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	}
	a, err := channel.Call(b.http, req, maxAnswer)
	if err != nil {
		return "", fmt.Errorf("slack: %s: %w", method, bare(err))
	}
	st, err := answered(a, verb == http.MethodPost)
	if err == nil && !st.OK {
		err = b.refusal(st, a, verb == http.MethodPost)
	}
	if err == nil && out != nil {
		err = json.Unmarshal(a.Body, out)
	}
	if err == nil {
		return st.Meta.Next, nil
	}
	if e, ok := errors.AsType[*channel.Error](err); ok {
		return "", &channel.Error{Permanent: e.Permanent, RetryAfter: e.RetryAfter, Err: fmt.Errorf("slack: %s: %w",
			method, e.Err)}
	}
	return "", fmt.Errorf("slack: %s: %w", method, err)
}

// answered returns the status of an answer. writes says that the method changes something:
// after a failure of the server it is then unknown whether it did.
func answered(a channel.Answer, writes bool) (status, error) {
	var st status
	if a.Status == http.StatusTooManyRequests {
		return st, limited(a)
	}
	var err error
	switch {
	case a.Status >= 500 || a.Status == http.StatusRequestTimeout:
		err = fmt.Errorf("the server answered with status %d", a.Status)
	case a.Status >= 300:
		return st, &channel.Error{Err: fmt.Errorf("the server answered with status %d", a.Status)}
	default:
		if err = json.Unmarshal(a.Body, &st); err == nil {
			return st, nil
		}
		err = fmt.Errorf("the answer is not JSON: %w", err)
	}
	if writes {
		return st, fmt.Errorf("%w: %w", channel.ErrAmbiguous, err)
	}
	return st, err
}

// limited is the error of a call that came too early.
func limited(a channel.Answer) error {
	wait := a.RetryAfter()
	if wait == 0 {
		wait = 30 * time.Second
	}
	return &channel.Error{RetryAfter: wait, Err: errors.New("ratelimited")}
}

// refusal is the error of an answer that is not ok.
func (b *bot) refusal(st status, a channel.Answer, writes bool) error {
	err := errors.New(clip(st.Error, 100))
	hint := func(format string, args ...any) error {
		return fmt.Errorf("%w (%s)", err, fmt.Sprintf(format, args...))
	}
	switch st.Error {
	case "ratelimited", "rate_limited", "message_limit_exceeded":
		return limited(a)
	case "service_unavailable", "request_timeout", "team_added_to_org", "accesslimited":
		return &channel.Error{Err: err}
	case "internal_error", "fatal_error", "":
		if writes {
			return fmt.Errorf("%w: %w", channel.ErrAmbiguous, err)
		}
		return &channel.Error{Err: err}
	case "channel_not_found", "message_not_found", "thread_not_found", "user_not_found", "file_not_found":
		err = fmt.Errorf("%w: %w", err, channel.ErrGone)
	case "invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired", "not_allowed_token_type",
		"user_removed_from_team":
		err = hint("install the app again at https://api.slack.com/apps, then: chela config set channels.slack.botToken xoxb-…, and appToken xapp-… for Socket Mode")
	case "missing_scope":
		err = hint("add the scope %s at https://api.slack.com/apps, OAuth & Permissions, and install the app again",
			clip(st.Needed, 100))
	case "not_in_channel":
		err = hint("write in the channel: /invite @%s", b.me().Name)
	case "is_archived":
		err = hint("the channel is archived")
	}
	return &channel.Error{Permanent: true, Err: err}
}

// clip returns at most n bytes of s, which names something.
func clip(s string, n int) string {
	if len(s) > n {
		s = strings.ToValidUTF8(s[:n], "") + "…"
	}
	return s
}

// bare returns an error without the URL of the request, which may contain a secret.
func bare(err error) error {
	u, ok := errors.AsType[*url.Error](err)
	if !ok {
		return err
	}
	if errors.Is(err, channel.ErrAmbiguous) {
		return fmt.Errorf("%w: %w", channel.ErrAmbiguous, u.Err)
	}
	return u.Err
}

// chat is a conversation.
type chat struct {
	Kind  chela.PeerKind
	Title string
	User  string // of a direct conversation
}

// conversation is a conversation as the API describes it.
type conversation struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	User    string `json:"user"`
	IM      bool   `json:"is_im"`
	MPIM    bool   `json:"is_mpim"`
	Private bool   `json:"is_private"`
}

func (c conversation) chat() chat {
	switch {
	case c.IM:
		return chat{Kind: chela.Direct, User: c.User}
	case c.MPIM || c.Private:
		return chat{Kind: chela.Group, Title: c.Name}
	}
	return chat{Kind: chela.Room, Title: c.Name}
}

// chatOf looks a conversation up.
func (b *bot) chatOf(ctx context.Context, id string) (chat, error) {
	if c, ok := b.chats.Get(id); ok {
		return c, nil
	}
	var r struct {
		Channel conversation `json:"channel"`
	}
	if _, err := b.read(ctx, "conversations.info", url.Values{"channel": {id}}, &r); err != nil {
		return chat{}, err
	}
	c := r.Channel.chat()
	b.chats.Put(id, c)
	if c.User != "" {
		b.opened.Put(c.User, id)
	}
	return c, nil
}

// user is a person as the API describes it.
type user struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Real    string `json:"real_name"`
	Deleted bool   `json:"deleted"`
	Bot     bool   `json:"is_bot"`
	Profile struct {
		Display string `json:"display_name"`
		Real    string `json:"real_name"`
	} `json:"profile"`
}

// shown returns the name that people see.
func (u user) shown() string {
	for _, s := range [...]string{u.Profile.Display, u.Real, u.Profile.Real, u.Name} {
		if s != "" {
			return s
		}
	}
	return u.ID
}

// nameOf returns the name of a person, or its id if it is not known.
func (b *bot) nameOf(ctx context.Context, id string) string {
	if s, ok := b.names.Get(id); ok {
		return s
	}
	var r struct {
		User user `json:"user"`
	}
	if _, err := b.read(ctx, "users.info", url.Values{"user": {id}}, &r); err != nil {
		b.env.Log.Debug("a name was not found", "user", id, "err", err)
		return id
	}
	b.names.Put(id, r.User.shown())
	return r.User.shown()
}

// conversationOf returns the id of the conversation of an address. It opens a direct one.
func (b *bot) conversationOf(ctx context.Context, a chela.Address) (string, error) {
	if a.Peer.ID == "" {
		return "", &channel.Error{Permanent: true, Err: errors.New("slack: the address has no id")}
	}
	if a.Peer.Kind != chela.Direct || strings.HasPrefix(a.Peer.ID, "D") { // the id of a conversation
		return a.Peer.ID, nil
	}
	if id, ok := b.opened.Get(a.Peer.ID); ok {
		return id, nil
	}
	var r struct {
		Channel struct {
			ID string `json:"id"`
		} `json:"channel"`
	}
	if err := b.settled(ctx, "conversations.open", url.Values{"users": {a.Peer.ID}}, &r); err != nil {
		return "", err
	}
	if r.Channel.ID == "" {
		return "", errors.New("slack: conversations.open: the answer has no channel")
	}
	b.opened.Put(a.Peer.ID, r.Channel.ID)
	return r.Channel.ID, nil
}
