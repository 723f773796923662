package cli_test

import "golang.org/x/sys/unix"

// getTermios asks what a terminal does.
const getTermios = unix.TIOCGETA
