package native

import (
	"maps"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/chela-ai/chela/internal/kit/inotify"
)

// watched are the changes of a folder that matter: names in it, its mode and owner.
const watched = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVE | unix.IN_ATTRIB |
	unix.IN_DELETE_SELF | unix.IN_MOVE_SELF

// watch tells which folders changed, so that the others need not be looked at; see
// [inotify].
type watch struct{ *inotify.Watch }

// newWatch returns a watch, or nil if there is none for the file system of root.
func newWatch(root string) *watch {
	if w := inotify.New(root, watched); w != nil {
		return &watch{w}
	}
	return nil
}

// add begins to watch a folder. It reports whether that is possible.
func (w *watch) add(dir string) bool {
	_, err := w.Add(dir)
	return err == nil || inotify.Gone(err)
}

// replaced watches a folder again and reports whether it is another one than that which was
// watched under this name.
func (w *watch) replaced(dir string) bool {
	was, err := w.Add(dir)
	return err == nil && was != dir
}

// changed returns the folders that changed since the last call. ok is false if that is not
// known.
func (w *watch) changed() (dirs []string, ok bool) {
	found := map[string]bool{}
	ok = w.Read(func(e inotify.Event) {
		if e.Dir != "" && (e.Mask&unix.IN_ATTRIB == 0 || e.Path == "") { // not the attributes of a file in it
			found[e.Dir] = true
		}
	})
	return slices.Sorted(maps.Keys(found)), ok
}
