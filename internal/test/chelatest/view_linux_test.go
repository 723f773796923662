package chelatest

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/test/strace"
)

// view is what processes of a sandbox see, or those outside.
type view struct {
	flags  string             // of the call that made the namespaces
	mounts []mounted          // in order
	trees  map[string]mounted // that have no place yet, by descriptor
	kinds  map[string]string  // of file systems that are being made, by descriptor
}

// mounted is a mount.
type mounted struct {
	at     string
	from   string // path of the host; inner: it belongs to the sandbox only
	frozen bool   // read-only
}

const (
	inner = ""
	given = "given" // made by the gateway, of the path at which it is mounted
)

func newView(flags string) *view {
	return &view{flags: flags, trees: map[string]mounted{}, kinds: map[string]string{}}
}

// mount takes a call into account by which a sandbox is built. trees are the
// paths that the gateway made mounts of.
func (v *view) mount(c *strace.Call, trees map[string]bool) {
	fd, _, _ := strings.Cut(c.Arg(0), "<")
	result, _, _ := strings.Cut(c.Value, "<")
	switch c.Name {
	case "fsopen":
		v.kinds[result], _ = strace.Text(c.Arg(0))
	case "fsmount":
		m := mounted{from: inner, frozen: strings.Contains(c.Arg(2), "RDONLY")}
		if !slices.Contains([]string{"tmpfs", "overlay", "proc", "devpts"}, v.kinds[fd]) {
			m.from = unknown(v.kinds[fd])
		}
		v.trees[result] = m
	case "open_tree":
		m, host := v.find(strace.File(c.Arg(0)))
		v.trees[result] = mounted{from: host, frozen: m.frozen}
	case "mount_setattr":
		if strings.Contains(c.Arg(3), "RDONLY") {
			v.freeze(fd, c)
		}
	case "move_mount":
		m, known := v.trees[fd]
		delete(v.trees, fd)
		name, _ := strace.Text(c.Arg(3))
		m.at = filepath.Join(strace.File(c.Arg(2)), name)
		if !known || m.from == given {
			if m.from = m.at; !trees[m.at] {
				m.from = unknown(m.at)
			}
		}
		v.hide(m.at, false)
		v.mounts = append(v.mounts, m)
	case "mount":
		if at, _ := strace.Text(c.Arg(1)); !strings.Contains(c.Arg(3), "MS_PRIVATE") {
			v.mounts = append(v.mounts, mounted{at: at, from: unknown(at)})
		}
	case "pivot_root":
		root := v.mounts[len(v.mounts)-1]
		root.at = "/"
		v.mounts = []mounted{root, {at: "/.old", from: "/"}}
	case "umount2":
		path, _ := strace.Text(c.Arg(0))
		v.hide(path, true)
	}
}

// freeze makes a mount read-only, which may have no place yet.
func (v *view) freeze(fd string, c *strace.Call) {
	if path, _ := strace.Text(c.Arg(1)); path != "" {
		for i := range v.mounts {
			v.mounts[i].frozen = v.mounts[i].frozen || v.mounts[i].at == path
		}
		return
	}
	m, known := v.trees[fd]
	if !known {
		m.from = given
	}
	m.frozen = true
	v.trees[fd] = m
}

// unknown is the path of the host that something is, if that is not known.
func unknown(path string) string { return "unknown: " + path }

// hide removes the mounts below a path, and with top also those at the path.
func (v *view) hide(path string, top bool) {
	v.mounts = slices.DeleteFunc(v.mounts,
		func(m mounted) bool { return pathpolicy.Inside(m.at, path) && (top || m.at != path) })
}

// find returns the mount that a path is on, and the path of the host that it
// shows, or inner.
func (v *view) find(path string) (m mounted, host string) {
	for _, o := range v.mounts { // a later one at the same place is above
		if len(o.at) >= len(m.at) && pathpolicy.Inside(path, o.at) {
			m = o
		}
	}
	rel, err := filepath.Rel(m.at, path)
	switch {
	case m.at == "" || err != nil:
		return m, unknown(path)
	case m.from == inner:
		return m, inner
	}
	return m, filepath.Join(m.from, rel)
}

// key names what is at a path, for all who see it.
func (v *view) key(path string) string {
	if _, host := v.find(path); host != inner {
		return host
	}
	return fmt.Sprintf("%p %s", v, path)
}
