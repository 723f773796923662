package stdio

import (
	"time"

	"github.com/chela-ai/chela/internal/core/sandbox"
)

// Wrap returns outer, which waits for inner and does more. It is a
// sandbox.Terminal if inner is one.
func Wrap(outer, inner sandbox.Process) sandbox.Process {
	if t, ok := inner.(sandbox.Terminal); ok {
		return wrapped{outer, t}
	}
	return outer
}

// wrapped is a process whose input goes to another one.
type wrapped struct {
	sandbox.Process
	input sandbox.Terminal
}

var _ sandbox.Terminal = wrapped{}

func (w wrapped) Write(b []byte) (int, error)         { return w.input.Write(b) }
func (w wrapped) SetWriteDeadline(at time.Time) error { return w.input.SetWriteDeadline(at) }
