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
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGHUP)
	code := cli.Main(ctx, os.Args[1:], app.Commands())
	stop()
	os.Exit(code)
}
