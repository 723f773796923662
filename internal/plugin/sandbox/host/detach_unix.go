//go:build unix

package host

import "syscall"

// alone makes a program independent of the terminal.
func alone() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
