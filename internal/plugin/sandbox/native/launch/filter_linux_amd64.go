package launch

import "golang.org/x/sys/unix"

// auditArch is the architecture whose system calls are allowed.
const auditArch = unix.AUDIT_ARCH_X86_64

// deniedHere are the denied system calls that only this architecture has.
func deniedHere() []uint32 {
	return []uint32{unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT, unix.SYS_USELIB, unix.SYS_USTAT, unix.SYS_SYSFS,
		unix.SYS__SYSCTL, unix.SYS_CREATE_MODULE}
}

// modesHere are the modes in system calls that only this architecture has.
func modesHere() []mode {
	return []mode{{unix.SYS_CHMOD, offArg1}, {unix.SYS_MKNOD, offArg1}, {unix.SYS_MKDIR, offArg1},
		{unix.SYS_CREAT, offArg1}, {unix.SYS_OPEN, offArg2}}
}
