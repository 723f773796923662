package sandboxtest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// actArg is the argument that makes a test binary carry out an act.
const actArg = "__act"

// patience is how long an act waits for an answer. It ends before the act is ended.
const patience = actLimit / 2

// Act carries out an act if this process was started for one, and returns its
// exit code. It must be the first call of TestMain of a package that calls
// RunEscapes. Code 0 means that the act worked.
func Act() (code int, ok bool) {
	if len(os.Args) < 3 || os.Args[1] != actArg {
		return 0, false
	}
	if os.Args[2] == "drive" {
		drive(os.Args[3:])
		return 0, true
	}
	f := calls[os.Args[2]]
	if f == nil {
		return 127, true
	}
	if err := f(os.Args[3:]); err != nil {
		fmt.Println(err)
		return 1, true
	}
	return 0, true
}

// calls are the acts that a shell cannot do. Each returns nil if it worked.
var calls = map[string]func([]string) error{
	"chroot": func([]string) error {
		root, err := os.Open("/")
		if err != nil {
			return err
		}
		if err := errors.Join(os.MkdirAll("/tmp/c", 0o700), unix.Chroot("/tmp/c")); err != nil {
			return err
		}
		return unix.Fchdir(int(root.Fd()))
	},
	"handle": func(a []string) error {
		h, _, err := unix.NameToHandleAt(unix.AT_FDCWD, a[0], 0)
		if err != nil {
			return err
		}
		dir, err := os.Open(filepath.Dir(a[0]))
		if err != nil {
			return err
		}
		_, err = unix.OpenByHandleAt(int(dir.Fd()), h, unix.O_RDONLY)
		return err
	},
	"sendfile": func(a []string) error {
		f, err := os.Open(a[0])
		if err != nil {
			return err
		}
		b := make([]byte, len(canary))
		if _, err := io.ReadFull(f, b); err != nil || string(b) != canary {
			return fmt.Errorf("read %q: %w", b, err)
		}
		return nil
	},
	"exchange": func(a []string) error {
		return unix.Renameat2(unix.AT_FDCWD, a[0], unix.AT_FDCWD, a[1], unix.RENAME_EXCHANGE)
	},
	"mmap": func(a []string) error {
		f, err := os.OpenFile(a[0], os.O_RDWR, 0)
		if err != nil {
			return err
		}
		m, err := unix.Mmap(int(f.Fd()), 0, 3, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err != nil {
			return err
		}
		copy(m, "new")
		return unix.Munmap(m)
	},
	"truncate": func(a []string) error { return unix.Truncate(a[0], 1) },
	"tmpfile": func(a []string) error {
		fd, err := unix.Open(a[0], unix.O_TMPFILE|unix.O_RDWR, 0o600)
		if err != nil {
			return err
		}
		return unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, filepath.Join(a[0], "new"),
			unix.AT_SYMLINK_FOLLOW)
	},
	"listen": func(a []string) error {
		l, err := net.Listen("unix", a[0])
		if err != nil {
			return err
		}
		l.(*net.UnixListener).SetUnlinkOnClose(false)
		return l.Close()
	},
	"settime": func([]string) error {
		var now unix.Timespec
		return errors.Join(unix.ClockGettime(unix.CLOCK_REALTIME, &now), unix.ClockSettime(unix.CLOCK_REALTIME, &now))
	},
	"sethostname": func([]string) error { return unix.Sethostname([]byte("escaped")) },
	"reboot":      func([]string) error { return sys(unix.SYS_REBOOT, 0xfee1dead, 672274793, 0x89abcdef, 0, 0, 0) },
	"module":      func([]string) error { return unix.FinitModule(0, "", 0) },
	"kexec":       raw(unix.SYS_KEXEC_LOAD),
	"swapoff":     raw(unix.SYS_SWAPOFF),
	"acct":        raw(unix.SYS_ACCT),
	"syslog":      func([]string) error { return errOf(syscall.Klogctl(10, nil)) },
	"vhangup":     raw(unix.SYS_VHANGUP),
	"quotactl":    func([]string) error { return sys(unix.SYS_QUOTACTL, 0x800001<<8, 0, 0, 0, 0, 0) },
	"tiocsti":     func([]string) error { return ioctlTerminal(unix.TIOCSTI) },
	"tioclinux":   func([]string) error { return ioctlTerminal(unix.TIOCLINUX) },
	"clone":       func([]string) error { return newNamespace(unix.SYS_CLONE) },
	"clone3":      func([]string) error { return newNamespace(unix.SYS_CLONE3) },
	"setns":       func([]string) error { return setns() },
	"pivot":       func([]string) error { return unixNotPermitted(unix.PivotRoot("/tmp", "/tmp")) },
	"fsopen":      func([]string) error { return errOf(unix.Fsopen("tmpfs", 0)) },
	"opentree": func([]string) error {
		return errOf(unix.OpenTree(unix.AT_FDCWD, "/", unix.OPEN_TREE_CLONE|unix.AT_RECURSIVE))
	},
	"opentreeattr": func([]string) error { return openTreeAttr() },
	"mountsetattr": func([]string) error {
		return unix.MountSetattr(unix.AT_FDCWD, "/", 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID})
	},
	"movemount": func([]string) error {
		return unixNotPermitted(unix.MoveMount(unix.AT_FDCWD, "/tmp", unix.AT_FDCWD, "/tmp", 0))
	},
	"fanotify":  func([]string) error { return errOf(unix.FanotifyInit(unix.FAN_CLASS_NOTIF|0x200, 0)) },
	"setuid":    func([]string) error { return syscall.Setuid(1) },
	"setgroups": func([]string) error { return syscall.Setgroups([]int{0}) },
	"suidopen":  func(a []string) error { return errOf(unix.Open(a[0], unix.O_CREAT|unix.O_WRONLY, 0o4755)) },
	"suidmknod": func(a []string) error { return unix.Mknod(a[0], unix.S_IFREG|0o4755, 0) },
	"suidfchmodat2": func(a []string) error {
		return unix.Fchmodat(unix.AT_FDCWD, a[0], 0o4755, unix.AT_SYMLINK_NOFOLLOW)
	},
	"suidopenat2": func(a []string) error {
		return errOf(unix.Openat2(unix.AT_FDCWD, a[0], &unix.OpenHow{Flags: unix.O_CREAT | unix.O_WRONLY, Mode: 0o4755}))
	},
	"pidfd": func(a []string) error {
		fd, err := unix.PidfdOpen(number(a[0]), 0)
		if err != nil {
			return err
		}
		return unix.PidfdSendSignal(fd, 0, nil, 0)
	},
	"ptrace":      func(a []string) error { return unix.PtraceSeize(number(a[0])) },
	"ptracechild": func([]string) error { return sys(unix.SYS_PTRACE, unix.PTRACE_TRACEME, 0, 0, 0, 0, 0) },
	"vmread": func(a []string) error {
		var b [8]byte
		local := []unix.Iovec{{Base: &b[0], Len: 8}}
		_, err := unix.ProcessVMReadv(number(a[0]), local, []unix.RemoteIovec{{Base: uintptr(mapped(a[0])), Len: 8}}, 0)
		return err
	},
	"kcmp": func(a []string) error {
		return sys(unix.SYS_KCMP, uintptr(os.Getpid()), uintptr(number(a[0])), 1, 0, 0, 0)
	},
	"getfd": func(a []string) error {
		fd, err := unix.PidfdOpen(number(a[0]), 0)
		if err != nil {
			return err
		}
		return errOf(unix.PidfdGetfd(fd, 0, 0))
	},
	"openwrite": func(a []string) error { return errOf(unix.Open(a[0], unix.O_RDWR, 0)) },
	"nice":      func(a []string) error { return unix.Setpriority(unix.PRIO_PROCESS, number(a[0]), 1) },
	"affinity": func(a []string) error {
		var s unix.CPUSet
		return errors.Join(unix.SchedGetaffinity(number(a[0]), &s), unix.SchedSetaffinity(number(a[0]), &s))
	},
	"madvise": func(a []string) error {
		fd, err := unix.PidfdOpen(number(a[0]), 0)
		if err != nil {
			return err
		}
		v := [2]uint64{mapped(a[0]), 4096} // struct iovec
		return sys(unix.SYS_PROCESS_MADVISE, uintptr(fd), uintptr(unsafe.Pointer(&v)), 1, unix.MADV_COLD, 0, 0)
	},
	"socket":    func(a []string) error { return errOf(unix.Socket(number(a[0]), number(a[1]), number(a[2]))) },
	"dial":      func(a []string) error { return dialCanary(a[0], a[1], "") },
	"send":      send,
	"pairsend":  pairSend,
	"dns":       func([]string) error { return errOf(net.LookupHost("example.org")) },
	"http":      func(a []string) error { return dialCanary("tcp", proxyOf(), unescape(a[0])) },
	"socks":     func(a []string) error { return socks(1, a[0], number(a[1])) },
	"socksbind": func([]string) error { return socks(2, "allowed.test", 80) },
	"socks4":    socks4,
	"pipeline":  pipeline,
	"bpf": func([]string) error {
		a := [16]uint32{1, 4, 4, 1}
		return sys(unix.SYS_BPF, 0, uintptr(unsafe.Pointer(&a)), 64, 0, 0, 0)
	},
	"perf": func([]string) error {
		return errOf(unix.PerfEventOpen(&unix.PerfEventAttr{Type: 1, Size: 120}, 0, -1, -1, 0))
	},
	"userfaultfd": func([]string) error { return sys(unix.SYS_USERFAULTFD, 1, 0, 0, 0, 0, 0) },
	"iouring": func([]string) error {
		var p [120]byte
		return sys(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&p)), 0, 0, 0, 0)
	},
	"keyctl": func([]string) error { return errOf(unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, true)) },
	"addkey": func([]string) error {
		return errOf(unix.AddKey("user", "escape", []byte("x"), unix.KEY_SPEC_PROCESS_KEYRING))
	},
	"x32":      func([]string) error { return sys(0x40000000|39, 0, 0, 0, 0, 0, 0) },
	"i386":     i386,
	"ldt":      func([]string) error { var b [16]byte; return sys(154, 0, uintptr(unsafe.Pointer(&b)), 16, 0, 0, 0) },
	"iopl":     func([]string) error { return sys(172, 3, 0, 0, 0, 0, 0) },
	"without":  without,
	"forkbomb": forkBomb,
	"ptybomb":  ptyBomb,
}

func sys(nr, a, b, c, d, e, f uintptr) error {
	if _, _, errno := unix.Syscall6(nr, a, b, c, d, e, f); errno != 0 {
		return errno
	}
	return nil
}

// raw makes a system call without arguments.
func raw(nr uintptr) func([]string) error {
	return func([]string) error { return sys(nr, 0, 0, 0, 0, 0, 0) }
}

func errOf[T any](_ T, err error) error { return err }

// unixNotPermitted returns the error of a call that cannot succeed here but
// passed the check of rights if it failed otherwise.
func unixNotPermitted(err error) error {
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EBUSY) || errors.Is(err, unix.ELOOP) {
		return nil
	}
	return err
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return -1
	}
	return n
}

// mapped returns an address that a process has mapped.
func mapped(pid string) (addr uint64) {
	b, _ := os.ReadFile("/proc/" + pid + "/maps") // 0 if it is not readable
	_, _ = fmt.Sscanf(string(b), "%x-", &addr)    // as above
	return addr
}

// ioctlTerminal opens a new terminal as the controlling one and types into it.
func ioctlTerminal(op uintptr) error {
	p, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return err
	}
	n, err := unix.IoctlGetInt(p, unix.TIOCGPTN)
	if err != nil {
		return err
	}
	if err := unix.IoctlSetPointerInt(p, unix.TIOCSPTLCK, 0); err != nil {
		return err
	}
	_, _ = unix.Setsid() // it may lead its session
	t, err := unix.Open(fmt.Sprintf("/dev/pts/%d", n), unix.O_RDWR, 0)
	if err != nil {
		return err
	}
	c := byte('x')
	return sys(unix.SYS_IOCTL, uintptr(t), op, uintptr(unsafe.Pointer(&c)), 0, 0, 0)
}

// newNamespace makes a process in a new user namespace, which ends at once.
func newNamespace(nr uintptr) error {
	var pid uintptr
	var errno syscall.Errno
	if nr == unix.SYS_CLONE3 {
		args := [11]uint64{0: unix.CLONE_NEWUSER, 4: uint64(unix.SIGCHLD)}
		pid, _, errno = unix.RawSyscall(nr, uintptr(unsafe.Pointer(&args)), unsafe.Sizeof(args), 0)
	} else {
		pid, _, errno = unix.RawSyscall6(nr, unix.CLONE_NEWUSER|uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	}
	if errno != 0 {
		return errno
	}
	if pid == 0 {
		_, _, _ = unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
	return nil
}

func setns() error {
	f, err := os.Open("/proc/self/ns/net")
	if err != nil {
		return err
	}
	return unix.Setns(int(f.Fd()), unix.CLONE_NEWNET)
}

func openTreeAttr() error {
	const nr = 467
	root := []byte("/\x00")
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID}
	return sys(nr, ^uintptr(99), uintptr(unsafe.Pointer(&root[0])), unix.OPEN_TREE_CLONE|unix.AT_RECURSIVE,
		uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
}

// dialCanary connects, sends text, and wants the greeting of a listener of the
// host or the success of a proxy.
func dialCanary(network, addr, text string) error {
	c, err := net.DialTimeout(network, addr, patience)
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(c, text); err != nil {
		return err
	}
	return awaitAnswer(c,
		func(got string) bool { return strings.Contains(got, canary) || strings.HasPrefix(got, "HTTP/1.1 200") })
}

// awaitAnswer reads until what was read is what an act wants.
func awaitAnswer(c net.Conn, wanted func(string) bool) error {
	var got bytes.Buffer
	for b := make([]byte, 4096); ; {
		n, err := c.Read(b)
		got.Write(b[:n])
		if wanted(got.String()) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("answered %.80q: %w", got.String(), err)
		}
	}
}

// send sends a datagram.
func send(a []string) error {
	c, err := net.Dial(a[0], a[1])
	if err != nil {
		return err
	}
	return errOf(c.Write([]byte("escaped")))
}

// pairSend sends a datagram to an address from one end of a socket pair.
func pairSend(a []string) error {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	return unix.Sendto(fds[0], []byte("escaped by a pair"), 0, &unix.SockaddrUnix{Name: a[0]})
}

// proxyOf returns the address of the sandbox's proxy.
func proxyOf() string {
	_, addr, _ := strings.Cut(os.Getenv("HTTP_PROXY"), "://")
	if i := strings.LastIndexByte(addr, '@'); i >= 0 {
		addr = addr[i+1:]
	}
	return strings.TrimSuffix(addr, "/")
}

func unescape(s string) string {
	return strings.NewReplacer(`\r`, "\r", `\n`, "\n", `\x00`, "\x00").Replace(s)
}

func port(n int) string { return string([]byte{byte(n >> 8), byte(n)}) }

func socks(command byte, host string, p int) error {
	c, err := net.DialTimeout("tcp", proxyOf(), patience)
	if err != nil {
		return err
	}
	_ = c.SetDeadline(time.Now().Add(patience))
	answer := make([]byte, 12)
	if _, err := io.WriteString(c, "\x05\x01\x00\x05"+string(command)+"\x00\x03"+string(byte(len(host)))+
		host+port(p)); err != nil {
		return err
	}
	if _, err := io.ReadFull(c, answer); err != nil {
		return err
	}
	if answer[3] != 0 {
		return fmt.Errorf("SOCKS error %d", answer[3])
	}
	return nil
}

// socks4 asks for a port of loopback. A proxy that waits for more learns that there is none.
func socks4(a []string) error {
	c, err := net.DialTimeout("tcp", proxyOf(), patience)
	if err != nil {
		return err
	}
	_ = c.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(c, "\x04\x01"+port(number(a[0]))+"\x7f\x00\x00\x01\x00"); err != nil {
		return err
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		return err
	}
	return awaitAnswer(c,
		func(got string) bool { return strings.Contains(got, canary) || strings.HasPrefix(got, "\x00\x5a") })
}

// pipeline asks for a second host on a connection that was for an allowed one.
func pipeline(a []string) error {
	c, err := net.DialTimeout("tcp", proxyOf(), patience)
	if err != nil {
		return err
	}
	_ = c.SetDeadline(time.Now().Add(patience))
	_, err = fmt.Fprintf(c, "GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\nConnection: keep-alive\r\n\r\nGET http://127.0.0.1:%s/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", a[0])
	if err != nil {
		return err
	}
	return awaitAnswer(c, func(got string) bool { return strings.Contains(got, "host "+canary) })
}

// i386 writes a program that makes a system call of the other table (getpid
// with int 0x80), and runs it.
func i386(a []string) error {
	code := []byte{0xb8, 20, 0, 0, 0, 0xcd, 0x80, 0x31, 0xff, 0x85, 0xc0, 0x7f, 2, 0xff, 0xc7, 0xb8,
		60, 0, 0, 0, 0x0f, 0x05}
	b := make([]byte, 120, 256)
	copy(b, "\x7fELF\x02\x01\x01")
	put := func(at int, size int, v uint64) {
		for i := range size {
			b[at+i] = byte(v >> (8 * i))
		}
	}
	put(16, 2, 2)
	put(18, 2, 62)
	put(20, 4, 1)
	put(24, 8, 0x400078)
	put(32, 8, 64)
	put(52, 2, 64)
	put(54, 2, 56)
	put(56, 2, 1)
	put(64, 4, 1)
	put(68, 4, 5)
	put(80, 8, 0x400000)
	put(88, 8, 0x400000)
	put(96, 8, uint64(120+len(code)))
	put(104, 8, uint64(120+len(code)))
	put(112, 8, 4096)
	if err := os.WriteFile(a[0], append(b, code...), 0o700); err != nil {
		return err
	}
	p, err := os.StartProcess(a[0], a[:1], &os.ProcAttr{})
	if err != nil {
		return err
	}
	s, err := p.Wait()
	if err != nil || !s.Success() {
		return fmt.Errorf("%v: %w", s, err)
	}
	return nil
}

// without runs a program in which the kernel has no Landlock.
func without(a []string) error {
	f := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_LANDLOCK_CREATE_RULESET, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	p := unix.SockFprog{Len: uint16(len(f)), Filter: &f[0]}
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if err := sys(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&p)), 0, 0, 0); err != nil {
		return err
	}
	return unix.Exec(a[1], a[1:], os.Environ())
}

// forkBomb starts processes and fails when no more can be started.
func forkBomb(a []string) error {
	for range number(a[0]) {
		pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
		if errno != 0 {
			return errno
		}
		if pid == 0 {
			for {
				_, _, _ = unix.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
			}
		}
	}
	return nil
}

// ptyBomb opens terminals and fails when no more can be opened.
func ptyBomb(a []string) error {
	for range number(a[0]) {
		if _, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY, 0); err != nil {
			return err
		}
	}
	return nil
}
