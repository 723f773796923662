package sqlite

import (
	"cmp"
	"context"
	"errors"
	"strings"
)

// Check reads the whole database and returns a *[DamagedError] if it is damaged. It
// uses its own connection and blocks no other; ctx cancels it.
func (d *DB) Check(ctx context.Context) error {
	c, err := d.openReader()
	if err != nil {
		return d.explain(err)
	}
	defer c.Close()
	return d.explain(integrity(ctx, c, d.opts.Path))
}

// integrity runs SQLite's integrity check. The error contains the first findings.
func integrity(ctx context.Context, c *conn, path string) error {
	var found []string
	defer c.interrupt(ctx)()
	err := c.query(func(r *row) error { found = append(found, r.text()); return nil }, "PRAGMA integrity_check(10)")
	if err = cmp.Or(ctx.Err(), err); err != nil {
		return err
	}
	if len(found) == 1 && found[0] == "ok" {
		return nil
	}
	return &DamagedError{Path: path, Err: errors.New(strings.Join(found, "; "))}
}
