package host

import "syscall"

// alone makes a program independent of the console.
func alone() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}
