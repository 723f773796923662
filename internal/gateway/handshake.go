package gateway

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net"
	"time"

	"github.com/chela-ai/chela/internal/rpc"
	"github.com/chela-ai/chela/wire"
)

// handshake lets the client in, or sends it away.
func (c *conn) handshake(ctx context.Context, auth Authenticator) bool {
	ctx, cancel := context.WithTimeout(ctx, handshake)
	defer cancel()
	c.ws.SetReadLimit(wire.MaxHandshake)
	nonce := rand.Text()
	c.push(encode(wire.EventChallenge, wire.Challenge{Nonce: nonce, Time: wire.At(time.Now())}), false)

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
	hello, err := c.admit(ctx, auth, nonce, req)
	if err != nil {
		return c.refuse(req.ID, rpc.Error(err))
	}
	if !c.s.join(c, c.response(req.ID, hello, nil)) {
		c.close(wire.CloseRestart, "service restart")
		return false
	}
	return true
}

// refuse answers a request of the handshake with an error and closes the
// connection.
func (c *conn) refuse(id string, e *wire.Error) bool {
	c.respond(id, nil, e)
	code := wire.ClosePolicy
	if e.Detail() == wire.DetailProtocol {
		code = wire.CloseProtocol
	}
	c.close(code, e.Message)
	return false
}

// admit decides who the client is and returns its hello.
func (c *conn) admit(ctx context.Context, auth Authenticator, nonce string, req wire.Request) (wire.Hello, error) {
	if req.Method != wire.MethodConnect {
		return wire.Hello{}, wire.Errorf(wire.InvalidRequest, "invalid handshake: first request must be connect")
	}
	p, err := parseConnect(req.Params)
	if err != nil {
		return wire.Hello{}, err
	}
	if p.MinProtocol > wire.Version || p.MaxProtocol < wire.Version {
		return wire.Hello{}, mismatch(p)
	}
	var nc net.Conn
	if c.nc != nil {
		nc = c.nc.Conn
	}
	c.who, err = auth(ctx, nc, nonce, p)
	if err != nil {
		return wire.Hello{}, err
	}
	c.caps, c.info, c.since = p.Caps, p.Client, time.Now()
	return c.s.hello(ctx, c)
}

// parseConnect decodes the parameters of connect. Properties of other versions
// of the protocol are ignored.
func parseConnect(raw json.RawMessage) (wire.Connect, error) {
	var p wire.Connect
	if err := rpc.Decode(wire.MethodConnect, raw, &p); err != nil {
		return p, err
	}
	switch {
	case p.Client.ID == "":
		return p, rpc.Invalid(wire.MethodConnect, "at /client: must have required property 'id'")
	case p.Role != "" && p.Role != wire.RoleOperator:
		return p, rpc.Invalid(wire.MethodConnect, "at /role: must be equal to one of the allowed values")
	}
	return p, nil
}

func mismatch(p wire.Connect) error {
	return wire.Errorf(wire.InvalidRequest, "protocol mismatch").With(map[string]any{
		"code": wire.DetailProtocol, "clientMinProtocol": p.MinProtocol, "clientMaxProtocol": p.MaxProtocol,
		"expectedProtocol": wire.Version, "minimumProbeProtocol": wire.Version,
	})
}
