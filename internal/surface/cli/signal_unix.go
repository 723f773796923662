//go:build unix

package cli

import (
	"os"
	"os/signal"
	"syscall"
)

// notifyRestart sends to c when the process receives the restart signal.
func notifyRestart(c chan<- os.Signal) { signal.Notify(c, syscall.SIGUSR1) }
