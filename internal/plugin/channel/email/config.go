package email

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"golang.org/x/net/publicsuffix"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/kit/secret"
)

// section is the section of an account.
type section struct {
	Address     string     `json:"address"`
	Name        string     `json:"name"` // that people see as the sender
	Aliases     []string   `json:"aliases"`
	Password    secret.Ref `json:"password"`
	Mailbox     string     `json:"mailbox"`
	IMAP        server     `json:"imap"`
	SMTP        server     `json:"smtp"`
	Sent        string     `json:"sent"`
	SentMailbox string     `json:"sentMailbox"`

	TrustedAuthservID     string `json:"trustedAuthservId"`
	RequireAuthentication *bool  `json:"requireAuthentication"`
}

// server is how a server is reached.
type server struct {
	Host     string     `json:"host"`
	Port     int        `json:"port"`
	TLS      encryption `json:"tls"`
	UserName string     `json:"username"`
	Password secret.Ref `json:"password"`
}

// encryption is how a connection is encrypted. In JSON it is true, false or "starttls".
type encryption string

const (
	implicit encryption = "tls"
	startTLS encryption = "starttls"
	none     encryption = "none"
)

// UnmarshalJSON implements json.Unmarshaler.
func (e *encryption) UnmarshalJSON(b []byte) error {
	switch string(b) {
	case "null":
	case "true", `"tls"`:
		*e = implicit
	case `"starttls"`:
		*e = startTLS
	case "false":
		*e = none
	default:
		return errors.New(`tls: want true, false or "starttls"`)
	}
	return nil
}

// What happens with a copy of a mail that was sent.
const (
	sentAuto   = ""       // as the server needs it
	sentAppend = "append" // the copy is stored by this program
	sentServer = "server" // the server stores what it sends
	sentOff    = "off"    // there is no copy
)

// config is a section that was checked.
type config struct {
	section
	address    string // as the id of a peer
	imap, smtp endpoint
	trusted    string // the id of the server whose authentication results count, or a domain of such ids
	require    bool
}

// endpoint is a server with credentials.
type endpoint struct {
	host, addr     string
	tls            encryption
	user, password string
}

// identity returns what the mail server knows the account by.
func identity(raw json.RawMessage) string {
	var s section
	if json.Unmarshal(raw, &s) != nil || s.IMAP.Host == "" {
		return ""
	}
	user := cmp.Or(s.IMAP.UserName, s.Address)
	if user == "" {
		return ""
	}
	return strings.ToLower(user + " " + s.IMAP.Host + " " + cmp.Or(s.Mailbox, inbox))
}

// inbox is the mailbox in which mail arrives.
const inbox = "INBOX"

func parse(env channel.Env, account string, raw json.RawMessage) (config, error) {
	var c config
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &c.section); err != nil {
			return c, fmt.Errorf("channels.email: %w", err)
		}
	}
	c.Address = cmp.Or(c.Address, env.Variable(account, "EMAIL_ADDRESS"))
	if c.Address == "" {
		return c, errors.New("no address (type: chela config set channels.email.address assistant@example.org)")
	}
	var err error
	if c.address, err = normalize(c.Address); err != nil {
		return c, fmt.Errorf("address: %w", err)
	}
	for i, a := range c.Aliases {
		if c.Aliases[i], err = normalize(a); err != nil {
			return c, fmt.Errorf("aliases: %w", err)
		}
	}
	password, err := env.Secret(account, c.Password, "EMAIL_PASSWORD")
	if err != nil {
		return c, fmt.Errorf("password: %w", err)
	}
	if c.imap, err = c.IMAP.endpoint(env, account, "imap", c.address, password.Reveal(),
		map[encryption]int{implicit: 993, startTLS: 143, none: 143}); err != nil {
		return c, err
	}
	if c.imap.password == "" {
		return c, errors.New("no password (type: chela config set channels.email.password PASSWORD)")
	}
	ports := map[encryption]int{implicit: 465, startTLS: 587, none: 25}
	if c.smtp, err = c.SMTP.endpoint(env, account, "smtp", c.imap.user, c.imap.password, ports); err != nil {
		return c, err
	}
	c.Mailbox = cmp.Or(c.Mailbox, inbox)
	if strings.ContainsAny(c.Mailbox+c.SentMailbox+c.Name, "\r\n\x00") {
		return c, errors.New("mailbox, sentMailbox or name contains a line break")
	}
	switch c.Sent {
	case sentAuto, sentAppend, sentServer, sentOff:
	default:
		return c, fmt.Errorf("sent is %q: want %s, %s or %s", c.Sent, sentAppend, sentServer, sentOff)
	}
	c.trusted = cmp.Or(strings.ToLower(c.TrustedAuthservID), authority(c.imap.host))
	c.require = c.RequireAuthentication == nil || *c.RequireAuthentication
	return c, nil
}

// endpoint checks how a server is reached. key is the name of its section.
func (s server) endpoint(env channel.Env, account, key, user, password string,
	ports map[encryption]int) (endpoint, error) {
	e := endpoint{host: s.Host, tls: cmp.Or(s.TLS, implicit), user: cmp.Or(s.UserName, user)}
	if e.host == "" {
		return e, fmt.Errorf("no server (type: chela config set channels.email.%s.host %s.example.org)", key, key)
	}
	if strings.ContainsAny(e.host, "/@ \r\n") {
		return e, fmt.Errorf("%s.host is %q: want a name such as %s.example.org", key, e.host, key)
	}
	port := cmp.Or(s.Port, ports[e.tls])
	if port < 1 || port > 65535 {
		return e, fmt.Errorf("%s.port is %d: want 1 to 65535", key, port)
	}
	e.addr = net.JoinHostPort(e.host, strconv.Itoa(port))
	own, err := env.Secret(account, s.Password, "")
	if err != nil {
		return e, fmt.Errorf("%s.password: %w", key, err)
	}
	e.password = cmp.Or(own.Reveal(), password)
	if strings.ContainsAny(e.user+e.password, "\r\n\x00") {
		return e, fmt.Errorf("%s.username or %s.password contains a line break", key, key)
	}
	return e, nil
}

// authorities are the ids of providers whose servers have other names than their
// authentication results.
var authorities = map[string]string{
	"gmail.com": "google.com", "googlemail.com": "google.com",
	"fastmail.com": "messagingengine.com",
	"me.com":       "dmarc.icloud.com", "icloud.com": "dmarc.icloud.com",
}

// authority returns the domain of the ids that a provider's authentication results have
// unless configured.
func authority(host string) string {
	domain := organization(strings.ToLower(host))
	return cmp.Or(authorities[domain], domain)
}

// organization returns the domain that somebody has registered and that contains d. A name
// without one, such as an address or a public suffix, stands for itself.
func organization(d string) string {
	if net.ParseIP(d) != nil {
		return d
	}
	if registered, err := publicsuffix.EffectiveTLDPlusOne(d); err == nil {
		return registered
	}
	return d
}

// within reports whether d is the domain or one below it.
func within(d, domain string) bool {
	return domain != "" && (d == domain || strings.HasSuffix(d, "."+domain))
}
