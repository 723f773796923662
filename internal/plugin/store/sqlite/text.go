package sqlite

import (
	"context"
	"fmt"

	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/plugin/store/table"
)

var _ store.Texts = (*DB)(nil)

// textTables returns the tables with columns of texts. beat has no rowid and no texts but
// ids of processes.
func textTables(c *table.Tables) ([]table.Texts, error) {
	return table.ScanTexts(c, `SELECT m.name, c.name, 'rowid' FROM sqlite_schema AS m, pragma_table_info(m.name) AS c
WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' AND m.name <> 'beat' AND c.type = 'TEXT' ORDER BY m.name, c.cid`)
}

// Texts implements [store.Texts].
func (d *DB) Texts(ctx context.Context, f func(store.Text) error) error {
	return table.EachText(ctx, d, textTables, f)
}

// Replace implements [store.Texts].
func (d *DB) Replace(ctx context.Context, texts []store.Replacement) (int, error) {
	return table.ReplaceTexts(ctx, d, textTables, texts)
}

// Scrub implements [store.Texts]. What was deleted or replaced in the database is
// overwritten (secure_delete), so that only the log contains it, which is emptied.
func (d *DB) Scrub(ctx context.Context) error {
	if err := d.Damage(); err != nil {
		return err
	}
	_ = d.readers.Drop() // an idle reader does not block, but it keeps pages in memory
	c, err := dialExisting(d.opts.Path, d.opts.VFS)
	if err != nil {
		return d.explain(err)
	}
	defer c.Close()
	if err := c.script(ctx, common); err != nil {
		return d.explain(err)
	}
	for {
		blocked := int64(0)
		_, err := c.One(func(r *table.Row) error { blocked = r.Int(); return nil }, "PRAGMA wal_checkpoint(TRUNCATE)")
		switch {
		case err != nil:
			return d.explain(err)
		case blocked == 0:
			return nil
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("empty the log of the database: %w", err)
		}
	}
}
