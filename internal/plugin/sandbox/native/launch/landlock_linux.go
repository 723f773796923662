package launch

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Rights of Landlock for files.
const (
	readRights = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	// fileRights are those that a file can have; the others are for folders.
	fileRights = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	// A command connects to the sockets of its own processes only, which needs no
	// right.
	ownRights   = unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX
	firstRights = unix.LANDLOCK_ACCESS_FS_MAKE_SYM<<1 - 1 // of the first version; later ones added one each
	scopes      = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
)

// LandlockRights returns the rights and scopes that this kernel handles. All
// are 0 without Landlock.
func LandlockRights() (files uint64, scoped uint64) {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0, 0
	}
	files = firstRights
	for _, added := range [...]struct {
		version uintptr
		right   uint64
	}{{2, unix.LANDLOCK_ACCESS_FS_REFER}, {3, unix.LANDLOCK_ACCESS_FS_TRUNCATE}, {5, unix.LANDLOCK_ACCESS_FS_IOCTL_DEV},
		{9, unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX}} {
		if version >= added.version {
			files |= added.right
		}
	}
	if version >= 6 {
		scoped = scopes
	}
	return files, scoped
}

// landlock returns the rules of the second layer, below the mounts: the command
// can write to the given folders and files only, and neither signals nor
// abstract sockets leave the cage. It returns -1 if the kernel has no Landlock.
func landlock(writable []string) (rules int, err error) {
	files, scoped := LandlockRights()
	if files == 0 {
		return -1, nil
	}
	attr := unix.LandlockRulesetAttr{Handled_access_fs: files, Scoped: scoped}
	size := unsafe.Sizeof(attr)
	if scoped == 0 {
		size = unsafe.Sizeof(attr.Handled_access_fs)
	}
	set, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if errno != 0 {
		return -1, fmt.Errorf("landlock: %w", errno)
	}
	err = landlockRule(int(set), "/", readRights&files)
	for _, path := range writable {
		if e := landlockRule(int(set), path, files&^ownRights); e != nil && !errors.Is(e, unix.ENOENT) {
			err = errors.Join(err, e)
		}
	}
	if err != nil {
		return -1, errors.Join(err, unix.Close(int(set)))
	}
	return int(set), nil
}

// enterLandlock confines this thread by rules.
func enterLandlock(rules int) error {
	if rules < 0 {
		return nil
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(rules), 0, 0); errno != 0 {
		return fmt.Errorf("landlock: %w", errno)
	}
	return nil
}

// landlockRule gives rights below a path.
func landlockRule(set int, path string, rights uint64) error {
	at, err := lookup("/", path)
	if err != nil {
		return fmt.Errorf("landlock: %s: %w", path, err)
	}
	defer unix.Close(at)
	var st unix.Stat_t
	if err := unix.Fstat(at, &st); err != nil {
		return fmt.Errorf("landlock: %s: %w", path, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= fileRights
	}
	const pathBeneath = 1
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(at)}
	if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(set), pathBeneath,
		uintptr(unsafe.Pointer(&rule)), 0, 0, 0); errno != 0 {
		return fmt.Errorf("landlock: %s: %w", path, errno)
	}
	return nil
}
