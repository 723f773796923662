//go:build !unix

package cli

import "os"

// notifyRestart does nothing: this system has no restart signal.
func notifyRestart(chan<- os.Signal) {}
