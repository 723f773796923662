package sqlite

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/chela-ai/chela/internal/kit/atomicfile"
)

// newest creates the tables of the newest version.
//
//go:embed schema.sql
var newest string

// migrations holds the steps from each version to the next: 001.sql leads to
// version 1. There are no downgrades.
//
//go:embed migrations/*.sql
var migrations embed.FS

// schema returns the statements of each migration; index 0 leads to version 1.
func schema() ([]string, error) {
	names, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	steps := make([]string, len(names))
	for i := range names {
		b, err := migrations.ReadFile(fmt.Sprintf("migrations/%03d.sql", i+1))
		if err != nil {
			return nil, err
		}
		steps[i] = string(b)
	}
	return steps, nil
}

// create creates the tables in a database without any, in one transaction. A
// database with tables is migrated.
func create(c *conn, path string, steps []string) error {
	have, err := c.Number("PRAGMA user_version")
	if err != nil {
		return err
	}
	if have > 0 {
		return migrate(c, path, steps)
	}
	return step(c, newest, int64(len(steps)))
}

// migrate applies the missing steps, each in its own transaction. An existing
// database is copied first.
func migrate(c *conn, path string, steps []string) error {
	have, err := c.Number("PRAGMA user_version")
	if err != nil {
		return err
	}
	if have > int64(len(steps)) {
		return newerError(path, have, int64(len(steps)))
	}
	if have > 0 && have < int64(len(steps)) {
		if err := copyTo(context.Background(), c, fmt.Sprintf("%s.bak-v%d", path, have)); err != nil {
			return fmt.Errorf("copy before migration %d: %w", have+1, err)
		}
	}
	for ; have < int64(len(steps)); have++ {
		if err := step(c, steps[have], have+1); err != nil {
			return fmt.Errorf("migration %d: %w", have+1, err)
		}
	}
	return nil
}

func step(c *conn, sql string, version int64) error {
	ctx := context.Background()
	if err := c.script(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := c.script(ctx, sql)
	if err == nil {
		err = c.script(ctx, fmt.Sprintf("PRAGMA user_version = %d", version))
	}
	if err == nil {
		err = c.script(ctx, "COMMIT")
	}
	if err != nil {
		return errors.Join(err, c.script(ctx, "ROLLBACK"))
	}
	return nil
}

// copyTo writes the database as c sees it to the file dst, atomically.
func copyTo(ctx context.Context, c *conn, dst string) error {
	temp := dst + ".part"
	if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	defer os.Remove(temp)
	if err := atomicfile.Create(temp); err != nil {
		return err
	}
	if err := c.script(ctx, "VACUUM INTO '"+strings.ReplaceAll(temp, "'", "''")+"'"); err != nil {
		return err
	}
	return atomicfile.Rename(temp, dst)
}
