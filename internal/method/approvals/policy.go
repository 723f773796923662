package approvals

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/chela-ai/chela/internal/allowlist"
	"github.com/chela-ai/chela/internal/approval"
	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/rpc"
	"github.com/chela-ai/chela/internal/store"
	"github.com/chela-ai/chela/wire"
)

// commandTool is the tool whose requests are rules about commands when they
// were allowed always.
const commandTool = "exec"

// policy returns the rules about commands: those of the document, and the
// commands that a person allowed always. The latter are requests; the document
// never holds them.
func (m methods) policy(ctx context.Context, _ rpc.Peer, _ wire.None) (wire.ExecPolicySnapshot, error) {
	d, exists, err := m.o.Rules().File.Load()
	if err != nil {
		return wire.ExecPolicySnapshot{}, err
	}
	var rows []approval.Request
	err = m.o.Store.View(ctx, func(r store.Reader) error {
		rows, err = r.Approvals().Always("", commandTool)
		return err
	})
	if err != nil {
		return wire.ExecPolicySnapshot{}, err
	}
	return m.snapshot(d, exists, rows)
}

func (m methods) snapshot(d *allowlist.Document, exists bool, rows []approval.Request) (wire.ExecPolicySnapshot, error) {
	out := wire.ExecPolicySnapshot{Path: m.o.Rules().File.Path(), Exists: exists, Hash: hash(d, rows)}
	if err := json.Unmarshal(d.Encode(), &out.File); err != nil {
		return out, fmt.Errorf("rules about commands: %w", err)
	}
	if out.File.Socket != nil {
		out.File.Socket.Token = ""
	}
	if out.File.Agents == nil {
		out.File.Agents = map[string]wire.ExecAgent{}
	}
	for _, r := range rows {
		id := string(r.Session.Agent())
		a := out.File.Agents[id]
		a.Allowlist = append(a.Allowlist, wire.ExecEntry{
			ID: r.ID, Pattern: "=command:" + r.Hash, Source: wire.AllowAlways, Text: r.Text, LastUsed: wire.At(r.Decided),
		})
		out.File.Agents[id] = a
	}
	rules, err := m.o.Rules().Rules(m.o.Default)
	if err != nil {
		return out, err
	}
	p := rules.Policy
	out.Resolved = wire.ExecDefaults{Security: string(p.Security), Ask: string(p.Ask), Fallback: string(p.Fallback)}
	return out, nil
}

// hash identifies the rules of both kinds.
func hash(d *allowlist.Document, rows []approval.Request) string {
	h := sha256.New()
	_, _ = h.Write([]byte(d.Hash())) // a hash takes everything
	for _, r := range rows {
		_, _ = h.Write([]byte("\x00" + r.ID))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// setPolicy replaces the rules about commands. What was allowed always and is
// not among the new rules is taken back: before they hold, so that a failure in
// between leaves less allowed and not more.
func (m methods) setPolicy(ctx context.Context, p rpc.Peer, in wire.ExecPolicySet) (wire.ExecPolicySnapshot, error) {
	none := wire.ExecPolicySnapshot{}
	d, exists, err := m.o.Rules().File.Load()
	if err != nil {
		return none, err
	}
	if exists && in.BaseHash == "" {
		return none, rpc.Invalid(wire.MethodExecPolicySet, "the rules exist: baseHash is required, get them first")
	}
	next, err := m.replacing(in.File)
	if err != nil {
		return none, rpc.Invalid(wire.MethodExecPolicySet, "at /file: %v", err)
	}
	keep := map[string]bool{}
	for _, a := range in.File.Agents {
		for _, e := range a.Allowlist {
			keep[e.ID] = e.Source == wire.AllowAlways
		}
	}
	who := chela.PrincipalFrom(ctx)
	err = m.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
		rows, err := tx.Approvals().Always("", commandTool)
		if err != nil {
			return err
		}
		if in.BaseHash != "" && in.BaseHash != hash(d, rows) {
			return changed()
		}
		for _, r := range rows {
			if keep[r.ID] {
				continue
			}
			if _, err := approval.Revoke(tx.Approvals(), who, r.ID); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return none, err
	}
	_, err = m.o.Rules().File.Update(d.Hash(), func(now *allowlist.Document) error {
		next.Keep(now)
		*now = *next
		return nil
	})
	switch {
	case chela.CodeOf(err) == chela.CodeConflict:
		return none, changed()
	case err != nil:
		return none, err
	}
	return m.policy(ctx, p, wire.None{})
}

func changed() error {
	return wire.Errorf(wire.InvalidRequest, "the rules about commands were changed meanwhile: get them again")
}

// replacing reads rules that a client sends. Commands that were allowed always
// are not a part of the document.
func (m methods) replacing(in wire.ExecPolicy) (*allowlist.Document, error) {
	for id, a := range in.Agents {
		a.Allowlist = slices.DeleteFunc(slices.Clone(a.Allowlist), func(e wire.ExecEntry) bool {
			return e.Source == wire.AllowAlways && e.Text != ""
		})
		in.Agents[id] = a
		if len(id) > 64 {
			return nil, errors.New("the name of an agent has more than 64 bytes")
		}
	}
	b, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	return allowlist.Parse(b)
}
