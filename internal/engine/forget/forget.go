package forget

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/forget"
	"github.com/chela-ai/chela/internal/core/media"
	"github.com/chela-ai/chela/internal/core/store"
)

// Location is a kind of place where something can be written.
type Location string

// The places, in the order of lists.
const (
	Notes       Location = "notes"
	Messages    Location = "conversations"
	Records     Location = "records of runs, tool calls and deliveries"
	Jobs        Location = "scheduled jobs"
	Attachments Location = "attachments and outputs"
	Inputs      Location = "what was typed in the terminal"
	Logs        Location = "logs"
	Copies      Location = "backups"
	OwnFiles    Location = "other files of the workspace"
	Names       Location = "names"
	Unsearched  Location = "not searched"
)

// Finding is something that was found.
type Finding struct {
	Location Location
	Name     string // of the file, session or job; "": it has none
	Count    int    // lines, or 1
	Sample   string // a line of it
	Stays    string // why it is not removed; "": it is removed
}

// Report is what was found, and, after a removal, what was removed.
type Report struct {
	Findings []Finding
}

// Removable returns the number of findings that a removal removes.
func (r Report) Removable() (n int) {
	for _, f := range r.Findings {
		if f.Stays == "" {
			n++
		}
	}
	return n
}

// Options configures a Forgetter.
type Options struct {
	Log   *slog.Logger
	Store store.Store
	Texts store.Texts // of Store; nil: it cannot replace texts, and nothing can be removed
	Files *media.Files

	// Workspaces returns the folders of the agents.
	Workspaces func() []string
	// Inputs are the input histories of terminals: a JSON string a line. They need not
	// exist.
	Inputs []string
	// Logs are log files and folders with log files.
	Logs []string
	// Copies returns copies of the state that are not changed.
	Copies func() []string
	// Own are files of the person that are searched and not changed.
	Own []string
	// Stop stops the runs of a session and waits for their ends.
	Stop func(ctx context.Context, key chela.SessionKey) error
	// Forgotten is called after rows or notes were changed: it drops what is cached of
	// them, search indexes included.
	Forgotten func() error
	// RemoveJob removes a scheduled job for good. A job that does not exist is no error.
	RemoveJob func(ctx context.Context, id string) error
	// Step is called after each step of a removal, for tests that end the process there;
	// nil: nothing is.
	Step func(name string)
}

// Forgetter removes what is known about topics. It is safe for concurrent use.
type Forgetter struct {
	o  Options
	mu sync.Mutex // held by a removal
}

// New returns a Forgetter.
func New(o Options) *Forgetter {
	if o.Step == nil {
		o.Step = func(string) {}
	}
	return &Forgetter{o: o}
}

// pending is the name of the setting with the topic of a removal that has begun, and
// scrubbing its value when only the files of the database are left to be done.
const (
	pending   = "forget"
	scrubbing = "\x00"
)

const (
	maxPasses    = 3
	scrubTimeout = 20 * time.Second
)

// Find returns what would be removed and what would stay.
func (f *Forgetter) Find(ctx context.Context, t forget.Topic) (Report, error) {
	if f.o.Texts == nil {
		return Report{}, errUnsupported
	}
	p := pass{o: &f.o, topic: t}
	err := p.all(ctx)
	return p.report(), err
}

var errUnsupported = chela.Errorf(chela.CodeInvalid, "this database cannot forget")

// Remove removes what is known about the topic and returns what was removed and what
// stays.
func (f *Forgetter) Remove(ctx context.Context, t forget.Topic) (Report, error) {
	if f.o.Texts == nil {
		return Report{}, errUnsupported
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.mark(ctx, t.String()); err != nil {
		return Report{}, err
	}
	f.o.Step("forget.marked")
	return f.removeLocked(ctx, t)
}

// Resume completes a removal that was interrupted.
func (f *Forgetter) Resume(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	text, err := store.Get(ctx, f.o.Store, func(r store.Reader) (string, error) { return r.Setting(pending) })
	switch {
	case err != nil || text == "" || f.o.Texts == nil:
		return err
	case text == scrubbing:
		return f.finish(ctx)
	}
	t, err := forget.Parse(text)
	if err != nil {
		return errors.Join(err, f.mark(ctx, ""))
	}
	_, err = f.removeLocked(ctx, t)
	return err
}

func (f *Forgetter) mark(ctx context.Context, value string) error {
	return f.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error { return tx.SetSetting(pending, value) })
}

func (f *Forgetter) removeLocked(ctx context.Context, t forget.Topic) (Report, error) {
	done := pass{o: &f.o, topic: t}
	left := pass{o: &f.o, topic: t}
	for range maxPasses {
		if err := f.stopRuns(ctx, t); err != nil {
			return done.report(), err
		}
		done.remove = true
		if err := done.all(ctx); err != nil {
			return done.report(), err
		}
		if f.o.Forgotten != nil {
			if err := f.o.Forgotten(); err != nil {
				return done.report(), fmt.Errorf("drop caches: %w", err)
			}
		}
		left = pass{o: &f.o, topic: t}
		if err := left.all(ctx); err != nil {
			return done.report(), err
		}
		if left.report().Removable() == 0 {
			break
		}
	}
	r := done.report()
	r.Findings = slices.DeleteFunc(r.Findings, func(x Finding) bool { return x.Stays != "" })
	for _, x := range left.report().Findings {
		if x.Stays == "" {
			x.Stays = "it is written again and again; repeat the command"
		}
		r.Findings = append(r.Findings, x)
	}
	return r, f.finish(ctx)
}

// finish removes the record of the removal and all earlier versions of rows.
func (f *Forgetter) finish(ctx context.Context) error {
	if err := f.mark(ctx, scrubbing); err != nil {
		return err
	}
	f.o.Step("forget.scrub")
	ctx, cancel := context.WithTimeout(ctx, scrubTimeout)
	defer cancel()
	if err := f.o.Texts.Scrub(ctx); err != nil {
		return fmt.Errorf("what was removed is still in the log of the database, which is emptied at the next start: %w", err)
	}
	return f.mark(ctx, "")
}

// stopRuns stops the runs of sessions whose transcripts are about the topic: a run has
// the transcript in memory and would send it again.
func (f *Forgetter) stopRuns(ctx context.Context, t forget.Topic) error {
	if f.o.Stop == nil {
		return nil
	}
	var keys []chela.SessionKey
	err := f.o.Texts.Texts(ctx, func(x store.Text) error {
		if x.Session == "" || slices.Contains(keys, x.Session) || x.Table != "entry" && x.Table != "item" {
			return nil
		}
		if _, removed, _ := t.CutText(x.Value, ""); len(removed) > 0 {
			keys = append(keys, x.Session)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, key := range keys {
		if err := f.o.Stop(ctx, key); err != nil {
			return fmt.Errorf("stop the run of %s: %w", key, err)
		}
	}
	return nil
}

// pass searches all places once.
type pass struct {
	o      *Options
	topic  forget.Topic
	remove bool

	found []Finding
	refs  []string // attachments of messages that are removed
	moved []move   // texts that were stored again without the lines
}

// report returns the findings in the order of the places.
func (p *pass) report() Report {
	order := []Location{Notes, Messages, Records, Jobs, Attachments, Inputs, Logs, Names, OwnFiles, Unsearched, Copies}
	list := slices.Clone(p.found)
	slices.SortStableFunc(list, func(a, b Finding) int {
		return slices.Index(order, a.Location) - slices.Index(order, b.Location)
	})
	return Report{Findings: list}
}

// all searches all places. The media come before the rows, which refer to them; but which
// attachments belong to removed messages is known only after the rows.
func (p *pass) all(ctx context.Context) error {
	for _, step := range []struct {
		name string
		run  func(context.Context) error
	}{
		{"outputs", p.outputs}, {"rows", p.rows}, {"attachments", p.attachments}, {"notes", p.notes}, {"own", p.own},
		{"inputs", p.inputs}, {"logs", p.logs}, {"copies", p.copies},
	} {
		if err := cmp.Or(step.run(ctx), ctx.Err()); err != nil {
			return err
		}
		if p.remove {
			p.o.Step("forget." + step.name)
		}
	}
	return nil
}

// add adds a finding to that of the same name.
func (p *pass) add(place Location, name, stays string, removed []string) {
	if len(removed) == 0 {
		return
	}
	for i := range p.found {
		if x := &p.found[i]; x.Location == place && x.Name == name && x.Stays == stays {
			x.Count += len(removed)
			return
		}
	}
	p.found = append(p.found, Finding{
		Location: place,
		Name:     name,
		Count:    len(removed),
		Sample:   forget.Sample(removed),
		Stays:    stays,
	})
}
