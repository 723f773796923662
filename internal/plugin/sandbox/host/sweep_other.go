//go:build !linux

package host

import (
	"context"
	"log/slog"
)

// Sweep does nothing on this system; see the package comment.
func Sweep(context.Context, *slog.Logger, string) (int, error) { return 0, nil }

func self() string { return "" }
