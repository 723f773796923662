package matrix

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/secret"
)

// Name is the name of the channel.
const Name = "matrix"

// maxText is the maximum length of a message. An event of 64 KB contains it three times.
const maxText = 4000

// Factory returns the factory of the channel.
func Factory() channel.Factory {
	return channel.Factory{
		Name:   Name,
		Limits: channel.Limits{Text: maxText, Edit: time.Second},
		Can:    (*bot)(nil),
		Setup: []channel.Setting{
			{Key: "homeserver", Title: "address of the homeserver, such as https://matrix.org",
				Env: "MATRIX_HOMESERVER", Required: true},
			{Key: "accessToken", Title: "access token of the assistant's account",
				Help: "Create an account for the assistant. In Element: All settings, Help and About, Access Token.",
				Env:  "MATRIX_ACCESS_TOKEN", Secret: true, Required: true},
		},
		Hints: []string{
			"Matrix shows Markdown, including tables and code blocks. There are no buttons.",
		},
		Identity: identity,
		New: func(env channel.Env, account string, raw json.RawMessage) (channel.Channel, error) {
			c, err := parse(env, account, raw)
			if err != nil {
				return nil, err
			}
			return &bot{
				env: env, c: c, account: chela.AccountID(account), client: env.Trusted(c.base.Host), rooms: map[string]*room{},
				told: map[string]bool{}, invites: map[string]string{},
			}, nil
		},
	}
}

// section is the section of an account.
type section struct {
	Homeserver        string     `json:"homeserver"`
	AccessToken       secret.Ref `json:"accessToken"`
	UserID            string     `json:"userId"`
	Password          secret.Ref `json:"password"`
	DeviceID          string     `json:"deviceId"`
	DeviceName        string     `json:"deviceName"`
	AutoJoin          string     `json:"autoJoin"`
	AutoJoinAllowlist []string   `json:"autoJoinAllowlist"`
}

// config is a section that was checked.
type config struct {
	section
	base            *url.URL
	token, password secret.Value
}

func identity(raw json.RawMessage) string {
	var s section
	if json.Unmarshal(raw, &s) != nil || s.UserID == "" {
		return ""
	}
	return strings.TrimRight(s.Homeserver, "/") + " " + s.UserID
}

func parse(env channel.Env, account string, raw json.RawMessage) (config, error) {
	var c config
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &c.section); err != nil {
			return c, fmt.Errorf("channels.matrix: %w", err)
		}
	}
	c.Homeserver = cmp.Or(c.Homeserver, env.Variable(account, "MATRIX_HOMESERVER"))
	c.UserID = cmp.Or(c.UserID, env.Variable(account, "MATRIX_USER_ID"))
	if c.Homeserver == "" {
		return c, errors.New("no homeserver (type: chela config set channels.matrix.homeserver https://matrix.example.org)")
	}
	u, err := url.Parse(c.Homeserver)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.RawQuery != "" {
		return c, errors.New("homeserver: want an address such as https://matrix.example.org")
	}
	u.Path = strings.TrimRight(u.Path, "/")
	c.base = u
	if c.token, err = env.Secret(account, c.AccessToken, "MATRIX_ACCESS_TOKEN"); err != nil {
		return c, fmt.Errorf("accessToken: %w", err)
	}
	if c.password, err = env.Secret(account, c.Password, "MATRIX_PASSWORD"); err != nil {
		return c, fmt.Errorf("password: %w", err)
	}
	if c.token.IsZero() && (c.password.IsZero() || c.UserID == "") {
		return c, errors.New(
			"no credentials (type: chela config set channels.matrix.accessToken TOKEN; or set userId and password)")
	}
	c.AutoJoin = cmp.Or(c.AutoJoin, "off")
	if !slices.Contains([]string{"off", "allowlist", "always"}, c.AutoJoin) {
		return c, fmt.Errorf("autoJoin is %q: want off, allowlist or always", c.AutoJoin)
	}
	return c, nil
}

// bot is an account.
type bot struct {
	env     channel.Env
	c       config
	account chela.AccountID
	client  *http.Client

	login  sync.Mutex // held while logging in
	create sync.Mutex // held while a room is created: two messages to a person need one room

	mu     sync.Mutex   // guards the following; not held during requests
	token  secret.Value // of the session; zero: not logged in
	me     string       // the user id; empty: not known yet
	shown  string       // the display name
	rooms  map[string]*room
	state  *state              // nil: not loaded
	direct map[string][]string // rooms by person, from the account data m.direct

	// Used by Run only.
	told    map[string]bool   // rooms whose encryption was logged
	invites map[string]string // invitations that could not be accepted yet: room, inviter
}

var (
	_ channel.Channel = (*bot)(nil)
	_ channel.Editor  = (*bot)(nil)
	_ channel.Deleter = (*bot)(nil)
	_ channel.Typer   = (*bot)(nil)
	_ channel.Reactor = (*bot)(nil)
	_ channel.Prober  = (*bot)(nil)
	_ channel.Finder  = (*bot)(nil)
	_ channel.Fetcher = (*bot)(nil)
	_ channel.Reader  = (*bot)(nil)
)

// Probe checks that the access token works.
func (b *bot) Probe(ctx context.Context) error {
	if err := b.session(ctx); err != nil {
		return err
	}
	return b.get(ctx, "/_matrix/client/v3/account/whoami", nil, &struct{}{})
}
