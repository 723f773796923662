package sessions

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/internal/queue"
	"github.com/chela-ai/chela/internal/rpc"
	"github.com/chela-ai/chela/internal/session"
	"github.com/chela-ai/chela/internal/shape"
	"github.com/chela-ai/chela/internal/store"
	"github.com/chela-ai/chela/wire"
)

// maxLabel bounds a label, in bytes.
const maxLabel = 200

// stopping is how long a reset or a deletion waits for the run that it stops.
const stopping = 10 * time.Second

func (m methods) create(ctx context.Context, p rpc.Peer, in wire.SessionsCreate) (wire.SessionCreated, error) {
	name := in.Key
	if name == "" {
		name = "chat-" + strings.ToLower(rand.Text()[:12])
	}
	key, err := m.key(wire.MethodSessionsCreate, name, in.AgentID)
	if err != nil {
		return wire.SessionCreated{}, err
	}
	if !m.o.Agent(key.Agent()) {
		return wire.SessionCreated{}, rpc.Invalid(wire.MethodSessionsCreate, "unknown agent id %q", key.Agent())
	}
	changes := wire.SessionsPatch{Key: string(key)}
	changes.Label, changes.Model, changes.Thinking = some(in.Label), some(in.Model), some(in.Thinking)
	meta, born, err := m.change(ctx, wire.MethodSessionsCreate, key, changes, true)
	if err != nil {
		return wire.SessionCreated{}, err
	}
	phase := "patched"
	if born {
		phase = "created"
	}
	m.tell(key, phase)
	out := wire.SessionCreated{
		OK: true, Key: string(key), SessionID: meta.ID, Entry: shape.Entry(meta), Resolved: m.o.Rows.Model(meta),
	}
	if in.Message == "" {
		return out, nil
	}
	id := in.SendKey
	if id == "" {
		id = rand.Text()
	}
	p.Owns(chela.RunID(id))
	rec, err := m.o.Admit(ctx, chela.Inbound{
		ID: id, Address: chela.Address{Channel: chela.LocalChannel}, Session: key,
		Sender: chela.Sender{ID: chela.PrincipalFrom(ctx).ID}, Text: in.Message,
	})
	out.RunStarted, out.RunID = rec.New, string(rec.Run)
	return out, err
}

// some returns a property that is set when s is not empty.
func some(s string) wire.Optional[string] { return wire.Optional[string]{Set: s != "", Value: s} }

func (m methods) patch(ctx context.Context, _ rpc.Peer, in wire.SessionsPatch) (wire.SessionPatched, error) {
	key, err := m.key(wire.MethodSessionsPatch, in.Key, in.AgentID)
	if err != nil {
		return wire.SessionPatched{}, err
	}
	meta, _, err := m.change(ctx, wire.MethodSessionsPatch, key, in, false)
	if err != nil {
		return wire.SessionPatched{}, err
	}
	m.tell(key, "patched")
	return wire.SessionPatched{
		OK: true, Path: m.o.Path, Key: string(key), Entry: shape.Entry(meta), Resolved: m.o.Rows.Model(meta),
	}, nil
}

// change stores changes of a session. A session that does not exist is made
// when mayMake is set, and refused otherwise.
func (m methods) change(ctx context.Context, method string, key chela.SessionKey, in wire.SessionsPatch, mayMake bool) (meta session.Meta, born bool, err error) {
	if in, err = m.check(ctx, method, in); err != nil {
		return meta, false, err
	}
	err = m.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
		now := time.Now()
		var err error
		born = false
		meta, err = tx.Sessions().Get(key)
		if errors.Is(err, chela.ErrNotFound) {
			if !mayMake {
				return missing(key)
			}
			born, err = true, nil
			meta = session.Meta{Key: key, ID: uuid.NewString(), Agent: key.Agent(), Created: now, Started: now, Active: now}
		}
		if err != nil {
			return err
		}
		apply(&meta, in)
		meta.Updated = now
		return tx.Sessions().Put(meta)
	})
	return meta, born, err
}

// check refuses values that mean nothing, and settings that the caller may not
// change: a label is anybody's who writes, what a run does is the owner's.
func (m methods) check(ctx context.Context, method string, in wire.SessionsPatch) (wire.SessionsPatch, error) {
	if in.Model.Set || in.Thinking.Set || in.Verbose.Set || in.UsageLine.Set || in.QueueMode.Set {
		if err := rpc.Need(ctx, chela.ScopeAdmin); err != nil {
			return in, err
		}
	}
	if len(in.Label.Value) > maxLabel {
		return in, rpc.Invalid(method, "at /label: must NOT have more than %d characters", maxLabel)
	}
	if in.Model.Value != "" {
		ref, err := m.o.Model(in.Model.Value)
		if err != nil {
			return in, rpc.Invalid(method, "%v", err)
		}
		in.Model.Value = ref
	}
	levels, modes := names(llm.Levels[:]), names(queue.Modes[:])
	for _, f := range []struct {
		name, value string
		of          []string
	}{
		{"thinkingLevel", in.Thinking.Value, levels},
		{"verboseLevel", in.Verbose.Value, []string{"off", "on", "full"}},
		{"responseUsage", in.UsageLine.Value, []string{"off", "tokens", "full"}},
		{"queueMode", in.QueueMode.Value, modes},
	} {
		if f.value != "" && !slices.Contains(f.of, f.value) {
			return in, rpc.Invalid(method, "at /%s: must be one of %s", f.name, strings.Join(f.of, ", "))
		}
	}
	return in, nil
}

func names[S ~string](values []S) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = string(v)
	}
	return out
}

func apply(meta *session.Meta, in wire.SessionsPatch) {
	for _, f := range []struct {
		to   *string
		from wire.Optional[string]
	}{
		{&meta.Label, in.Label}, {&meta.Model, in.Model}, {&meta.Think, in.Thinking},
		{&meta.Verbose, in.Verbose}, {&meta.Usage, in.UsageLine}, {&meta.Queue.Mode, in.QueueMode},
	} {
		if f.from.Set {
			*f.to = f.from.Value
		}
	}
}

func (m methods) reset(ctx context.Context, _ rpc.Peer, in wire.SessionsReset) (wire.SessionReset, error) {
	key, err := m.key(wire.MethodSessionsReset, in.Key, in.AgentID)
	if err != nil {
		return wire.SessionReset{}, err
	}
	if err := m.quiet(ctx, key); err != nil {
		return wire.SessionReset{}, err
	}
	reason := "reset"
	if in.Reason == "new" {
		reason = in.Reason
	}
	var meta session.Meta
	err = m.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
		if _, err := find(tx.Sessions(), key); err != nil {
			return err
		}
		var err error
		meta, err = session.Reset(tx.Sessions(), key, reason, time.Now())
		return err
	})
	if err != nil {
		return wire.SessionReset{}, err
	}
	m.tell(key, "reset")
	return wire.SessionReset{OK: true, Key: string(key), Entry: shape.Entry(meta), Resolved: m.o.Rows.Model(meta)}, nil
}

func (m methods) delete(ctx context.Context, _ rpc.Peer, in wire.SessionKey) (wire.SessionDeleted, error) {
	key, err := m.key(wire.MethodSessionsDelete, in.Key, in.AgentID)
	if err != nil {
		return wire.SessionDeleted{}, err
	}
	if key == chela.MainSession(m.o.Default) {
		return wire.SessionDeleted{}, rpc.Invalid(wire.MethodSessionsDelete, "cannot delete the main session (%s); reset it instead", key)
	}
	if err := m.quiet(ctx, key); err != nil {
		return wire.SessionDeleted{}, err
	}
	out := wire.SessionDeleted{OK: true, Key: string(key), Archived: []string{}}
	err = m.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
		out.Deleted = false
		_, err := tx.Sessions().Get(key)
		if errors.Is(err, chela.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		out.Deleted = true
		return tx.Sessions().Delete(key)
	})
	if err == nil && out.Deleted {
		m.tell(key, "deleted")
	}
	return out, err
}

// quiet stops what goes on in a session and waits until it has ended.
func (m methods) quiet(ctx context.Context, key chela.SessionKey) error {
	ids, err := m.o.Conductor.Abort(ctx, key, "")
	if err != nil {
		return fmt.Errorf("stop what goes on in %s: %w", key, err)
	}
	ctx, cancel := context.WithTimeout(ctx, stopping)
	defer cancel()
	for _, id := range ids {
		if _, err := m.o.Conductor.Wait(ctx, id); err != nil && !errors.Is(err, chela.ErrNotFound) {
			return fmt.Errorf("stop what goes on in %s: %w", key, err)
		}
	}
	return nil
}

func (m methods) tell(key chela.SessionKey, phase string) {
	m.o.Publish(chela.Event{Session: key, Stream: chela.StreamSession, Phase: phase})
}
