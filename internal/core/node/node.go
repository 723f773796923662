package node

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
)

// Node is a paired node.
type Node struct {
	ID        string // of the device
	Name      string // for people; may be empty
	Platform  string // as the device says, such as linux or "iOS 26.1"
	Family    string // of the device, such as iPhone; may be empty
	Version   string
	Connected bool
	Declared  []string  // commands that it has, as it says
	Approved  []string  // those of them that a person approved
	Request   string    // id of its pending request for approval; "": none
	Seen      time.Time // of its last connection
}

// Title returns the name of a node for people.
func (n *Node) Title() string {
	if n.Name != "" {
		return n.Name
	}
	return n.ID[:min(len(n.ID), 12)]
}

// Has reports whether a person approved a command of the node.
func (n *Node) Has(command string) bool { return slices.Contains(n.Approved, command) }

// Request is a call of a command of a node.
type Request struct {
	Node    string // id
	Command string
	Params  json.RawMessage // nil: none
	Timeout time.Duration   // for the answer; 0: [DefaultTimeout]
	// Key makes the command run once, however often the call is made; "": each call
	// runs it.
	Key     string
	Session chela.SessionKey // that it belongs to; "": none
	// Progress gets output of the command while it runs; nil: it is dropped.
	Progress func(chunk string)
}

// Limits of calls.
const (
	DefaultTimeout = 30 * time.Second
	MaxTimeout     = time.Hour
	MaxParams      = 4 << 20  // bytes of the parameters
	MaxPayload     = 24 << 20 // bytes of an answer
)

// What pictures and recordings are like if nobody says otherwise, as OpenClaw has it.
const (
	PictureWidth   = 1600 // pixels
	PictureQuality = 0.95
	ClipMS         = 3000   // of a camera
	ScreenMS       = 10_000 // of a screen
	ScreenRate     = 10     // pictures a second
)

// Caller knows the nodes and calls their commands.
type Caller interface {
	// Nodes returns the paired nodes, by time of pairing.
	Nodes(ctx context.Context) ([]Node, error)
	// Allowed returns why a command of a node must not be called: a *[chela.Error] whose
	// text and hint say how that is changed; nil: it may.
	Allowed(n *Node, command string) error
	// Invoke calls a command and returns its answer, JSON or nil. The chain of an error
	// contains a *[Fault], if it is not a refusal of Allowed.
	Invoke(ctx context.Context, r Request) (json.RawMessage, error)
}

// Fault says why a call of a node has no answer.
type Fault struct {
	Code    string // of package wire or of the node, such as NODE_BACKGROUND_UNAVAILABLE
	Message string
	// Sent says that the command was sent to the node. It may have been carried out,
	// unless Answered.
	Sent     bool
	Answered bool // the node itself says so
}

// Error returns the message, with the code of the node.
func (f *Fault) Error() string {
	if f.Answered && f.Code != "" && !strings.Contains(f.Message, f.Code) {
		return f.Code + ": " + f.Message
	}
	return f.Message
}

// Unknown reports whether it is not known whether the command was carried out.
func (f *Fault) Unknown() bool { return f.Sent && !f.Answered }

// Find returns the node that name means: an id, the beginning of one, or the name for
// people. With an empty name it is the only node that fits; what says what the others lack.
func Find(all []Node, name string, fits func(*Node) bool, what string) (*Node, error) {
	if name == "" {
		var found []*Node
		for i := range all {
			if fits(&all[i]) {
				found = append(found, &all[i])
			}
		}
		switch len(found) {
		case 1:
			return found[0], nil
		case 0:
			return nil, &chela.Error{Code: chela.CodeUnavailable, Message: "no node " + what, Hint: "chela nodes list"}
		}
		return nil, chela.Errorf(chela.CodeInvalid, "%d nodes could be meant; choose one of them: %s",
			len(found), titles(found))
	}
	var exact, prefix []*Node
	for i := range all {
		n := &all[i]
		switch lower := strings.ToLower(name); {
		case n.ID == lower || strings.EqualFold(n.Name, name):
			exact = append(exact, n)
		case len(name) >= minPrefix && strings.HasPrefix(n.ID, lower):
			prefix = append(prefix, n)
		}
	}
	if len(exact) == 0 {
		exact = prefix
	}
	switch len(exact) {
	case 1:
		return exact[0], nil
	case 0:
		known := "none is paired"
		if len(all) > 0 {
			known = "the nodes are " + titles(pointers(all))
		}
		return nil, &chela.Error{Code: chela.CodeNotFound, Message: fmt.Sprintf("there is no node %q; %s", name, known),
			Hint: "chela nodes list"}
	}
	return nil, chela.Errorf(chela.CodeInvalid, "%d nodes are called %q; choose one by its id: %s", len(exact),
		name, ids(exact))
}

// minPrefix is the number of characters of an id that stand for it.
const minPrefix = 4

func pointers(all []Node) []*Node {
	out := make([]*Node, len(all))
	for i := range all {
		out[i] = &all[i]
	}
	return out
}

// maxListed is the number of nodes that an error names.
const maxListed = 10

func titles(nodes []*Node) string {
	return join(nodes, func(n *Node) string {
		if slices.ContainsFunc(nodes, func(o *Node) bool { return o != n && strings.EqualFold(o.Title(), n.Title()) }) {
			return fmt.Sprintf("%s (%.12s)", n.Title(), n.ID)
		}
		return n.Title()
	})
}

func ids(nodes []*Node) string {
	return join(nodes, func(n *Node) string { return n.ID[:min(len(n.ID), 12)] })
}

func join(nodes []*Node, text func(*Node) string) string {
	var out []string
	for _, n := range nodes[:min(len(nodes), maxListed)] {
		out = append(out, text(n))
	}
	return strings.Join(out, ", ")
}

// Invocation records that a call with a key was made, so that it is not made again.
type Invocation struct {
	Key     string    `json:"key"`
	Node    string    `json:"node"`
	Command string    `json:"command"`
	Sum     string    `json:"sum"` // identifies node, command and parameters
	Sent    time.Time `json:"sent"`
	Done    bool      `json:"done"` // the node answered
}

// Kept is how long an Invocation is kept.
const Kept = 24 * time.Hour

// Reader reads invocations.
type Reader interface {
	// Get returns the invocation with a key. The chain of the error contains
	// chela.ErrNotFound if there is none.
	Get(key string) (Invocation, error)
}

// Table reads and writes invocations in a transaction.
type Table interface {
	Reader
	// Put inserts or replaces the invocation with a key.
	Put(Invocation) error
	// Prune removes the invocations that were sent before a time.
	Prune(before time.Time) error
}
