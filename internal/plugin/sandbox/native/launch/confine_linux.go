package launch

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Limits of a command.
const (
	maxProcesses = 4096     // of a cage
	maxFileSize  = 16 << 30 // bytes
)

// confinement is what a command is confined with.
type confinement struct {
	rules   int // of Landlock; -1: the kernel has none
	program []unix.SockFilter
	asks    bool // the program asks before it connects
}

// newConfinement prepares what does not depend on the command. writable is what
// it can change.
func newConfinement(writable []string, sockets bool) (*confinement, error) {
	files, _ := LandlockRights()
	asks := sockets && files&unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX == 0
	program, err := filter(sockets, asks)
	if err != nil {
		return nil, err
	}
	rules, err := landlock(writable)
	if err != nil {
		return nil, err
	}
	return &confinement{rules, program, asks}, nil
}

func (c *confinement) close() {
	if c != nil && c.rules >= 0 {
		_ = unix.Close(c.rules)
	}
}

// enter takes everything from this thread that a command must not have, and
// gives it a namespace for IPC in which nobody was before. The command inherits
// it. It returns a descriptor that receives what the command asks, or -1.
func (c *confinement) enter() (asked int, err error) {
	if err := unix.Unshare(unix.CLONE_NEWIPC); err != nil {
		return -1, fmt.Errorf("ipc namespace: %w", err)
	}
	if err := dropBounding(); err != nil {
		return -1, err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return -1, fmt.Errorf("no_new_privs: %w", err)
	}
	if err := enterLandlock(c.rules); err != nil {
		return -1, err
	}
	if err := dropCapabilities(); err != nil {
		return -1, err
	}
	return enterFilter(c.program, c.asks)
}

// limitProcess sets the limits of commands on this process, and keeps them from
// looking into it.
func limitProcess() error {
	for res, limit := range map[int]uint64{
		unix.RLIMIT_CORE:  0,
		unix.RLIMIT_NPROC: maxProcesses,
		unix.RLIMIT_FSIZE: maxFileSize,
	} {
		var old unix.Rlimit
		if err := unix.Getrlimit(res, &old); err != nil {
			return fmt.Errorf("limit %d: %w", res, err)
		}
		limit = min(limit, old.Max)
		if err := unix.Setrlimit(res, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
			return fmt.Errorf("limit %d: %w", res, err)
		}
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("dumpable: %w", err)
	}
	return nil
}

// dropBounding makes the thread's programs unable to gain a capability, even
// as root.
func dropBounding() error {
	const locked = 0xef // NOROOT, NO_SETUID_FIXUP and NO_CAP_AMBIENT_RAISE on, KEEP_CAPS off, each of them locked
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && err != unix.EINVAL { // the kernel knows fewer
			return fmt.Errorf("bounding set: %w", err)
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("ambient set: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_SECUREBITS, locked, 0, 0, 0); err != nil {
		return fmt.Errorf("securebits: %w", err)
	}
	return nil
}

// dropCapabilities takes all capabilities from this thread. The other threads
// of the launcher run nothing of the command's, which cannot reach into them:
// their process is not dumpable.
func dropCapabilities() error {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&head, &none[0]); err != nil {
		return fmt.Errorf("capabilities: %w", err)
	}
	return nil
}
