//go:build unix

package cli

import (
	"os"
	"os/signal"
	"syscall"
)

// onRestart has c told when a gateway is to start anew in its process.
func onRestart(c chan<- os.Signal) { signal.Notify(c, syscall.SIGUSR1) }
