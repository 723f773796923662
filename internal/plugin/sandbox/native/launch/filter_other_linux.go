//go:build !amd64 && !arm && !arm64 && !riscv64

package launch

import (
	"errors"
	"runtime"

	"golang.org/x/sys/unix"
)

// filter returns an error, so that there are no cages: the numbers of system calls
// depend on the processor.
func filter(bool, bool) ([]unix.SockFilter, error) {
	return nil, errors.New("the filter for system calls is not available for this processor (" + runtime.GOARCH + ")")
}

// Supported returns the reason why there are no cages for this processor.
func Supported() error {
	_, err := filter(false, false)
	return err
}

// enterFilter returns an error.
func enterFilter([]unix.SockFilter, bool) (int, error) { return -1, errors.ErrUnsupported }
