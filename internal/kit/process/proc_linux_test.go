package process

import (
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"
)

func TestOurs(t *testing.T) {
	for _, pid := range []int{0, -1, os.Getpid(), 1 << 30} {
		if Of(pid).IsOurs() {
			t.Errorf("process %d may be ended", pid)
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
