package inotify

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"syscall"
)

// Watch reports changes in folders.
type Watch struct {
	fd      int
	events  uint32
	folders map[int32]string // by watch descriptor
	end     func()           // ends it, once
}

// Event is a change in a folder.
type Event struct {
	Mask uint32 // IN_CREATE and so on, of package syscall
	Dir  string // as it was added; "": it is not known any more
	Path string // of what changed in it; "": the folder itself
}

// The magic numbers of file systems whose files only this machine changes.
const ext, xfs, btrfs, tmpfs, f2fs, overlay = 0xef53, 0x58465342, 0x9123683e, 0x01021994, 0xf2f52010, 0x794c7630

// New returns a watch for events in dir and folders in it, or nil if changes there are not
// reported, or the person has too many watches.
func New(dir string, events uint32) *Watch {
	var st syscall.Statfs_t
	if syscall.Statfs(dir, &st) != nil ||
		!slices.Contains([]uint32{ext, xfs, btrfs, tmpfs, f2fs, overlay}, uint32(st.Type)) {
		return nil
	}
	fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC | syscall.IN_NONBLOCK)
	if err != nil {
		return nil
	}
	w := &Watch{fd: fd, events: events, folders: map[int32]string{}, end: sync.OnceFunc(func() { _ = syscall.Close(fd) })}
	runtime.AddCleanup(w, func(end func()) { end() }, w.end)
	return w
}

// Close ends the watch. It may be called more than once.
func (w *Watch) Close() { w.end() }

// Add watches a folder. It is called before the folder is read. It returns the name under
// which the same folder was watched before, or "".
func (w *Watch) Add(dir string) (was string, err error) {
	n, err := syscall.InotifyAddWatch(w.fd, dir, w.events|syscall.IN_ONLYDIR|syscall.IN_DONT_FOLLOW)
	if err != nil {
		return "", err
	}
	was, w.folders[int32(n)] = w.folders[int32(n)], dir
	return was, nil
}

// Gone reports whether an error of Add means that there is no such folder any more.
func Gone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) }

// Len returns the number of folders that are watched.
func (w *Watch) Len() int { return len(w.folders) }

// Read calls f for each event since the last call. It reports false if some were lost.
func (w *Watch) Read(f func(Event)) bool {
	ok := true
	buf := make([]byte, 64<<10)
	for {
		n, err := syscall.Read(w.fd, buf)
		switch {
		case err == syscall.EINTR:
			continue
		case err != nil || n <= 0:
			return ok && err == syscall.EAGAIN
		}
		for b := buf[:n]; len(b) >= syscall.SizeofInotifyEvent; {
			id, e := int32(binary.NativeEndian.Uint32(b)), Event{Mask: binary.NativeEndian.Uint32(b[4:])}
			size := int(binary.NativeEndian.Uint32(b[12:]))
			name, _, _ := bytes.Cut(b[syscall.SizeofInotifyEvent:][:size], []byte{0})
			b = b[syscall.SizeofInotifyEvent+size:]
			switch {
			case e.Mask&syscall.IN_Q_OVERFLOW != 0:
				ok = false
			case e.Mask&syscall.IN_IGNORED != 0:
				delete(w.folders, id)
			default:
				if e.Dir = w.folders[id]; e.Dir != "" && len(name) > 0 {
					e.Path = filepath.Join(e.Dir, string(name))
				}
				f(e)
			}
		}
	}
}
