package launch

import "golang.org/x/sys/unix"

// auditArch is the architecture whose system calls are allowed.
const auditArch = unix.AUDIT_ARCH_ARM

// deniedHere are the denied system calls that only this architecture has.
func deniedHere() []uint32 { return nil }

// modesHere are the modes in system calls that only this architecture has.
func modesHere() []mode {
	return []mode{{unix.SYS_CHMOD, offArg1}, {unix.SYS_MKNOD, offArg1}, {unix.SYS_MKDIR, offArg1},
		{unix.SYS_CREAT, offArg1}, {unix.SYS_OPEN, offArg2}}
}
