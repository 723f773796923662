package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/cli/console"
	"github.com/chela-ai/chela/internal/shell"
	"github.com/chela-ai/chela/internal/tui/ansi"
)

func (c *commands) backup() *cobra.Command {
	return console.Group("backup", "Copy the database, check a copy, bring one back, mend a damaged one",
		c.backupCreate(), c.backupVerify(), c.backupRestore(), c.backupSalvage())
}

// store calls f with what keeps the database safe.
func (c *commands) store(f func(Maintenance, Start) error) error {
	if c.app.Store == nil {
		return errors.New("this build cannot copy the database")
	}
	s, err := c.start()
	if err != nil {
		return err
	}
	return f(c.app.Store, s)
}

func (c *commands) backupCreate() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "create [FILE]", Short: "Write a complete copy of the database, also while chela runs", Args: console.Between(0, 1),
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
					return c.Hint(fmt.Errorf("backup: %s exists", file), "backup create FILE")
				}
				if err := m.Backup(cmd.Context(), s, file); err != nil {
					return fmt.Errorf("backup: %w", err)
				}
				return c.verified(cmd.Context(), m, file, asJSON)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// verified reads a copy and says what it holds.
func (c *commands) verified(ctx context.Context, m Maintenance, file string, asJSON bool) error {
	summary, err := m.Verify(ctx, file)
	if err != nil {
		return console.Hint(fmt.Errorf("verify %s: %w", file, err), "") // what mends a database mends no copy
	}
	if asJSON {
		return c.JSON(map[string]any{"file": file, "ok": true, "summary": summary})
	}
	fmt.Fprintf(c.Out, "%s: %s\n", file, ansi.Line(summary))
	return nil
}

func (c *commands) backupVerify() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{Use: "verify FILE", Short: "Check a copy of the database", Args: console.Exactly(1), RunE: func(cmd *cobra.Command, args []string) error {
		return c.store(func(m Maintenance, _ Start) error { return c.verified(cmd.Context(), m, args[0], asJSON) })
	}}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (c *commands) backupRestore() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "restore FILE", Short: "Put a copy in the place of the database; what is there is kept beside it", Args: console.Exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.store(func(m Maintenance, s Start) error {
				summary, err := m.Verify(cmd.Context(), args[0])
				if err != nil {
					return console.Hint(fmt.Errorf("verify %s: %w", args[0], err), "")
				}
				fmt.Fprintln(c.Err, args[0]+": "+ansi.Line(summary))
				if !yes {
					if err := c.Confirm("restore it to "+s.State, "backup restore "+shell.Quote(args[0])+" --yes"); err != nil {
						return err
					}
				}
				kept, err := m.Restore(cmd.Context(), s, args[0])
				if err != nil {
					return fmt.Errorf("restore: %w", err)
				}
				fmt.Fprintln(c.Out, "restored")
				if kept != "" {
					fmt.Fprintln(c.Out, "what was there before is in "+kept)
				}
				return nil
			})
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

func (c *commands) backupSalvage() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "salvage", Short: "Make a new database of what can be read of a damaged one, which is kept", Args: console.Exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.store(func(m Maintenance, s Start) error {
				if !yes {
					if err := c.Confirm("salvage the database in "+s.State, "backup salvage --yes"); err != nil {
						return err
					}
				}
				report, err := m.Salvage(cmd.Context(), s)
				for _, line := range report {
					fmt.Fprintln(c.Out, ansi.Line(line))
				}
				return err
			})
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}
