package native

import (
	"encoding/binary"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// watched are the changes of a folder that matter: names in it, its mode and owner.
const watched = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVE | unix.IN_ATTRIB | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_ONLYDIR | unix.IN_DONT_FOLLOW

// watch tells which folders changed, so that the others need not be looked at. The kernel
// notes a change before the system call that makes it returns.
type watch struct {
	fd   int
	dirs map[int32]string
	end  func() // ends it, once
}

// newWatch returns a watch, or nil if there is none for the file system of root: others than
// this machine may change it, or the person has too many watches.
func newWatch(root string) *watch {
	var st unix.Statfs_t
	if unix.Statfs(root, &st) != nil {
		return nil
	}
	switch uint32(st.Type) {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.OVERLAYFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC:
	default:
		return nil
	}
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		return nil
	}
	w := &watch{fd: fd, dirs: map[int32]string{}, end: sync.OnceFunc(func() { _ = unix.Close(fd) })}
	runtime.AddCleanup(w, func(end func()) { end() }, w.end)
	return w
}

// add begins to watch a folder. It reports whether that is possible.
func (w *watch) add(dir string) bool {
	n, err := unix.InotifyAddWatch(w.fd, dir, watched)
	if err != nil {
		return err == unix.ENOENT || err == unix.ENOTDIR // it went away
	}
	w.dirs[int32(n)] = dir
	return true
}

// replaced watches a folder again and reports whether it is another one than that which was
// watched under this name.
func (w *watch) replaced(dir string) bool {
	n, err := unix.InotifyAddWatch(w.fd, dir, watched)
	if err != nil {
		return false
	}
	was := w.dirs[int32(n)]
	w.dirs[int32(n)] = dir
	return was != dir
}

// changed returns the folders that changed since the last call. ok is false if that is not
// known.
func (w *watch) changed() (dirs []string, ok bool) {
	ok = true
	found := map[string]bool{}
	buf := make([]byte, 64<<10)
	for {
		n, err := unix.Read(w.fd, buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			ok = ok && err == unix.EAGAIN
			break
		}
		for at := 0; at+unix.SizeofInotifyEvent <= n; {
			id, mask := int32(binary.NativeEndian.Uint32(buf[at:])), binary.NativeEndian.Uint32(buf[at+4:])
			name := int(binary.NativeEndian.Uint32(buf[at+12:]))
			at += unix.SizeofInotifyEvent + name
			dir, known := w.dirs[id]
			switch {
			case mask&unix.IN_Q_OVERFLOW != 0:
				ok = false
			case mask&unix.IN_IGNORED != 0:
				delete(w.dirs, id)
			case known && (mask&unix.IN_ATTRIB == 0 || name == 0): // not the attributes of a file in it
				found[dir] = true
			}
		}
	}
	for dir := range found {
		dirs = append(dirs, dir)
	}
	slices.Sort(dirs)
	return dirs, ok
}
