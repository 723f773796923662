package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/core/shell"
	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
)

func (c *commands) backup() *cobra.Command {
	return here(group("backup", "Archive, check and restore an installation, or copy and repair its database",
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

// isDatabase reports whether a file is, by its name, a copy of a database and no archive.
func isDatabase(file string) bool { return strings.EqualFold(filepath.Ext(file), ".db") }

func (c *commands) backupCreate() *cobra.Command {
	var o ArchiveOptions
	verify := false
	cmd := c.withJSON(&cobra.Command{
		Use: "create [FILE]", Short: "Write an archive of everything, even while chela is running", Args: between(0, 1),
		Long: "Write an archive of everything that makes this installation: the database, pictures, the\n" +
			"configuration, saved keys, workspaces, plug-ins, skills and hooks. If FILE ends in .db, write a\n" +
			"copy of the database and its pictures only. An existing file is never replaced.",
		Example: "  chela backup create\n  chela backup create /mnt/usb/chela.tar.gz --verify\n  chela backup create /mnt/usb/chela.db     # the database only",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.store(func(m Maintenance, s Start) error {
				file, err := c.newCopy(s, args, o)
				if err != nil {
					return err
				}
				ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt) // nothing unfinished is left behind
				defer stop()
				if !isDatabase(file) {
					return c.archive(ctx, m, s, file, o, verify)
				}
				if o != (ArchiveOptions{}) {
					return usage(c.suggest(errors.New(filepath.Base(file)+
						" is the name of a copy of the database, which is always complete"), "backup create FILE.tar.gz"))
				}
				if err := m.Backup(ctx, s, file); err != nil {
					return fmt.Errorf("backup: %w", err)
				}
				return c.verified(ctx, m, file)
			})
		},
	})
	f := cmd.Flags()
	f.BoolVar(&o.OnlyConfig, "only-config", false, "archive the files of the configuration only")
	f.BoolVar(&o.NoWorkspace, "no-include-workspace", false, "leave out the workspaces")
	f.BoolVar(&o.DryRun, "dry-run", false, "show what would be archived, and write nothing")
	f.BoolVar(&verify, "verify", false, "read the archive again and check it")
	return cmd
}

// newCopy returns the file of a new copy, which does not exist.
func (c *commands) newCopy(s Start, args []string, o ArchiveOptions) (string, error) {
	file := filepath.Join(s.State, "backups", time.Now().Format("2006-01-02T15-04-05")+"-chela-backup.tar.gz")
	if len(args) > 0 {
		file = args[0]
	} else if o.DryRun {
		return file, nil
	} else if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return "", fmt.Errorf("backup: %w", err)
	}
	file, err := filepath.Abs(file)
	if err != nil {
		return "", fmt.Errorf("backup: %w", err)
	}
	if _, err := os.Lstat(file); err == nil {
		return "", c.suggest(fmt.Errorf("backup: %s already exists", file), "backup create FILE")
	}
	return file, nil
}

// archive writes an archive and prints what is in it.
func (c *commands) archive(ctx context.Context, m Maintenance, s Start, file string,
	o ArchiveOptions, verify bool) error {
	a, err := m.Archive(ctx, s, file, o)
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	out := struct {
		*Archived
		DryRun  bool   `json:"dryRun,omitempty"`
		Summary string `json:"verified,omitempty"`
	}{Archived: a, DryRun: o.DryRun}
	if verify && !o.DryRun {
		if out.Summary, err = m.VerifyArchive(ctx, file); err != nil {
			return withHint(fmt.Errorf("verify %s: %w", file, err), "")
		}
	}
	return c.print(out, func() {
		for _, src := range a.Sources {
			c.printRow(src.Kind, src.Path)
		}
		for _, l := range a.Left {
			c.printRow("left out", l.Path+": "+l.Why)
		}
		switch {
		case o.DryRun:
			fmt.Fprintf(c.stdout, "would write %s, %s without the database, to %s\n", humanize.Many(a.Files, "file"),
				humanize.Bytes(a.Bytes), file)
			return
		case out.Summary != "":
			fmt.Fprintf(c.stdout, "%s: %s\n", file, ansi.Line(out.Summary))
		default:
			fmt.Fprintf(c.stdout, "%s: %s, %s\n", file, humanize.Many(a.Files, "file"), humanize.Bytes(a.Bytes))
		}
		if !o.OnlyConfig {
			fmt.Fprintln(c.stdout, "it contains keys, tokens and all conversations: keep it where only you can read it")
		}
	})
}

// archived reports whether a file is an archive, by its first bytes.
func archived(file string) bool {
	f, err := os.Open(file)
	if err != nil {
		return !isDatabase(file)
	}
	defer f.Close()
	b := make([]byte, 2)
	_, err = io.ReadFull(f, b)
	return err == nil && b[0] == 0x1f && b[1] == 0x8b || !isDatabase(file) && strings.HasSuffix(file, ".gz")
}

// verified checks a copy and prints a summary of its contents.
func (c *commands) verified(ctx context.Context, m Maintenance, file string) error {
	check := m.VerifyArchive
	if !archived(file) {
		check = m.Verify
	}
	summary, err := check(ctx, file)
	if err != nil {
		// the hint for a damaged database does not apply to a copy
		return withHint(fmt.Errorf("verify %s: %w", file, err), "")
	}
	return c.print(map[string]any{"file": file, "ok": true, "summary": summary},
		func() { fmt.Fprintf(c.stdout, "%s: %s\n", file, ansi.Line(summary)) })
}

func (c *commands) backupVerify() *cobra.Command {
	return c.withJSON(&cobra.Command{Use: "verify FILE", Short: "Check an archive, or a copy of the database",
		Args: exactly(1), RunE: func(cmd *cobra.Command, args []string) error {
			return c.store(func(m Maintenance, _ Start) error { return c.verified(cmd.Context(), m, args[0]) })
		}})
}

func (c *commands) backupRestore() *cobra.Command {
	target := ""
	cmd := c.withJSON(c.withYes(&cobra.Command{
		Use:   "restore FILE",
		Short: "Bring an archive back in a new folder, or replace the database with a copy",
		Args:  exactly(1),
		Long: "Write the files of an archive into the folder of --target, which must be empty or new. Or replace\n" +
			"the database with a copy whose name ends in .db; the replaced one is kept beside it.",
		Example: "  chela backup restore chela-backup.tar.gz --target ~/.chela\n  chela backup restore chela.db",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.store(func(m Maintenance, s Start) error {
				ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt)
				defer stop()
				switch {
				case archived(args[0]) && target == "":
					return usage(c.suggest(errors.New("an archive is restored into a new folder, never in place"), "backup restore "+
						shell.Quote(args[0])+" --target DIR"))
				case archived(args[0]):
					return c.restoreArchive(ctx, m, args[0], target)
				case target != "":
					return usage(c.suggest(errors.New("--target is for archives, and "+args[0]+" is none"),
						"--state-dir DIR backup restore "+shell.Quote(args[0])))
				}
				return c.restoreDatabase(ctx, m, s, args[0])
			})
		},
	}))
	cmd.Flags().StringVar(&target, "target", "", "write the archive's files into the folder `DIR`, which is empty or new")
	return cmd
}

func (c *commands) restoreArchive(ctx context.Context, m Maintenance, file, target string) error {
	target, err := filepath.Abs(target)
	if err != nil {
		return err
	}
	out, err := m.RestoreArchive(ctx, file, target)
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	return c.print(out, func() {
		fmt.Fprintf(c.stdout, "restored into %s: %s\n", target, ansi.Line(out.Summary))
		for _, f := range out.Moved {
			c.printRow("moved", f.From+" → "+f.To)
		}
		if len(out.Set) > 0 {
			fmt.Fprintln(c.stdout, "\nThe configuration names the old places. To use the new ones:")
			for _, line := range out.Set {
				fmt.Fprintln(c.stdout, "  "+ansi.Line(line))
			}
		}
		fmt.Fprintln(c.stdout, "\nTo use it: "+out.Command+" chat")
	})
}

// restoreDatabase replaces the database with a copy.
func (c *commands) restoreDatabase(ctx context.Context, m Maintenance, s Start, file string) error {
	summary, err := m.Verify(ctx, file)
	if err != nil {
		return withHint(fmt.Errorf("verify %s: %w", file, err), "")
	}
	fmt.Fprintln(c.stderr, file+": "+ansi.Line(summary))
	if err := c.confirm("replace the database in "+s.State, "backup restore "+shell.Quote(file)+" --yes"); err != nil {
		return err
	}
	kept, err := m.Restore(ctx, s, file)
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	return c.print(map[string]any{"restored": file, "kept": kept}, func() {
		fmt.Fprintln(c.stdout, "restored")
		if kept != "" {
			fmt.Fprintln(c.stdout, "the replaced database is in "+kept)
		}
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
