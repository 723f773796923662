//go:build !linux

package native

import (
	"context"
	"errors"
	"io"
	"runtime"

	"github.com/chela-ai/chela/internal/core/sandbox"
)

// Broker confines nothing on this system.
type Broker struct{}

// New returns a Broker.
func New(Options) *Broker { return &Broker{} }

// Name returns "native".
func (*Broker) Name() string { return "native" }

// Close does nothing.
func (*Broker) Close() {}

// Recreate does nothing.
func (*Broker) Recreate(context.Context, func(string) bool) (sandbox.Removal, error) {
	return sandbox.Removal{}, nil
}

// Level returns the level "none".
func (*Broker) Level(context.Context) sandbox.Level {
	reason := "there is no sandbox for " + runtime.GOOS
	if runtime.GOOS == "windows" {
		reason += "; commands need approval, and run in job objects that end them and limit their number (not verified by the project)"
	}
	return sandbox.Level{Name: "none", Reason: reason}
}

// Try tries nothing.
func (b *Broker) Try(ctx context.Context, _ *sandbox.Session) (sandbox.Level, []sandbox.Effect) {
	return b.Level(ctx), nil
}

// Start refuses to start a program.
func (*Broker) Start(context.Context, sandbox.Plan, io.Writer) (sandbox.Process, error) {
	return nil, errors.New("commands cannot be confined on " + runtime.GOOS)
}
