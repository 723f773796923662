package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/app/inventory"
	"github.com/chela-ai/chela/internal/app/statedir"
	"github.com/chela-ai/chela/internal/core/config"
	"github.com/chela-ai/chela/internal/surface/cli"
)

// repair says how the last finding is repaired.
func (c *checkup) repair(f func(context.Context) error) {
	last := &c.found[len(c.found)-1]
	last.Fixable, last.Repair = true, f
}

// modes reports files that other users can read or change. That of the state directory is
// reported elsewhere.
func (c *checkup) modes(s cli.Start) {
	a := &audit{}
	if err := a.files(s, c.databaseFile(s)); err != nil {
		c.warn("permissions", "", "%v", err)
	}
	for _, w := range a.found {
		want, path, ok := strings.Cut(strings.TrimPrefix(w.Hint, "chmod "), " ")
		if !ok || path == s.State {
			continue
		}
		c.warn("permissions", w.Hint, "%s", w.Text)
		mode := fs.FileMode(0o600)
		if want == "700" {
			mode = 0o700
		}
		c.repair(func(context.Context) error { return os.Chmod(path, mode) })
	}
}

// readable lets the owner of a database read and change it.
func readable(path string) error {
	for _, suffix := range [...]string{"", "-wal", "-shm"} {
		info, err := os.Stat(path + suffix)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = os.Chmod(path+suffix, info.Mode().Perm()|0o600)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// abandoned is the age after which an unfinished file was left behind.
const abandoned = 24 * time.Hour

// leftovers reports what killed processes left behind. Nobody owns the state directory.
func (c *checkup) leftovers(ctx context.Context, s cli.Start) {
	if path, err := statedir.Socket(s.State); err == nil {
		if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSocket != 0 {
			conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
			if err == nil {
				_ = conn.Close() // somebody listens, who has just begun
			} else {
				c.warn("leftovers", "chela doctor --fix", "%s is the socket of a process that was killed", path)
				c.repair(func(ctx context.Context) error { return removeOwned(ctx, s.State, path) })
			}
		}
	}
	var old []string
	for _, dir := range [...]string{s.State, filepath.Join(s.State, "backups"), filepath.Join(s.State, "credentials")} {
		list, _ := os.ReadDir(dir)
		for _, e := range list {
			info, err := e.Info()
			if err == nil && inventory.Of(e.Name(), "") == inventory.Leftover && time.Since(info.ModTime()) > abandoned {
				old = append(old, filepath.Join(dir, e.Name()))
			}
		}
	}
	if len(old) > 0 {
		c.warn("leftovers", "chela doctor --fix", "files that a killed process was writing: %s", strings.Join(old, ", "))
		c.repair(func(ctx context.Context) error { return removeOwned(ctx, s.State, old...) })
	}
}

// removeOwned removes files of a state directory that no other process owns meanwhile.
func removeOwned(ctx context.Context, state string, paths ...string) error {
	lock, err := statedir.OwnIdle(ctx, state)
	if err != nil {
		return err
	}
	var errs []error
	for _, path := range paths {
		errs = append(errs, os.RemoveAll(path))
	}
	return errors.Join(append(errs, lock.Unlock())...)
}

// older reports settings with an older name, which are read but may be renamed.
func (c *checkup) older(tree *config.Tree) {
	all := tree.Older()
	if len(all) == 0 {
		return
	}
	var names []string
	var edits []config.Edit
	for _, o := range all {
		names = append(names, o.From+" is now "+o.To)
		edits = append(edits, o.Edits...)
	}
	c.warn("configuration", "chela doctor --fix", "older names of settings: %s", strings.Join(names, ", "))
	c.repair(func(context.Context) error {
		d, err := tree.Draft(edits...)
		if err == nil {
			_, err = d.Write() // which keeps the file as it was in chela.json.bak
		}
		if err != nil {
			return fmt.Errorf("rename settings: %w", err)
		}
		return nil
	})
}
