package history

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/journal"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// Limits of an undo.
const (
	PlanTime   = 10 * time.Minute // for which a plan may be carried out
	maxUnits   = 100
	minChanges = 2000    // that are searched
	maxChanges = 100_000 // that are searched if more belong to the units
	maxPending = 200     // plans that wait for a yes
	maxActs    = 1000    // calls that are counted
)

// Request says what to take back.
type Request struct {
	Session chela.SessionKey `json:"session,omitempty"` // empty: of all sessions
	Units   int              `json:"units,omitempty"`   // the newest units; 0 with Since: all
	Since   time.Time        `json:"since,omitzero"`
	Undo    bool             `json:"undo,omitempty"` // the last undo itself
}

// Plan is what an undo would do.
type Plan struct {
	Request
	Steps []Step
	// Not is what cannot be taken back, such as "2 messages".
	Not  []string
	Hash string
}

// Step is a step of a plan.
type Step struct {
	journal.Step
	Name    string // of the target, for people
	Diff    journal.Diff
	Already bool // the target is already as it was before
	// Conflict is the difference between the version that the newest change left and
	// the present one, if the target was changed since.
	Conflict journal.Diff
}

// Possible returns the number of steps that are possible.
func (p Plan) Possible() int {
	n := 0
	for _, s := range p.Steps {
		if s.Refused == "" {
			n++
		}
	}
	return n
}

// selects reports whether a request is about a change.
func (r Request) selects(c journal.Change) bool {
	if !c.InForce() || c.Seen() || c.Found() && c.Run == "" {
		return false
	}
	return r.Undo == (len(c.Undoes) > 0)
}

// changes returns the changes that a request takes back, newest first.
func (r Request) changes(table journal.Reader) ([]journal.Change, error) {
	units := cmp.Or(min(r.Units, maxUnits), maxUnits)
	for limit := minChanges; ; limit *= 8 {
		list, err := table.List(journal.Query{Home: r.Session, Since: r.Since, Limit: limit})
		if err != nil || len(list) < limit || limit >= maxChanges {
			return journal.Units(list, units, r.selects), err
		}
		// The newest units are complete if an older one follows.
		out := journal.Units(list, units+1, r.selects)
		if all := journal.Units(list, units, r.selects); len(out) > len(all) {
			return all, nil
		}
	}
}

// pending is the plans that wait for a yes, by session.
type pending map[chela.SessionKey]waiting

type waiting struct {
	Request
	Hash    string    `json:"hash"`
	Expires time.Time `json:"expires"`
}

// pendingSetting is the setting that holds the pending plans.
const pendingSetting = "undo.pending"

func readPending(tx interface{ Setting(string) (string, error) }, now time.Time) (pending, error) {
	p := pending{}
	if err := readSetting(tx, pendingSetting, &p); err != nil {
		return nil, err
	}
	for key, w := range p {
		if !now.Before(w.Expires) {
			delete(p, key)
		}
	}
	return p, nil
}

func writePending(tx store.Tx, p pending) error {
	return writeSetting(tx, pendingSetting, p, len(p) == 0)
}

// Preview returns what an undo would do. The plan waits for [History.Apply] in a place,
// such as a session, instead of an earlier one.
func (h *History) Preview(ctx context.Context, place chela.SessionKey, r Request) (Plan, error) {
	return h.PreviewAt(ctx, func(string) chela.SessionKey { return place }, r)
}

// PreviewAt is [History.Preview] for a place that depends on the hash of the plan.
func (h *History) PreviewAt(ctx context.Context, place func(hash string) chela.SessionKey, r Request) (Plan, error) {
	if err := h.lookEnded(ctx); err != nil {
		return Plan{}, err
	}
	p, err := h.plan(ctx, r)
	if err != nil {
		return p, err
	}
	if text, err := store.Get(ctx, h.o.Store, func(r store.Reader) (string, error) {
		return r.Setting(pendingSetting)
	}); err != nil || text == "" && p.Possible() == 0 {
		return p, err
	}
	return p, h.o.Store.Update(ctx, store.Ordered, func(tx store.Tx) error {
		now, at := time.Now(), place(p.Hash)
		list, err := readPending(tx, now)
		if err != nil {
			return err
		}
		delete(list, at)
		if p.Possible() > 0 {
			if len(list) >= maxPending {
				clear(list)
			}
			list[at] = waiting{Request: r, Hash: p.Hash, Expires: now.Add(PlanTime)}
		}
		return writePending(tx, list)
	})
}

// plan computes a plan.
func (h *History) plan(ctx context.Context, r Request) (Plan, error) {
	p := Plan{Request: r}
	var selected []journal.Change
	jobs := map[string]journal.Version{}
	err := h.o.Store.View(ctx, func(tx store.Reader) (err error) {
		if selected, err = r.changes(tx.Changes()); err != nil {
			return err
		}
		for _, c := range selected {
			if c.Kind == journal.Job {
				if jobs[c.Target], err = h.o.Jobs.Version(tx.Jobs(), c.Target); err != nil {
					return err
				}
			}
		}
		p.Not, err = h.acts(tx, r.Session, selected)
		return err
	})
	if err != nil {
		return p, err
	}
	steps := journal.Steps(selected)
	slices.SortStableFunc(steps, func(a, b journal.Step) int { // what is removed makes room for what comes back
		return cmp.Compare(rank(a), rank(b))
	})
	gone := map[string]bool{}
	for i := range steps {
		s := Step{Step: steps[i], Name: h.name(steps[i])}
		if err := h.check(&s, jobs, func(path string) bool { return gone[path] }); err != nil {
			return p, err
		}
		gone[s.Target] = s.Kind == journal.File && !s.To.Exists && s.Refused == ""
		steps[i] = s.Step
		p.Steps = append(p.Steps, s)
	}
	p.Hash = journal.Hash(steps)
	return p, nil
}

// rank returns the place of a step among others.
func rank(s journal.Step) int {
	if s.To.Exists {
		return 1
	}
	return 0
}

// check compares the target of a step with what its newest change left. gone reports the
// files that earlier steps remove.
func (h *History) check(s *Step, jobs map[string]journal.Version, gone func(string) bool) error {
	now, data := jobs[s.Target], []byte(jobs[s.Target].Text)
	if s.Kind != journal.Job {
		c, err := h.present(s.Target)
		if err != nil {
			s.Refused = err.Error()
			return nil
		}
		now, data = versionOf(c), show(c.Mode, c.Data)
	}
	from, err := h.shown(s.From)
	if err != nil {
		from = nil // the difference is not shown
	}
	switch {
	case s.Refused != "":
	case now.Same(s.To):
		s.Already = true
	case !now.Same(s.From):
		s.Refused = "it was changed since"
		if !now.Exists {
			s.Refused = "it was deleted since"
		}
		s.Conflict = journal.DiffOf("as it was left", "as it is", from, data)
		return nil
	case s.Kind == journal.File && s.To.Exists:
		s.Refused = h.obstacle(s.Changes[0].Agent, s.Target, gone)
	}
	to, err := h.shown(s.To)
	if err != nil {
		if s.Refused == "" {
			s.Refused = err.Error()
		}
		return nil
	}
	s.Diff = journal.DiffOf("now", "after the undo", data, to)
	return nil
}

// name returns the name of the target of a step for people.
func (h *History) name(s journal.Step) string {
	c := s.Changes[0]
	c.Before, c.After = s.To, s.From
	return humanize.OneLine(h.NameOf(c))
}

// acts returns what the runs of changes, and later ones of their session, did that cannot
// be taken back.
func (h *History) acts(tx store.Reader, home chela.SessionKey, selected []journal.Change) ([]string, error) {
	if len(selected) == 0 {
		return nil, nil
	}
	since := selected[len(selected)-1].Time
	others := map[chela.RunID]bool{}
	for _, c := range selected {
		if c.Run == "" {
			continue
		}
		if c.Session != home {
			others[c.Run] = true
		}
		r, err := tx.Runs().Get(c.Run)
		if err == nil && r.Started.Before(since) {
			since = r.Started
		} else if err != nil && !errors.Is(err, chela.ErrNotFound) {
			return nil, err
		}
	}
	var calls []session.Call
	add := func(q session.CallQuery) error {
		q.Limit = maxActs
		list, err := tx.Calls().Recent(q)
		calls = append(calls, list...)
		return err
	}
	if home != "" {
		if err := add(session.CallQuery{Session: home, Since: since}); err != nil {
			return nil, err
		}
	}
	for id := range others {
		if err := add(session.CallQuery{Run: id}); err != nil {
			return nil, err
		}
	}
	n := map[string]int{}
	for _, c := range calls {
		if c.Effect == "acts" && c.Outcome.Result != session.ResultSuspended && c.State != session.Waiting &&
			c.State != session.Denied {
			n[h.actName(c)]++
		}
	}
	var out []string
	for _, what := range [...]string{"command", "message", "other act"} {
		switch text := humanize.Many(n[what], what); {
		case n[what] == 0:
		case what == "command": // the steps take back what it did to files
			out = append(out, "whatever else "+text+
				" did (only files of the workspace are recorded, up to 8 MB, no private ones or empty folders)")
		default:
			out = append(out, text)
		}
	}
	return out, nil
}

// actName returns what people call what a call did.
func (h *History) actName(c session.Call) string {
	s := h.o.Tools(c.Session.Agent()).SpecOf(c.Wire.Name)
	switch {
	case s == nil:
	case s.Has(tool.RunsCommands), s.Has(tool.FollowsCommands):
		return "command"
	case s.Has(tool.SendsMessages):
		return "message"
	}
	return "other act"
}

// ErrNothing says that no plan waits for a yes.
var ErrNothing = errors.New("no undo waits for a yes")

// ErrChanged says that the plan is not any more as it was shown.
var ErrChanged = errors.New("the plan has changed since it was shown")

// Outcome is what became of a step.
type Outcome struct {
	Step
	Err error // nil: it was made
}

// Apply carries out the plan that waits in a place, if it is still as it was shown. hash
// is that of the plan; empty: whichever was shown last. ErrChanged comes with the new plan,
// which was not carried out.
func (h *History) Apply(ctx context.Context, place chela.SessionKey, hash string) (Plan, []Outcome, error) {
	w, err := store.Get(ctx, h.o.Store, func(r store.Reader) (waiting, error) {
		list, err := readPending(r, time.Now())
		return list[place], err
	})
	if err != nil {
		return Plan{}, nil, err
	}
	if w.Hash == "" || hash != "" && hash != w.Hash {
		return Plan{}, nil, ErrNothing
	}
	if err := h.lookEnded(ctx); err != nil { // not while the targets are locked
		return Plan{}, nil, err
	}
	p, err := h.plan(ctx, w.Request)
	if err != nil {
		return p, nil, err
	}
	var targets []string
	for _, s := range p.Steps {
		targets = append(targets, s.Target)
	}
	unlock, err := h.Lock(ctx, targets...)
	if err != nil {
		return p, nil, err
	}
	defer unlock()
	if p, err = h.plan(ctx, w.Request); err != nil { // as they are now that nobody changes them
		return p, nil, err
	}
	if p.Hash != w.Hash {
		return p, nil, ErrChanged
	}
	rows, err := h.begin(ctx, place, p)
	if err != nil {
		return p, nil, err
	}
	h.o.Step("undo.planned")
	var out []Outcome
	i := 0
	for _, s := range p.Steps {
		if s.Refused != "" {
			out = append(out, Outcome{Step: s, Err: errors.New(s.Refused)})
			continue
		}
		out = append(out, Outcome{Step: s, Err: h.carryOut(context.WithoutCancel(ctx), rows[i])})
		i++
	}
	return p, out, nil
}

// begin takes a plan out of those that wait, and records its possible steps, in one commit.
func (h *History) begin(ctx context.Context, place chela.SessionKey, p Plan) (rows []journal.Change, err error) {
	src, now, unit := journal.SourceFrom(ctx), time.Now(), "undo-"+uuid.NewString()
	err = h.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
		rows = nil
		list, err := readPending(tx, now)
		if err != nil {
			return err
		}
		if list[place].Hash != p.Hash { // somebody else was faster
			return ErrNothing
		}
		delete(list, place)
		for _, s := range p.Steps {
			if s.Refused != "" {
				continue
			}
			c := s.Changes[0]
			rows = append(rows, journal.Change{
				ID:     uuid.NewString(),
				Time:   now,
				Unit:   unit,
				Home:   c.Home,
				Kind:   s.Kind,
				Target: s.Target,
				Folder: s.Folder,
				Before: s.From,
				After:  s.To,
				Source: journal.Source{Agent: c.Agent, Session: src.Session, Tool: "undo", By: src.By},

				State:  journal.Planned,
				Undoes: s.IDs(),
			})
		}
		return errors.Join(writePending(tx, list), tx.Changes().Add(rows...))
	})
	return rows, err
}

// carryOut makes a recorded step of an undo, or finds that it was made, and closes it.
func (h *History) carryOut(ctx context.Context, c journal.Change) error {
	var err error
	switch c.Kind {
	case journal.Job:
		return h.restoreJob(ctx, c)
	case journal.Config:
		err = h.restoreConfig(ctx, c)
	case journal.File:
		err = h.restoreFile(c)
	}
	h.o.Step("undo.made")
	if err != nil {
		c.State = h.outcome(c)
		if c.State == journal.Done { // in spite of the error
			err = nil
		}
	} else {
		c.State = journal.Done
	}
	return errors.Join(err, h.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error { return finish(tx, c) }))
}

// finish closes a step of an undo.
func finish(tx store.Tx, c journal.Change) error {
	if err := tx.Changes().Set(c); err != nil || c.State != journal.Done {
		return err
	}
	return undone(tx, c)
}

// undone records that a change has undone others. A change that undid others, and is
// undone, lets them be in force again.
func undone(tx store.Tx, c journal.Change) error {
	for _, id := range c.Undoes {
		if err := mark(tx, id, c.ID); err != nil {
			return err
		}
	}
	return nil
}

func mark(tx store.Tx, id, by string) error {
	c, err := tx.Changes().Get(id)
	if errors.Is(err, chela.ErrNotFound) { // too old
		return nil
	}
	if err != nil {
		return err
	}
	c.UndoneBy = by
	if err := tx.Changes().Set(c); err != nil {
		return err
	}
	for _, other := range c.Undoes {
		next := c.ID
		if by != "" {
			next = ""
		}
		if err := mark(tx, other, next); err != nil {
			return err
		}
	}
	return nil
}

// restoreFile gives a file the content after a step.
func (h *History) restoreFile(c journal.Change) error {
	now, err := h.present(c.Target)
	if err != nil {
		return err
	}
	switch v := versionOf(now); {
	case v.Same(c.After) && (!v.Exists || v.Mode == c.After.Mode):
		return nil
	case !v.Same(c.After) && !v.Same(c.Before):
		return errors.New("it was changed since")
	}
	return h.replace(c.Target, c.Folder, c.After)
}

// restoreConfig is restoreFile for a file of the configuration, which is never deleted.
func (h *History) restoreConfig(ctx context.Context, c journal.Change) error {
	text, err := h.content(c.After)
	if err != nil {
		return err
	}
	if !c.After.Exists {
		text = []byte("{}\n")
	}
	return h.o.Configure(ctx, c.Target, text)
}

// restoreJob restores a job and closes the step, in one commit.
func (h *History) restoreJob(ctx context.Context, c journal.Change) error {
	var after func()
	err := h.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
		after = nil
		now, err := h.o.Jobs.Version(tx.Jobs(), c.Target)
		if err != nil {
			return err
		}
		switch {
		case now.Same(c.After):
		case !now.Same(c.Before):
			return errors.New("it was changed since")
		default:
			if after, err = h.o.Jobs.Restore(tx, c.Target, c.After); err != nil {
				return err
			}
		}
		c.State = journal.Done
		return finish(tx, c)
	})
	if err != nil {
		c.State = journal.Failed
		return errors.Join(err, h.o.Store.Update(ctx, store.Ordered, func(tx store.Tx) error { return tx.Changes().Set(c) }))
	}
	if after != nil {
		after()
	}
	return nil
}

// Recover closes the changes that a killed process left: it goes on with the steps of an
// undo, and finds out whether other changes were made. It is called before anything else
// changes files.
func (h *History) Recover(ctx context.Context) error {
	open, err := store.Get(ctx, h.o.Store, func(r store.Reader) ([]journal.Change, error) { return r.Changes().Open() })
	if err != nil {
		return err
	}
	for _, c := range open {
		switch {
		// nothing is in force yet that a changed configuration could replace
		case len(c.Undoes) > 0 && c.Kind != journal.Config:
			if err := h.carryOut(ctx, c); err != nil {
				h.o.Log.Warn("go on with an undo", "target", c.Target, "err", err)
			}
			continue
		case c.Kind == journal.Job:
			c.State = journal.Failed
		default:
			c.State = h.outcome(c)
		}
		if err := h.o.Store.Update(ctx, store.Ordered, func(tx store.Tx) error { return finish(tx, c) }); err != nil {
			return err
		}
	}
	return h.recoverOpen(ctx)
}

// LastUndo returns when the last undo of a session was made, and its number of changes;
// zero: there is none.
func (h *History) LastUndo(ctx context.Context, key chela.SessionKey) (at time.Time, n int, err error) {
	list, err := store.Get(ctx, h.o.Store, func(r store.Reader) ([]journal.Change, error) {
		return r.Changes().List(journal.Query{Home: key, Limit: maxUnits})
	})
	i := slices.IndexFunc(list, func(c journal.Change) bool { return c.Tool == "undo" && c.State == journal.Done })
	if i < 0 {
		return time.Time{}, 0, err
	}
	for _, c := range list[i:] {
		if c.Unit == list[i].Unit && c.State == journal.Done {
			n++
		}
	}
	return list[i].Time, n, err
}
