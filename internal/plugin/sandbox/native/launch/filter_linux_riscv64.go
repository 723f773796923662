package launch

import "golang.org/x/sys/unix"

// auditArch is the architecture whose system calls are allowed.
const auditArch = unix.AUDIT_ARCH_RISCV64

// deniedHere are the denied system calls that only this architecture has.
func deniedHere() []uint32 { return nil }

// modesHere are the modes in system calls that only this architecture has.
func modesHere() []mode { return nil }
