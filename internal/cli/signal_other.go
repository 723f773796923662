//go:build !unix

package cli

import "os"

// onRestart does nothing: there is no signal for it on this system.
func onRestart(chan<- os.Signal) {}
