package gateway

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/chela-ai/chela/internal/access"
	"github.com/chela-ai/chela/internal/rpc"
	"github.com/chela-ai/chela/wire"
)

// handshake lets the client in, or sends it away.
func (c *conn) handshake(ctx context.Context, auth Authenticator) bool {
	ctx, cancel := context.WithTimeout(ctx, handshake)
	defer cancel()
	c.ws.SetReadLimit(wire.MaxHandshake)
	nonce := rand.Text()
	c.push(encode(wire.EventChallenge, c.s.challenge(nonce)), false, 0)
	c.flush()

	_, b, err := c.ws.Read(ctx)
	if err != nil {
		return false
	}
	req, err := wire.ParseRequest(b)
	if errors.Is(err, wire.ErrNotJSON) {
		c.close(wire.CloseNormal, "")
		return false
	}
	if err != nil {
		return c.refuse(cmp.Or(req.ID, "invalid"), wire.Errorf(wire.InvalidRequest, "invalid request frame: %v", err))
	}
	hello, resume, err := c.admit(ctx, auth, nonce, req)
	if err != nil {
		return c.refuse(req.ID, rpc.Error(err))
	}
	c.heard.Store(true)
	if !c.s.join(c, req.ID, hello, resume) {
		c.close(wire.CloseRestart, "service restart")
		return false
	}
	c.snapshot(ctx)
	// The grant may have been taken away before the connection was one that
	// Drop finds.
	if c.grant.Check != nil && c.grant.Check(ctx) != nil {
		c.drop()
	}
	return true
}

// refuse answers a request of the handshake with an error and closes the
// connection.
func (c *conn) refuse(id string, e *wire.Error) bool {
	c.s.o.Log.Info("connection refused", "from", c.from.String(), "client", c.info.ID, "why", e.Message[:min(len(e.Message), 200)])
	c.respond(id, nil, e)
	code := wire.ClosePolicy
	if e.Detail() == wire.DetailProtocol {
		code = wire.CloseProtocol
	}
	c.close(code, e.Message)
	return false
}

// admit decides who the client is and returns its hello, and where it wants to
// go on.
func (c *conn) admit(ctx context.Context, auth Authenticator, nonce string, req wire.Request) (hello wire.Hello, resume *wire.Resume, err error) {
	if req.Method != wire.MethodConnect {
		return hello, nil, wire.Errorf(wire.InvalidRequest, "invalid handshake: first request must be connect")
	}
	p, err := parseConnect(req.Params)
	if err != nil {
		return hello, nil, err
	}
	c.info = p.Client
	switch {
	case p.MinProtocol <= wire.Version && wire.Version <= p.MaxProtocol:
	case p.MinProtocol <= wire.Oldest && wire.Oldest <= p.MaxProtocol:
		c.proto = wire.Oldest
	default:
		return hello, nil, mismatch(p)
	}
	switch p.Role {
	case "":
		p.Role = wire.RoleOperator
	case wire.RoleOperator, wire.RoleNode:
	default:
		return hello, nil, wire.Errorf(wire.InvalidRequest, "invalid role")
	}
	c.grant, err = auth(ctx, access.Attempt{From: c.from, Nonce: nonce, Connect: p})
	if err != nil {
		return hello, nil, err
	}
	c.who, c.role = c.grant.Who, p.Role
	c.caps, c.since = p.Caps, time.Now()
	c.catalog = p.Catalog
	c.marks = c.proto == wire.Version && slices.Contains(p.Caps, wire.CapCursor)
	hello, err = c.s.hello(ctx, c)
	return hello, p.Resume, err
}

// parseConnect decodes the parameters of connect, as strictly as the clients'
// own gateways do: a property that nobody knows is one that would be ignored
// where it matters.
func parseConnect(raw json.RawMessage) (wire.Connect, error) {
	const name = wire.MethodConnect
	p, err := rpc.Params[wire.Connect](name, raw, "")
	if err != nil {
		return p, err
	}
	var parts struct{ Client, Auth, Device, Resume json.RawMessage }
	if err := json.Unmarshal(raw, &parts); err != nil {
		return p, rpc.Invalid(name, "%v", err) // cannot be: it was decoded above
	}
	if _, err := rpc.Params[wire.ClientInfo](name, parts.Client, "client"); err != nil {
		return p, err
	}
	if p.Auth != nil {
		if _, err := rpc.Params[wire.Auth](name, parts.Auth, "auth"); err != nil {
			return p, err
		}
	}
	if p.Device != nil {
		if _, err := rpc.Params[wire.Device](name, parts.Device, "device"); err != nil {
			return p, err
		}
	}
	if p.Resume != nil {
		if _, err := rpc.Params[wire.Resume](name, parts.Resume, "resume"); err != nil {
			return p, err
		}
	}
	switch {
	case !slices.Contains(clientIDs[:], p.Client.ID):
		return p, rpc.Invalid(name, "at /client/id: must be equal to one of the allowed values")
	case !slices.Contains(clientModes[:], p.Client.Mode):
		return p, rpc.Invalid(name, "at /client/mode: must be equal to one of the allowed values")
	case p.MinProtocol < 1:
		return p, rpc.Invalid(name, "at /minProtocol: must be >= 1")
	case p.MaxProtocol < 1:
		return p, rpc.Invalid(name, "at /maxProtocol: must be >= 1")
	}
	return p, nil
}

// clientIDs are the clients that there are.
var clientIDs = [...]string{
	"chela", "cli", "gateway-client", "webchat", "webchat-ui", "openclaw-control-ui", "openclaw-browser-copilot", "openclaw-tui",
	"openclaw-macos", "openclaw-linux", "openclaw-ios", "openclaw-watchos", "openclaw-android", "node-host", "openclaw-worker",
	"test", "fingerprint", "openclaw-probe",
}

// clientModes are the ways in which clients are used.
var clientModes = [...]string{
	wire.ModeWebchat, wire.ModeCLI, wire.ModeUI, wire.ModeBackend, wire.ModeNode, "worker", wire.ModeProbe, "test",
}

func mismatch(p wire.Connect) error {
	return wire.Errorf(wire.InvalidRequest, "protocol mismatch").With(map[string]any{
		"code": wire.DetailProtocol, "clientMinProtocol": p.MinProtocol, "clientMaxProtocol": p.MaxProtocol,
		"expectedProtocol": wire.Version, "minimumProbeProtocol": wire.Oldest,
	})
}
