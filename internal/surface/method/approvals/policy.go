package approvals

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/chela-ai/chela/internal/core/allowlist"
	"github.com/chela-ai/chela/internal/core/approval"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/wire"
)

// policy returns the command rules: those of the document, and the commands
// that were allowed always. The latter are stored as approvals, never in the
// document.
func (m methods) policy(ctx context.Context, _ rpc.Peer, _ wire.None) (wire.ExecPolicySnapshot, error) {
	d, exists, err := m.o.Rules().File.Load()
	if err != nil {
		return wire.ExecPolicySnapshot{}, err
	}
	rows, err := store.Get(ctx, m.o.Store, func(r store.Reader) ([]approval.Request, error) {
		return r.Approvals().Always("", m.o.Commands())
	})
	if err != nil {
		return wire.ExecPolicySnapshot{}, err
	}
	return m.snapshot(d, exists, rows)
}

func (m methods) snapshot(d *allowlist.Document, exists bool,
	rows []approval.Request) (wire.ExecPolicySnapshot, error) {
	out := wire.ExecPolicySnapshot{Path: m.o.Rules().File.Path(), Exists: exists, Hash: hash(d, rows)}
	if err := json.Unmarshal(d.Encode(), &out.File); err != nil {
		return out, fmt.Errorf("command rules: %w", err)
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
	_, _ = h.Write([]byte(d.Hash())) // never fails
	for _, r := range rows {
		_, _ = h.Write([]byte("\x00" + r.ID))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// setPolicy replaces the command rules. Commands allowed always that are
// missing in the new rules are revoked first, so that a failure in between
// allows less, not more.
func (m methods) setPolicy(ctx context.Context, p rpc.Peer, in wire.ExecPolicySet) (wire.ExecPolicySnapshot, error) {
	none := wire.ExecPolicySnapshot{}
	d, exists, err := m.o.Rules().File.Load()
	if err != nil {
		return none, err
	}
	if exists && in.BaseHash == "" {
		return none, rpc.Invalid("baseHash is required because rules exist; call exec.approvals.get first")
	}
	next, err := m.replacing(in.File)
	if err != nil {
		return none, rpc.Invalid("at /file: %v", err)
	}
	retained := map[string]bool{}
	for _, a := range in.File.Agents {
		for _, e := range a.Allowlist {
			retained[e.ID] = e.Source == wire.AllowAlways
		}
	}
	who := chela.PrincipalFrom(ctx)
	err = m.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
		rows, err := tx.Approvals().Always("", m.o.Commands())
		if err != nil {
			return err
		}
		if in.BaseHash != "" && in.BaseHash != hash(d, rows) {
			return changed()
		}
		for _, r := range rows {
			if retained[r.ID] {
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
		next.PreserveUnknown(now)
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
	return wire.Errorf(wire.InvalidRequest,
		"command rules changed since they were read; call exec.approvals.get and retry")
}

// replacing parses rules sent by a client. Commands allowed always are not part
// of the document.
func (m methods) replacing(in wire.ExecPolicy) (*allowlist.Document, error) {
	for id, a := range in.Agents {
		a.Allowlist = slices.DeleteFunc(slices.Clone(a.Allowlist), func(e wire.ExecEntry) bool {
			return e.Source == wire.AllowAlways && e.Text != ""
		})
		in.Agents[id] = a
		if len(id) > 64 {
			return nil, errors.New("agent id is longer than 64 bytes")
		}
	}
	b, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	return allowlist.Parse(b)
}
