package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/app/inventory"
	"github.com/chela-ai/chela/internal/core/archive"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/config"
	"github.com/chela-ai/chela/internal/core/media"
	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/shell"
	"github.com/chela-ai/chela/internal/kit/atomicfile"
	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/internal/surface/cli"
)

// stateAt is the name of the state directory in an archive.
const stateAt = "state"

// stale is the age after which a folder for preparing a copy was left behind.
const stale = 24 * time.Hour

// left says why parts of an installation are not in an archive.
var left = map[inventory.Kind]string{
	inventory.Logs: "logs are not archived", inventory.Backups: "earlier backups are not archived",
	inventory.Browser: "profiles of the browser, with its logins, are not archived",
}

// plan is what an archive is made of.
type plan struct {
	sources  []archive.Source
	database bool // the database is copied
	left     []archive.Left
	outside  string // name of what is outside of the state directory
}

// plan returns what an archive of an installation is made of.
func (d Database) plan(s cli.Start, o cli.ArchiveOptions) (*plan, *inventory.Installation, error) {
	tree, err := config.Options{LastGood: s.LastGood}.Load(s.Config)
	if err != nil {
		return nil, nil, err
	}
	st, err := d.StoreOf(s)
	if err != nil {
		return nil, nil, err
	}
	in, err := inventory.Read(s, st.File, tree)
	if err != nil {
		return nil, nil, err
	}
	p := &plan{outside: "outside"}
	for n := 2; ; n++ { // a restored installation has a folder of that name
		if _, err := os.Lstat(filepath.Join(s.State, p.outside)); err != nil {
			break
		}
		p.outside = fmt.Sprintf("outside-%d", n)
	}
	p.config(s, tree, o.OnlyConfig)
	if o.OnlyConfig {
		return p, in, nil
	}
	switch {
	case st.File == "":
		p.left = append(p.left,
			archive.Left{Path: "database", Why: "it is not in the state directory; its own programs copy it: " + st.Hint})
	default:
		if _, err := os.Stat(filepath.Join(s.State, st.File)); err == nil {
			p.database = true
		}
	}
	skip := map[string]bool{}
	for _, part := range in.Inside {
		name := filepath.Base(part.Path)
		switch part.Kind {
		case inventory.Database, inventory.Cache, inventory.Running, inventory.Leftover:
			skip[name] = true
		case inventory.Logs, inventory.Backups, inventory.Browser:
			skip[name] = true
			p.left = append(p.left, archive.Left{Path: part.Path, Why: left[part.Kind]})
		case inventory.Workspace:
			skip[name] = o.NoWorkspace
		case inventory.Foreign:
			if in.Shared {
				skip[name] = true
			}
		}
		if name == media.Dir && st.File != "" {
			skip[name] = true // its copy belongs to that of the database
		}
	}
	for _, part := range in.Outside { // links to them are not needed
		if filepath.Dir(part.Path) == filepath.Clean(s.State) {
			skip[filepath.Base(part.Path)] = true
		}
	}
	if in.Shared {
		p.left = append(p.left,
			archive.Left{Path: s.State,
				Why: "the state directory is a folder with other things: only what is certainly of chela is archived"})
	}
	p.sources = append(p.sources,
		archive.Source{Kind: "state", Path: s.State, At: stateAt, Skip: func(name string, info fs.FileInfo) bool {
			first, below, _ := strings.Cut(name, "/")
			return skip[first] || below == "" && info.Mode()&fs.ModeSocket != 0 || atomicfile.IsTemp(path.Base(name))
		}})
	own, _ := os.Stat(s.State)
	n := map[inventory.Kind]int{}
	for _, part := range in.Outside {
		if part.Kind == inventory.Config || part.Kind == inventory.Workspace && o.NoWorkspace {
			continue
		}
		n[part.Kind]++
		p.sources = append(p.sources, archive.Source{
			Kind: string(part.Kind),
			Path: part.Path,
			Key:  part.Key,
			At:   path.Join(p.outside, fmt.Sprintf("%s-%d", part.Kind, n[part.Kind])),
			Skip: func(name string, info fs.FileInfo) bool {
				// a workspace may contain the state directory
				return atomicfile.IsTemp(path.Base(name)) || own != nil && info.IsDir() && os.SameFile(own, info)
			},
		})
	}
	return p, in, nil
}

// config adds the files of the configuration that are sources of their own: all if nothing
// else is archived, else those that the state directory does not contain.
func (p *plan) config(s cli.Start, tree *config.Tree, only bool) {
	state := pathpolicy.Real(s.State)
	for _, file := range tree.Files() {
		inState := pathpolicy.Inside(pathpolicy.Real(file), state)
		if inState && !only {
			continue
		}
		rel, err := filepath.Rel(s.State, file)
		at := path.Join(stateAt, filepath.ToSlash(rel))
		if err != nil || !filepath.IsLocal(rel) {
			dir := filepath.Dir(s.Config)
			if rel, err = filepath.Rel(dir, file); err != nil || !filepath.IsLocal(rel) {
				rel, err = filepath.Rel(pathpolicy.Real(dir), file) // includes are named by where they are
			}
			if at = path.Join(p.outside, "config", filepath.ToSlash(rel)); err != nil || !filepath.IsLocal(rel) {
				p.left = append(p.left, archive.Left{Path: file, Why: "it is not in the folder of the configuration"})
				continue
			}
			if rel, err := filepath.Rel(state, file); err == nil && filepath.IsLocal(rel) {
				at = path.Join(stateAt, filepath.ToSlash(rel))
			}
		}
		p.sources = append(p.sources, archive.Source{Kind: string(inventory.Config), Path: file, At: at})
	}
}

// Archive implements cli.Maintenance.
func (d Database) Archive(ctx context.Context, s cli.Start, file string, o cli.ArchiveOptions) (*cli.Archived, error) {
	p, in, err := d.plan(s, o)
	if err != nil {
		return nil, err
	}
	if err := p.private(s, in, file); err != nil {
		return nil, err
	}
	if o.DryRun {
		m, err := archive.Plan(ctx, p.sources, p.left)
		if err != nil {
			return nil, err
		}
		if p.database {
			m.Sources = append(m.Sources, archive.Source{Kind: "database", Path: filepath.Join(s.State, in.Database)})
		}
		return p.archived(file, m), nil
	}
	sweep(filepath.Dir(file))
	temp, err := os.MkdirTemp(filepath.Dir(file), inventory.Temporary)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temp)
	if p.database {
		copied := filepath.Join(temp, in.Database)
		if err := d.Backup(ctx, s, copied); err != nil {
			return nil, err
		}
		p.sources = append(p.sources,
			archive.Source{Kind: "database", Path: filepath.Join(s.State, in.Database), From: copied,
				At: path.Join(stateAt, in.Database)},
			archive.Source{Kind: "media", Path: filepath.Join(s.State, media.Dir), From: mediaOf(copied),
				At: path.Join(stateAt, media.Dir)})
	}
	root, err := os.OpenRoot(filepath.Dir(file))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	var m *archive.Manifest
	err = atomicfile.CreateIn(root, filepath.Base(file), 0o600, func(w io.Writer) (err error) {
		m, err = archive.Create(ctx, w, temp, d.Version, p.sources, p.left)
		return err
	})
	if errors.Is(err, fs.ErrExist) {
		return nil, chela.Errorf(chela.CodeConflict, "%s already exists", file)
	} else if err != nil {
		return nil, err
	}
	return p.archived(file, m), nil
}

// private returns an error if an archive in a file would be in what it archives, or where
// the tools of an assistant read it.
func (p *plan) private(s cli.Start, in *inventory.Installation, file string) error {
	if err := private(s, file); err != nil {
		return err
	}
	real := filepath.Join(pathpolicy.Real(filepath.Dir(file)), filepath.Base(file))
	if pathpolicy.Inside(real, pathpolicy.Real(filepath.Join(s.State, "backups"))) {
		return nil
	}
	for _, src := range p.sources {
		if pathpolicy.Inside(real, pathpolicy.Real(src.Path)) && !(in.Shared && src.Path == s.State) {
			return &chela.Error{Code: chela.CodeInvalid, Message: fmt.Sprintf("%s is in %s, which is archived", file, src.Path),
				Hint: "chela backup create, which writes to " + filepath.Join(s.State, "backups")}
		}
	}
	return nil
}

// sweep removes what killed processes left behind in a folder of copies.
func sweep(dir string) {
	list, _ := os.ReadDir(dir)
	for _, e := range list {
		ours := e.IsDir() && strings.HasPrefix(e.Name(), inventory.Temporary) || atomicfile.IsTemp(e.Name())
		if info, err := e.Info(); err == nil && ours && time.Since(info.ModTime()) > stale {
			_ = os.RemoveAll(filepath.Join(dir, e.Name()))
		}
	}
}

// archived describes an archive for people.
func (p *plan) archived(file string, m *archive.Manifest) *cli.Archived {
	a := &cli.Archived{File: file, Files: m.Count(), Bytes: m.Bytes()}
	if a.Files == 0 { // a plan has no hashes
		for _, f := range m.Files {
			if !f.Dir && f.Link == "" {
				a.Files++
			}
		}
	}
	for _, s := range m.Sources {
		a.Sources = append(a.Sources, cli.ArchivedSource{Kind: s.Kind, Path: s.Path})
	}
	for _, l := range m.Left {
		a.Left = append(a.Left, cli.LeftOut{Path: l.Path, Why: l.Why})
	}
	return a
}

// VerifyArchive implements cli.Maintenance.
func (d Database) VerifyArchive(ctx context.Context, file string) (string, error) {
	_, summary, err := d.verify(ctx, file)
	return summary, err
}

// verify checks an archive and the database in it.
func (d Database) verify(ctx context.Context, file string) (*archive.Manifest, string, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	m, err := archive.Verify(ctx, f)
	if err != nil {
		return nil, "", err
	}
	summary := fmt.Sprintf("complete; %s, %s", humanize.Many(m.Count(), "file"), humanize.Bytes(m.Bytes()))
	for _, s := range m.Sources {
		if s.Kind != "database" || d.Store.Verify == nil {
			continue
		}
		sweep(os.TempDir())
		temp, err := os.MkdirTemp("", inventory.Temporary)
		if err != nil {
			return nil, "", err
		}
		defer os.RemoveAll(temp)
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return nil, "", err
		}
		if err := archive.Extract(ctx, f, m, temp, func(name string) string {
			if name == s.At {
				return "database"
			}
			return ""
		}); err != nil {
			return nil, "", err
		}
		of, err := d.Store.Verify(ctx, filepath.Join(temp, "database"))
		if err != nil {
			return nil, "", fmt.Errorf("its database: %w", err)
		}
		summary += "; database: " + of
	}
	return m, summary, nil
}

// RestoreArchive implements cli.Maintenance.
func (d Database) RestoreArchive(ctx context.Context, file, target string) (*cli.RestoredArchive, error) {
	if err := vacant(target); err != nil {
		return nil, err
	}
	m, summary, err := d.verify(ctx, file)
	if err != nil {
		return nil, fmt.Errorf("verify %s: %w", file, err)
	}
	above := filepath.Dir(target)
	if err := os.MkdirAll(above, 0o700); err != nil {
		return nil, err
	}
	sweep(above)
	temp, err := os.MkdirTemp(above, inventory.Temporary)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temp)
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := archive.Extract(ctx, f, m, temp, place); err != nil {
		return nil, err
	}
	if err := os.Chmod(temp, 0o700); err != nil { //nolint:gosec // a folder
		return nil, err
	}
	if err := vacant(target); err != nil {
		return nil, err
	}
	if err := os.Remove(target); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := os.Rename(temp, target); err != nil {
		return nil, err
	}
	return restored(m, target, summary), atomicfile.SyncDir(above)
}

// place returns where an entry of an archive belongs in the folder of a restored
// installation.
func place(name string) string {
	if name == stateAt {
		return "."
	}
	return strings.TrimPrefix(name, stateAt+"/")
}

// vacant returns an error unless a folder is empty or does not exist.
func vacant(dir string) error {
	list, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && len(list) > 0 {
		err = &chela.Error{Code: chela.CodeInvalid, Message: dir +
			" is not empty, and an archive is restored into an empty or a new folder only",
			Hint: "chela backup restore FILE --target DIR"}
	}
	return err
}

// restored says what was restored, and what is to be typed to use it.
func restored(m *archive.Manifest, target, summary string) *cli.RestoredArchive {
	out := &cli.RestoredArchive{Target: target, Summary: summary, Command: "chela --state-dir " + shell.Quote(target)}
	for _, s := range m.Sources {
		if s.Kind == string(inventory.Config) {
			if at := place(s.At); at == s.At { // it was outside of the state directory
				out.Command += " --config " + shell.Quote(filepath.Join(target, filepath.FromSlash(at)))
			}
			break
		}
	}
	lists := map[string][]string{}
	for _, s := range m.Sources {
		if !inventory.Names(s.Key) {
			continue
		}
		lists[s.Key] = append(lists[s.Key], filepath.Join(target, filepath.FromSlash(place(s.At))))
		out.Moved = append(out.Moved,
			cli.MovedFolder{From: s.Path, To: filepath.Join(target, filepath.FromSlash(place(s.At)))})
	}
	for _, s := range m.Sources {
		dirs := lists[s.Key]
		if dirs == nil {
			continue
		}
		delete(lists, s.Key)
		value := dirs[0]
		if strings.HasSuffix(s.Key, "extraDirs") || strings.HasSuffix(s.Key, "paths") {
			quoted := make([]string, len(dirs))
			for i, d := range dirs {
				quoted[i] = fmt.Sprintf("%q", d)
			}
			value = "[" + strings.Join(quoted, ",") + "]"
		}
		out.Set = append(out.Set, out.Command+" config set "+shell.Quote(s.Key)+" "+shell.Quote(value))
	}
	return out
}
