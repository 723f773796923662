package sessions

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/internal/surface/wireview"
	"github.com/chela-ai/chela/wire"
)

// maxLabel limits a label, in bytes.
const maxLabel = 200

// stopTimeout limits the wait for the run that a reset or deletion aborts.
const stopTimeout = 10 * time.Second

func (m methods) create(ctx context.Context, p rpc.Peer, in wire.SessionsCreate) (wire.SessionCreated, error) {
	name := in.Key
	if name == "" {
		name = "chat-" + strings.ToLower(rand.Text()[:12])
	}
	key, err := m.key(name, in.AgentID)
	if err != nil {
		return wire.SessionCreated{}, err
	}
	if !m.o.Agent(key.Agent()) {
		return wire.SessionCreated{}, rpc.Invalid("unknown agent id %q", key.Agent())
	}
	changes := wire.SessionsPatch{Key: string(key)}
	changes.Label, changes.Category = some(cmp.Or(in.Label, in.DisplayName)), some(in.Category)
	changes.Model, changes.Thinking = some(in.Model), some(in.Thinking)
	changes.Fast = wire.Optional[any]{Set: in.Fast != nil, Value: in.Fast}
	from := origin{make: true, parent: in.Parent, fork: in.Fork}
	if in.Fork && in.Parent == "" {
		return wire.SessionCreated{}, rpc.Invalid("fork requires parentSessionKey")
	}
	meta, born, err := m.change(ctx, key, changes, from)
	if err != nil {
		return wire.SessionCreated{}, err
	}
	phase := chela.PhasePatched
	if born {
		phase = chela.PhaseCreated
	}
	m.notify(key, phase)
	out := wire.SessionCreated{
		OK: true, Key: string(key), SessionID: meta.ID, Entry: wireview.Entry(meta), Resolved: m.o.Rows.Model(meta),
	}
	if in.Message = cmp.Or(in.Message, in.Task); in.Message == "" && len(in.Attachments) == 0 {
		return out, nil
	}
	id := cmp.Or(in.SendKey, rand.Text())
	p.TrackRun(chela.RunID(id)) // before the run can start
	rec, err := m.o.Gate.Admit(ctx, chela.Inbound{
		ID: id, Address: chela.Address{Channel: chela.LocalChannel}, Session: key,
		Sender: chela.Sender{ID: chela.PrincipalFrom(ctx).ID}, Text: in.Message, Media: wireview.Media(in.Attachments),
	})
	if err != nil {
		out.RunError = rpc.Error(err) // the session was created anyway
		return out, nil
	}
	out.RunStarted, out.RunID = rec.New, string(rec.Run)
	return out, nil
}

// some returns a property that is set if s is not empty.
func some(s string) wire.Optional[string] { return wire.Optional[string]{Set: s != "", Value: s} }

func (m methods) patch(ctx context.Context, _ rpc.Peer, in wire.SessionsPatch) (wire.SessionPatched, error) {
	key, err := m.key(in.Key, in.AgentID)
	if err != nil {
		return wire.SessionPatched{}, err
	}
	meta, _, err := m.change(ctx, key, in, origin{})
	if err != nil {
		return wire.SessionPatched{}, err
	}
	m.notify(key, chela.PhasePatched)
	return wire.SessionPatched{
		OK: true, Path: m.o.Path, Key: string(key), Entry: wireview.Entry(meta), Resolved: m.o.Rows.Model(meta),
	}, nil
}

// maxMany is the maximum number of sessions in sessions.patchMany.
const maxMany = 100

// patchMany applies the same change to several sessions. A failure does not
// affect the others.
func (m methods) patchMany(ctx context.Context, peer rpc.Peer,
	in wire.SessionsPatchMany) (wire.SessionsPatchedMany, error) {
	if n := len(in.Targets); n == 0 || n > maxMany {
		return wire.SessionsPatchedMany{}, rpc.Invalid("at /targets: must have 1 to %d items", maxMany)
	}
	type patch struct { // the mutable properties of SessionsPatch
		Label    wire.Optional[string] `json:"label,omitzero"`
		Category wire.Optional[string] `json:"category,omitzero"`
		Archived wire.Optional[bool]   `json:"archived,omitzero"`
		Pinned   wire.Optional[bool]   `json:"pinned,omitzero"`
		Unread   wire.Optional[bool]   `json:"unread,omitzero"`
		Model    wire.Optional[string] `json:"model,omitzero"`
		Thinking wire.Optional[string] `json:"thinkingLevel,omitzero"`
		Fast     wire.Optional[any]    `json:"fastMode,omitzero"`
	}
	p, err := rpc.Params[patch](in.Patch, "patch")
	if err != nil {
		return wire.SessionsPatchedMany{}, err
	}
	out := wire.SessionsPatchedMany{Outcomes: []wire.SessionOutcome{}}
	for _, t := range in.Targets {
		_, err := m.patch(ctx, peer, wire.SessionsPatch{
			Key: t.Key, AgentID: t.AgentID, SessionID: t.SessionID, Label: p.Label, Category: p.Category,
			Archived: p.Archived, Pinned: p.Pinned, Unread: p.Unread, Model: p.Model, Thinking: p.Thinking, Fast: p.Fast,
		})
		o := wire.SessionOutcome{OK: err == nil, Key: t.Key}
		if err != nil {
			o.Error = rpc.Error(rpc.Named(wire.MethodSessionsPatchMany, err))
		}
		out.Outcomes = append(out.Outcomes, o)
	}
	return out, nil
}

// origin says how to create a session that does not exist. The zero origin does
// not create it.
type origin struct {
	make   bool
	parent string // its settings are copied; "": none
	fork   bool   // copy the parent's transcript, too
}

// change stores changes of a session.
func (m methods) change(ctx context.Context, key chela.SessionKey, in wire.SessionsPatch,
	from origin) (meta session.Meta, born bool, err error) {
	if in, err = m.check(ctx, in); err != nil {
		return meta, false, err
	}
	err = m.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
		now := time.Now()
		var err error
		born = false // the function may run again
		meta, err = tx.Sessions().Get(key)
		switch {
		case errors.Is(err, chela.ErrNotFound):
			if !from.make {
				return missing(key)
			}
			born = true
			meta, err = m.newSession(tx.Sessions(), key, from, now)
		case err == nil && from.fork:
			return rpc.Invalid("session %s already exists and cannot be created as a fork", key)
		}
		if err != nil {
			return err
		}
		if err := sameTranscript(meta, in.SessionID); err != nil {
			return err
		}
		if in.Archived.Value && key == chela.MainSession(key.Agent()) {
			return rpc.Invalid("cannot archive the main session (%s); reset it instead", key)
		}
		in := in
		if in.Thinking.Value, err = m.level(meta, in); err != nil {
			return err
		}
		// The client took back a mark that somebody else has renewed in the meantime.
		if in.UnreadAt.Set && in.UnreadAt.Value != wire.At(meta.Unread) {
			in.Unread.Set = false
		}
		if apply(&meta, in, now) {
			meta.Updated = now
		}
		return tx.Sessions().Put(meta)
	})
	return meta, born, err
}

// level returns the thinking level that a patch sets. It must be one of the model that the
// session has then.
func (m methods) level(meta session.Meta, in wire.SessionsPatch) (string, error) {
	if in.Thinking.Value == "" {
		return "", nil
	}
	if in.Model.Set {
		meta.Model = in.Model.Value
	}
	model := m.o.Rows.Model(meta)
	l, err := llm.FindLevel(in.Thinking.Value, model.Provider+"/"+model.Model, model.Options)
	if err != nil {
		return "", rpc.Invalid("at /thinkingLevel: %v", err)
	}
	return string(l), nil
}

// newSession returns a new session, which is not stored yet.
func (m methods) newSession(t session.Table, key chela.SessionKey, from origin, now time.Time) (session.Meta, error) {
	meta := session.Meta{
		Key:     key,
		ID:      uuid.NewString(),
		Agent:   key.Agent(),
		Created: now,
		Started: now,
		Updated: now,
		Read:    now,
	}
	if from.parent == "" {
		return meta, nil
	}
	parent, err := m.key(from.parent, string(key.Agent()))
	if err != nil {
		return meta, err
	}
	old, err := t.Get(parent)
	if errors.Is(err, chela.ErrNotFound) && !from.fork {
		return meta, nil
	}
	if err != nil {
		return meta, err
	}
	meta.Exec = old.Exec
	meta.Model, meta.Think, meta.Fast, meta.Verbose, meta.Usage, meta.Queue = old.Model, old.Think, old.Fast,
		old.Verbose, old.Usage, old.Queue
	if !from.fork {
		return meta, nil
	}
	meta.Title, meta.Context, meta.Active = old.Title, old.Context, old.Active
	return meta, copyEntries(t, old.ID, meta.ID)
}

// copyEntries copies the entries of a transcript. An unfinished run stays
// unfinished in the copy; the messages sent to a model are valid nevertheless.
func copyEntries(t session.Table, from, to string) error {
	entries, err := t.Entries(from, 0, 0)
	if err != nil {
		return err
	}
	all := make([]*session.Entry, len(entries))
	for i := range entries {
		all[i] = &entries[i]
	}
	return t.Append(to, all...)
}

// sameTranscript returns an error if the session has another transcript than
// want.
func sameTranscript(meta session.Meta, want string) error {
	if want == "" || want == meta.ID {
		return nil
	}
	return changed(meta, ": it has another transcript")
}

// changed returns the error for a session that is not as the client saw it.
func changed(meta session.Meta, how ...string) error {
	return wire.Errorf(wire.InvalidRequest, "session %s changed%s; reload it and retry", meta.Key, strings.Join(how, "")).
		With(map[string]any{"reason": "session-changed"})
}

// check rejects invalid values, and settings the caller may not change: the
// write scope is enough for how a session is shown and for its model; other
// settings need the admin scope.
func (m methods) check(ctx context.Context, in wire.SessionsPatch) (wire.SessionsPatch, error) {
	if in.Verbose.Set || in.UsageLine.Set || in.QueueMode.Set || in.ExecHost.Set || in.ExecSecurity.Set ||
		in.ExecAsk.Set || in.Send.Set {
		if err := rpc.Need(ctx, chela.ScopeAdmin); err != nil {
			return in, err
		}
	}
	for _, f := range []struct{ name, value string }{
		{"label", in.Label.Value}, {"category", in.Category.Value}, {"icon", in.Icon.Value}, {"color", in.Color.Value},
	} {
		if len(f.value) > maxLabel {
			return in, rpc.Invalid("at /%s: must NOT have more than %d characters", f.name, maxLabel)
		}
	}
	if in.Model.Value != "" {
		ref, err := m.o.Model(in.Model.Value)
		if err != nil {
			return in, rpc.Invalid("%v", err)
		}
		in.Model.Value = ref
	}
	fast, err := llm.ParseFast(in.Fast.Value)
	if err != nil {
		return in, rpc.Invalid("at /fastMode: must be true, false or auto")
	}
	in.Fast.Value = string(fast)
	modes := names(queue.Modes[:])
	for _, f := range []struct {
		name, value string
		of          []string
	}{
		{"verboseLevel", in.Verbose.Value, []string{"off", "on", "full"}},
		{"responseUsage", in.UsageLine.Value, []string{"off", "tokens", "full"}},
		{"queueMode", in.QueueMode.Value, modes},
		{"execHost", in.ExecHost.Value, []string{run.HostSandbox, run.HostGateway}},
		{"execSecurity", in.ExecSecurity.Value, []string{"deny", "allowlist", "full"}},
		{"execAsk", in.ExecAsk.Value, []string{"off", "on-miss", "always"}},
		{"sendPolicy", in.Send.Value, []string{"allow", "deny"}},
	} {
		if f.value != "" && !slices.Contains(f.of, f.value) {
			return in, rpc.Invalid("at /%s: must be one of %s", f.name, strings.Join(f.of, ", "))
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

// apply changes a session and reports whether anything except marks has
// changed.
func apply(meta *session.Meta, in wire.SessionsPatch, now time.Time) bool {
	changed := false
	for _, f := range []struct {
		to   *string
		from wire.Optional[string]
	}{
		{&meta.Label, in.Label}, {&meta.Category, in.Category}, {&meta.Icon, in.Icon}, {&meta.Color, in.Color},
		{&meta.Model, in.Model}, {&meta.Think, in.Thinking},
		{&meta.Verbose, in.Verbose}, {&meta.Usage, in.UsageLine}, {&meta.Queue.Mode, in.QueueMode},
		{&meta.Exec.Host, in.ExecHost}, {&meta.Exec.Security, in.ExecSecurity}, {&meta.Exec.Ask, in.ExecAsk},
	} {
		if f.from.Set {
			*f.to, changed = f.from.Value, true
		}
	}
	if in.Fast.Set {
		meta.Fast, _ = in.Fast.Value.(string) // see check
		changed = true
	}
	if in.Send.Set {
		meta.Send, changed = map[string]string{"allow": session.SendOn, "deny": session.SendOff}[in.Send.Value], true
	}
	mark := func(to *time.Time, from wire.Optional[bool]) {
		switch {
		case !from.Set:
		case !from.Value:
			*to = time.Time{}
		case to.IsZero():
			*to = now
		}
	}
	mark(&meta.Pinned, in.Pinned)
	mark(&meta.Archived, in.Archived)
	mark(&meta.Unread, in.Unread)
	if in.Unread.Set && !in.Unread.Value {
		meta.Read = now
	}
	return changed
}

// The transcript is compared before the run is aborted, and again in the transaction: another
// client may have reset the session while the run ended.
func (m methods) reset(ctx context.Context, _ rpc.Peer, in wire.SessionsReset) (wire.SessionReset, error) {
	key, err := m.key(in.Key, in.AgentID)
	if err != nil {
		return wire.SessionReset{}, err
	}
	there, err := m.expect(ctx, key, func(meta session.Meta) error { return sameTranscript(meta, in.SessionID) })
	if err == nil && !there {
		err = missing(key)
	}
	if err != nil {
		return wire.SessionReset{}, err
	}
	if err := m.abort(ctx, key); err != nil {
		return wire.SessionReset{}, err
	}
	reason := "reset"
	if in.Reason == "new" {
		reason = in.Reason
	}
	var out session.Meta
	err = m.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
		meta, err := find(tx.Sessions(), key)
		if err == nil {
			err = sameTranscript(meta, in.SessionID)
		}
		if err != nil {
			return err
		}
		out, err = session.Reset(tx.Sessions(), key, reason, time.Now())
		return err
	})
	if err != nil {
		return wire.SessionReset{}, err
	}
	m.notify(key, chela.PhaseReset)
	return wire.SessionReset{OK: true, Key: string(key), Entry: wireview.Entry(out), Resolved: m.o.Rows.Model(out)}, nil
}

// delete deletes a session. The write scope is enough for an archived one.
func (m methods) delete(ctx context.Context, _ rpc.Peer, in wire.SessionsDelete) (wire.SessionDeleted, error) {
	key, err := m.key(in.Key, in.AgentID)
	if err != nil {
		return wire.SessionDeleted{}, err
	}
	if !in.Archived {
		if err := rpc.Need(ctx, chela.ScopeAdmin); err != nil {
			return wire.SessionDeleted{}, err
		}
	}
	if key == chela.MainSession(m.o.Default) {
		return wire.SessionDeleted{}, rpc.Invalid("cannot delete the main session (%s); reset it instead", key)
	}
	if in.Transcript != nil && !*in.Transcript {
		return wire.SessionDeleted{},
			rpc.Invalid("at /deleteTranscript: a session is deleted with its transcript; archive it instead")
	}
	may := func(meta session.Meta) error {
		if in.UpdatedAt != 0 && in.UpdatedAt != wire.At(meta.Updated) {
			return changed(meta)
		}
		if in.Archived && meta.Archived.IsZero() {
			return wire.Errorf(wire.InvalidRequest, "session %s is not archived", key)
		}
		return sameTranscript(meta, in.SessionID)
	}
	out := wire.SessionDeleted{OK: true, Key: string(key), Archived: []string{}}
	out.Deleted, err = m.o.Dispatcher.DeleteSession(ctx, key, may)
	return out, err
}

// expect checks a session before its run is aborted, and reports whether it
// exists.
func (m methods) expect(ctx context.Context, key chela.SessionKey,
	ok func(session.Meta) error) (there bool, err error) {
	err = m.o.Store.View(ctx, func(r store.Reader) error {
		meta, err := session.Lookup(r.Sessions(), key)
		if there = meta.ID != ""; err != nil || !there {
			return err
		}
		return ok(meta)
	})
	return there, err
}

// abort aborts the active run of a session and waits for its end.
func (m methods) abort(ctx context.Context, key chela.SessionKey) error {
	ids, err := m.o.Dispatcher.Abort(ctx, key, "")
	if err != nil {
		return fmt.Errorf("abort the run of %s: %w", key, err)
	}
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	for _, id := range ids {
		if _, err := m.o.Dispatcher.Wait(ctx, id); err != nil && !errors.Is(err, chela.ErrNotFound) {
			return fmt.Errorf("abort the run of %s: %w", key, err)
		}
	}
	return nil
}

func (m methods) notify(key chela.SessionKey, phase chela.Phase) {
	m.o.Bus.Publish(chela.Event{Session: key, Stream: chela.StreamSession, Phase: phase})
}
