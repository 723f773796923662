package native

import "github.com/chela-ai/chela/internal/core/sandbox"

var _ sandbox.Backend = (*Broker)(nil)

// Prepare does nothing: the rights of a plan say all about its sandbox.
func (*Broker) Prepare(*sandbox.Session) error { return nil }
