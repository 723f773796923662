//go:build !linux

package process

import (
	"context"
	"fmt"
	"net/netip"
)

func command(int) string { return "" }

// Ours reports whether the process is another chela of this user: not known
// here.
func (p Process) Ours() bool { return false }

// End cannot end a process here.
func (p Process) End(context.Context) error { return fmt.Errorf("end %s: not on this system", p) }

// Listener does not know here which process listens.
func Listener(netip.AddrPort) Process { return Process{} }
