package dispatch

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/approval"
	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/dispatch/wording"
	"github.com/chela-ai/chela/internal/pairing"
	"github.com/chela-ai/chela/internal/queue"
	"github.com/chela-ai/chela/internal/run"
	"github.com/chela-ai/chela/internal/session"
	"github.com/chela-ai/chela/internal/store"
	"github.com/chela-ai/chela/internal/usage"
)

// job is a run in progress in this process.
type job struct {
	r     run.Run
	lease run.Lease
	meta  session.Meta
	p     *Profile
	items []queue.Item     // that the run answers, as they were taken
	input []*session.Entry // what was written when they were taken
	left  []run.Run        // that waited for a decision, and ended when it began

	// newest is the Seq of the transcript's last entry, as the commit that began
	// the run left it; 0 when more may have been written since.
	newest int64
	// alone says that no other message waited in the last commit of the run, a
	// moment ago: unless one was hinted at since, there is nothing to look for.
	alone bool

	withdrawn []approval.Request // that runs of a conversation that was left had asked
	open      []session.Call     // without a result, when it goes on
	unknown   bool               // the outcome of a call is unknown: read only, first
	resumed   bool

	broken   atomic.Pointer[error]   // why a row about a call could not be written
	became   sync.Map                // what became of calls that ended: session.Outcome by Call.ID
	over     func()                  // the run's rows say that it has ended: it is no more in progress
	calls    map[string]session.Call // by the provider's id, of the last assistant message
	round    int
	spent    spent
	failed   string // the last tool that failed: "name: what"
	stop     string // chela.StopLimit, when one of its limits ended it
	final    *held  // the last assistant message, not committed yet
	called   bool   // calls of it, and what they ask, may be open
	idle     bool   // nothing waited for the session when the run ended
	shown    bool   // text of the current turn was published
	answered bool   // the transcript ends with the answer: nothing is left to ask
}

// held is an entry that waits to be committed with what follows it.
type held struct {
	entry    *session.Entry
	usage    usage.Row
	calls    []session.Call
	fallback string         // the model that answered in place of the one that was asked
	notice   *session.Entry // says so, before the message; nil: it was said before
}

// entries are what goes into the transcript.
func (h *held) entries() []*session.Entry {
	if h.notice == nil {
		return []*session.Entry{h.entry}
	}
	return []*session.Entry{h.notice, h.entry}
}

// pendingRun is how a message looks to those who wait for its run before there
// is one.
func pendingRun(it queue.Item) run.Run {
	r := run.Run{ID: chela.RunID(it.ID), Session: it.Session, State: run.Running, Started: it.Created}
	switch it.State {
	case queue.Cancelled:
		r.State, r.Error, r.Ended = run.Aborted, cmp.Or(it.Note, "cancelled before it began"), it.Created
	case queue.Dropped:
		r.State, r.Error, r.Ended = run.Aborted, cmp.Or(it.Note, "dropped: too many messages were waiting"), it.Created
	case queue.Done:
		r.State, r.Ended = run.OK, it.Created
	}
	return r
}

// begin takes the items of d.Start into the transcript and starts a run for
// them. What the cap dropped leaves the queue in the same commit, and is told
// to the model in a summary.
func (c *Conductor) begin(ctx context.Context, key chela.SessionKey, p *Profile, d queue.Decision) (*job, error) {
	var j *job
	notices := c.notices.Drain(key)
	c.o.Step("run.begin")
	err := c.taking(ctx, func(tx store.Tx, sync store.Sync) error {
		if err := stand(tx, d.Start); err != nil {
			return err
		}
		if err := take(tx, queue.Dropped, d.Drop); err != nil {
			return err
		}
		if err := take(tx, queue.Taken, takenBy(runID(d.Start), d.Start)); err != nil {
			return err
		}
		active, err := tx.Runs().Active(key)
		if err != nil {
			return err
		}
		meta, err := sessionOf(tx, key, time.Now())
		if err != nil {
			return err
		}
		j = &job{p: p, meta: meta, items: d.Start}
		return c.beginTx(tx, sync, j, active, notices, d.Summary)
	})
	if err != nil {
		c.notices.Add(key, notices...)
		return nil, err
	}
	c.began(j, d)
	return j, nil
}

// began tells of a run whose beginning was committed.
func (c *Conductor) began(j *job, d queue.Decision) {
	c.leftBehind(j.left, j.withdrawn)
	if n := len(j.input); n > 0 {
		j.newest = j.input[n-1].Seq
	}
	c.o.Cache.Append(j.meta.ID, j.input...)
	for _, it := range d.Start {
		if it.ID != string(j.r.ID) {
			c.absorbed(it)
		}
	}
	for _, it := range d.Drop {
		c.absorbed(it)
	}
}

// errOtherOwner says that a lease is taken from another process, which needs a
// synced commit.
var errOtherOwner = errors.New("the session's lease is another process's")

// errMoved says that what was to be done was stopped or deleted since it was
// looked at: look again.
var errMoved = errors.New("what waits for the session has changed")

// take moves items to a state, or returns errMoved unless all of them wait.
func take(tx store.Tx, to queue.State, items []queue.Item) error {
	ok, err := tx.Queue().Take(to, items...)
	if err == nil && !ok {
		return errMoved
	}
	return err
}

// takenBy returns the items as the run takes them.
func takenBy(id chela.RunID, items []queue.Item) []queue.Item {
	taken := slices.Clone(items)
	for i := range taken {
		taken[i].Run = id
	}
	return taken
}

// taking runs f in a commit that takes a session's lease: an ordered one, and
// a synced one when the lease is another process's.
func (c *Conductor) taking(ctx context.Context, f func(store.Tx, store.Sync) error) error {
	err := c.o.Store.Update(ctx, store.Ordered, func(tx store.Tx) error { return f(tx, store.Ordered) })
	if errors.Is(err, errOtherOwner) {
		err = c.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error { return f(tx, store.Synced) })
	}
	return err
}

// acquire takes the session's lease for the run.
func (c *Conductor) acquire(tx store.Tx, sync store.Sync, key chela.SessionKey, id chela.RunID) (run.Lease, error) {
	if sync != store.Synced {
		had, err := tx.Runs().Lease(key)
		if err != nil {
			return had, err
		}
		if had.Owner != "" && had.Owner != c.o.Owner {
			return had, errOtherOwner
		}
	}
	return tx.Runs().Acquire(key, c.o.Owner, id)
}

// beginTx writes the beginning of a run for the job's items, which were taken.
// active are the session's runs that have not ended.
func (c *Conductor) beginTx(tx store.Tx, sync store.Sync, j *job, active []run.Run, notices []string, summary string) error {
	now := time.Now()
	var err error
	if j.r, err = newRun(tx, j, now); err != nil {
		return err
	}
	if err := closeSuspended(tx, j, active, now); err != nil {
		return err
	}
	if j.lease, err = c.acquire(tx, sync, j.r.Session, j.r.ID); err != nil {
		return err
	}
	j.r.Fence = j.lease.Fence
	entries := wording.Entries(j.items, notices, summary, j.r.ID, now)
	if err := tx.Sessions().Append(j.meta.ID, entries...); err != nil {
		return err
	}
	j.input = append(j.input, entries...)
	return tx.Runs().Put(j.r)
}

// newRun is the run that answers the job's items, with the rights that who sent
// them has today.
func newRun(tx store.Tx, j *job, now time.Time) (run.Run, error) {
	who, err := pairing.Current(tx.Devices(), principalOf(j.items))
	if err != nil {
		return run.Run{}, err
	}
	lead := j.items[len(j.items)-1]
	r := run.Run{
		ID: runID(j.items), Session: j.meta.Key, SessionID: j.meta.ID, Agent: j.meta.Agent,
		Trigger: run.User, Lane: cmp.Or(j.p.Lane, mainLane), State: run.Running,
		Principal: who, Address: lead.Inbound.Address, Think: lead.Inbound.Think,
		Attempts: 1, Started: now,
	}
	if lead.Kind == queue.System {
		r.Trigger = run.System
		if lead.Inbound.Address == (chela.Address{}) {
			r.Address = j.meta.Address
		}
	}
	return r, nil
}

// runID is the id of the run that answers the items: that of the first message
// among them, whose sender waits for it.
func runID(items []queue.Item) chela.RunID {
	for _, it := range items {
		if it.Kind == queue.Message {
			return chela.RunID(it.ID)
		}
	}
	return chela.RunID(items[0].ID)
}

// sessionOf returns the session under the key, made now when there is none.
func sessionOf(tx store.Tx, key chela.SessionKey, now time.Time) (session.Meta, error) {
	m, err := tx.Sessions().Get(key)
	if !errors.Is(err, chela.ErrNotFound) {
		return m, err
	}
	m = session.Meta{
		Key: key, ID: uuid.NewString(), Agent: key.Agent(),
		Created: now, Started: now, Updated: now, Active: now,
	}
	return m, tx.Sessions().Put(m)
}

func (c *Conductor) meta(ctx context.Context, key chela.SessionKey) (session.Meta, error) {
	return store.Get(ctx, c.o.Store, func(r store.Reader) (session.Meta, error) { return session.Lookup(r.Sessions(), key) })
}

// closeSuspended lets the conversation go on without a run that waits for a
// decision: its waiting calls are answered with the approval that they wait
// for and are decided later, outside of the run; calls that had not begun are
// skipped. A run of a conversation that was left is stopped.
func closeSuspended(tx store.Tx, j *job, active []run.Run, now time.Time) error {
	for _, r := range active {
		if r.SessionID != j.meta.ID {
			w, err := stopOne(tx, &r, now)
			if err != nil {
				return err
			}
			j.left, j.withdrawn = append(j.left, r), append(j.withdrawn, w...)
			continue
		}
		calls, err := tx.Calls().Open(r.ID)
		if err != nil {
			return err
		}
		for _, k := range calls {
			text := "Skipped due to queued user message."
			if k.State == session.Waiting || k.State == session.Approved || k.State == session.Denied {
				text = "waiting for approval " + k.Approval
				k.Detached = true
			} else {
				k.State = session.Closed
			}
			k.Updated = now
			if err := tx.Calls().Put(k); err != nil {
				return err
			}
			e := wording.Result(r.ID, k, text, now)
			j.input = append(j.input, e)
			if err := tx.Sessions().Append(j.meta.ID, e); err != nil {
				return err
			}
		}
		r.State, r.Ended = run.Superseded, now
		if err := tx.Runs().Put(r); err != nil {
			return err
		}
		if err := tx.Queue().Finish(r.ID); err != nil {
			return err
		}
		j.left = append(j.left, r)
	}
	return nil
}

// absorbed tells observers that a message has no answer of its own.
func (c *Conductor) absorbed(it queue.Item) {
	if it.Kind != queue.Message {
		return
	}
	c.o.Bus.Publish(chela.Event{
		Run: chela.RunID(it.ID), Session: it.Session, Stream: chela.StreamSession, Phase: chela.PhaseAbsorbed,
	})
}

// withdraw closes the pending approvals of a run that was stopped.
func withdraw(tx store.Tx, r run.Run, now time.Time) ([]approval.Request, error) {
	pending, err := tx.Approvals().Pending(r.Session)
	if err != nil {
		return nil, err
	}
	var out []approval.Request
	for _, q := range pending {
		if q.Run != r.ID {
			continue
		}
		q.Decision, q.Decided, q.By = approval.Withdrawn, now, "stop"
		if err := tx.Approvals().Put(q); err != nil {
			return nil, err
		}
		out = append(out, q)
	}
	return out, nil
}
