// Command chela is a personal AI assistant in one binary.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/chela-ai/chela/internal/app"
	"github.com/chela-ai/chela/internal/app/standard"
	"github.com/chela-ai/chela/internal/kit/process"
	"github.com/chela-ai/chela/internal/surface/cli"
)

// garbage is the growth of the heap, in percent, that starts a garbage
// collection. A turn allocates and retains little, so that Go's default of 100
// would collect continually; an idle process returns the memory.
const garbage = 200

func main() {
	process.KeepDescriptors()
	if was := debug.SetGCPercent(garbage); was != 100 { // GOGC is set
		debug.SetGCPercent(was)
	}
	signals := []os.Signal{syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores it
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	parts := standard.New()
	parts.Launches = true
	os.Exit(cli.Main(ctx, os.Args[1:], app.Build(parts)))
}
