package discord

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/internal/kit/secret"
)

// Name is the channel's name in addresses and in the configuration.
const Name = "discord"

const (
	tokenVariable = "DISCORD_BOT_TOKEN" // of the account default
	defaultRoot   = "https://discord.com/api/v10"
	maxText       = 2000 // code points of a message
	remembered    = 2000 // entries of each cache
)

// contentHosts are the hosts of attachments.
var contentHosts = [...]string{"cdn.discordapp.com", "media.discordapp.net"}

// Factory returns the factory of the channel.
func Factory() channel.Factory {
	return channel.Factory{
		Name: Name, Limits: channel.Limits{Text: maxText, Edit: time.Second, Buttons: true}, Can: (*bot)(nil),
		Setup: []channel.Setting{
			{Key: "token", Title: "token of the bot",
				Help: "At https://discord.com/developers/applications create an application, switch on the message content intent under Bot, and copy the token there. Then invite the bot: docs/discord.md.", Env: "DISCORD_BOT_TOKEN", Secret: true, Required: true},
		},
		Hints: []string{
			"Discord shows Markdown. Tables are shown as code blocks.",
			"<@ID> mentions a person. @everyone, @here and roles are not notified.",
		},
		New: func(env channel.Env, account string, raw json.RawMessage) (channel.Channel, error) {
			return newBot(env, account, raw)
		},
	}
}

// options is the section of an account.
type options struct {
	Token   secret.Ref `json:"token"`
	APIRoot string     `json:"apiRoot"` // base URL of the REST API; "": Discord's
}

// bot is an account.
type bot struct {
	env     channel.Env
	account chela.AccountID
	token   secret.Value
	key     string // of the token in the configuration
	root    string // of the REST API, without a slash at its end
	host    string // of root if it is configured; "": Discord's
	http    *http.Client
	limits  limits

	mu       sync.Mutex // guards the following
	self     user       // the account itself; zero: not known yet
	app      string     // id of its application; "": not known yet
	channels cache[string, room]
	direct   cache[string, string]          // channels of direct messages, by person
	sent     cache[string, channel.Receipt] // confirmed messages, by nonce
	reacted  cache[string, string]          // own reactions, by channel and message
	accepted cache[string, struct{}]        // messages that the sink accepted or refused
	acked    cache[string, struct{}]        // acknowledged interactions
}

var (
	_ channel.Channel   = (*bot)(nil)
	_ channel.Editor    = (*bot)(nil)
	_ channel.Deleter   = (*bot)(nil)
	_ channel.Typer     = (*bot)(nil)
	_ channel.Reactor   = (*bot)(nil)
	_ channel.Prober    = (*bot)(nil)
	_ channel.Fetcher   = (*bot)(nil)
	_ channel.Poller    = (*bot)(nil)
	_ channel.Pinner    = (*bot)(nil)
	_ channel.Threader  = (*bot)(nil)
	_ channel.Reader    = (*bot)(nil)
	_ channel.Directory = (*bot)(nil)
	_ channel.Menuer    = (*bot)(nil)
)

// newBot makes an account from its section.
func newBot(env channel.Env, account string, raw json.RawMessage) (*bot, error) {
	var o options
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &o); err != nil {
			return nil, fmt.Errorf("discord: %w", err)
		}
	}
	b := &bot{
		env: env, account: chela.AccountID(account), key: "channels.discord.token", root: defaultRoot, http: env.HTTP,
		channels: newCache[string, room](), direct: newCache[string, string](), sent: newCache[string, channel.Receipt](),
		reacted: newCache[string, string](), accepted: newCache[string, struct{}](), acked: newCache[string, struct{}](),
	}
	if account != "default" {
		b.key = "channels.discord.accounts." + account + ".token"
	}
	var err error
	if b.token, err = o.token(env, account); err != nil {
		return nil, fmt.Errorf("discord: %s: %w", b.key, err)
	}
	if b.token.IsZero() {
		return nil, fmt.Errorf("discord: %s is missing (create a bot at https://discord.com/developers/applications, then: chela config set %s TOKEN)", b.key, b.key)
	}
	if o.APIRoot != "" {
		u, err := url.Parse(o.APIRoot)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
			return nil, errors.New("discord: channels.discord.apiRoot: want a URL such as " + defaultRoot)
		}
		b.root, b.host, b.http = strings.TrimRight(o.APIRoot, "/"), u.Host, env.Trusted(u.Host)
	}
	return b, nil
}

// token returns the token of an account; empty: there is none.
func (o options) token(env channel.Env, account string) (secret.Value, error) {
	v, err := env.Secret(account, o.Token, tokenVariable)
	if err != nil {
		return v, err
	}
	text := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(v.Reveal()), "Bot "))
	if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return secret.Value{}, errors.New("the token contains spaces or other characters that no token has")
	}
	return secret.New(text), nil
}

// errToken says that Discord does not know the token.
var errToken = errors.New("the token is not valid")

// unauthorized returns the error about a refused token.
func (b *bot) unauthorized() error {
	return &channel.Error{Permanent: true,
		Err: fmt.Errorf(
			"discord: %w (reset it at https://discord.com/developers/applications, Bot, then: chela config set %s TOKEN)",
			errToken, b.key)}
}

// trusts reports whether a URL of content or of the gateway leads to Discord.
func (b *bot) trusts(u *url.URL, schemes []string, hosts ...string) bool {
	if b.host != "" && u.Host == b.host {
		return u.User == nil && (slices.Contains(schemes, u.Scheme) || u.Scheme == "http" || u.Scheme == "ws")
	}
	return u.User == nil && slices.Contains(schemes, u.Scheme) && slices.Contains(hosts, u.Host)
}

// user is a person or a program at Discord.
type user struct {
	ID         string `json:"id"`
	Username   string `json:"username"`
	GlobalName string `json:"global_name"`
	Bot        bool   `json:"bot"`
}

// sender returns the author of a message. nick is the name in the guild; "": none.
func (u user) sender(nick string) chela.Sender {
	return chela.Sender{ID: u.ID, Name: cmp.Or(nick, u.GlobalName, u.Username), Bot: u.Bot}
}

// snowflake reports whether s may be an id of Discord.
func snowflake(s string) bool {
	return s != "" && len(s) <= 20 && !strings.ContainsFunc(s, func(r rune) bool { return r < '0' || r > '9' })
}

// gone returns the error about something that does not exist.
func gone(what, id string) error {
	return &channel.Error{Permanent: true, Err: fmt.Errorf("discord: %s %q: %w", what, id, channel.ErrGone)}
}

// refused returns the error about something that Discord does not accept.
func refused(format string, args ...any) error {
	return &channel.Error{Permanent: true, Err: fmt.Errorf("discord: "+format, args...)}
}

// truncate returns s if it has at most n characters, and otherwise a beginning of it.
func truncate(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return humanize.Truncate(s, n-1)
}

// cache remembers a bounded number of values, and forgets the oldest.
type cache[K comparable, V any] struct {
	values map[K]V
	order  []K // oldest first, from next on
	next   int
}

func newCache[K comparable, V any]() cache[K, V] { return cache[K, V]{values: map[K]V{}} }

func (c *cache[K, V]) get(k K) (V, bool) {
	v, ok := c.values[k]
	return v, ok
}

func (c *cache[K, V]) put(k K, v V) {
	if _, ok := c.values[k]; !ok {
		if len(c.order) < remembered {
			c.order = append(c.order, k)
		} else {
			delete(c.values, c.order[c.next])
			c.order[c.next] = k
			c.next = (c.next + 1) % remembered
		}
	}
	c.values[k] = v
}
