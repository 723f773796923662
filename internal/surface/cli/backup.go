package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/core/shell"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
)

func (c *commands) backup() *cobra.Command {
	return here(group("backup", "Copy, check, restore and repair the database",
		c.backupCreate(), c.backupVerify(), c.backupRestore(), c.backupSalvage()))
}

// store calls f with the database maintenance of this build.
func (c *commands) store(f func(Maintenance, Start) error) error {
	s, err := c.start()
	if err != nil {
		return err
	}
	return f(c.app.Store, s)
}

func (c *commands) backupCreate() *cobra.Command {
	return c.withJSON(&cobra.Command{
		Use: "create [FILE]", Short: "Write a complete copy of the database, even while chela is running", Args: between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.store(func(m Maintenance, s Start) error {
				file := filepath.Join(s.State, "backups", "chela-"+time.Now().Format("20060102-150405")+".db")
				if len(args) > 0 {
					file = args[0]
				} else if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
					return fmt.Errorf("backup: %w", err)
				}
				file, err := filepath.Abs(file)
				if err != nil {
					return fmt.Errorf("backup: %w", err)
				}
				if _, err := os.Lstat(file); err == nil {
					return c.suggest(fmt.Errorf("backup: %s already exists", file), "backup create FILE")
				}
				if err := m.Backup(cmd.Context(), s, file); err != nil {
					return fmt.Errorf("backup: %w", err)
				}
				return c.verified(cmd.Context(), m, file)
			})
		},
	})
}

// verified checks a copy and prints a summary of its contents.
func (c *commands) verified(ctx context.Context, m Maintenance, file string) error {
	summary, err := m.Verify(ctx, file)
	if err != nil {
		return withHint(fmt.Errorf("verify %s: %w", file, err), "") // the hint for a damaged database does not apply to a copy
	}
	return c.print(map[string]any{"file": file, "ok": true, "summary": summary}, func() { fmt.Fprintf(c.stdout, "%s: %s\n", file, ansi.Line(summary)) })
}

func (c *commands) backupVerify() *cobra.Command {
	return c.withJSON(&cobra.Command{Use: "verify FILE", Short: "Check a copy of the database", Args: exactly(1), RunE: func(cmd *cobra.Command, args []string) error {
		return c.store(func(m Maintenance, _ Start) error { return c.verified(cmd.Context(), m, args[0]) })
	}})
}

func (c *commands) backupRestore() *cobra.Command {
	return c.withYes(&cobra.Command{
		Use: "restore FILE", Short: "Replace the database with a copy; the replaced one is kept beside it", Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.store(func(m Maintenance, s Start) error {
				summary, err := m.Verify(cmd.Context(), args[0])
				if err != nil {
					return withHint(fmt.Errorf("verify %s: %w", args[0], err), "")
				}
				fmt.Fprintln(c.stderr, args[0]+": "+ansi.Line(summary))
				if err := c.confirm("replace the database in "+s.State, "backup restore "+shell.Quote(args[0])+" --yes"); err != nil {
					return err
				}
				kept, err := m.Restore(cmd.Context(), s, args[0])
				if err != nil {
					return fmt.Errorf("restore: %w", err)
				}
				fmt.Fprintln(c.stdout, "restored")
				if kept != "" {
					fmt.Fprintln(c.stdout, "the replaced database is in "+kept)
				}
				return nil
			})
		},
	})
}

func (c *commands) backupSalvage() *cobra.Command {
	return c.withYes(&cobra.Command{
		Use: "salvage", Short: "Build a new database from what is readable in a damaged one, which is kept", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.store(func(m Maintenance, s Start) error {
				if err := c.confirm("salvage the database in "+s.State, "backup salvage --yes"); err != nil {
					return err
				}
				report, err := m.Salvage(cmd.Context(), s)
				for _, line := range report {
					fmt.Fprintln(c.stdout, ansi.Line(line))
				}
				return err
			})
		},
	})
}
