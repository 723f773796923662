//go:build !linux

package process

import (
	"context"
	"fmt"
	"net/netip"
)

func command(int) string { return "" }

// IsOurs reports whether the process is another chela of this user. It is
// always false on this system.
func (p Process) IsOurs() bool { return false }

// End returns an error: it is not supported on this system.
func (p Process) End(context.Context) error {
	return fmt.Errorf("end %s: not supported on this system", p)
}

// Listener returns no process: it is not supported on this system.
func Listener(netip.AddrPort) Process { return Process{} }

// PeerUser returns no user: it is not supported on this system.
func PeerUser(peer, own netip.AddrPort) (uid int, ok bool) { return 0, false }
