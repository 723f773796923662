package migrate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/app/standard"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/media"
	"github.com/chela-ai/chela/internal/core/shell"
	"github.com/chela-ai/chela/internal/kit/atomicfile"
	"github.com/chela-ai/chela/internal/surface/cli"
)

// application is an Apply in progress.
type application struct {
	p      *plan
	record *record // of an Apply that did not end, which is completed, or a new one
	db     standard.Database
	media  *media.Files
}

// Apply carries out the plan.
func (m Migrator) Apply(ctx context.Context, s cli.Start, o cli.MigrateOptions) (_ cli.Migrated, err error) {
	lock, err := own(ctx, s)
	if err != nil {
		return cli.Migrated{}, err
	}
	defer release(lock, &err)
	st, err := m.Store(s)
	if err != nil {
		return cli.Migrated{}, err
	}
	_, statErr := os.Stat(filepath.Join(s.State, st.File))
	db, err := m.openStore(ctx, s)
	if err != nil {
		return cli.Migrated{}, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	p, err := m.prepare(ctx, s, o, target{db: db})
	if err != nil {
		return cli.Migrated{}, err
	}
	defer p.home.Close()
	a := &application{p: p, db: db, record: p.last}
	if !a.collect() {
		return p.shown(), nil
	}
	if a.media, err = media.Open(filepath.Join(s.State, media.Dir), 0); err != nil {
		return cli.Migrated{}, err
	}
	defer func() { err = errors.Join(err, a.media.Close()) }()
	if err := a.run(ctx, statErr == nil); err != nil {
		return cli.Migrated{}, p.interrupted(err)
	}
	out := p.shown()
	out.Report = filepath.Join(a.record.dir, reportName)
	if err := report(out.Report, out, "Taken over"); err != nil {
		return cli.Migrated{}, p.interrupted(err)
	}
	a.record.State = applied
	if err := a.record.save(); err != nil {
		return cli.Migrated{}, p.interrupted(err)
	}
	return out, nil
}

// interrupted says how to go on after an error.
func (p *plan) interrupted(err error) error {
	return &chela.Error{
		Code: chela.CodeOf(err), Message: "the migration is not complete", Err: err,
		Hint: "chela migrate openclaw --apply --from " + shell.Quote(p.home.Dir) +
			", which continues, or chela migrate openclaw --undo",
	}
}

// collect puts the steps into the record. It reports whether there is anything to do.
func (a *application) collect() bool {
	if a.record == nil {
		a.record = newRecord(a.p.start.State, a.p.home.Dir, a.p.now)
	}
	found := a.p.last != nil
	for _, i := range a.p.items {
		for _, s := range i.steps {
			a.record.add(s)
			found = true
		}
	}
	for _, s := range a.record.Steps {
		if s.Kind == kindFile || s.Kind == kindConfig {
			a.addDirs(filepath.Dir(s.Name))
		}
	}
	return found
}

// addDirs records the folders of a file that are missing, outer ones first.
func (a *application) addDirs(dir string) {
	var missing []string
	for {
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) || slices.Contains(a.record.Dirs, dir) {
			break
		}
		missing = append(missing, dir)
		up := filepath.Dir(dir)
		if up == dir {
			break
		}
		dir = up
	}
	slices.Reverse(missing)
	a.record.Dirs = append(a.record.Dirs, missing...)
}

// run carries the steps out. The record is on disk before the first step, and the copy of the
// database, if it was used before, before the first row.
func (a *application) run(ctx context.Context, used bool) error {
	if err := a.p.m.before("record"); err != nil {
		return err
	}
	if err := a.record.sweep(); err != nil {
		return err
	}
	if err := a.record.save(); err != nil {
		return err
	}
	if used {
		if err := a.backup(ctx); err != nil {
			return err
		}
	}
	for _, i := range a.p.items {
		if i.do == nil {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := i.do(ctx, a); err != nil {
			return err
		}
	}
	return a.p.m.before("end")
}

// backup copies the database before rows are added to it.
func (a *application) backup(ctx context.Context) error {
	b, ok := a.db.(standard.Backuper)
	file := filepath.Join(a.record.dir, "before.db")
	if !ok || exists(file) ||
		!slices.ContainsFunc(a.record.Steps, func(s step) bool { return s.Kind != kindFile && s.Kind != kindConfig }) {
		return nil
	}
	if err := a.p.m.before("backup"); err != nil {
		return err
	}
	if err := b.Backup(ctx, file); err != nil {
		return fmt.Errorf("backup of the database: %w", err)
	}
	return nil
}

// report writes what was done for people.
func report(file string, m cli.Migrated, title string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: OpenClaw in %s → %s\n", title, m.From, m.State)
	for _, g := range m.Groups {
		fmt.Fprintf(&b, "\n%s: %s\n", g.Name, g.Summary)
		for _, i := range g.Items {
			fmt.Fprintf(&b, "  %-8s %s", i.Action, i.What)
			if i.To != "" {
				b.WriteString(" → " + i.To)
			}
			if i.Note != "" {
				b.WriteString(" (" + i.Note + ")")
			}
			b.WriteByte('\n')
		}
	}
	for _, l := range [...]struct {
		title string
		items []cli.NotMigrated
	}{{"Not taken", m.Left}, {"Could not be read", m.Problems}} {
		if len(l.items) > 0 {
			fmt.Fprintf(&b, "\n%s:\n", l.title)
		}
		for _, n := range l.items {
			fmt.Fprintf(&b, "  %s: %s\n", n.What, n.Why)
		}
	}
	for _, n := range m.Notes {
		b.WriteString("\n" + n + "\n")
	}
	return atomicfile.Write(file, []byte(b.String()), 0o600)
}
