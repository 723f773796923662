package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/chela-ai/chela/internal/core/approval"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/lease"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/pairing"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/engine/agent"
)

// Start is what a new run begins with.
type Start struct {
	Meta    session.Meta
	Active  []run.Run    // the session's runs that have not ended
	Items   []queue.Item // that the run answers; those in state Taken were taken before
	Drop    []queue.Item // that leave the queue
	Summary string       // what the model is told of the dropped items
	Profile *Profile
	// NoneWaiting is set when no other item waits for the session.
	NoneWaiting bool
}

// Draft returns the run that answers the items, as far as the session and the
// items determine it; [queue.Lead] returns the item that does. [Runner.Begin] adds
// the time, the lease and the rights that the principal has by then. sends is
// [Profiles].Sends: a run whose session does not send has no address.
func Draft(m session.Meta, items []queue.Item, sends func(session.Meta, chela.Address) bool) run.Run {
	lead := queue.Lead(items)
	r := run.Run{
		ID: chela.RunID(lead.ID), Session: m.Key, SessionID: m.ID, Agent: m.Agent,
		Kind: run.Turn, Origin: lead.Origin, Parent: lead.Parent, Root: lead.Root,
		Lane: cmp.Or(lead.Overrides.Lane, m.Bounds.Lane, MainLane), State: run.Running,
		Principal: lead.Principal, Address: lead.Inbound.Address, Overrides: lead.Overrides, Attempts: 1,
	}
	if lead.Kind == queue.Compact {
		r.Kind = run.Compact
	}
	deliver := lead.Overrides.Deliver
	switch {
	case deliver.Mode == run.DeliverNowhere, deliver.Mode == run.DeliverSession, deliver.Mode == run.DeliverMain:
		r.Address = chela.Address{}
	case deliver.Mode == run.DeliverTo && !deliver.Last:
		r.Address = deliver.Address
	case deliver.Mode == run.DeliverTo, lead.Kind == queue.Event && lead.Inbound.Address == (chela.Address{}):
		r.Address = m.Address
	}
	if !sends(m, r.Address) {
		r.Address = chela.Address{}
	}
	return r
}

// Begin writes the beginning of a run in tx: its items become entries, suspended
// runs of the session are replaced, and the run and its lease are stored. It
// returns ErrChanged when an item does not wait any more or the profile is stale,
// and chela.ErrFenced when another process has the session. The caller rolls tx
// back on an error; if all items are taken already, nothing was written.
func (r *Runner) Begin(tx store.Tx, sync store.Sync, s Start) (*Execution, error) {
	if err := r.checkProfile(s.Profile, s.Meta); err != nil {
		return nil, err
	}
	if err := checkGrants(tx, s.Items); err != nil {
		return nil, err
	}
	e := &Execution{
		alive:       r.o.Owner.Track(),
		run:         Draft(s.Meta, s.Items, r.o.Profiles.Sends),
		meta:        s.Meta,
		profile:     s.Profile,
		phase:       chela.PhaseStart,
		noneWaiting: s.NoneWaiting,
		started:     started{items: s.Items, dropped: s.Drop},

		task: slices.ContainsFunc(s.Items, func(it queue.Item) bool { return it.Inbound.Task }),
	}
	var err error
	if e.lease, err = r.acquire(tx, sync, e.run.Session); err != nil {
		return nil, err
	}
	e.run.Fence = e.lease.Fence
	if err := take(tx, queue.Dropped, s.Drop); err != nil {
		return nil, err
	}
	if s.Items[0].State != queue.Taken {
		if err := take(tx, queue.Taken, takenBy(e.run.ID, s.Items)); err != nil {
			return nil, err
		}
	}
	now := time.Now()
	e.run.Started = now
	if e.run.Principal, err = pairing.Current(tx.Devices(), e.run.Principal); err != nil {
		return nil, err
	}
	if e.meta.Interrupted != "" && e.run.Kind == run.Turn && e.run.Origin.Kind == chela.OriginPerson {
		e.run.Replaces, e.meta.Interrupted = e.meta.Interrupted, ""
		if err := tx.Sessions().Put(e.meta); err != nil {
			return nil, err
		}
	}
	if e.run.Overrides.Context.Fresh() {
		if e.meta, err = session.Reset(tx.Sessions(), e.meta.Key, "new", now); err != nil {
			return nil, err
		}
		e.run.SessionID = e.meta.ID
	}
	if len(s.Active) > 0 && sync != store.Synced && e.run.Kind != run.Compact {
		return nil, errNeedsSync
	}
	var suspended []run.Run
	for _, old := range s.Active {
		if old.Waits != run.WaitsRetry {
			suspended = append(suspended, old)
			continue
		}
		if old.SessionID != e.meta.ID {
			continue
		}
		aside, err := setAside(tx, old, now)
		if err != nil {
			return nil, err
		}
		e.started.input = append(e.started.input, aside...)
	}
	if e.run.Kind == run.Compact { // it has no input, and a suspended run stays suspended
		return e, tx.Runs().Put(e.run)
	}
	if err := r.replaceSuspended(tx, e, suspended, now); err != nil {
		return nil, err
	}
	if about := mediaSummary(s.Items); about != e.meta.Media {
		e.meta.Media = about
		if err := tx.Sessions().Put(e.meta); err != nil {
			return nil, err
		}
	}
	entries := inputEntries(s.Items, s.Summary, e.run.ID, now)
	if err := tx.Sessions().Append(e.meta.ID, entries...); err != nil {
		return nil, err
	}
	e.started.input = append(e.started.input, entries...)
	open, err := readOpenWork(e.meta, tx.Children(), tx.Runs())
	e.open = &open
	return e, errors.Join(err, tx.Runs().Put(e.run))
}

// started is what the commit that began a run wrote, to be published after it.
type started struct {
	items     []queue.Item
	dropped   []queue.Item
	input     []*session.Entry
	replaced  []run.Run // suspended runs that ended
	withdrawn []approval.Request
}

// Start resolves the profile of a new run, reads the attachments of its items, and
// begins it in a commit of its own. It
// sets the fields Meta, Active and Profile of s; Meta.Key is given.
func (r *Runner) Start(ctx context.Context, s Start) (*Execution, error) {
	var err error
	key := s.Meta.Key
	if s.Profile, err = r.resolve(ctx, s.Meta, Draft(s.Meta, s.Items, r.o.Profiles.Sends), s.Items...); err != nil {
		return nil, err
	}
	if s.Items, err = readAttachments(ctx, s.Profile, Draft(s.Meta, s.Items, r.o.Profiles.Sends), s.Items); err != nil {
		return nil, err
	}
	r.o.Step("run.begin")
	var e *Execution
	err = r.takeLease(ctx, func(tx store.Tx, sync store.Sync) error {
		if s.Active, err = tx.Runs().Active(key); err != nil {
			return err
		}
		if s.Meta, err = sessionOf(tx, key, time.Now()); err != nil {
			return err
		}
		e, err = r.Begin(tx, sync, s)
		return err
	})
	if errors.Is(err, errRevoked) {
		if err = r.cancelRevoked(ctx, key); err == nil {
			err = ErrChanged
		}
	}
	return e, err
}

// publishStarted tells observers of what the commit that began the run wrote.
func (r *Runner) publishStarted(e *Execution) {
	s := &e.started
	r.PublishStopped(s.replaced, s.withdrawn)
	if n := len(s.input); n > 0 {
		e.newest = s.input[n-1].Seq
	}
	r.cache.Append(e.meta.ID, s.input...)
	r.PublishAbsorbed(slices.DeleteFunc(slices.Clone(s.items), func(it queue.Item) bool {
		return it.ID == string(e.run.ID)
	})...)
	r.PublishAbsorbed(s.dropped...)
}

// take moves waiting items to a state. It returns ErrChanged when one of them
// does not wait any more.
func take(tx store.Tx, to queue.State, items []queue.Item) error {
	ok, err := tx.Queue().Take(to, items...)
	if err == nil && !ok {
		return ErrChanged
	}
	return err
}

// takenBy returns the items with the id of the run that takes them.
func takenBy(id chela.RunID, items []queue.Item) []queue.Item {
	taken := slices.Clone(items)
	for i := range taken {
		taken[i].Run = id
	}
	return taken
}

// errNeedsSync reports that a commit has to be synced: it takes a lease over from
// another process, or it ends a run.
var errNeedsSync = errors.New("the commit has to be synced")

// takeLease runs f in a commit that takes the lease of a session. The commit is
// ordered; it is repeated as a synced one when f returns errNeedsSync.
func (r *Runner) takeLease(ctx context.Context, f func(store.Tx, store.Sync) error) error {
	err := r.o.Store.Update(ctx, store.Ordered, func(tx store.Tx) error { return f(tx, store.Ordered) })
	if errors.Is(err, errNeedsSync) {
		err = r.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error { return f(tx, store.Synced) })
	}
	return err
}

// acquire takes the session's lease for a run. It returns an error in whose chain
// is chela.ErrFenced when another process that is alive has it.
func (r *Runner) acquire(tx store.Tx, sync store.Sync, key chela.SessionKey) (lease.Lease, error) {
	name := lease.Session(key)
	if sync != store.Synced {
		had, err := tx.Leases().Get(name)
		if err != nil {
			return had, err
		}
		if had.Owner != "" && had.Owner != r.o.Owner.ID() {
			return had, errNeedsSync
		}
	}
	l, ok, err := tx.Leases().Acquire(name, r.o.Owner.ID())
	if err == nil && !ok {
		err = fmt.Errorf("%s: %w", name, chela.ErrFenced)
	}
	return l, err
}

// sessionOf returns the session with the key, and creates it if there is none.
func sessionOf(tx store.Tx, key chela.SessionKey, now time.Time) (session.Meta, error) {
	m, err := tx.Sessions().Get(key)
	if !errors.Is(err, chela.ErrNotFound) {
		return m, err
	}
	m = session.New(key, now)
	return m, tx.Sessions().Put(m)
}

// replaceSuspended ends the suspended runs of the session, which the run e
// supersedes. Calls that wait for a decision are detached: they are answered with
// the approval that they wait for, and are carried out outside of a run when they
// are approved. Calls that had not started are skipped. Runs of an earlier
// transcript are stopped.
func (r *Runner) replaceSuspended(tx store.Tx, e *Execution, active []run.Run, now time.Time) error {
	for _, old := range active {
		if old.SessionID != e.meta.ID {
			w, err := r.stop(tx, &old, now)
			if err != nil {
				return err
			}
			e.started.replaced, e.started.withdrawn = append(e.started.replaced, old), append(e.started.withdrawn, w...)
			continue
		}
		calls, err := tx.Calls().Open(old.ID)
		if err != nil {
			return err
		}
		for _, k := range calls {
			text := agent.SkippedText
			if k.State == session.Waiting || k.State == session.Approved || k.State == session.Denied {
				text = llm.WaitingPrefix + k.Approval
				k.Detached = true
			} else {
				k.State = session.Closed
			}
			k.Updated = now
			if err := tx.Calls().Put(k); err != nil {
				return err
			}
			entry := resultEntry(old.ID, k, text, !k.Detached, now)
			e.started.input = append(e.started.input, entry)
			if err := tx.Sessions().Append(e.meta.ID, entry); err != nil {
				return err
			}
		}
		e.run.Replaces = old.ID
		old.State, old.Ended = run.Superseded, now
		if err := r.End(old)(tx); err != nil {
			return err
		}
		e.started.replaced = append(e.started.replaced, old)
	}
	return nil
}
