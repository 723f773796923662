package gateway

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/chela-ai/chela/internal/surface/access"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/wire"
)

// handshake performs the handshake and reports whether the client was
// accepted.
func (c *conn) handshake(ctx context.Context, auth Authenticator) bool {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	c.ws.SetReadLimit(wire.MaxHandshake)
	nonce := rand.Text()
	c.push(encode(wire.EventChallenge, c.s.challenge(nonce)), false, 0)

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
	c.received.Store(true)
	if !c.s.join(c, req.ID, hello, resume) {
		c.close(wire.CloseRestart, "service restart")
		return false
	}
	c.sendModels(ctx)
	// The grant may have been revoked before Drop could find the
	// connection.
	if c.grant.Check != nil && c.grant.Check(ctx) != nil {
		c.drop()
	}
	return true
}

// refuse answers a request of the handshake with an error and closes the
// connection.
func (c *conn) refuse(id string, e *wire.Error) bool {
	c.s.o.Log.Info("connection refused", "from", c.from.String(), "client", c.info.ID,
		"why", e.Message[:min(len(e.Message), 200)])
	c.respond(id, nil, e)
	code := wire.ClosePolicy
	if e.Detail() == wire.DetailProtocol {
		code = wire.CloseProtocol
	}
	c.close(code, e.Message)
	return false
}

// admit authenticates the client and returns its hello and its request to
// resume.
func (c *conn) admit(ctx context.Context, auth Authenticator, nonce string,
	req wire.Request) (hello wire.Hello, resume *wire.Resume, err error) {
	if req.Method != wire.MethodConnect {
		return hello, nil, wire.Errorf(wire.InvalidRequest, "invalid handshake: first request must be connect")
	}
	p, err := parseConnect(req.Params)
	if err != nil {
		return hello, nil, rpc.Named(req.Method, err)
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
	c.grant, err = auth(ctx, access.Attempt{Source: c.from, Nonce: nonce, Connect: p})
	if err != nil {
		return hello, nil, err
	}
	c.who, c.role = c.grant.Principal, p.Role
	c.caps, c.since = p.Caps, time.Now()
	c.catalog = p.Catalog
	c.resumable = c.proto == wire.Version && slices.Contains(p.Caps, wire.CapCursor)
	hello, err = c.s.hello(ctx, c)
	return hello, p.Resume, err
}

// parseConnect decodes the parameters of connect. Like OpenClaw's gateway it
// rejects unknown properties, because ignoring them could be unsafe.
func parseConnect(raw json.RawMessage) (wire.Connect, error) {
	p, err := rpc.Params[wire.Connect](raw, "")
	if err != nil {
		return p, err
	}
	var parts struct{ Client, Auth, Device, Resume, Role json.RawMessage }
	if err := json.Unmarshal(raw, &parts); err != nil {
		return p, rpc.Invalid("%v", err) // cannot fail: decoded above
	}
	err = cmp.Or(check[wire.ClientInfo](true, parts.Client, "client"), check[wire.Auth](p.Auth != nil, parts.Auth, "auth"),
		check[wire.Device](p.Device != nil, parts.Device, "device"),
		check[wire.Resume](p.Resume != nil, parts.Resume, "resume"))
	switch {
	case err != nil:
		return p, err
	case !slices.Contains(clientIDs[:], p.Client.ID):
		return p, rpc.Invalid("at /client/id: must be equal to one of the allowed values")
	case !slices.Contains(clientModes[:], p.Client.Mode):
		return p, rpc.Invalid("at /client/mode: must be equal to one of the allowed values")
	case p.Role == "" && parts.Role != nil:
		return p, rpc.Invalid("at /role: must NOT have fewer than 1 characters")
	case p.Client.Version == "":
		return p, rpc.Invalid("at /client/version: must NOT have fewer than 1 characters")
	case p.MinProtocol < 1:
		return p, rpc.Invalid("at /minProtocol: must be >= 1")
	case p.MaxProtocol < 1:
		return p, rpc.Invalid("at /maxProtocol: must be >= 1")
	}
	return p, nil
}

// check checks the properties of a part of the parameters, if it is set.
func check[P any](set bool, raw json.RawMessage, path string) error {
	if !set {
		return nil
	}
	_, err := rpc.Params[P](raw, path)
	return err
}

// clientIDs are the client ids the protocol defines.
var clientIDs = [...]string{
	"chela", "cli", "gateway-client", "webchat", "webchat-ui", "openclaw-control-ui",
	"openclaw-browser-copilot", "openclaw-tui",
	"openclaw-macos", "openclaw-linux", "openclaw-ios", "openclaw-watchos", "openclaw-android",
	"node-host", "openclaw-worker",
	"test", "fingerprint", "openclaw-probe",
}

// clientModes are the client modes the protocol defines.
var clientModes = [...]string{
	wire.ModeWebchat, wire.ModeCLI, wire.ModeUI, wire.ModeBackend, wire.ModeNode, "worker", wire.ModeProbe, "test",
}

func mismatch(p wire.Connect) error {
	return wire.Errorf(wire.InvalidRequest, "protocol mismatch").With(map[string]any{
		"code": wire.DetailProtocol, "clientMinProtocol": p.MinProtocol, "clientMaxProtocol": p.MaxProtocol,
		"expectedProtocol": wire.Version, "minimumProbeProtocol": wire.Oldest,
	})
}
