package table

import (
	"fmt"
	"slices"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/pairing"
)

// devices is the table of paired devices and pairing requests.
type devices struct{ c *Tables }

var _ pairing.Table = devices{}

// Device returns a device, which may be a tombstone.
func (t devices) Device(id string) (pairing.Device, error) {
	return get(t.list, "device", "id = ? AND device <> ''", id)
}

const deviceIntact = "intact(n, id, created, removed, device, request, crc)"

func (t devices) list(where string, args ...any) ([]pairing.Device, error) {
	return Collect(t.c, ScanJSON[pairing.Device], "SELECT device, "+deviceIntact+" FROM device WHERE "+where, args...)
}

// Devices returns all devices including tombstones, by time of creation.
func (t devices) Devices() ([]pairing.Device, error) {
	return t.list("device <> '' ORDER BY created, n")
}

// Request returns a request. There are few pending requests, so a scan is enough.
func (t devices) Request(id string) (pairing.Request, error) {
	waiting, err := t.Requests()
	if err != nil {
		return pairing.Request{}, err
	}
	i := slices.IndexFunc(waiting, func(r pairing.Request) bool { return r.ID == id })
	if i < 0 {
		return pairing.Request{}, fmt.Errorf("request %s: %w", id, chela.ErrNotFound)
	}
	return waiting[i], nil
}

// Requests returns all requests, oldest first.
func (t devices) Requests() ([]pairing.Request, error) {
	list, err := Collect(t.c, ScanJSON[pairing.Request], "SELECT request, "+deviceIntact+
		" FROM device WHERE request <> '' ORDER BY n")
	slices.SortStableFunc(list, func(a, b pairing.Request) int { return a.Time.Compare(b.Time) })
	return list, err
}

// PutDevice stores a device by its id.
func (t devices) PutDevice(v pairing.Device) error {
	device, err := encode(v)
	if err != nil {
		return fmt.Errorf("device %s: %w", v.ID, err)
	}
	_, err = t.c.Exec(`INSERT INTO device (id, created, removed, device, request) VALUES (?, ?, ?, ?, '')
ON CONFLICT (id) DO UPDATE SET created = excluded.created, removed = excluded.removed, device = excluded.device WHERE `+
		deviceIntact,
		v.ID, v.Created, v.Removed, device)
	return err
}

// DeleteDevice deletes a device. A request of it is kept.
func (t devices) DeleteDevice(id string) error {
	_, err := t.c.Exec("DELETE FROM device WHERE id = ? AND device <> ''", id)
	return err
}

// PutRequest stores a request. It replaces an earlier request of the same device.
func (t devices) PutRequest(v pairing.Request) error {
	request, err := encode(v)
	if err != nil {
		return fmt.Errorf("request %s: %w", v.ID, err)
	}
	_, err = t.c.Exec(`INSERT INTO device (id, created, removed, device, request) VALUES (?, 0, 0, '', ?)
ON CONFLICT (id) DO UPDATE SET request = excluded.request WHERE `+deviceIntact, v.Device, request)
	return err
}

// DropRequest deletes a request if it exists.
func (t devices) DropRequest(id string) error {
	waiting, err := t.Requests()
	if err != nil {
		return err
	}
	for _, r := range waiting {
		if r.ID != id {
			continue
		}
		if _, err := t.c.Exec("UPDATE device SET request = '' WHERE id = ?", r.Device); err != nil {
			return err
		}
		_, err := t.c.Exec("DELETE FROM device WHERE id = ? AND device = ''", r.Device)
		return err
	}
	return nil
}

// InvitesKey is the setting that stores the invitations of devices. They are few and expire
// soon.
const InvitesKey = "device.invites"

// Invites returns the stored invitations.
func (t devices) Invites() ([]pairing.Invite, error) {
	text, err := setting(t.c, InvitesKey)
	if err != nil || text == "" {
		return nil, err
	}
	var list []pairing.Invite
	err = decode(text, &list)
	return list, err
}

// PutInvites stores the invitations.
func (t devices) PutInvites(list []pairing.Invite) error {
	text, err := encode(list)
	if err != nil {
		return fmt.Errorf("invitations: %w", err)
	}
	return Tx{C: t.c}.SetSetting(InvitesKey, text)
}
