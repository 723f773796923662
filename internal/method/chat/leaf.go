package chat

import (
	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/queue"
	"github.com/chela-ai/chela/wire"
)

// errLeaf says that a message was written to something else than there is now.
var errLeaf = wire.Errorf(wire.InvalidRequest, "active branch changed; review and retry").
	With(map[string]any{"reason": "active-leaf-changed"})

// seen is what the client saw of the conversation when its message was written.
// What is told to a run in progress is for whatever that says.
func seen(in wire.ChatSend) chela.Seen {
	s := chela.Seen{Transcript: in.SessionID}
	if in.Leaf.Set && in.QueueMode != string(queue.Steer) {
		s.Last, s.Earlier = &in.Leaf.Value, in.SessionID != ""
	}
	return s
}
