package launch

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	oldRoot  = "/.old"  // the host's root while the cage is built
	noFile   = "/.none" // what hides a file
	noFolder = "/.none.d"
	maskDir  = "/.none.s" // what hides files and folders that have masks
	stageDir = "/.layers" // where the sides of the layers are while these are mounted
)

// build makes the root directory and the network of the cage. After it, the
// host's files are out of reach.
func (l *launcher) build(s Setup) error {
	l.stage, l.sockets = "root", s.Sockets
	if err := newRoot(); err != nil {
		return err
	}
	var err error
	if l.root, err = unix.OpenTree(unix.AT_FDCWD, "/", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC); err != nil {
		return fmt.Errorf("the root: %w", err)
	}
	l.stage = "mount"
	if err := l.mounts(s.Mounts[:s.Below]); err != nil {
		return err
	}
	if err := l.layers(s.Layers, s.Slot); err != nil {
		return err
	}
	l.reopen()
	if err := l.mounts(s.Mounts[s.Below:]); err != nil {
		return err
	}
	if err := l.remember(s.Mounts); err != nil {
		return err
	}
	l.stage = "leave"
	if err := leaveRoot(); err != nil {
		return err
	}
	l.stage = "network"
	if err := unix.Sethostname([]byte(s.Host)); err != nil {
		return fmt.Errorf("host name: %w", err)
	}
	if err := loopback(); err != nil {
		return err
	}
	return limitProcess()
}

// mounts makes entries in order.
func (l *launcher) mounts(all []Mount) error {
	for _, m := range all {
		if err := l.mount(m); err != nil {
			return fmt.Errorf("%s %s: %w", m.Kind, m.To, err)
		}
	}
	return nil
}

// newRoot makes an empty file system in memory the root directory. The host's
// root directory is below it.
func newRoot() error {
	// short of memory, the kernel ends a caged program first
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0); err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private mounts: %w", err)
	}
	root, err := memory(64<<20, "0755")
	if err != nil {
		return err
	}
	defer unix.Close(root)
	// It needs a place until it is the root directory. Any folder will do: what is
	// below is reached through the old root.
	if err := unix.MoveMount(root, "", unix.AT_FDCWD, "/proc", unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("attach the root: %w", err)
	}
	if err := unix.Fchdir(root); err != nil {
		return err
	}
	if err := os.Mkdir("."+oldRoot, 0o700); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."+oldRoot); err != nil {
		return fmt.Errorf("pivot_root: %w", err)
	}
	if err := unix.Chdir("/"); err != nil {
		return err
	}
	if err := os.WriteFile(noFile, nil, 0); err != nil {
		return err
	}
	return errors.Join(os.Mkdir(noFolder, 0), os.Mkdir(maskDir, 0))
}

// leaveRoot detaches the host's root directory and makes the cage's read-only.
func leaveRoot() error {
	if err := unix.Unmount(oldRoot, unix.MNT_DETACH); err != nil {
		return fmt.Errorf("detach the host: %w", err)
	}
	if err := os.Remove(oldRoot); err != nil {
		return err
	}
	return unix.MountSetattr(unix.AT_FDCWD, "/", 0,
		&unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV})
}

// memory returns a new file system in memory.
func memory(size int64, mode string) (int, error) {
	return newFS("tmpfs", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV, "size", strconv.FormatInt(size, 10), "mode",
		mode, "nr_inodes", "200000")
}

// newFS returns a new file system with options, which are pairs of name and
// value.
func newFS(name string, attr int, options ...string) (int, error) {
	fs, err := unix.Fsopen(name, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("%s: %w", name, err)
	}
	defer unix.Close(fs)
	if name == "overlay" {
		// Programs of a cage cannot set the attributes of an overlay that the system
		// reserves. The end of a cage does not write back the file system of the host,
		// which would delay all that is stored there.
		for _, flag := range [...]string{"userxattr", "volatile"} {
			if err := unix.FsconfigSetFlag(fs, flag); err != nil {
				return -1, fmt.Errorf("%s: %s: %w", name, flag, err)
			}
		}
	}
	for i := 0; i+1 < len(options); i += 2 {
		if err := unix.FsconfigSetString(fs, options[i], options[i+1]); err != nil {
			return -1, fmt.Errorf("%s: %s: %w", name, options[i], err)
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, fmt.Errorf("%s: %w", name, err)
	}
	fd, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, attr)
	if err != nil {
		return -1, fmt.Errorf("%s: %w", name, err)
	}
	return fd, nil
}

// mount makes one entry.
func (l *launcher) mount(m Mount) error {
	if m.Write || m.Kind == Temp || m.Kind == DevPTS {
		l.writable = append(l.writable, m.To)
	}
	switch m.Kind {
	case Link:
		if err := os.MkdirAll(path.Dir(m.To), 0o755); err != nil {
			return err
		}
		return os.Symlink(m.From, m.To)
	case Text:
		return os.WriteFile(m.To, []byte(m.From), 0o644)
	case Hide, Freeze, Pin:
		return l.cover(m)
	case Temp:
		if err := os.MkdirAll(m.To, 0o755); err != nil {
			return err
		}
		return mountTemp(m)
	case ProcFS:
		if err := os.MkdirAll(m.To, 0o755); err != nil {
			return err
		}
		fd, err := newFS("proc", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC|unix.MOUNT_ATTR_RDONLY)
		return attach(fd, err, m.To)
	case DevPTS:
		if err := os.MkdirAll(m.To, 0o755); err != nil {
			return err
		}
		return mountTemp(m)
	case Bind:
		return l.bindMount(m)
	}
	return fmt.Errorf("unknown kind %q", m.Kind)
}

// mountTemp mounts an empty folder in memory, or one for terminals.
func mountTemp(m Mount) error {
	if m.Kind == DevPTS {
		fd, err := newFS("devpts", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC, "ptmxmode", "0666",
			"mode", "0620", "max", "256")
		return attach(fd, err, m.To)
	}
	mode := "1777"
	if m.Own {
		mode = "0755"
	}
	fd, err := memory(m.Size, mode)
	return attach(fd, err, m.To)
}

// bindMount puts a file or folder of the host at its place. It does not follow
// links in either path.
func (l *launcher) bindMount(m Mount) error {
	tree, err := l.tree(m.From, m.Tree)
	if err != nil {
		return fmt.Errorf("from %s: %w", m.From, err)
	}
	if err := place(tree, m.To); err != nil {
		return errors.Join(err, unix.Close(tree))
	}
	attr := uint64(unix.MOUNT_ATTR_NOSUID)
	if !strings.HasPrefix(m.To, "/dev/") {
		attr |= unix.MOUNT_ATTR_NODEV
	}
	if !m.Write {
		attr |= unix.MOUNT_ATTR_RDONLY
	}
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: attr}); err !=
		nil {
		return errors.Join(fmt.Errorf("mount attributes: %w", err), unix.Close(tree))
	}
	return attach(tree, nil, m.To)
}

// tree returns a detached mount of a path of the host: the one that the
// gateway made, if index is not 0.
func (l *launcher) tree(path string, index int) (int, error) {
	if index > 0 {
		if index > len(l.trees) {
			return -1, fmt.Errorf("mount %d of %d", index, len(l.trees))
		}
		return unix.FcntlInt(l.trees[index-1].Fd(), unix.F_DUPFD_CLOEXEC, 0)
	}
	return CloneTree(oldRoot, path)
}

// place creates an empty file or folder, like the given one, to mount on.
func place(like int, to string) error {
	var st unix.Stat_t
	if err := unix.Fstat(like, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return os.MkdirAll(to, 0o755)
	}
	if _, err := os.Lstat(to); err == nil {
		return nil
	}
	if err := os.MkdirAll(path.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, nil, 0o644)
}

// cover hides, freezes or pins what is at a path, if there is something.
func (l *launcher) cover(m Mount) error {
	to, err := lookup("/", m.To)
	if err != nil {
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
			return nil
		}
		return err
	}
	defer unix.Close(to)
	from := to
	if m.Kind == Hide {
		var st unix.Stat_t
		if err := unix.Fstat(to, &st); err != nil {
			return err
		}
		name := noFile
		_, file := m.Masks["."]
		folder := st.Mode&unix.S_IFMT == unix.S_IFDIR
		if folder {
			name = noFolder
		}
		if len(m.Masks) > 0 && file != folder { // it may be something else by now
			if made, err := l.maskAll(m.Masks); err == nil { // or else Git takes it for changed
				name = made
			}
		}
		if from, err = lookup("/", name); err != nil {
			return err
		}
		defer unix.Close(from)
	}
	tree, err := unix.OpenTree(from, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|unix.AT_RECURSIVE)
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	attr := uint64(unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV)
	if m.Kind != Pin {
		attr |= unix.MOUNT_ATTR_RDONLY
	}
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: attr}); err != nil {
		return err
	}
	return unix.MoveMount(tree, "", to, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

// maskAll makes what hides a file or folder, with its masks, and returns the path.
func (l *launcher) maskAll(masks map[string]Mask) (string, error) {
	name := path.Join(maskDir, strconv.Itoa(l.masked))
	l.masked++
	top := strings.TrimPrefix(name, "/") // for l.root: that of the cage may be read-only by now
	for _, file := range slices.Sorted(maps.Keys(masks)) {
		at := path.Join(top, file)
		var above []string
		for dir := path.Dir(at); inside(dir, top); dir = path.Dir(dir) {
			above = append(above, dir)
		}
		for _, dir := range slices.Backward(above) {
			if err := unix.Mkdirat(l.root, dir, 0o111); err != nil && !errors.Is(err, unix.EEXIST) {
				return "", err
			}
		}
		if err := l.mask(at, masks[file]); err != nil {
			return "", err
		}
	}
	return name, nil
}

// mask makes an unreadable file.
func (l *launcher) mask(name string, m Mask) error {
	mode := uint32(0)
	if m.Runs {
		mode = 0o100
	}
	f, err := unix.Openat(l.root, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, mode)
	if err != nil {
		return err
	}
	defer unix.Close(f)
	if err := unix.Ftruncate(f, m.Size); err != nil {
		return err
	}
	at := unix.NsecToTimespec(m.Changed)
	return unix.UtimesNanoAt(l.root, name, []unix.Timespec{at, at}, unix.AT_SYMLINK_NOFOLLOW)
}

// layers mounts layers. An overlay finds its sides by their paths and keeps
// copies of their mounts.
func (l *launcher) layers(layers []Layer, slot string) error {
	if len(layers) == 0 {
		return nil
	}
	if err := os.Mkdir(stageDir, 0); err != nil {
		return err
	}
	stage, err := memory(1<<20, "0700")
	if err := attach(stage, err, stageDir); err != nil {
		return fmt.Errorf("layers: %w", err)
	}
	for i, m := range layers {
		if err := l.overlay(m, path.Join(stageDir, strconv.Itoa(i)), slot); err != nil {
			return fmt.Errorf("layer %s: %w", m.From, err)
		}
	}
	if err := unix.Unmount(stageDir, unix.MNT_DETACH); err != nil {
		return fmt.Errorf("layers: %w", err)
	}
	return nil
}

// overlay mounts a layer in a folder and puts its parts at their places.
func (l *launcher) overlay(m Layer, stage, slot string) error {
	merged := path.Join(stage, "merged")
	if err := os.MkdirAll(merged, 0o755); err != nil {
		return err
	}
	fd, err := l.merged(m, stage, slot)
	if err := attach(fd, err, merged); err != nil {
		return err
	}
	if fd, err = CloneTree(merged, "."); err != nil {
		return err
	}
	l.shared = append(l.shared, fd)
	root, err := os.OpenRoot(merged)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, part := range m.Parts {
		tree, err := CloneTree(merged, part)
		if errors.Is(err, unix.ENOENT) && root.MkdirAll(part, 0o755) == nil {
			tree, err = CloneTree(merged, part)
		}
		if errors.Is(err, unix.ENOENT) {
			continue // it went away
		}
		to := path.Join(m.From, part)
		if err == nil {
			err = place(tree, to)
		}
		if err := attach(tree, err, to); err != nil {
			return err
		}
		l.writable = append(l.writable, to)
		if !slices.Contains(m.Closed, part) {
			l.open = append(l.open, to)
		}
	}
	return nil
}

// merged returns a mount of a whole layer: the one that another cage gave, or a
// new one.
func (l *launcher) merged(m Layer, stage, slot string) (int, error) {
	if m.Merged > 0 {
		return l.tree(m.From, m.Merged)
	}
	lower, upper := path.Join(stage, "lower"), path.Join(stage, "upper")
	for _, side := range [...]Mount{{From: m.From, To: lower, Tree: m.Tree},
		{From: m.Upper, To: upper, Tree: m.UpperTree, Write: true}} {
		if err := l.bindMount(side); err != nil {
			return -1, err
		}
	}
	return newFS("overlay", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV,
		"lowerdir", lower, "upperdir", path.Join(upper, slot, "upper"), "workdir", path.Join(upper, slot, "work"))
}

// CloneTree returns a detached mount of a path below a root.
func CloneTree(root, name string) (int, error) {
	from, err := lookup(root, name)
	if err != nil {
		return -1, err
	}
	defer unix.Close(from)
	return unix.OpenTree(from, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_EMPTY_PATH)
}

// attach mounts a file system at a path of the cage and closes it.
func attach(fs int, err error, to string) error {
	if fs >= 0 {
		defer unix.Close(fs)
	}
	if err != nil {
		return err
	}
	at, err := lookup("/", to)
	if err != nil {
		return err
	}
	defer unix.Close(at)
	return unix.MoveMount(fs, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

// lookup opens a path below a root without following links.
func lookup(root, name string) (int, error) {
	dir, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(dir)
	rel := strings.TrimLeft(path.Clean(name), "/")
	if rel == "" {
		rel = "."
	}
	return unix.Openat2(dir, rel, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
}

// loopback starts the loopback interface.
func loopback() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	defer unix.Close(s)
	r, err := unix.NewIfreq("lo")
	if err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, r); err != nil {
		return fmt.Errorf("loopback: %w", err)
	}
	return nil
}
