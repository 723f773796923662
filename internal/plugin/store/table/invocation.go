package table

import (
	"fmt"
	"time"

	"github.com/chela-ai/chela/internal/core/node"
)

// invocations is the table of the calls of nodes that have a key.
type invocations struct{ c *Tables }

var _ node.Table = invocations{}

const invocationIntact = "intact(n, key, sent, invocation, crc)"

// Get returns the invocation with a key.
func (t invocations) Get(key string) (node.Invocation, error) {
	return get(func(where string, args ...any) ([]node.Invocation, error) {
		return Collect(t.c, ScanJSON[node.Invocation], "SELECT invocation, "+invocationIntact+
			" FROM invocation WHERE "+where, args...)
	}, "invocation", "key = ?", key)
}

// Put inserts or replaces the invocation with a key.
func (t invocations) Put(i node.Invocation) error {
	b, err := encode(i)
	if err != nil {
		return fmt.Errorf("invocation %s: %w", i.Key, err)
	}
	_, err = t.c.Exec(`INSERT INTO invocation (key, sent, invocation) VALUES (?, ?, ?)
ON CONFLICT (key) DO UPDATE SET sent = excluded.sent, invocation = excluded.invocation WHERE `+
		invocationIntact, i.Key, i.Sent, b)
	return err
}

// Prune removes the invocations that were sent before a time.
func (t invocations) Prune(before time.Time) error {
	_, err := t.c.Exec("DELETE FROM invocation WHERE sent < ?", before)
	return err
}
