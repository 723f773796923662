package launch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A kernel without [unix.LANDLOCK_ACCESS_FS_RESOLVE_UNIX] lets a command connect
// to any socket whose name it can reach, also in folders that are read-only. So
// the filter stops each connect of a command that can have such sockets, and
// the launcher makes the connection. To the name in the file system it does so
// only if the socket was bound in the network of the cage. What the command
// gave is read once, and the socket that was checked is the one that is
// connected to, so another thread of the command cannot change it meanwhile.

// question is struct seccomp_notif.
type question struct {
	ID    uint64
	PID   uint32 // of the thread
	Flags uint32
	Nr    int32
	Arch  uint32
	IP    uint64
	Args  [6]uint64
}

// verdict is struct seccomp_notif_resp.
type verdict struct {
	ID    uint64
	Val   int64
	Error int32
	Flags uint32
}

// answer answers the questions of a command until it has ended.
func answer(fd int) {
	defer unix.Close(fd)
	for {
		ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		if _, err := unix.Poll(ready, -1); err != nil && err != unix.EINTR {
			return
		}
		if ready[0].Revents&unix.POLLIN == 0 {
			if ready[0].Revents != 0 { // nobody is left who could ask
				return
			}
			continue
		}
		var q question
		if err := ioctl(fd, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&q)); err != nil {
			continue // whoever asked has ended
		}
		go func() { // a connection may wait
			v := verdict{ID: q.ID}
			if err := connect(fd, &q); err != nil {
				v.Error = -int32(unix.EACCES)
				if errno, ok := errors.AsType[unix.Errno](err); ok {
					v.Error = -int32(errno)
				}
			}
			_ = ioctl(fd, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&v)) // as above
		}()
	}
}

func ioctl(fd int, request uint, arg unsafe.Pointer) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), uintptr(request), uintptr(arg)); errno != 0 {
		return errno
	}
	return nil
}

// connect does what a thread asked for: connect(socket, address, length).
func connect(asked int, q *question) error {
	length := int(int32(q.Args[2]))
	if length < 2 || length > unix.SizeofSockaddrAny {
		return unix.EINVAL
	}
	pid, err := processOf(int(q.PID))
	if err != nil {
		return err
	}
	process, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	defer unix.Close(process)
	socket, err := unix.PidfdGetfd(process, int(int32(q.Args[0])), 0)
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	address := make([]byte, length)
	local := []unix.Iovec{{Base: &address[0]}}
	local[0].SetLen(length)
	if n, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: uintptr(q.Args[1]), Len: length}}, 0); err !=
		nil || n != length {
		return unix.EFAULT
	}
	// Until here, the id may have become that of another process.
	if err := ioctl(asked, unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&q.ID)); err != nil {
		return err
	}
	switch family, err := unix.GetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_DOMAIN); {
	case err != nil:
		return err
	case family == unix.AF_INET || family == unix.AF_INET6:
		return connectTo(socket, address)
	case family != unix.AF_UNIX:
		return unix.EACCES
	}
	if family := binary.NativeEndian.Uint16(address); family != unix.AF_UNIX || length == 2 || address[2] == 0 {
		return connectTo(socket, address) // no name in the file system; the others are those of the network
	}
	name, _, _ := strings.Cut(string(address[2:]), "\x00")
	file, err := openSocket(pid, name)
	if err != nil {
		return err
	}
	defer unix.Close(file)
	if own, err := boundHere(file); err != nil || !own {
		return unix.EACCES
	}
	return unix.Connect(socket, &unix.SockaddrUnix{Name: "/proc/self/fd/" + strconv.Itoa(file)})
}

// connectTo connects a socket to an address as the command wrote it.
func connectTo(socket int, address []byte) error {
	if _, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(socket), uintptr(unsafe.Pointer(&address[0])),
		uintptr(len(address))); errno != 0 {
		return errno
	}
	return nil
}

// processOf returns the process of a thread.
func processOf(thread int) (int, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", thread))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(status), "\nTgid:")
	line, _, _ := strings.Cut(rest, "\n")
	return strconv.Atoi(strings.TrimSpace(line))
}

// openSocket opens what a name is for a process. What it may not open it has
// not bound either.
func openSocket(pid int, name string) (int, error) {
	process := fmt.Sprintf("/proc/%d/", pid)
	if rest, ok := strings.CutPrefix(name, "/proc/self/"); ok {
		name = process + rest
	}
	if !strings.HasPrefix(name, "/") {
		name = process + "cwd/" + name
	}
	return unix.Open(name, unix.O_PATH|unix.O_CLOEXEC, 0)
}

// boundHere reports whether a socket of the file system was bound in the network
// of the cage.
func boundHere(file int) (bool, error) {
	var st unix.Stat_t
	if err := unix.Fstat(file, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return false, err
	}
	device, err := deviceOf(file)
	if err != nil {
		return false, err
	}
	sockets, err := boundSockets()
	return sockets[boundSocket{uint32(st.Ino), device}], err
}

// boundSocket is where a socket was bound: an inode, and the device of its file
// system as the kernel numbers it.
type boundSocket struct{ inode, device uint32 }

// deviceOf returns the device of the file system of a file. That in its status
// is another one for some file systems.
func deviceOf(file int) (uint32, error) {
	info, err := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(file))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(info), "mnt_id:")
	id, _, _ := strings.Cut(rest, "\n")
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(mounts)) {
		f := strings.Fields(line)
		if len(f) < 3 || f[0] != strings.TrimSpace(id) {
			continue
		}
		major, minor, _ := strings.Cut(f[2], ":")
		a, errA := strconv.ParseUint(major, 10, 12)
		b, errB := strconv.ParseUint(minor, 10, 20)
		return uint32(a<<20 | b), errors.Join(errA, errB)
	}
	return 0, unix.ENOENT
}

// Of netlink's list of local sockets (linux/unix_diag.h).
const (
	allStates = 1<<32 - 1
	showPlace = 2 // UDIAG_SHOW_VFS
	placeOf   = 1 // UNIX_DIAG_VFS
	headSize  = 16
)

// boundSockets returns the sockets with names in the file system that were bound
// in the network of this process.
func boundSockets() (map[boundSocket]bool, error) {
	s, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil, err
	}
	defer unix.Close(s)
	order := binary.NativeEndian
	request := make([]byte, unix.NLMSG_HDRLEN+24)
	order.PutUint32(request, uint32(len(request)))
	order.PutUint16(request[4:], unix.SOCK_DIAG_BY_FAMILY)
	order.PutUint16(request[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	body := request[unix.NLMSG_HDRLEN:]
	body[0] = unix.AF_UNIX
	order.PutUint32(body[4:], allStates)
	order.PutUint32(body[12:], showPlace)
	if err := unix.Sendto(s, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, err
	}
	found := map[boundSocket]bool{}
	for buffer := make([]byte, 64<<10); ; {
		n, _, err := unix.Recvfrom(s, buffer, 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, err
		}
		for rest := buffer[:n]; len(rest) >= unix.NLMSG_HDRLEN; {
			size := int(order.Uint32(rest))
			if size < unix.NLMSG_HDRLEN || size > len(rest) {
				return nil, unix.EBADMSG
			}
			switch order.Uint16(rest[4:]) {
			case unix.NLMSG_DONE:
				return found, nil
			case unix.NLMSG_ERROR:
				return nil, unix.EIO
			}
			if size > unix.NLMSG_HDRLEN+headSize {
				addPlace(found, rest[unix.NLMSG_HDRLEN+headSize:size])
			}
			rest = rest[min((size+3)&^3, len(rest)):]
		}
	}
}

// addPlace adds the place that the attributes of a socket name.
func addPlace(found map[boundSocket]bool, attributes []byte) {
	order := binary.NativeEndian
	for len(attributes) >= 4 {
		size := int(order.Uint16(attributes))
		if size < 4 || size > len(attributes) {
			return
		}
		if order.Uint16(attributes[2:]) == placeOf && size >= 12 {
			found[boundSocket{order.Uint32(attributes[4:]), order.Uint32(attributes[8:])}] = true
		}
		attributes = attributes[min((size+3)&^3, len(attributes)):]
	}
}
