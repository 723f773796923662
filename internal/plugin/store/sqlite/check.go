package sqlite

import (
	"context"
	"errors"
	"strings"

	"github.com/chela-ai/chela/internal/plugin/store/sqlite/db"
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
	err := c.Script(ctx, "PRAGMA integrity_check(10)", func(s *db.Stmt) error {
		line, err := s.Text(0)
		found = append(found, line)
		return err
	})
	if err != nil {
		return err
	}
	if len(found) == 1 && found[0] == "ok" {
		return nil
	}
	return &DamagedError{Path: path, Err: errors.New(strings.Join(found, "; "))}
}
