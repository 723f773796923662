// Package telegram is the channel of Telegram bots. It uses the Bot API over HTTPS.
//
// By default it asks for updates (long polling). An update is confirmed by the offset of
// the next request, which is sent only after the sink accepted the message. Telegram keeps
// what is not confirmed and delivers it again, also after a restart, and the store accepts
// a message once. So there is no offset to be kept in a file.
//
// With webhookUrl, Telegram posts the updates to the gateway. A post is answered with
// status 200 only after the sink accepted the message.
package telegram

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf16"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/secret"
)

// Name is the name of the channel.
const Name = "telegram"

// Limits of the platform, in UTF-16 code units.
const (
	maxText    = 4000 // of a message; Telegram accepts 4096
	maxCaption = 1024 // of a caption
)

// Factory returns the factory of the channel.
func Factory() channel.Factory {
	return channel.Factory{
		Name: Name, Aliases: []string{"tg"}, Can: (*bot)(nil),
		Limits: channel.Limits{Text: maxText, Size: units, Edit: time.Second, Buttons: true},
		Setup: []channel.Setting{
			{Key: "botToken", Title: "token of the bot",
				Help: "Write /newbot to @BotFather on Telegram. It asks for a name and gives you a token.",
				Env:  "TELEGRAM_BOT_TOKEN", Secret: true, Required: true},
		},
		Hints: []string{
			"Telegram shows bold, italic, strikethrough, links, quotes, inline code and code blocks; a table is shown as preformatted text.",
			"A button below a message opens a URL or sends its data, of at most 64 bytes, as the next message of the person.",
		},
		Identity: identity, New: open,
	}
}

// units returns the number of UTF-16 code units of a rune.
func units(r rune) int { return max(utf16.RuneLen(r), 1) }

// settings is the part of an account's section that the channel reads.
type settings struct {
	BotToken      secret.Ref `json:"botToken"`
	TokenFile     string     `json:"tokenFile"`
	APIRoot       string     `json:"apiRoot"`
	WebhookURL    string     `json:"webhookUrl"`
	WebhookSecret secret.Ref `json:"webhookSecret"`
	WebhookPath   string     `json:"webhookPath"`
}

// isToken matches the token of a bot: its number and a secret.
var isToken = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9]{1,20}:[A-Za-z0-9_-]{1,256}$`) })

// isWebhookSecret matches what Telegram accepts as the secret of a webhook.
var isWebhookSecret = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_-]{1,256}$`) })

// identity returns the number of the bot, if its token is in the section.
func identity(raw json.RawMessage) string {
	var s settings
	if json.Unmarshal(raw, &s) != nil || s.TokenFile != "" || s.BotToken.Source != secret.Plain {
		return ""
	}
	token, err := s.BotToken.Resolve(nil)
	if err != nil {
		return ""
	}
	number, _, ok := strings.Cut(token.Reveal(), ":")
	if !ok {
		return ""
	}
	return number
}

// token returns the token of an account.
func (s settings) token(env channel.Env, account string) (secret.Value, error) {
	at, ref := "channels.telegram.botToken", s.BotToken
	switch {
	case s.TokenFile != "":
		at, ref = "channels.telegram.tokenFile", secret.Ref{Source: secret.File, ID: s.TokenFile}
	case ref.IsZero() && account == "default":
		at = "TELEGRAM_BOT_TOKEN"
	}
	token, err := env.Secret(account, ref, "TELEGRAM_BOT_TOKEN")
	if err != nil {
		return token, fmt.Errorf("%s: %w", at, err)
	}
	token = secret.New(strings.TrimSpace(token.Reveal()))
	switch {
	case token.IsZero() && account == "default":
		return token, errors.New("no bot token: create a bot with @BotFather, then: chela config set channels.telegram.botToken TOKEN (or set TELEGRAM_BOT_TOKEN)")
	case token.IsZero():
		return token,
			fmt.Errorf("no bot token: create a bot with @BotFather, then: chela config set channels.telegram.accounts.%s.botToken TOKEN", account)
	}
	if !isToken().MatchString(token.Reveal()) {
		return token, fmt.Errorf("%s: this is not the token of a bot; @BotFather gives one such as 123456:ABC-DEF", at)
	}
	return token, nil
}

// root returns the base URL of the Bot API and the client for it.
func (s settings) root(env channel.Env) (string, *http.Client, error) {
	if s.APIRoot == "" {
		return "https://api.telegram.org", env.HTTP, nil
	}
	u, err := url.Parse(s.APIRoot)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.RawQuery != "" {
		return "", nil, errors.New("channels.telegram.apiRoot: want a URL such as https://api.telegram.org")
	}
	return strings.TrimRight(s.APIRoot, "/"), env.Trusted(u.Host), nil
}

// post returns how the account receives posts; the zero value: it polls.
func (s settings) post(env channel.Env, account string) (post, error) {
	if s.WebhookURL == "" {
		return post{}, nil
	}
	usual := "/telegram-webhook"
	if account != "default" {
		usual += "/" + url.PathEscape(account)
	}
	p := post{url: s.WebhookURL, path: cmp.Or(s.WebhookPath, usual)}
	if u, err := url.Parse(p.url); err != nil || u.Scheme != "https" || u.Host == "" {
		return p, errors.New(
			"channels.telegram.webhookUrl: want the public https URL of the gateway's webhook, such as https://example.org" +
				p.path)
	}
	if !strings.HasPrefix(p.path, "/") || strings.ContainsAny(p.path, "?#{} ") {
		return p, errors.New("channels.telegram.webhookPath: want a path such as /telegram-webhook")
	}
	var err error
	if p.secret, err = s.WebhookSecret.Resolve(env.Getenv); err != nil {
		return p, fmt.Errorf("channels.telegram.webhookSecret: %w", err)
	}
	if !isWebhookSecret().MatchString(p.secret.Reveal()) {
		return p, errors.New(
			"channels.telegram.webhookSecret: want 1 to 256 letters, digits, _ and -, for example of: openssl rand -hex 32")
	}
	return p, nil
}

// open makes an account. It opens no connection.
func open(env channel.Env, account string, raw json.RawMessage) (channel.Channel, error) {
	var s settings
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, fmt.Errorf("channels.telegram: %w", err)
	}
	token, err := s.token(env, account)
	if err != nil {
		return nil, err
	}
	root, client, err := s.root(env)
	if err != nil {
		return nil, err
	}
	b := &bot{env: env, account: chela.AccountID(account), api: newAPI(client, root, token)}
	b.post, err = s.post(env, account)
	if err != nil {
		return nil, err
	}
	return b, nil
}

// bot is an account.
type bot struct {
	env     channel.Env
	account chela.AccountID
	api     *api
	post    post
	me      atomic.Pointer[user] // the bot itself; nil before the first connection
	sent    memory               // what was sent recently

	posting sync.Mutex   // held while a post is processed, so that the order is kept
	sink    channel.Sink // of Run in webhook mode, guarded by posting; nil: it does not run
}

var (
	_ channel.Channel  = (*bot)(nil)
	_ channel.Editor   = (*bot)(nil)
	_ channel.Deleter  = (*bot)(nil)
	_ channel.Typer    = (*bot)(nil)
	_ channel.Reactor  = (*bot)(nil)
	_ channel.Prober   = (*bot)(nil)
	_ channel.Fetcher  = (*bot)(nil)
	_ channel.Poller   = (*bot)(nil)
	_ channel.Pinner   = (*bot)(nil)
	_ channel.Threader = (*bot)(nil)
	_ channel.Menuer   = (*bot)(nil)
	_ channel.Poster   = (*bot)(nil)
)

// Run receives messages until ctx ends or Telegram refuses the token.
func (b *bot) Run(ctx context.Context, sink channel.Sink) error {
	c := cursor{ahead: map[int64]bool{}}
	return channel.Reconnect(ctx, b.env, func(ctx context.Context, up func()) error {
		if err := b.hello(ctx); err != nil {
			return err
		}
		if b.post.url != "" {
			return b.awaitPosts(ctx, sink, up)
		}
		return b.poll(ctx, sink, &c, up)
	})
}

// hello asks who the bot is. Only a refusal of the token is permanent.
func (b *bot) hello(ctx context.Context) error {
	var me user
	if err := b.api.call(ctx, "getMe", nil, &me); err != nil {
		return transient(err)
	}
	b.me.Store(&me)
	return nil
}
