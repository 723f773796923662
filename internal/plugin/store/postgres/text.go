package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/plugin/store/table"
)

var _ store.Texts = (*DB)(nil)

// textTables returns the tables with columns of texts, and the key of each: the first
// column, which is its number.
func textTables(c *table.Tables) ([]table.Texts, error) {
	return table.ScanTexts(c, `SELECT CAST(t.table_name AS TEXT), CAST(t.column_name AS TEXT), CAST(k.column_name AS TEXT) FROM information_schema.columns AS t
JOIN information_schema.columns AS k ON k.table_schema = t.table_schema AND k.table_name = t.table_name AND k.ordinal_position = 1
WHERE t.table_schema = current_schema() AND t.data_type = 'text' AND t.table_name NOT IN ('beat', 'owner') ORDER BY t.table_name, t.ordinal_position`)
}

// Texts implements [store.Texts].
func (d *DB) Texts(ctx context.Context, f func(store.Text) error) error {
	return table.EachText(ctx, d, textTables, f)
}

// Replace implements [store.Texts].
func (d *DB) Replace(ctx context.Context, texts []store.Replacement) (int, error) {
	return table.ReplaceTexts(ctx, d, textTables, texts)
}

// Scrub implements [store.Texts]. It rewrites the tables, because the server keeps what was
// deleted or replaced in their files. What its log, its replicas and its backups contain
// is up to its administrator.
func (d *DB) Scrub(ctx context.Context) error {
	c, err := d.dial(ctx)
	if err != nil {
		return explain(&brokenError{err})
	}
	defer c.close()
	var tables []table.Texts
	if _, err = c.begin(ctx, "SELECT 1"); err == nil {
		tables, err = textTables(c.Tables)
	}
	for _, t := range tables {
		err = errors.Join(err, c.script(ctx, fmt.Sprintf("VACUUM (FULL) %s", quote(t.Table))))
	}
	if err != nil {
		return fmt.Errorf("rewrite the tables: %w", explain(err))
	}
	return nil
}
