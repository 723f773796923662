package storetest

import (
	"errors"
	"testing"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/pairing"
	"github.com/chela-ai/chela/internal/core/store"
)

func testDevices(t *testing.T, s store.Store) {
	device := func(id string, n int) pairing.Device {
		return pairing.Device{
			ID:          id,
			PublicKey:   "k-" + id,
			DisplayName: "<" + id + ">",
			Platform:    "linux",
			Family:      "Linux",
			ClientID:    "cli",
			ClientMode:  "cli",
			Grants: []pairing.Grant{
				{Role: "operator", Scopes: []chela.Scope{chela.ScopeRead}, Generation: 2, Created: at(n), Rotated: at(n + 1),
					Narrowed: true, Tokens: []string{"h1", "h2"}},
				{Role: "node", Generation: 3, Created: at(n), Revoked: at(n + 2)},
			},
			Generation: 3,
			Via:        pairing.ViaOwner,
			Created:    at(n),
			Approved:   at(10 - n),
			LastSeen:   at(n + 3),
		}
	}
	request := func(id, device string, n int) pairing.Request {
		return pairing.Request{
			ID: id, Device: device, PublicKey: "k", ClientID: "tui", ClientMode: "ui", Role: "operator",
			Scopes: []chela.Scope{chela.ScopeAdmin, chela.ScopeRead}, Repair: true, Time: at(n),
		}
	}
	all := func() []pairing.Device {
		return get(t, s, func(r store.Reader) ([]pairing.Device, error) { return r.Devices().Devices() })
	}
	waiting := func() []pairing.Request {
		return get(t, s, func(r store.Reader) ([]pairing.Request, error) { return r.Devices().Requests() })
	}
	same(t, "no devices", all(), nil)
	late, early := device("a", 9), device("b", 1)
	first, second := request("r1", "a", 5), request("r2", "b", 4)
	update(t, s, func(tx store.Tx) error {
		return errors.Join(each(tx.Devices().PutDevice, late, early), each(tx.Devices().PutRequest, first, second))
	})
	same(t, "devices by creation", all(), []pairing.Device{early, late})
	same(t, "requests, the oldest first", waiting(), []pairing.Request{second, first})
	same(t, "a device", get(t, s, func(r store.Reader) (pairing.Device, error) { return r.Devices().Device("a") }), late)
	same(t, "a request", get(t, s, func(r store.Reader) (pairing.Request, error) { return r.Devices().Request("r2") }),
		second)

	invited := []pairing.Invite{{ID: "i", Hash: "h", Roles: []string{"node"}, Scopes: []chela.Scope{}, By: "owner",
		Created: at(3), Used: at(4), Device: "a"}}
	invites := func() []pairing.Invite {
		return get(t, s, func(r store.Reader) ([]pairing.Invite, error) { return r.Devices().Invites() })
	}
	same(t, "no invitations", invites(), nil)
	update(t, s, func(tx store.Tx) error { return tx.Devices().PutInvites(invited) })
	same(t, "an invitation", invites(), invited)

	late.Label = "named"
	late.Node = &pairing.Node{Version: "1", Declared: pairing.Surface{Caps: []string{"x"}, Commands: []string{"y"}},
		Created: at(1), Request: &pairing.NodeRequest{ID: "n", Time: at(2)}}
	late.Removed, late.Grants = at(20), late.Grants[:1]
	newer := request("r3", "a", 6)
	update(t, s, func(tx store.Tx) error {
		return errors.Join(
			tx.Devices().PutDevice(late),
			tx.Devices().PutRequest(newer),
			tx.Devices().DropRequest("none"),
			tx.Devices().DropRequest("r2"),
		)
	})
	same(t, "a tombstone stays", all(), []pairing.Device{early, late})
	same(t, "a device has one request", waiting(), []pairing.Request{newer})
	update(t, s, func(tx store.Tx) error { return tx.Devices().DropRequest("r3") })
	same(t, "no request", waiting(), nil)
	same(t, "the devices stay", all(), []pairing.Device{early, late})
	update(t, s, func(tx store.Tx) error {
		return errors.Join(tx.Devices().PutRequest(first), tx.Devices().DeleteDevice("b"), tx.Devices().DeleteDevice("none"))
	})
	same(t, "a deleted device", all(), []pairing.Device{late})
	same(t, "requests stay", waiting(), []pairing.Request{first})
	update(t, s, func(tx store.Tx) error {
		return errors.Join(tx.Devices().DropRequest("r1"), tx.Devices().PutDevice(early))
	})
	view(t, s, func(r store.Reader) error {
		_, err := r.Devices().Device("none")
		fails(t, "an unknown device", err, chela.ErrNotFound)
		_, err = r.Devices().Request("r1")
		fails(t, "a replaced request", err, chela.ErrNotFound)
		return nil
	})
}
