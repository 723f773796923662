package irc

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/secret"
)

// Name is the name of the channel.
const Name = "irc"

// Factory returns the factory of the channel.
func Factory() channel.Factory {
	return channel.Factory{
		Name:   Name,
		Limits: channel.Limits{Text: 4000},
		Can:    (*bot)(nil),
		Setup: []channel.Setting{
			{Key: "host", Title: "name of the server, such as irc.libera.chat", Env: "IRC_HOST", Required: true},
			{Key: "nick", Title: "nick of the assistant", Env: "IRC_NICK", Required: true},
			{Key: "nickserv.password", Title: "password of the nick at NickServ", Env: "IRC_NICKSERV_PASSWORD", Secret: true},
		},
		Hints: []string{
			"IRC shows plain text in lines: answer in short lines, without Markdown. There are no files and no buttons."},
		New: func(env channel.Env, account string, raw json.RawMessage) (channel.Channel, error) {
			c, err := parse(env, account, raw)
			if err != nil {
				return nil, err
			}
			return &bot{
				env:     env,
				c:       c,
				account: chela.AccountID(account),
				nicks:   map[string]string{},
				done:    map[string]int{},
			}, nil
		},
	}
}

// section is the section of an account.
type section struct {
	Host     string     `json:"host"`
	Port     int        `json:"port"`
	TLS      *bool      `json:"tls"`
	Nick     string     `json:"nick"`
	UserName string     `json:"username"`
	RealName string     `json:"realname"`
	Password secret.Ref `json:"password"`
	SASL     struct {
		UserName string     `json:"username"`
		Password secret.Ref `json:"password"`
	} `json:"sasl"`
	NickServ struct {
		Password secret.Ref `json:"password"`
	} `json:"nickserv"`
	Channels []string `json:"channels"`
}

// config is a section that was checked.
type config struct {
	section
	tls                      bool
	addr                     string
	password, sasl, nickserv secret.Value
}

func parse(env channel.Env, account string, raw json.RawMessage) (config, error) {
	var c config
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &c.section); err != nil {
			return c, fmt.Errorf("channels.irc: %w", err)
		}
	}
	c.Host, c.Nick = cmp.Or(c.Host, env.Variable(account, "IRC_HOST")), cmp.Or(c.Nick, env.Variable(account, "IRC_NICK"))
	if c.Host == "" {
		return c, errors.New("no server (type: chela config set channels.irc.host irc.example.org)")
	}
	if strings.ContainsAny(c.Host, "/ \r\n") {
		return c, fmt.Errorf("host is %q: want a name such as irc.example.org", c.Host)
	}
	if !word(c.Nick) || strings.ContainsAny(c.Nick[:1], "#&:0123456789-") {
		return c, fmt.Errorf("nick is %q (type: chela config set channels.irc.nick NAME)", c.Nick)
	}
	c.UserName, c.RealName = cmp.Or(c.UserName, c.Nick), cmp.Or(c.RealName, c.Nick)
	if !word(c.UserName) {
		return c, fmt.Errorf("username is %q: want a word", c.UserName)
	}
	c.tls = c.TLS == nil || *c.TLS
	if c.Port == 0 {
		c.Port = 6667
		if c.tls {
			c.Port = 6697
		}
	}
	if c.Port < 1 || c.Port > 65535 {
		return c, fmt.Errorf("port is %d: want 1 to 65535", c.Port)
	}
	c.addr = net.JoinHostPort(c.Host, strconv.Itoa(c.Port))
	for i, name := range c.Channels {
		if !strings.HasPrefix(name, "#") && !strings.HasPrefix(name, "&") {
			name = "#" + name
		}
		if !word(name) {
			return c, fmt.Errorf("channels: %q is no name of a channel", name)
		}
		c.Channels[i] = lower(name)
	}
	for _, s := range []struct {
		key string
		ref secret.Ref
		env string
		to  *secret.Value
	}{
		{"password", c.Password, "IRC_PASSWORD", &c.password},
		{"sasl.password", c.SASL.Password, "", &c.sasl},
		{"nickserv.password", c.NickServ.Password, "IRC_NICKSERV_PASSWORD", &c.nickserv},
	} {
		var err error
		if *s.to, err = env.Secret(account, s.ref, s.env); err != nil {
			return c, fmt.Errorf("%s: %w", s.key, err)
		}
		if strings.ContainsAny(s.to.Reveal(), "\r\n\x00") {
			return c, fmt.Errorf("%s contains a line break", s.key)
		}
	}
	if c.SASL.UserName != "" && c.sasl.IsZero() {
		return c, errors.New(
			"sasl.username without sasl.password (type: chela config set channels.irc.sasl.password PASSWORD)")
	}
	return c, nil
}

// word reports whether s can be a parameter in the middle of a line.
func word(s string) bool {
	const most = 100
	if s == "" || len(s) > most || s[0] == ':' {
		return false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] == ',' || s[i] == 0x7f {
			return false
		}
	}
	return true
}

// lower returns the form of a name in which equal names are the same.
func lower(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}
