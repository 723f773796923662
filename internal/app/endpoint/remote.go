package endpoint

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/secret"
	"github.com/chela-ai/chela/internal/surface/cli"
	"github.com/chela-ai/chela/wire"
)

// ModeRemote is the value of gateway.mode with which this machine uses a gateway on
// another one.
const ModeRemote = "remote"

// remoteOptions is gateway.remote: the gateway that is used in mode remote.
type remoteOptions struct {
	URL         string     `json:"url"`
	Token       secret.Ref `json:"token"`
	Password    secret.Ref `json:"password"`
	Fingerprint string     `json:"tlsFingerprint"`
	Transport   string     `json:"transport"` // direct, ssh
	Target      string     `json:"sshTarget"`
	Identity    string     `json:"sshIdentity"`
	Port        int        `json:"remotePort"`
}

// Transports to the gateway of gateway.remote.
const (
	transportDirect = "direct"
	transportSSH    = "ssh"
)

// Remote returns the gateway on another machine that the section gateway names; nil:
// gateway.mode is not remote.
func Remote(section json.RawMessage, env Env) (*cli.Remote, error) {
	var g struct {
		Mode   string        `json:"mode"`
		Remote remoteOptions `json:"remote"`
	}
	if section == nil {
		return nil, nil
	}
	if err := json.Unmarshal(section, &g); err != nil {
		return nil, fmt.Errorf("configuration, gateway: %w", err)
	}
	if g.Mode != ModeRemote {
		return nil, nil
	}
	r, err := g.Remote.gateway()
	if err != nil {
		return nil, err
	}
	token, err := g.Remote.Token.Resolve(env.Env)
	if err != nil {
		return nil, fmt.Errorf("gateway.remote.token: %w", err)
	}
	password, err := g.Remote.Password.Resolve(env.Env)
	if err != nil {
		return nil, fmt.Errorf("gateway.remote.password: %w", err)
	}
	r.Auth = wire.Auth{Token: token.Reveal(), Password: password.Reveal()}
	if r.Auth == (wire.Auth{}) {
		r.Auth = wire.Auth{Token: variable(env, "GATEWAY_TOKEN"), Password: variable(env, "GATEWAY_PASSWORD")}
	}
	for _, s := range [...]string{r.Auth.Token, r.Auth.Password} {
		if env.Secrets != nil && s != "" {
			env.Secrets.Add(secret.New(s))
		}
	}
	return r, nil
}

// variable returns the value of one of our environment variables.
func variable(env Env, name string) string {
	if env.Env == nil {
		return ""
	}
	return cmp.Or(env.Env("CHELA_"+name), env.Env("OPENCLAW_"+name))
}

// gateway returns where the gateway is, without a credential.
func (o remoteOptions) gateway() (*cli.Remote, error) {
	r := &cli.Remote{Port: cli.Port{Fingerprint: o.Fingerprint}}
	host, scheme, port := "", "ws", wire.DefaultPort
	if o.URL != "" {
		u, err := url.Parse(o.URL)
		if err == nil {
			u.Scheme = strings.Replace(u.Scheme, "http", "ws", 1) // the address of the web page
		}
		if err != nil || u.Scheme != "ws" && u.Scheme != "wss" || u.Hostname() == "" || u.User != nil ||
			u.RawQuery != "" || u.Fragment != "" {
			return nil, invalid("chela config set gateway.remote.url wss://HOST:18789",
				"gateway.remote.url is not an address such as wss://HOST:18789")
		}
		r.URL, host, scheme = u.String(), u.Hostname(), u.Scheme
		if p, err := strconv.Atoi(u.Port()); err == nil {
			port = p
		}
	}
	switch o.Transport {
	case "", transportDirect:
		if o.URL == "" {
			return nil, invalid("chela config set gateway.remote.url wss://HOST:18789",
				"gateway.mode is remote, but gateway.remote.url is not set")
		}
		return r, nil
	case transportSSH:
	default:
		return nil, invalid("chela config set gateway.remote.transport ssh",
			"gateway.remote.transport: want direct or ssh, not %q", o.Transport)
	}
	if o.Port < 0 || o.Port > 65535 {
		return nil, invalid(fmt.Sprintf("chela config set gateway.remote.remotePort %d", wire.DefaultPort),
			"gateway.remote.remotePort: %d is not a port number", o.Port)
	}
	if o.Target == "" && !loopbackName(host) {
		o.Target = host
	}
	if o.Target == "" {
		return nil, invalid("chela config set gateway.remote.sshTarget USER@HOST",
			"gateway.remote.transport is ssh, but gateway.remote.sshTarget is not set")
	}
	r.SSH = &cli.SSH{Target: o.Target, Identity: o.Identity, Port: cmp.Or(o.Port, port)}
	// The gateway gets the connection on its own machine, where this is its address.
	r.URL = scheme + "://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(r.SSH.Port))
	return r, nil
}

// loopbackName reports whether a host of a URL is this machine, or none.
func loopbackName(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

func invalid(hint, format string, args ...any) error {
	return &chela.Error{Code: chela.CodeInvalid, Message: fmt.Sprintf(format, args...), Hint: hint}
}

// LocalPort opens a port that only this machine reaches; "": a free one.
func LocalPort(ctx context.Context, port string) (net.Listener, error) {
	return new(net.ListenConfig).Listen(ctx, "tcp4", net.JoinHostPort("127.0.0.1", cmp.Or(port, "0")))
}
