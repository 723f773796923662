package cli_test

import "golang.org/x/sys/unix"

// getTermios is the ioctl request that returns the terminal settings.
const getTermios = unix.TCGETS
