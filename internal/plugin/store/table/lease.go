package table

import (
	"time"

	"github.com/chela-ai/chela/internal/core/lease"
)

// leases is the tables of leases and heartbeats. It uses the clock of this machine;
// all processes that share the file run on the same machine.
type leases struct{ c *Tables }

var _ lease.Table = leases{}

const leaseIntact = "intact(name, owner, fence, since, crc)"

// Get returns the lease of a name.
func (t leases) Get(name string) (lease.Lease, error) {
	l := lease.Lease{Name: name}
	_, err := t.c.One(func(r *Row) error {
		l.Owner, l.Fence = r.Text(), r.Int()
		return nil
	}, "SELECT owner, fence, "+leaseIntact+" FROM lease WHERE name = ?", name)
	return l, err
}

// Alive reports whether the owner's last heartbeat is still valid.
func (t leases) Alive(owner string) (bool, error) {
	n, err := t.c.Number("SELECT count(*) FROM beat WHERE owner = ? AND expires > ?", owner, time.Now())
	return n > 0, err
}

// Acquire assigns the lease of a name to owner unless another live owner holds it.
func (t leases) Acquire(name, owner string) (lease.Lease, bool, error) {
	l := lease.Lease{Name: name, Owner: owner}
	ok, err := t.c.One(func(r *Row) error {
		l.Fence = r.Int()
		return nil
	}, `INSERT INTO lease (name, owner, fence, since) VALUES (?1, ?2, 1, ?3)
ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, fence = lease.fence + 1, since = excluded.since
WHERE `+leaseIntact+` AND (lease.owner = '' OR lease.owner = ?2 OR NOT EXISTS (SELECT 1 FROM beat WHERE beat.owner = lease.owner AND expires > ?3)) RETURNING fence`, name, owner, time.Now())
	if err != nil || ok {
		return l, ok, err
	}
	l, err = t.Get(name)
	return l, false, err
}

// Release frees the lease unless it was acquired again.
func (t leases) Release(l lease.Lease) error {
	_, err := t.c.Exec("UPDATE lease SET owner = '' WHERE name = ? AND owner = ? AND fence = ? AND "+leaseIntact,
		l.Name, l.Owner, l.Fence)
	return err
}

// Beat records that owner is alive for ttl from now, and deletes heartbeats that
// expired long ago.
func (t leases) Beat(owner string, ttl time.Duration) error {
	now := time.Now()
	if _, err := t.c.Exec("DELETE FROM beat WHERE expires < ?", now.Add(-24*time.Hour)); err != nil {
		return err
	}
	_, err := t.c.Exec(
		"INSERT INTO beat (owner, expires) VALUES (?, ?) ON CONFLICT (owner) DO UPDATE SET expires = excluded.expires",
		owner, now.Add(ttl))
	return err
}
