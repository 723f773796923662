//go:build unix

package process

import (
	"os"
	"strconv"
	"syscall"
)

// maxDescriptor limits the descriptors that are tried where the system does not
// list them.
const maxDescriptor = 4096

// KeepDescriptors keeps the descriptors that this process was started with, but
// for the standard files, from the programs that it starts. It must be called
// before the first of them.
func KeepDescriptors() {
	list, err := os.ReadDir("/dev/fd")
	if err != nil {
		for fd := 3; fd < maxDescriptor; fd++ {
			syscall.CloseOnExec(fd) // it may not be open
		}
		return
	}
	for _, e := range list {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd) // it may have been that of the list
		}
	}
}
