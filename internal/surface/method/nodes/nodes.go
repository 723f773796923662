// Package nodes implements the methods with which clients call the commands of nodes, and
// nodes answer. What nodes are, and who may be one, is in package devices.
package nodes

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/node"
	"github.com/chela-ai/chela/internal/core/pairing"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/engine/inbound"
	"github.com/chela-ai/chela/internal/engine/nodes"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/wire"
)

// Options configures the methods. All fields are required.
type Options struct {
	Nodes   *nodes.Registry
	Store   store.Store
	Gate    *inbound.Gate
	Default chela.AgentID            // agent of the session "main"
	Agent   func(chela.AgentID) bool // reports whether the agent exists
}

// Methods returns the methods.
func Methods(o Options) []rpc.Method {
	m := methods{o}
	return []rpc.Method{
		rpc.New(wire.MethodNodeInvoke, wire.RoleOperator, chela.ScopeWrite, m.invoke).
			Ignoring("turnSourceChannel", "turnSourceTo", "turnSourceAccountId", "turnSourceThreadId").StartsWork(),
		rpc.New(wire.MethodNodeInvokeResult, wire.RoleNode, "", m.result),
		rpc.New(wire.MethodNodeInvokeProgress, wire.RoleNode, "", m.progress),
		rpc.New(wire.MethodNodeEvent, wire.RoleNode, "", m.event).StartsWork(),
	}
}

type methods struct{ o Options }

// needsAdmin reports whether a command gives control of the machine: it runs programs, reads
// files or drives a browser.
func needsAdmin(command string) bool {
	return slices.Contains([]string{wire.NodeRun, "browser.proxy", "browser.proxy.upload.v1", "fs.listDir",
		"terminal.upload"}, command)
}

// invoke calls a command of a node and waits for its answer.
func (m methods) invoke(ctx context.Context, p rpc.Peer, in wire.NodeInvoke) (wire.NodeInvoked, error) {
	if needsAdmin(in.Command) {
		if err := rpc.Need(ctx, chela.ScopeAdmin); err != nil {
			return wire.NodeInvoked{}, err
		}
	}
	if err := check(in); err != nil {
		return wire.NodeInvoked{}, err
	}
	p.Yield()
	payload, err := m.o.Nodes.Invoke(ctx, node.Request{
		Node:    in.Node,
		Command: in.Command,
		Params:  in.Params,
		Timeout: time.Duration(in.Timeout) * time.Millisecond,
		Key:     in.Key,
		Session: chela.SessionKey(in.Session),
	})
	if err != nil {
		return wire.NodeInvoked{}, failure(err)
	}
	out := wire.NodeInvoked{OK: true, Node: in.Node, Command: in.Command, Payload: payload}
	if len(payload) > 0 {
		text := string(payload)
		out.PayloadJSON = &text
	}
	return out, nil
}

// maxKey is the longest idempotency key in bytes.
const maxKey = 256

// check returns why a call is refused, whatever the node.
func check(in wire.NodeInvoke) error {
	switch {
	case in.Node == "" || in.Command == "":
		return wire.Errorf(wire.InvalidRequest, "nodeId and command required")
	case in.Key == "" || len(in.Key) > maxKey:
		return rpc.Invalid("at /idempotencyKey: must have 1 to %d bytes", maxKey)
	case strings.HasPrefix(in.Command, "system.execApprovals."):
		return wire.Errorf(wire.InvalidRequest,
			"the rules of a node about commands are changed on the node (chela approvals)")
	case in.Command != wire.NodeRun:
		return nil
	}
	var run map[string]json.RawMessage
	if json.Unmarshal(in.Params, &run) != nil {
		return rpc.Invalid("at /params: must be object")
	}
	for _, claim := range [...]string{"approved", "approvalDecision", "approvalSource", "systemRunPlan"} {
		if v, ok := run[claim]; ok && string(v) != "null" && string(v) != "false" {
			return wire.Errorf(wire.InvalidRequest,
				"%s: only the gateway says that a command was approved; ask the assistant, whose commands you approve", claim)
		}
	}
	return nil
}

// failure returns the error of a call as OpenClaw's gateway answers it.
func failure(err error) error {
	f, ok := errors.AsType[*node.Fault](err)
	if !ok {
		return err
	}
	e := wire.Errorf(wire.Unavailable, "%s", f.Error())
	return e.With(map[string]any{
		"code": f.Code, "nodeError": wire.NodeError{Code: f.Code, Message: f.Message}, "nodeCommandDispatched": f.Sent,
	})
}

// device returns the node that makes a call, which must be the one that it names.
func device(ctx context.Context, named string) (string, error) {
	id, ok := pairing.DeviceOf(chela.PrincipalFrom(ctx))
	if !ok || named != id {
		return "", wire.Errorf(wire.InvalidRequest, "nodeId mismatch")
	}
	return id, nil
}

func (m methods) result(ctx context.Context, _ rpc.Peer, in wire.NodeInvokeResult) (wire.NodeAck, error) {
	id, err := device(ctx, in.Node)
	if err != nil {
		return wire.NodeAck{}, err
	}
	return wire.NodeAck{OK: true, Ignored: !m.o.Nodes.Answer(id, in)}, nil
}

// maxChunk is the number of bytes of output that a node reports at once.
const maxChunk = 16 << 10

func (m methods) progress(ctx context.Context, _ rpc.Peer, in wire.NodeInvokeProgress) (wire.NodeAck, error) {
	id, err := device(ctx, in.Node)
	if err != nil {
		return wire.NodeAck{}, err
	}
	if len(in.Chunk) > maxChunk {
		return wire.NodeAck{}, wire.Errorf(wire.InvalidRequest, "progress chunk too large")
	}
	return wire.NodeAck{OK: true, Ignored: !m.o.Nodes.Progress(id, in)}, nil
}
