package process

import (
	"bufio"
	"context"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// command returns the command line of a process, shortened; "" if there is no
// such process.
func command(pid int) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return ""
	}
	return withoutFlags(strings.Split(strings.TrimRight(string(b), "\x00"), "\x00"))
}

// IsOurs reports whether the process is another chela of this user.
func (p Process) IsOurs() bool {
	if p.PID <= 0 || p.PID == os.Getpid() {
		return false
	}
	dir := fmt.Sprintf("/proc/%d", p.PID)
	info, err := os.Stat(dir)
	if err != nil {
		return false
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Getuid() {
		return false
	}
	exe, err := os.Readlink(dir + "/exe") // fails for a process that has ended
	if err != nil {
		return false
	}
	self, err := os.Executable()
	if err != nil {
		return false
	}
	exe = strings.TrimSuffix(exe, " (deleted)") // the binary was replaced
	if self, err = filepath.EvalSymlinks(self); err != nil {
		return false
	}
	return exe == self || filepath.Base(exe) == "chela"
}

// End ends the process if it is another chela of this user: with SIGTERM, and
// if that takes too long, with SIGKILL.
func (p Process) End(ctx context.Context) error {
	for _, step := range [...]struct {
		signal syscall.Signal
		wait   time.Duration
	}{{syscall.SIGTERM, farewell}, {syscall.SIGKILL, demise}} {
		if !p.IsOurs() {
			return nil
		}
		if err := syscall.Kill(p.PID, step.signal); err != nil {
			return fmt.Errorf("end %s: %w", p, err)
		}
		for end := time.Now().Add(step.wait); p.IsOurs() && time.Now().Before(end); {
			select {
			case <-time.After(20 * time.Millisecond):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	if p.IsOurs() {
		return fmt.Errorf("end %s: it did not exit in time", p)
	}
	return nil
}

// Listener returns the process that listens where addr would.
func Listener(addr netip.AddrPort) Process {
	var inodes []string
	for _, name := range [...]string{"/proc/net/tcp", "/proc/net/tcp6"} {
		f, err := os.Open(name)
		if err != nil {
			continue
		}
		in := bufio.NewScanner(f)
		for in.Scan() {
			if inode, ok := conflictingSocket(in.Text(), addr); ok {
				inodes = append(inodes, "socket:["+inode+"]")
			}
		}
		f.Close()
	}
	files, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil || inodes == nil {
		return Process{}
	}
	for _, file := range files {
		if to, err := os.Readlink(file); err != nil || !slices.Contains(inodes, to) {
			continue
		}
		if pid, err := strconv.Atoi(strings.Split(file, "/")[2]); err == nil {
			return Of(pid)
		}
	}
	return Process{}
}

// PeerUser returns the user id of the process that has the other end of a TCP connection of
// this machine with itself: peer is its address, and own is that of this end.
func PeerUser(peer, own netip.AddrPort) (uid int, ok bool) {
	for _, name := range [...]string{"/proc/net/tcp", "/proc/net/tcp6"} {
		f, err := os.Open(name)
		if err != nil {
			continue
		}
		in := bufio.NewScanner(f)
		for in.Scan() {
			c := strings.Fields(in.Text())
			if len(c) < 8 {
				continue
			}
			local, lok := socketAddr(c[1])
			far, fok := socketAddr(c[2])
			if lok && fok && same(local, peer) && same(far, own) {
				f.Close()
				n, err := strconv.Atoi(c[7])
				return n, err == nil
			}
		}
		f.Close()
	}
	return 0, false
}

func same(a, b netip.AddrPort) bool {
	return a.Port() == b.Port() && a.Addr().Unmap() == b.Addr().Unmap()
}

// socketAddr parses an address of /proc/net/tcp.
func socketAddr(s string) (netip.AddrPort, bool) {
	host, port, _ := strings.Cut(s, ":")
	n, err := strconv.ParseUint(port, 16, 16)
	if err != nil {
		return netip.AddrPort{}, false
	}
	b, err := hex.DecodeString(host)
	if err != nil || len(b)%4 != 0 {
		return netip.AddrPort{}, false
	}
	for word := range slices.Chunk(b, 4) { // each in the machine's byte order
		slices.Reverse(word)
	}
	a, ok := netip.AddrFromSlice(b)
	return netip.AddrPortFrom(a.Unmap(), uint16(n)), ok
}

// conflictingSocket returns the inode in a line of /proc/net/tcp if that socket
// listens where addr would.
func conflictingSocket(line string, addr netip.AddrPort) (string, bool) {
	const listens = "0A"
	f := strings.Fields(line)
	if len(f) < 10 || f[3] != listens {
		return "", false
	}
	p, ok := socketAddr(f[1])
	if !ok || p.Port() != addr.Port() {
		return "", false
	}
	return f[9], p.Addr().IsUnspecified() || addr.Addr().IsUnspecified() || p.Addr() == addr.Addr()
}
