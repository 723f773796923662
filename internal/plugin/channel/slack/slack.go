// Package slack connects a Slack app to the assistant.
//
// Messages are sent by the Web API. They are received in Socket Mode, over a WebSocket that
// needs no public address, or as HTTP requests (mode "http"), which are signed.
//
// Slack repeats an event until it was acknowledged: at once, after a minute and after five.
// One worker passes the events of an account to the sink, in the order in which they
// arrived, and tries again while the sink refuses one for now. An event is acknowledged
// only if the sink accepted it within 2.5 seconds, because Slack waits for 3. An event that
// was accepted later arrives again. This is safe: the id of a message is its timestamp,
// which is the same in each repetition and is unique in its chat, and both the worker and
// the engine drop a message that was accepted before. For the same reason the two events
// that Slack sends for one message with a mention (message and app_mention) are one message.
//
// A conversation is addressed by its id, except for direct ones: their peer is the person.
// Slack has no replies except in threads, so Part.ReplyTo is not used: an answer stands in
// the thread of its address. Each message that is sent has its key in its metadata, by
// which an uncertain outcome is resolved.
package slack

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf16"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/memo"
	"github.com/chela-ai/chela/internal/kit/secret"
)

const (
	name        = "slack"
	defaultRoot = "https://slack.com/api"
	defaultPath = "/slack/events"
	maxText     = 4000 // characters of a message
)

// Factory makes the accounts of the channel.
func Factory() channel.Factory {
	return channel.Factory{
		Name:   name,
		Limits: channel.Limits{Text: maxText, Size: size, Edit: time.Second, Buttons: true},
		Can:    (*bot)(nil),
		Setup: []channel.Setting{
			{Key: "botToken", Title: "token of the bot (xoxb-…)",
				Help: "At https://api.slack.com/apps create an app in Socket Mode with the scopes that docs/slack.md lists, and install it.", Env: "SLACK_BOT_TOKEN", Secret: true, Required: true},
			{Key: "appToken", Title: "token of the app (xapp-…)",
				Help: "Basic Information, App-Level Tokens, with the scope connections:write.", Env: "SLACK_APP_TOKEN",
				Secret: true, Required: true},
		},
		Identity: identity,
		New:      New,
		Hints: []string{
			"Slack shows Markdown without headings and tables; write short lists instead of them.",
		},
	}
}

// size returns the length that a rune has in a message: &, < and > are escaped there.
func size(r rune) int {
	switch r {
	case '&':
		return len("&amp;")
	case '<', '>':
		return len("&lt;")
	}
	return max(utf16.RuneLen(r), 1)
}

// section is the part of the configuration that the channel reads.
type section struct {
	Mode          string     `json:"mode"` // socket, http
	BotToken      secret.Ref `json:"botToken"`
	AppToken      secret.Ref `json:"appToken"`
	SigningSecret secret.Ref `json:"signingSecret"`
	WebhookPath   string     `json:"webhookPath"`
	APIRoot       string     `json:"apiRoot"`
	SlashCommand  struct {
		Name string `json:"name"`
	} `json:"slashCommand"`
}

// identity returns a digest of the bot's token, by which two accounts are recognized as the
// same.
func identity(raw json.RawMessage) string {
	var s struct {
		BotToken json.RawMessage `json:"botToken"`
	}
	if json.Unmarshal(raw, &s) != nil || len(s.BotToken) == 0 {
		return ""
	}
	sum := sha256.Sum256(s.BotToken)
	return hex.EncodeToString(sum[:])
}

// bot is an account.
type bot struct {
	env     channel.Env
	account chela.AccountID
	http    *http.Client
	root    *url.URL // of the API
	own     bool     // the root is configured: files and sockets are there, too

	token, appToken, signing secret.Value

	path    string // of posts; empty: Socket Mode
	command string // whose text is a message, with its slash

	queue   chan job                    // events for the worker
	running atomic.Bool                 // Run runs, and self is known
	self    atomic.Pointer[self]        // nil: not known yet
	noTyper atomic.Bool                 // the app may not set a status
	names   memo.Map[string, string]    // by id of a person
	chats   memo.Map[string, chat]      // by id of a conversation
	opened  memo.Map[string, string]    // direct conversations by id of a person
	taken   memo.Map[string, struct{}]  // accepted messages
	sent    memo.Map[string, *progress] // parts by key
	emojis  memo.Map[[2]string, string] // reactions of the account by conversation and message
}

var (
	_ channel.Channel   = (*bot)(nil)
	_ channel.Editor    = (*bot)(nil)
	_ channel.Deleter   = (*bot)(nil)
	_ channel.Typer     = (*bot)(nil)
	_ channel.Reactor   = (*bot)(nil)
	_ channel.Prober    = (*bot)(nil)
	_ channel.Finder    = (*bot)(nil)
	_ channel.Fetcher   = (*bot)(nil)
	_ channel.Pinner    = (*bot)(nil)
	_ channel.Reader    = (*bot)(nil)
	_ channel.Directory = (*bot)(nil)
	_ channel.Poster    = (*bot)(nil)
)

// New makes an account from its section.
func New(env channel.Env, account string, raw json.RawMessage) (channel.Channel, error) {
	var s section
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &s); err != nil {
			return nil, err
		}
	}
	key := "channels." + name
	if account != "default" {
		key += ".accounts." + account
	}
	b := &bot{
		env: env, account: chela.AccountID(account), http: env.HTTP,
		command: "/" + strings.TrimPrefix(cmp.Or(s.SlashCommand.Name, "openclaw"), "/"),
		queue:   make(chan job, maxQueue),
		names:   memo.Map[string, string]{Most: 2048},
		chats:   memo.Map[string, chat]{Most: 2048},
		opened:  memo.Map[string, string]{Most: 2048},
		taken:   memo.Map[string, struct{}]{Most: 2048},
		sent:    memo.Map[string, *progress]{Most: 512},
		emojis:  memo.Map[[2]string, string]{Most: 512},
	}
	if err := b.secrets(s, key); err != nil {
		return nil, err
	}
	root, err := url.Parse(cmp.Or(s.APIRoot, defaultRoot))
	if err != nil || root.Host == "" || root.Scheme != "https" && root.Scheme != "http" {
		return nil, fmt.Errorf("%s.apiRoot is not an http or https URL", key)
	}
	root.Path = strings.TrimSuffix(root.Path, "/")
	b.root, b.own = root, s.APIRoot != ""
	if b.own {
		b.http = env.Trusted(root.Host)
	}
	return b, nil
}

// secrets reads the tokens and the mode.
func (b *bot) secrets(s section, key string) error {
	read := func(member string, r secret.Ref, variable string) (secret.Value, error) {
		v, err := b.env.Secret(string(b.account), r, variable)
		if err != nil {
			err = fmt.Errorf("%s.%s: %w", key, member, err)
		}
		return v, err
	}
	var err error
	if b.token, err = read("botToken", s.BotToken, "SLACK_BOT_TOKEN"); err != nil {
		return err
	}
	switch {
	case b.token.IsZero():
		return fmt.Errorf("%s.botToken is missing; it begins with xoxb- (chela config set %s.botToken xoxb-…)", key, key)
	case strings.HasPrefix(b.token.Reveal(), "xapp-"):
		return fmt.Errorf("%s.botToken is the token of an app; the token of the bot begins with xoxb-", key)
	}
	switch s.Mode {
	case "", "socket":
		if b.appToken, err = read("appToken", s.AppToken, "SLACK_APP_TOKEN"); err != nil {
			return err
		}
		switch {
		case b.appToken.IsZero():
			return fmt.Errorf("%s.appToken is missing; it begins with xapp- (chela config set %s.appToken xapp-…)", key, key)
		case strings.HasPrefix(b.appToken.Reveal(), "xoxb-"):
			return fmt.Errorf("%s.appToken is the token of a bot; the token of the app begins with xapp-", key)
		}
	case "http":
		if b.signing, err = read("signingSecret", s.SigningSecret, ""); err != nil {
			return err
		}
		if b.signing.IsZero() {
			return fmt.Errorf("%s.signingSecret is missing (chela config set %s.signingSecret …)", key, key)
		}
		if b.path = cmp.Or(s.WebhookPath, defaultPath); !strings.HasPrefix(b.path, "/") {
			return fmt.Errorf("%s.webhookPath does not begin with a slash", key)
		}
	default:
		return fmt.Errorf("%s.mode is %q; want socket or http", key, s.Mode)
	}
	return nil
}

// self is what the platform knows the account by.
type self struct {
	User, Bot, Team, Name string
}

// Run receives messages until ctx ends or Slack refuses the tokens.
func (b *bot) Run(ctx context.Context, sink channel.Sink) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	defer b.running.Store(false)
	wg.Go(func() { b.work(ctx, sink) })
	return channel.Reconnect(ctx, b.env, func(ctx context.Context, up func()) error {
		if b.self.Load() == nil {
			if err := b.login(ctx); err != nil {
				return err
			}
		}
		b.running.Store(true)
		if b.path == "" {
			return b.connect(ctx, up)
		}
		up()
		<-ctx.Done()
		return ctx.Err()
	})
}

// login learns who the account is.
func (b *bot) login(ctx context.Context) error {
	var r struct {
		UserID string `json:"user_id"`
		BotID  string `json:"bot_id"`
		TeamID string `json:"team_id"`
		User   string `json:"user"`
	}
	if err := b.call(ctx, "auth.test", nil, &r); err != nil {
		return err
	}
	if r.UserID == "" {
		return errors.New("slack: auth.test: the answer has no user_id")
	}
	b.self.Store(&self{User: r.UserID, Bot: r.BotID, Team: r.TeamID, Name: r.User})
	return nil
}

// Probe checks that Slack accepts the bot's token.
func (b *bot) Probe(ctx context.Context) error { return b.call(ctx, "auth.test", nil, nil) }

// me returns what is known of the account.
func (b *bot) me() self {
	if s := b.self.Load(); s != nil {
		return *s
	}
	return self{}
}
