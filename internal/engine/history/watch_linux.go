package history

import (
	"bytes"
	"encoding/binary"
	"path/filepath"
	"slices"
	"syscall"
)

// maxWatches is the number of folders that are watched. The system has a limit too.
const maxWatches = 10_000

// watch is told by the kernel which files in some folders change, by any process. What a
// process of this machine changes is reported before its system call returns, except what
// it writes to memory that is mapped from a file, which is reported when it unmaps or ends.
// A file system whose files others change, such as a network's, is not watched.
type watch struct {
	fd      int
	folders map[int32]string // by watch descriptor
	failed  bool
	done    bool // all folders were added
}

// The events that are asked for, and the magic numbers of the file systems that are watched.
const (
	watched = syscall.IN_MODIFY | syscall.IN_ATTRIB | syscall.IN_CLOSE_WRITE | syscall.IN_CREATE | syscall.IN_DELETE | syscall.IN_MOVED_FROM | syscall.IN_MOVED_TO |
		syscall.IN_DELETE_SELF | syscall.IN_MOVE_SELF | syscall.IN_ONLYDIR | syscall.IN_DONT_FOLLOW | syscall.IN_EXCL_UNLINK
	ext, xfs, btrfs, tmpfs, f2fs, zfs, overlay, bcachefs = 0xef53, 0x58465342, 0x9123683e, 0x01021994, 0xf2f52010, 0x2fc12fc1, 0x794c7630, 0xca451a4e
)

// newWatch returns a watch for the folders in dir, or nil if changes there are not reported.
func newWatch(dir string) *watch {
	var st syscall.Statfs_t
	if syscall.Statfs(dir, &st) != nil || !slices.Contains([]uint32{ext, xfs, btrfs, tmpfs, f2fs, zfs, overlay, bcachefs}, uint32(st.Type)) {
		return nil
	}
	fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC | syscall.IN_NONBLOCK)
	if err != nil {
		return nil
	}
	return &watch{fd: fd, folders: map[int32]string{}}
}

func (w *watch) close() { _ = syscall.Close(w.fd) }

// add watches a folder. It is called before the folder is read.
func (w *watch) add(dir string) {
	if w.failed || len(w.folders) >= maxWatches {
		w.failed = true
		return
	}
	n, err := syscall.InotifyAddWatch(w.fd, dir, watched)
	switch {
	case err == nil:
		w.folders[int32(n)] = dir
	case err != syscall.ENOENT && err != syscall.ENOTDIR: // it is gone again
		w.failed = true
	}
}

// complete reports whether all folders are watched.
func (w *watch) complete() bool {
	w.done = !w.failed && len(w.folders) > 0
	return w.done
}

// read returns the files that were reported since the last call, and new folders. ok is
// false if everything has to be compared: reports were lost, or a folder was moved.
func (w *watch) read() (paths, folders []string, ok bool) {
	if w.failed {
		return nil, nil, false
	}
	known, last := map[string]bool{}, ""
	buf := make([]byte, 64<<10)
	for {
		n, err := syscall.Read(w.fd, buf)
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.EAGAIN:
			return paths, folders, true
		case err != nil || n <= 0:
			return nil, nil, false
		}
		for b := buf[:n]; len(b) >= syscall.SizeofInotifyEvent; {
			wd, mask, size := int32(binary.NativeEndian.Uint32(b)), binary.NativeEndian.Uint32(b[4:]), int(binary.NativeEndian.Uint32(b[12:]))
			name, _, _ := bytes.Cut(b[syscall.SizeofInotifyEvent:][:size], []byte{0})
			b = b[syscall.SizeofInotifyEvent+size:]
			dir, path := w.folders[wd], ""
			if dir != "" && len(name) > 0 {
				path = filepath.Join(dir, string(name))
			}
			switch {
			case mask&syscall.IN_Q_OVERFLOW != 0, mask&syscall.IN_UNMOUNT != 0, mask&syscall.IN_MOVE_SELF != 0,
				mask&syscall.IN_ISDIR != 0 && mask&(syscall.IN_MOVED_FROM|syscall.IN_MOVED_TO) != 0:
				return nil, nil, false
			case mask&syscall.IN_IGNORED != 0:
				delete(w.folders, wd)
			case path == "":
			case mask&syscall.IN_ISDIR != 0:
				if mask&syscall.IN_CREATE != 0 {
					folders = append(folders, path)
				}
			case path != last && !known[path]:
				paths, known[path], last = append(paths, path), true, path
			}
		}
	}
}
