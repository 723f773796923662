// Package workspace implements the methods about what the assistant changed: the history of
// files, undo, and where a line comes from.
package workspace

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/journal"
	"github.com/chela-ai/chela/internal/engine/history"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/wire"
)

// Options configures the methods. All fields are required.
type Options struct {
	History *history.History
	Default chela.AgentID
	Agent   func(chela.AgentID) bool // reports whether the agent exists
	Zone    func() *time.Location    // the person's time zone
	Redact  func(string) string      // removes known secrets from a text
}

// Methods returns the methods.
func Methods(o Options) []rpc.Method {
	op := wire.RoleOperator
	return []rpc.Method{
		rpc.New(wire.MethodWorkspaceLog, op, chela.ScopeRead, o.log),
		rpc.New(wire.MethodWorkspaceDiff, op, chela.ScopeRead, o.diff),
		rpc.New(wire.MethodWorkspaceRestore, op, chela.ScopeAdmin, o.restore),
		rpc.New(wire.MethodUndoPlan, op, chela.ScopeAdmin, o.plan).Reads(),
		rpc.New(wire.MethodUndoApply, op, chela.ScopeAdmin, o.apply),
		rpc.New(wire.MethodMemoryWhy, op, chela.ScopeRead, o.why),
	}
}

// Limits of a page of workspace.log.
const (
	defaultLimit = 50
	maxLimit     = 500
)

// agent returns the agent that a client means.
func (o Options) agent(id string) (chela.AgentID, error) {
	agent := cmp.Or(chela.AgentID(id), o.Default)
	if !o.Agent(agent) {
		return "", rpc.UnknownAgent(agent)
	}
	return agent, nil
}

// time parses a time of a person.
func (o Options) time(s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	t, err := history.ParseTime(s, time.Now().In(o.Zone()))
	if err != nil {
		return t, rpc.Invalid("%s", err.Error())
	}
	return t, nil
}

func (o Options) log(ctx context.Context, _ rpc.Peer, in wire.WorkspaceLog) (wire.WorkspaceChanges, error) {
	out := wire.WorkspaceChanges{Changes: []wire.Change{}}
	agent, err := o.agent(in.AgentID)
	if err != nil {
		return out, err
	}
	since, err := o.time(in.Since)
	if err != nil {
		return out, err
	}
	limit := min(cmp.Or(max(in.Limit, 0), defaultLimit), maxLimit)
	list, err := o.History.Log(ctx, history.LogQuery{
		Agent:  agent,
		Path:   in.Path,
		All:    in.All,
		Since:  since,
		Before: in.Cursor,
		Limit:  limit + 1,
	})
	if err != nil {
		return out, err
	}
	if len(list) > limit {
		list = list[:limit]
		out.Next = list[limit-1].Seq
	}
	for _, c := range list {
		out.Changes = append(out.Changes, o.view(c))
	}
	return out, nil
}

// view returns a change as clients see it.
func (o Options) view(c journal.Change) wire.Change {
	v := wire.Change{
		ID:         c.ID,
		Time:       wire.At(c.Time),
		Kind:       string(c.Kind),
		Action:     wire.ChangeChanged,
		Path:       o.History.NameOf(c),
		Target:     c.Target,
		From:       c.From,
		State:      string(c.State),
		AgentID:    string(c.Agent),
		SessionKey: string(c.Session),
		RunID:      string(c.Run),
		CallID:     c.Call,

		Tool:      c.Tool,
		By:        c.By,
		Origin:    string(c.Origin.Kind),
		OriginID:  c.Origin.ID,
		Untrusted: c.Doubt,
		Undoes:    c.Undoes,
		UndoneBy:  c.UndoneBy,
	}
	switch {
	case c.Seen():
		v.Action = wire.ChangeSeen
		return v
	case !c.Before.Exists:
		v.Action = wire.ChangeCreated
	case !c.After.Exists:
		v.Action = wire.ChangeDeleted
	}
	if d, err := o.History.Diff(c); err == nil {
		v.Added, v.Removed, v.Binary = d.Added, d.Removed, d.Binary
	} else {
		v.Binary = true
	}
	return v
}

func (o Options) diff(ctx context.Context, _ rpc.Peer, in wire.WorkspaceDiff) (wire.WorkspaceDifference, error) {
	agent, err := o.agent(in.AgentID)
	if err != nil {
		return wire.WorkspaceDifference{}, err
	}
	var c journal.Change
	switch {
	case in.Change != "":
		c, err = o.History.Find(ctx, in.Change)
	case in.Path != "":
		c, err = o.History.Newest(ctx, agent, in.Path)
	default:
		err = rpc.Invalid("want a change or a path")
	}
	if err == nil && c.Kind == journal.Config {
		err = rpc.Need(ctx, chela.ScopeAdmin) // the file may hold secrets that are not known as such
	}
	if err != nil {
		return wire.WorkspaceDifference{}, err
	}
	d, err := o.History.Diff(c)
	return wire.WorkspaceDifference{Change: o.view(c), Text: o.Redact(d.Text)}, err
}

func (o Options) restore(ctx context.Context, _ rpc.Peer, in wire.WorkspaceRestore) (wire.WorkspaceRestored, error) {
	var out wire.WorkspaceRestored
	agent, err := o.agent(in.AgentID)
	if err != nil {
		return out, err
	}
	var c journal.Change
	var v journal.Version
	switch {
	case in.Change != "":
		c, err = o.History.Find(ctx, in.Change)
		if v = c.After; in.Before {
			v = c.Before
		}
	case in.Path != "" && in.Time != "":
		var at time.Time
		if at, err = o.time(in.Time); err == nil {
			c, v, err = o.History.Version(ctx, agent, in.Path, at)
		}
	default:
		err = rpc.Invalid("want a change, or a path and a time")
	}
	if err != nil {
		return out, err
	}
	if in.Change != "" && in.Path != "" && !o.History.IsAt(c, agent, in.Path) {
		return out, rpc.Invalid("the change %s is one of %s", in.Change, o.History.NameOf(c))
	}
	out.Path, out.Deleted = o.History.NameOf(c), !v.Exists
	out.Changed, err = o.History.Restore(ctx, c, v)
	return out, err
}

// place is where the plan of a client waits.
func place(hash string) chela.SessionKey { return chela.SessionKey("client:" + hash) }

func (o Options) plan(ctx context.Context, _ rpc.Peer, in wire.UndoPlan) (wire.UndoPlanned, error) {
	r := history.Request{Units: max(in.Turns, 0), Undo: in.Undo}
	var err error
	if in.SessionKey != "" {
		if r.Session, err = rpc.SessionKey(in.SessionKey, "", o.Default); err != nil {
			return wire.UndoPlanned{}, err
		}
		if agent := r.Session.Agent(); !o.Agent(agent) {
			return wire.UndoPlanned{}, rpc.UnknownAgent(agent)
		}
	}
	if r.Since, err = o.time(in.Since); err != nil {
		return wire.UndoPlanned{}, err
	}
	if r.Since.IsZero() {
		r.Units = max(r.Units, 1)
	}
	p, err := o.History.PreviewAt(ctx, place, r)
	if err != nil {
		return wire.UndoPlanned{}, err
	}
	out := wire.UndoPlanned{Text: o.Redact(p.Text(o.Zone(), true, "")), Steps: []wire.UndoStep{}, NotDone: p.Not,
		Possible: p.Possible()}
	if out.Possible > 0 {
		out.Hash = p.Hash
	}
	if out.NotDone == nil {
		out.NotDone = []string{}
	}
	for _, s := range p.Steps {
		out.Steps = append(out.Steps, wire.UndoStep{
			Kind:     string(s.Kind),
			Path:     s.Name,
			Changes:  s.IDs(),
			Refused:  s.Refused,
			Diff:     o.Redact(s.Diff.Text),
			Conflict: o.Redact(s.Conflict.Text),
		})
	}
	return out, nil
}

func (o Options) apply(ctx context.Context, _ rpc.Peer, in wire.UndoApply) (wire.UndoApplied, error) {
	out := wire.UndoApplied{Undone: []string{}, Failed: []string{}}
	_, steps, err := o.History.Apply(ctx, place(in.Hash), in.Hash)
	switch {
	case errors.Is(err, history.ErrNothing), errors.Is(err, history.ErrChanged):
		return out, &chela.Error{Code: chela.CodeConflict, Message: err.Error(), Hint: "chela undo"}
	case err != nil:
		return out, err
	}
	out.Text = history.Report(steps)
	for _, s := range steps {
		if s.Err != nil {
			out.Failed = append(out.Failed, s.Name+": "+s.Err.Error())
		} else {
			out.Undone = append(out.Undone, s.Name)
		}
	}
	return out, nil
}

func (o Options) why(ctx context.Context, _ rpc.Peer, in wire.MemoryWhy) (wire.MemorySources, error) {
	out := wire.MemorySources{Lines: []wire.MemorySource{}}
	agent, err := o.agent(in.AgentID)
	if err != nil {
		return out, err
	}
	var lines []history.Line
	switch {
	case in.Line < 0:
		err = rpc.Invalid("at /line: must not be negative")
	case in.Path != "":
		lines, err = o.History.Why(ctx, agent, in.Path, in.Line)
	case in.Words != "":
		lines, err = o.History.WhyWords(ctx, agent, in.Words)
	default:
		err = rpc.Invalid("want a path or words")
	}
	for _, l := range lines {
		s := wire.MemorySource{Path: l.Path, Line: l.Number, Text: o.Redact(l.Text)}
		if l.Change.ID != "" {
			v := o.view(l.Change)
			s.Change = &v
		}
		out.Lines = append(out.Lines, s)
	}
	return out, err
}
