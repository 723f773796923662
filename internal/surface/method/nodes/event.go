package nodes

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/pairing"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/wire"
)

// Limits of what a person says to a node.
const (
	maxSaid  = 16 << 10 // bytes
	maxEvent = 256      // bytes of the id of an event
)

// event takes what nodes tell on their own: what a person said. The ends of commands are known
// from their answers; nothing else is used.
func (m methods) event(ctx context.Context, _ rpc.Peer, in wire.NodeEvent) (wire.NodeEventResult, error) {
	out := wire.NodeEventResult{OK: true, Event: in.Event, Reason: "nothing is done with this event"}
	if in.Event != wire.NodeEventVoice {
		return out, nil
	}
	if err := m.said(ctx, in); err != nil {
		return out, err
	}
	out.Handled, out.Reason = true, ""
	return out, nil
}

// said admits what a person said to a node as a message. It has the rights that the device has
// as an operator: without them a node only carries out commands.
func (m methods) said(ctx context.Context, in wire.NodeEvent) error {
	var v wire.NodeVoice
	if json.Unmarshal(payload(in), &v) != nil {
		return rpc.Invalid("at /payload: must be an object with text")
	}
	switch v.Text = strings.TrimSpace(v.Text); {
	case v.Text == "" || len(v.Text) > maxSaid:
		return rpc.Invalid("at /payload/text: must have 1 to %d bytes", maxSaid)
	case len(v.ID) > maxEvent:
		return rpc.Invalid("at /payload/eventId: must have at most %d bytes", maxEvent)
	}
	if v.Session == "" {
		v.Session = chela.MainKey
	}
	key, err := rpc.SessionKey(v.Session, "", m.o.Default)
	if err != nil {
		return err
	}
	if !m.o.Agent(key.Agent()) {
		return rpc.UnknownAgent(key.Agent())
	}
	who, err := m.person(ctx)
	if err != nil {
		return err
	}
	if v.ID != "" {
		v.ID = who.Credential + ":" + v.ID
	}
	_, err = m.o.Gate.Admit(chela.WithPrincipal(ctx, who), chela.Inbound{
		ID:      v.ID,
		Address: chela.Address{Channel: chela.LocalChannel},
		Session: key,
		Sender:  chela.Sender{ID: who.ID},
		Text:    v.Text,
	})
	return err
}

// person returns the principal of the person who speaks to the node that makes a call.
func (m methods) person(ctx context.Context) (chela.Principal, error) {
	id, _ := pairing.DeviceOf(chela.PrincipalFrom(ctx))
	d, err := store.Get(ctx, m.o.Store, func(r store.Reader) (pairing.Device, error) { return r.Devices().Device(id) })
	if err != nil {
		return chela.Principal{}, err
	}
	g := d.Grant(wire.RoleOperator)
	who := pairing.Access{Device: id, Role: wire.RoleOperator, Scopes: g.Scopes}.Principal()
	if !d.Live() || !g.Live() || !who.May(chela.ScopeWrite) {
		return chela.Principal{}, &chela.Error{
			Code: chela.CodeForbidden,
			Message: "this device is only a node, and what is said to it is no message: it needs the role operator with " +
				string(chela.ScopeWrite),
			Hint: "chela devices invite",
		}
	}
	return who, nil
}

// payload returns the payload of an event, which some nodes send as a string with JSON.
func payload(in wire.NodeEvent) json.RawMessage {
	raw := in.Payload
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		raw = in.PayloadJSON
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return json.RawMessage(text)
	}
	return raw
}
