//go:build amd64 || arm || arm64 || riscv64

package launch

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Offsets in struct seccomp_data. Arguments have 64 bits; on all supported
// processors the low half comes first.
const (
	offNumber = 0
	offArch   = 4
	offArg0   = 16
	offArg1   = 24
	offArg2   = 32
	offArg3   = 40
)

// Actions of the filter.
const (
	allow = uint32(unix.SECCOMP_RET_ALLOW)
	kill  = uint32(unix.SECCOMP_RET_KILL_PROCESS)
	fail  = uint32(unix.SECCOMP_RET_ERRNO)
	ask   = uint32(unix.SECCOMP_RET_USER_NOTIF) // the launcher
)

// newNamespaces are the flags of clone that make namespaces.
const newNamespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
	unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWTIME

// denied are the system calls that fail with EPERM: those that reach into
// other processes, change the system, make namespaces and mounts, or have been
// a way into the kernel.
func denied() []uint32 {
	return append(deniedHere(),
		unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_KCMP, unix.SYS_PIDFD_GETFD,
		unix.SYS_PROCESS_MADVISE,
		unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_MOVE_MOUNT,
		unix.SYS_OPEN_TREE, unix.SYS_FSOPEN,
		unix.SYS_FSMOUNT, unix.SYS_FSCONFIG, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_SETNS, unix.SYS_UNSHARE,
		unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_FANOTIFY_INIT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD,
		unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL, unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
		unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
		unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE,
		unix.SYS_DELETE_MODULE, unix.SYS_REBOOT,
		unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_SYSLOG, unix.SYS_VHANGUP,
		unix.SYS_LOOKUP_DCOOKIE, unix.SYS_NFSSERVCTL,
		unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_ADJTIMEX, unix.SYS_SETHOSTNAME,
		unix.SYS_SETDOMAINNAME)
}

// filter returns the filter for system calls. Without local the command has no
// sockets with names in the file system. With asks the launcher makes its
// connections, see connector.
func filter(local, asks bool) ([]unix.SockFilter, error) {
	program, err := assemble(local, asks)
	if err != nil {
		return nil, fmt.Errorf("system call filter: %w", err)
	}
	raw := make([]unix.SockFilter, len(program))
	for i, x := range program {
		raw[i] = unix.SockFilter{Code: x.Op, Jt: x.Jt, Jf: x.Jf, K: x.K}
	}
	return raw, nil
}

// Supported reports why there are no cages for this processor, if there are none.
func Supported() error {
	_, err := filter(false, false)
	return err
}

// enterFilter installs a filter on this thread. With asks it returns the
// descriptor that receives what the filter asks; otherwise -1.
func enterFilter(program []unix.SockFilter, asks bool) (int, error) {
	fprog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	flags := []uintptr{0}
	if asks {
		// A signal, such as those of Go's runtime, should not end what is asked. Kernels
		// before 5.19 cannot say so.
		flags = []uintptr{unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV,
			unix.SECCOMP_FILTER_FLAG_NEW_LISTENER}
	}
	var fd uintptr
	var errno unix.Errno
	for _, f := range flags {
		fd, _, errno = unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, f, uintptr(unsafe.Pointer(&fprog)))
		if errno != unix.EINVAL {
			break
		}
	}
	runtime.KeepAlive(program)
	switch {
	case errno != 0:
		return -1, fmt.Errorf("system call filter: %w", errno)
	case asks:
		return int(fd), nil
	}
	return -1, nil
}

// assemble returns the filter. It is a list of rules; each ends with a return
// or passes on to the next one.
func assemble(local, asks bool) ([]bpf.RawInstruction, error) {
	p := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: auditArch, SkipTrue: 1},
		bpf.RetConstant{Val: kill},
		bpf.LoadAbsolute{Off: offNumber, Size: 4},
		// Another table of system calls with the same architecture (x32).
		bpf.JumpIf{Cond: bpf.JumpLessThan, Val: 0x40000000, SkipTrue: 1},
		bpf.RetConstant{Val: kill},
	}
	for _, nr := range denied() {
		p = append(p, on(nr, errno(unix.EPERM))...)
	}
	// The flags of clone3 and openat2 are in memory, where a filter cannot read
	// them. Without these programs use clone and openat.
	p = append(p, on(unix.SYS_CLONE3, errno(unix.ENOSYS))...)
	p = append(p, on(unix.SYS_OPENAT2, errno(unix.ENOSYS))...)
	p = append(p, onArg(unix.SYS_CLONE, offArg0, anyBit(newNamespaces), errno(unix.EPERM))...)
	// Characters put into the terminal would be typed by the person.
	p = append(p, onArg(unix.SYS_IOCTL, offArg1, equals(unix.TIOCSTI), errno(unix.EPERM))...)
	p = append(p, onArg(unix.SYS_IOCTL, offArg1, equals(unix.TIOCLINUX), errno(unix.EPERM))...)
	// The network is the cage's own. Of netlink only the part that lists the
	// interfaces is left.
	families := []uint32{unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}
	if local {
		families = append(families, unix.AF_UNIX)
	}
	// Landlock does not see it
	p = append(p, onArg(unix.SYS_SOCKET, offArg2, equals(unix.IPPROTO_MPTCP), errno(unix.EPROTONOSUPPORT))...)
	p = append(p, netlink()...)
	p = append(p, onlyFamilies(unix.SYS_SOCKET, families...)...)
	p = append(p, onlyFamilies(unix.SYS_SOCKETPAIR, unix.AF_UNIX)...)
	// A datagram socket can send to any name in the file system without a connection.
	p = append(p, connected(unix.SYS_SOCKET)...)
	p = append(p, connected(unix.SYS_SOCKETPAIR)...)
	if asks {
		p = append(p, on(unix.SYS_CONNECT, ask)...)
	}
	for _, m := range modes() {
		p = append(p, onArg(m.nr, m.arg, anyBit(unix.S_ISUID|unix.S_ISGID), errno(unix.EPERM))...)
	}
	p = append(p, bpf.RetConstant{Val: allow})
	return bpf.Assemble(p)
}

// mode is an argument of a system call that is the mode of a file. A file that
// runs as its owner would give the rights of the person to other users of the
// host, or those of root.
type mode struct{ nr, arg uint32 }

func modes() []mode {
	return append(modesHere(), mode{unix.SYS_FCHMOD, offArg1}, mode{unix.SYS_FCHMODAT, offArg2},
		mode{unix.SYS_FCHMODAT2, offArg2},
		mode{unix.SYS_MKNODAT, offArg2}, mode{unix.SYS_MKDIRAT, offArg2}, mode{unix.SYS_OPENAT, offArg3})
}

// connected returns the rule that a system call makes local sockets only of the
// types that have a connection. SOCK_RAW is another word for datagrams.
func connected(nr uint32) []bpf.Instruction {
	return []bpf.Instruction{
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: nr, SkipFalse: 8},
		bpf.LoadAbsolute{Off: offArg0, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_UNIX, SkipFalse: 5},
		bpf.LoadAbsolute{Off: offArg1, Size: 4},
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 0xf}, // without the flags
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SOCK_STREAM, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SOCK_SEQPACKET, SkipTrue: 1},
		bpf.RetConstant{Val: errno(unix.EPROTONOSUPPORT)},
		bpf.LoadAbsolute{Off: offNumber, Size: 4},
	}
}

func errno(e unix.Errno) uint32 { return fail | uint32(e) }

// on returns the rule that a system call ends in an action.
func on(nr, action uint32) []bpf.Instruction {
	return []bpf.Instruction{
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: nr, SkipFalse: 1},
		bpf.RetConstant{Val: action},
	}
}

func equals(v uint32) bpf.JumpIf { return bpf.JumpIf{Cond: bpf.JumpEqual, Val: v, SkipFalse: 1} }

func anyBit(v uint32) bpf.JumpIf { return bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: v, SkipFalse: 1} }

// onArg returns the rule that a system call ends in an action if an argument
// meets a condition.
func onArg(nr, arg uint32, cond bpf.JumpIf, action uint32) []bpf.Instruction {
	return []bpf.Instruction{
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: nr, SkipFalse: 4},
		bpf.LoadAbsolute{Off: arg, Size: 4},
		cond,
		bpf.RetConstant{Val: action},
		bpf.LoadAbsolute{Off: offNumber, Size: 4},
	}
}

// netlink returns the rule that a netlink socket is of the protocol that lists
// interfaces and routes.
func netlink() []bpf.Instruction {
	return []bpf.Instruction{
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SYS_SOCKET, SkipFalse: 6},
		bpf.LoadAbsolute{Off: offArg0, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_NETLINK, SkipFalse: 3},
		bpf.LoadAbsolute{Off: offArg2, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.NETLINK_ROUTE, SkipTrue: 1},
		bpf.RetConstant{Val: errno(unix.EPROTONOSUPPORT)},
		bpf.LoadAbsolute{Off: offNumber, Size: 4},
	}
}

// onlyFamilies returns the rule that a system call makes sockets of some
// families only.
func onlyFamilies(nr uint32, families ...uint32) []bpf.Instruction {
	rule := []bpf.Instruction{
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: nr, SkipFalse: uint8(3 + len(families))},
		bpf.LoadAbsolute{Off: offArg0, Size: 4},
	}
	for i, f := range families {
		rule = append(rule, bpf.JumpIf{Cond: bpf.JumpEqual, Val: f, SkipTrue: uint8(len(families) - i)})
	}
	return append(rule,
		bpf.RetConstant{Val: errno(unix.EAFNOSUPPORT)},
		bpf.LoadAbsolute{Off: offNumber, Size: 4})
}
