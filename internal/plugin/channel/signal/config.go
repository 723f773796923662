package signal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf16"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/sandbox"
)

// Name is the name of the channel.
const Name = "signal"

const (
	maxText        = 4000
	editInterval   = 10 * time.Second // an edit is a message to every device of every reader
	startupTimeout = 30 * time.Second
	maxStartup     = 2 * time.Minute
)

// Programs returns what starts the programs of an account, whose directory is dir. It ends
// those that an earlier process left.
type Programs func(ctx context.Context, log *slog.Logger, dir string) (sandbox.Broker, error)

// Factory returns the factory of the channel. programs starts signal-cli.
func Factory(programs Programs) channel.Factory {
	return channel.Factory{
		Name: Name,
		Setup: []channel.Setting{
			{Key: "account", Title: "phone number of the assistant, such as +4915112345678",
				Help: "Register or link a number of its own with signal-cli first: docs/signal.md.",
				Env:  "SIGNAL_ACCOUNT", Required: true},
		},
		Limits: channel.Limits{Text: maxText, Edit: editInterval, Size: func(r rune) int {
			return max(utf16.RuneLen(r), 1)
		}},
		Can: (*bot)(nil),
		Hints: []string{
			"Signal shows bold, italic, strikethrough and code, and no other Markdown: write tables as lists, and links as plain addresses. There are no buttons; reactions are possible.",
		},
		Identity: func(raw json.RawMessage) string {
			var s section
			_ = json.Unmarshal(raw, &s) // New reports the error
			return number(s.Account)
		},
		New: func(env channel.Env, account string, raw json.RawMessage) (channel.Channel, error) {
			c, err := parse(env, account, raw)
			if err != nil {
				return nil, err
			}
			if programs == nil && c.managed {
				return nil, errors.New("signal-cli cannot be started here (start it yourself, and type: chela config set channels.signal.httpUrl http://127.0.0.1:8080)")
			}
			return newBot(env, c, chela.AccountID(account), programs), nil
		},
	}
}

// section is the section of an account.
type section struct {
	Account           string `json:"account"`
	AccountUUID       string `json:"accountUuid"`
	HTTPURL           string `json:"httpUrl"`
	HTTPHost          string `json:"httpHost"`
	HTTPPort          int    `json:"httpPort"`
	AutoStart         *bool  `json:"autoStart"`
	CLIPath           string `json:"cliPath"`
	ConfigPath        string `json:"configPath"`
	StartupTimeoutMS  int64  `json:"startupTimeoutMs"`
	IgnoreAttachments bool   `json:"ignoreAttachments"`
	IgnoreStories     bool   `json:"ignoreStories"`
	SendReadReceipts  bool   `json:"sendReadReceipts"`
	AllowFrom         []any  `json:"allowFrom"`
	GroupAllowFrom    []any  `json:"groupAllowFrom"`
}

// config is a section that was checked.
type config struct {
	section
	base    *url.URL // of the daemon
	managed bool     // the channel starts the daemon
	bind    string   // address at which it listens then
	startup time.Duration
	uuid    string // of the account; empty: not known yet
}

var numberForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\+[1-9][0-9]{4,14}$`) })

// number returns a phone number without the characters that people put between digits.
func number(s string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(" -/().", r) {
			return -1
		}
		return r
	}, s)
}

func parse(env channel.Env, account string, raw json.RawMessage) (config, error) {
	var c config
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &c.section); err != nil {
			return c, fmt.Errorf("channels.signal: %w", err)
		}
	}
	c.Account = number(cmp.Or(c.Account, env.Variable(account, "SIGNAL_ACCOUNT")))
	if c.Account == "" {
		return c, errors.New("no phone number (type: chela config set channels.signal.account +491701234567)")
	}
	if !numberForm().MatchString(c.Account) {
		return c, fmt.Errorf("account is %q: want a phone number with country code, such as +491701234567", c.Account)
	}
	if c.AccountUUID != "" {
		if c.uuid = uuidOf(c.AccountUUID); c.uuid == "" {
			return c, fmt.Errorf("accountUuid is %q: want a UUID", c.AccountUUID)
		}
	}
	c.managed = c.HTTPURL == ""
	if c.AutoStart != nil {
		c.managed = *c.AutoStart
	}
	if err := c.address(); err != nil {
		return c, err
	}
	if c.StartupTimeoutMS < 0 {
		return c, fmt.Errorf("startupTimeoutMs is %d: want milliseconds", c.StartupTimeoutMS)
	}
	c.startup = startupTimeout
	if c.StartupTimeoutMS > 0 {
		c.startup = time.Duration(min(c.StartupTimeoutMS, maxStartup.Milliseconds())) * time.Millisecond
	}
	return c, nil
}

// address sets the addresses of the daemon.
func (c *config) address() error {
	if c.HTTPPort < 0 || c.HTTPPort > 65535 {
		return fmt.Errorf("httpPort is %d: want 1 to 65535", c.HTTPPort)
	}
	text := c.HTTPURL
	if text == "" {
		host := strings.Trim(cmp.Or(c.HTTPHost, "127.0.0.1"), "[]")
		text = "http://" + net.JoinHostPort(host, strconv.Itoa(cmp.Or(c.HTTPPort, 8080)))
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil ||
		u.RawQuery != "" || u.Fragment != "" {
		return errors.New("httpUrl or httpHost: want the address of signal-cli's HTTP daemon, such as http://127.0.0.1:8080")
	}
	u.Path = strings.TrimRight(u.Path, "/")
	c.base = u
	if !c.managed {
		return nil
	}
	if u.Scheme != "http" || u.Path != "" {
		return fmt.Errorf("httpUrl is %s: signal-cli listens at an address such as http://127.0.0.1:8080 (for a daemon that you start yourself, type: chela config set channels.signal.autoStart false)", u)
	}
	ip, err := netip.ParseAddr(u.Hostname())
	if u.Hostname() != "localhost" && (err != nil || !ip.IsLoopback()) {
		return fmt.Errorf("the daemon would listen at %s, where everybody could read and write as %s without a password (type: chela config set channels.signal.httpHost 127.0.0.1)", u.Host, c.Account)
	}
	c.bind = net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "80"))
	return nil
}

// strangers returns the entries of the lists of people that match nobody, because they are
// not the UUID of a person.
func (c *config) strangers() []string {
	var out []string
	for _, list := range [][]any{c.AllowFrom, c.GroupAllowFrom} {
		for _, v := range list {
			s := strings.TrimPrefix(fmt.Sprint(v), Name+":")
			if strings.HasPrefix(s, "+") || strings.HasPrefix(s, "uuid:") || uuidOf(s) != "" && uuidOf(s) != s {
				out = append(out, s)
			}
		}
	}
	return out
}
