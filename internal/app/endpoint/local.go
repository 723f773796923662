package endpoint

import (
	"encoding/json"
	"net"
	"net/netip"
	"strconv"

	"github.com/chela-ai/chela/internal/kit/cert"
	"github.com/chela-ai/chela/internal/kit/secret"
	"github.com/chela-ai/chela/internal/surface/access"
	"github.com/chela-ai/chela/internal/surface/cli"
)

// Local returns the address at which programs on this machine reach the port
// according to the section gateway, and the credential for it.
func Local(section json.RawMessage, env Env) (cli.Port, error) {
	var p cli.Port
	g, err := Read(section, Listen{})
	if err != nil {
		return p, err
	}
	host, err := g.Host()
	if err != nil {
		return p, err
	}
	if host.IsUnspecified() {
		host = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	p.URL = "ws://" + net.JoinHostPort(host.String(), strconv.Itoa(*g.Port))
	if g.TLS.Enabled {
		p.URL = "wss" + p.URL[2:]
		if c, err := cert.Load(g.Pair(env.State)); err == nil { // the gateway reports an error
			p.Fingerprint = cert.Fingerprint(c.Leaf.Raw)
		}
	}
	switch g.Auth.Mode {
	case access.ModeToken:
		if v, err := g.Known(env); err == nil {
			p.Auth.Token = v.Reveal()
		}
	case access.ModePassword:
		if v, err := g.Auth.Password.Resolve(env.Env); err == nil {
			p.Auth.Password = v.Reveal()
		}
	}
	return p, nil
}

// HooksToken returns the token of the section hooks; the zero Value when there is
// none.
func HooksToken(section json.RawMessage, env func(string) string) secret.Value {
	var h struct {
		Token secret.Ref `json:"token"`
	}
	if section == nil || json.Unmarshal(section, &h) != nil {
		return secret.Value{}
	}
	v, err := h.Token.Resolve(env)
	if err != nil {
		return secret.Value{}
	}
	return v
}
