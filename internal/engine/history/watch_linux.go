package history

import (
	"syscall"

	"github.com/chela-ai/chela/internal/kit/inotify"
)

// maxWatches is the number of folders that are watched. The system has a limit too.
const maxWatches = 10_000

// watched are the changes that matter.
const watched = syscall.IN_MODIFY | syscall.IN_ATTRIB | syscall.IN_CLOSE_WRITE | syscall.IN_CREATE | syscall.IN_DELETE |
	syscall.IN_MOVED_FROM | syscall.IN_MOVED_TO |
	syscall.IN_DELETE_SELF | syscall.IN_MOVE_SELF | syscall.IN_EXCL_UNLINK

// watch tells which files in some folders change; see [inotify].
type watch struct {
	*inotify.Watch
	failed bool
	done   bool // all folders were added
}

// newWatch returns a watch for the folders in dir, or nil if changes there are not reported.
func newWatch(dir string) *watch {
	if w := inotify.New(dir, watched); w != nil {
		return &watch{Watch: w}
	}
	return nil
}

func (w *watch) close() { w.Close() }

// add watches a folder. It is called before the folder is read.
func (w *watch) add(dir string) {
	if w.failed || w.Len() >= maxWatches {
		w.failed = true
		return
	}
	if _, err := w.Add(dir); err != nil && !inotify.Gone(err) {
		w.failed = true
	}
}

// complete reports whether all folders are watched.
func (w *watch) complete() bool {
	w.done = !w.failed && w.Len() > 0
	return w.done
}

// read returns the files that were reported since the last call, and new folders. ok is
// false if everything has to be compared: reports were lost, or a folder was moved.
func (w *watch) read() (paths, folders []string, ok bool) {
	if w.failed {
		return nil, nil, false
	}
	known, moved := map[string]bool{}, false
	ok = w.Read(func(e inotify.Event) {
		isFolder := e.Mask&syscall.IN_ISDIR != 0
		switch {
		case e.Mask&(syscall.IN_UNMOUNT|syscall.IN_MOVE_SELF) != 0, isFolder &&
			e.Mask&(syscall.IN_MOVED_FROM|syscall.IN_MOVED_TO) != 0:
			moved = true
		case e.Path == "":
		case isFolder:
			if e.Mask&syscall.IN_CREATE != 0 {
				folders = append(folders, e.Path)
			}
		case !known[e.Path]:
			paths, known[e.Path] = append(paths, e.Path), true
		}
	})
	return paths, folders, ok && !moved
}
