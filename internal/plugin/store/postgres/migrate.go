package postgres

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/chela-ai/chela/internal/core/chela"
)

// migrations holds the steps from each version to the next: 001.sql leads to version 1.
// There are no downgrades.
//
//go:embed migrations/*.sql
var migrations embed.FS

// missing returns the numbers of the steps that lead from a version to the newest.
func (d *DB) missing(version string) ([]int, error) {
	names, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	have, err := strconv.Atoi(version)
	if err != nil {
		return nil, err
	}
	if have > len(names) {
		return nil, &chela.Error{
			Code: chela.CodeUnavailable,
			Message: fmt.Sprintf("the database of storage.postgres has version %d, this program knows up to %d",
				have, len(names)),
			Hint: "use the newer chela that wrote it",
		}
	}
	var steps []int
	for n := have + 1; n <= len(names); n++ {
		steps = append(steps, n)
	}
	return steps, nil
}

// migrate applies the missing steps, each in its own transaction.
func (d *DB) migrate(ctx context.Context) error {
	c, err := d.dial(ctx)
	if err != nil {
		return connecting(err)
	}
	defer c.close()
	have, err := c.begin(ctx, "SELECT n FROM version")
	if err != nil {
		return connecting(err)
	}
	steps, err := d.missing(string(have[0].Rows[0][0]))
	if err != nil {
		return err
	}
	for _, n := range steps {
		sql, err := migrations.ReadFile(fmt.Sprintf("migrations/%03d.sql", n))
		if err != nil {
			return err
		}
		locked, err := c.begin(ctx, fmt.Sprintf("BEGIN; UPDATE owner SET mark = 0 WHERE fence = %d", d.owner.fence))
		if err == nil && locked[1].CommandTag.RowsAffected() != 1 {
			err = d.owner.fenced()
		}
		if err == nil {
			err = c.script(ctx, string(sql)+fmt.Sprintf(";\nUPDATE version SET n = %d; COMMIT", n))
		}
		if err != nil {
			return fmt.Errorf("migration %d of the database: %w", n, err)
		}
	}
	return nil
}

// literal returns a text as a literal of SQL.
func literal(s string) string { return "'" + strings.ReplaceAll(clean(s), "'", "''") + "'" }
