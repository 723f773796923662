package approvals

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/chela-ai/chela/internal/rpc"
	"github.com/chela-ai/chela/wire"
)

// Policy is what commands may do without a question.
type Policy struct {
	Mode   string // of the exec tool: deny, allowlist, ask, always, full
	Path   string // of the file that says so
	Exists bool
}

// policy tells the mode in OpenClaw's words. What it calls the allowlist is
// here what is known to only read.
func (m methods) policy(context.Context, rpc.Peer, wire.None) (wire.ExecPolicySnapshot, error) {
	p := m.o.Policy()
	d := wire.ExecDefaults{Security: "allowlist", Ask: "off", Fallback: "allowlist"}
	switch p.Mode {
	case "full":
		d.Security, d.Fallback = "full", "full"
	case "deny":
		d.Security, d.Fallback = "deny", "deny"
	case "ask":
		d.Ask = "on-miss"
	case "always":
		d.Ask, d.Fallback = "always", "deny"
	}
	sum := sha256.Sum256([]byte(p.Mode))
	return wire.ExecPolicySnapshot{
		Path: p.Path, Exists: p.Exists, Hash: hex.EncodeToString(sum[:]), Resolved: d,
		File: wire.ExecPolicy{Version: 1, Defaults: d, Agents: map[string]struct{}{}},
	}, nil
}
