package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Check reads the whole database and returns a *[DamagedError] when it is not
// whole. It takes a connection of its own and holds nobody up; ctx ends it.
func (d *DB) Check(ctx context.Context) error {
	c, err := d.openReader()
	if err != nil {
		return d.explain(err)
	}
	defer c.close()
	return d.explain(integrity(ctx, c, d.opts.Path))
}

// integrity runs SQLite's check. Its first findings are the error.
func integrity(ctx context.Context, c *conn, path string) error {
	rows, err := c.c.(driver.QueryerContext).QueryContext(ctx, "PRAGMA integrity_check(10)", nil)
	if err != nil {
		return err
	}
	defer rows.Close()
	var found []string
	for v := make([]driver.Value, 1); ; {
		switch err := rows.Next(v); {
		case errors.Is(err, io.EOF):
			if len(found) == 1 && found[0] == "ok" {
				return ctx.Err()
			}
			return &DamagedError{Path: path, Err: errors.New(strings.Join(found, "; "))}
		case err != nil:
			return err
		}
		found = append(found, fmt.Sprint(v[0]))
	}
}
