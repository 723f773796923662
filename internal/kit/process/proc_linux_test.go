package process

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

func TestOurs(t *testing.T) {
	for _, pid := range []int{0, -1, os.Getpid(), 1 << 30} {
		if Of(pid).IsOurs() {
			t.Errorf("process %d may be ended", pid)
		}
	}
}

// TestOursOfAnotherUser starts this program as this user and, if that is permitted, as
// another one.
func TestOursOfAnotherUser(t *testing.T) {
	if os.Getenv("CHELA_TEST_CHILD") != "" {
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	for _, other := range []bool{false, true} {
		c := exec.Command("/proc/self/exe", "-test.run=^TestOursOfAnotherUser$") // its folder may be closed to the other user
		c.Dir, c.Env = "/", append(os.Environ(), "CHELA_TEST_CHILD=1")
		if other {
			c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534, NoSetGroups: true}}
		}
		in, err := c.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); other && errors.Is(err, syscall.EPERM) {
			t.Skip("not root")
		} else if err != nil {
			t.Fatal(err)
		}
		if got := Of(c.Process.Pid).IsOurs(); got == other {
			t.Errorf("of another user: %v, ours: %v", other, got)
		}
		_ = in.Close()
		if err := c.Wait(); err != nil {
			t.Errorf("of another user: %v: %v", other, err)
		}
	}
}

func TestInTheWay(t *testing.T) {
	const line = "   0: %s:1F90 00000000:0000 %s 00000000:00000000 00:00000000 00000000     0        0 4711 1 0000000000000000"
	for _, tt := range []struct {
		host, state, addr string
		want              bool
	}{
		{"0100007F", "0A", "127.0.0.1:8080", true},
		{"0100007F", "01", "127.0.0.1:8080", false},
		{"0100007F", "0A", "127.0.0.1:8081", false},
		{"0100007F", "0A", "192.168.1.5:8080", false},
		{"0100007F", "0A", "0.0.0.0:8080", true},
		{"00000000", "0A", "192.168.1.5:8080", true},
		{"0000000000000000FFFF00000100007F", "0A", "127.0.0.1:8080", true},
		{"00000000000000000000000001000000", "0A", "[::1]:8080", true},
		{"00000000000000000000000000000000", "0A", "127.0.0.1:8080", true},
		{"nonsense", "0A", "127.0.0.1:8080", false},
	} {
		inode, got := conflictingSocket(fmt.Sprintf(line, tt.host, tt.state), netip.MustParseAddrPort(tt.addr))
		if got != tt.want || got && inode != "4711" {
			t.Errorf("%s %s for %s: %q, %v, want %v", tt.host, tt.state, tt.addr, inode, got, tt.want)
		}
	}
}

func TestWords(t *testing.T) {
	for line, want := range map[string]string{
		"/usr/local/bin/chela gateway run --port 1 --token secret": "chela gateway run",
		"chela -x": "chela", "-sh": "-sh", "": ".",
	} {
		if got := withoutFlags(strings.Split(line, " ")); got != want {
			t.Errorf("%q is %q, want %q", line, got, want)
		}
	}
}

func TestPeerUser(t *testing.T) {
	t.Parallel()
	for _, addr := range []string{"127.0.0.1:0", "[::1]:0"} {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			t.Skipf("no loopback address %s: %v", addr, err)
		}
		defer l.Close()
		near, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer near.Close()
		peer, own := near.LocalAddr().(*net.TCPAddr).AddrPort(), near.RemoteAddr().(*net.TCPAddr).AddrPort()
		if uid, ok := PeerUser(peer, own); !ok || uid != os.Getuid() {
			t.Errorf("%s: user %d, %v", addr, uid, ok)
		}
		if uid, ok := PeerUser(netip.AddrPortFrom(peer.Addr(), 1), own); ok {
			t.Errorf("%s: no connection has user %d", addr, uid)
		}
	}
}
