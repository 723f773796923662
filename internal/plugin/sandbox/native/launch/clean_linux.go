package launch

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// folder is a folder in memory that a command can change.
type folder struct {
	Mount
	entries map[string]string // what it holds when a command starts
	times   map[string]times  // of what it holds
	alone   bool              // nothing is mounted in it, so it can be mounted again
}

// errChanged means that a command has changed a folder.
var errChanged = errors.New("the command has changed what the next one would see")

// remember finds out what is to be checked after each command.
func (l *launcher) remember(mounts []Mount) error {
	for i, m := range mounts {
		if m.Kind != Temp && m.Kind != DevPTS {
			continue
		}
		if slices.ContainsFunc(mounts[i+1:], func(o Mount) bool { return o.Kind == Bind && inside(m.To, o.To) }) {
			continue // nobody sees it
		}
		below := func(to string) bool { return to != m.To && inside(to, m.To) }
		f := folder{Mount: m, alone: !slices.ContainsFunc(mounts, func(o Mount) bool { return below(o.To) }) &&
			!slices.ContainsFunc(l.writable, below)}
		var err error
		if f.entries, err = entries(m.To, nil); err != nil {
			return fmt.Errorf("%s: %w", m.To, err)
		}
		f.times = timesOf(f.entries)
		l.memory = append(l.memory, f)
	}
	return nil
}

// clean makes the cage what it was before the command, of which no process is
// left. It fails if that is not possible.
func (l *launcher) clean() error {
	l.reopen()
	for _, f := range l.memory {
		now, err := entries(f.To, f.entries)
		if err == nil && len(now) == len(f.entries) && f.restoreTimes() == nil {
			continue
		}
		if !f.alone {
			return fmt.Errorf("%s: %w", f.To, cmp.Or(err, errChanged))
		}
		if err := unix.Unmount(f.To, unix.MNT_DETACH); err != nil {
			return fmt.Errorf("%s: %w", f.To, err)
		}
		if err := mountTemp(f.Mount); err != nil {
			return fmt.Errorf("%s: %w", f.To, err)
		}
		l.confinement.close() // its rules name folders that are gone
		l.confinement = nil
	}
	return nil
}

// reopen gives the folders of the layers back to their owner, if a command has closed them.
// No later command could use them, and they are kept.
func (l *launcher) reopen() {
	for _, dir := range l.open {
		if info, err := os.Lstat(dir); err == nil && info.Mode()&0o700 != 0o700 {
			_ = os.Chmod(dir, info.Mode().Perm()|0o700) // if that fails, the programs that use it do
		}
	}
}

// inside reports whether a path is another or below it.
func inside(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// maxText limits the files that are compared; the gateway writes smaller ones.
const maxText = 256 << 10

// mounted describes in entries what is mounted.
const mounted = "mount"

// times are when something was read and changed last.
type times struct{ read, changed unix.StatxTimestamp }

// timesOf returns the times of what entries describes.
func timesOf(entries map[string]string) map[string]times {
	out := map[string]times{}
	for name, text := range entries {
		var st unix.Statx_t
		if text != mounted &&
			unix.Statx(unix.AT_FDCWD, name, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_ATIME|unix.STATX_MTIME, &st) == nil {
			out[name] = times{st.Atime, st.Mtime}
		}
	}
	return out
}

// restoreTimes sets the times of what is in the folder back: a command can choose them, and
// the next one would see them.
func (f *folder) restoreTimes() error {
	for name, now := range timesOf(f.entries) {
		had := f.times[name]
		if now == had {
			continue
		}
		to := []unix.Timespec{unix.NsecToTimespec(had.read.Sec*1e9 + int64(had.read.Nsec)),
			unix.NsecToTimespec(had.changed.Sec*1e9 + int64(had.changed.Nsec))}
		if err := unix.UtimesNanoAt(unix.AT_FDCWD, name, to, unix.AT_SYMLINK_NOFOLLOW); err != nil &&
			now.changed != had.changed {
			return err
		}
	}
	return nil
}

// attributes describes the attributes of a file that a command can set.
func attributes(name string) string {
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, name, unix.AT_SYMLINK_NOFOLLOW, 0, &st); err != nil {
		return err.Error()
	}
	out := fmt.Sprint(st.Attributes&^unix.STATX_ATTR_MOUNT_ROOT, " ")
	n, err := unix.Llistxattr(name, nil)
	if err != nil || n == 0 { // the file system may have none
		return out
	}
	names := make([]byte, n)
	n, _ = unix.Llistxattr(name, names)
	for attr := range bytes.SplitSeq(names[:max(n, 0)], []byte{0}) {
		if len(attr) > 0 {
			value := make([]byte, 64<<10)
			n, _ := unix.Lgetxattr(name, string(attr), value) // what cannot be read, no command can set
			out += fmt.Sprintf("%q=%q ", attr, value[:max(n, 0)])
		}
	}
	return out
}

// entries describes what is in a folder, without what is mounted in it. If
// want is not nil, it fails at the first thing that is not as in want.
func entries(root string, want map[string]string) (map[string]string, error) {
	out := map[string]string{}
	var device uint64
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return errChanged
		}
		if name == root {
			device = st.Dev
		}
		text := fmt.Sprint(info.Mode(), st.Uid, st.Gid, " ", attributes(name))
		switch {
		case st.Dev != device:
			if text = mounted; d.IsDir() {
				err = fs.SkipDir
			}
		case want != nil && !strings.HasPrefix(want[name], text) || info.Size() > maxText:
			return errChanged
		case info.Mode().IsRegular():
			var b []byte
			b, err = os.ReadFile(name)
			text += string(b)
		case info.Mode().Type() == fs.ModeSymlink:
			var to string
			to, err = os.Readlink(name)
			text += to
		}
		if want != nil && want[name] != text {
			return errChanged
		}
		out[name] = text
		return err
	})
	return out, err
}
