// Command chela is a personal AI assistant in one binary.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/chela-ai/chela/internal/app"
	"github.com/chela-ai/chela/internal/cli"
)

func main() {
	signals := []os.Signal{syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	context.AfterFunc(ctx, stop) // a second one ends the process at once
	os.Exit(cli.Main(ctx, os.Args[1:], app.Commands()))
}
