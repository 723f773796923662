package sessions

import (
	"context"
	"slices"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/plan"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/internal/surface/wireview"
	"github.com/chela-ai/chela/wire"
)

// Limits of lists and previews.
const (
	defaultList    = 100
	maxList        = 1000
	defaultPreview = 12
	maxPreview     = 100
	previewChars   = 240
)

func (m methods) list(ctx context.Context, _ rpc.Peer, in wire.SessionsList) (wire.SessionList, error) {
	now := time.Now()
	q, err := query(in, now)
	if err != nil {
		return wire.SessionList{}, err
	}
	out := wire.SessionList{
		Time: wire.At(now), Path: m.o.Path, Owners: []string{}, Limit: q.Limit, Sessions: []wire.Session{},
		Defaults: m.o.Rows.Model(session.Meta{Agent: m.o.Default}),
	}
	if in.HasBoard || in.BoardFace == "dashboard" {
		return out, nil // sessions have no boards
	}
	var parent chela.SessionKey
	if in.SpawnedBy != "" {
		if parent, err = m.key(in.SpawnedBy, in.AgentID); err != nil {
			return out, err
		}
	}
	err = m.o.Store.View(ctx, func(r store.Reader) error {
		out.Sessions = []wire.Session{}
		find := r.Sessions().List
		if parent != "" {
			find = func(q session.Query) ([]session.Meta, int, error) { return children(r.Sessions(), parent, q) }
		}
		metas, total, err := find(q)
		if err != nil {
			return err
		}
		out.Total = total
		state, err := readState(r)
		if err != nil {
			return err
		}
		for _, meta := range metas {
			row := m.o.Rows.Row(meta, state.active[meta.Key], state.waiting[meta.Key])
			if in.Preview {
				if row.Preview, err = lastText(r.Sessions(), meta.ID); err != nil {
					return err
				}
			}
			out.Sessions = append(out.Sessions, row)
		}
		return nil
	})
	out.Count = len(out.Sessions)
	if next := q.Offset + out.Count; next < out.Total {
		out.HasMore, out.Next = true, &next
	}
	return out, err
}

// children returns what a query finds among the sessions that a session started, and their
// number. The store does not know them by that session, so that all are looked at.
func children(r session.Reader, parent chela.SessionKey, q session.Query) (list []session.Meta, total int, err error) {
	skip, most := q.Offset, q.Limit
	for q.Offset, q.Limit = 0, maxList; ; {
		page, all, err := r.List(q)
		if err != nil {
			return nil, 0, err
		}
		for _, m := range page {
			if m.Bounds.SpawnedBy != parent {
				continue
			}
			if total++; total > skip && len(list) < most {
				list = append(list, m)
			}
		}
		if q.Offset += len(page); len(page) == 0 || q.Offset >= all {
			return list, total, nil
		}
	}
}

// query returns the query of a list request.
func query(in wire.SessionsList, now time.Time) (session.Query, error) {
	q := session.Query{
		Agent:      chela.AgentID(in.AgentID),
		Search:     in.Search,
		Label:      in.Label,
		Category:   in.Category,
		Pinned:     in.Pinned,
		Interacted: in.RequireInteraction,
		Running:    in.ActiveOnly,
		Offset:     max(0, in.Offset),
		Limit:      rpc.Limit(in.Limit, defaultList, maxList),
	}
	if in.ActiveMinutes > 0 {
		q.Since = now.Add(-time.Duration(in.ActiveMinutes) * time.Minute)
	}
	switch in.Archived {
	case wire.ArchivedOnly:
		q.Archived = session.ArchivedOnly
	case wire.ArchivedAll:
		q.Archived = session.ArchivedToo
	}
	switch in.SortBy {
	case "", "updatedAt", "activity":
	case "lastInteractionAt":
		q.Order = session.ByActive
	default:
		return q, rpc.Invalid("at /sortBy: must be equal to one of the allowed values")
	}
	if in.NoSubagents {
		q.Without = append(q.Without, chela.KeySubagent)
	}
	if in.NoCron {
		q.Without = append(q.Without, chela.KeyCron)
	}
	return q, nil
}

// state is the active runs and the number of queued messages by session.
type state struct {
	active  map[chela.SessionKey][]run.Run
	waiting map[chela.SessionKey]int
}

func readState(r store.Reader) (state, error) {
	s := state{active: map[chela.SessionKey][]run.Run{}, waiting: map[chela.SessionKey]int{}}
	runs, err := r.Runs().Active("")
	if err != nil {
		return s, err
	}
	for _, x := range runs {
		s.active[x.Session] = append(s.active[x.Session], x)
	}
	keys, err := r.Queue().Sessions()
	if err != nil {
		return s, err
	}
	for _, k := range keys {
		items, err := r.Queue().Waiting(k)
		if err != nil {
			return s, err
		}
		s.waiting[k] = queue.Messages(items)
	}
	return s, nil
}

func (m methods) describe(ctx context.Context, _ rpc.Peer, in wire.SessionsDescribe) (wire.SessionDescribed, error) {
	key, err := m.key(in.Key, in.AgentID)
	if err != nil {
		return wire.SessionDescribed{}, err
	}
	row, p, err := m.o.describe(ctx, key, in.Preview)
	if row != nil {
		row.Plan = wireview.Plan(p)
	}
	return wire.SessionDescribed{Session: row}, err
}

// Describe returns a session's row, without its plan, and with its last message if
// preview is set; nil if the session does not exist.
func (o Options) Describe(ctx context.Context, key chela.SessionKey, preview bool) (*wire.Session, error) {
	row, _, err := o.describe(ctx, key, preview)
	return row, err
}

// describe returns a session's row, as [Options.Describe] does, and its plan.
func (o Options) describe(ctx context.Context, key chela.SessionKey,
	preview bool) (row *wire.Session, p plan.Plan, err error) {
	err = o.Store.View(ctx, func(r store.Reader) error {
		row = nil
		meta, err := session.Lookup(r.Sessions(), key)
		if err != nil || meta.ID == "" {
			return err
		}
		s, err := o.Rows.Session(r, meta)
		if err != nil {
			return err
		}
		if preview {
			s.Preview, err = lastText(r.Sessions(), meta.ID)
		}
		row, p = &s, meta.Plan
		return err
	})
	return row, p, err
}

func (m methods) preview(ctx context.Context, _ rpc.Peer, in wire.SessionsPreview) (wire.SessionPreviews, error) {
	if len(in.Keys) > maxPreview {
		return wire.SessionPreviews{}, rpc.Invalid("at /keys: must NOT have more than %d items", maxPreview)
	}
	limit, chars := rpc.Limit(in.Limit, defaultPreview, maxPreview), rpc.Limit(in.MaxChars, previewChars, 4000)
	out := wire.SessionPreviews{Time: wire.At(time.Now())}
	err := m.o.Store.View(ctx, func(r store.Reader) error {
		out.Previews = []wire.SessionPreview{}
		for _, k := range in.Keys {
			p, err := m.previewOf(r.Sessions(), k, limit, chars)
			if err != nil {
				return err
			}
			out.Previews = append(out.Previews, p)
		}
		return nil
	})
	return out, err
}

func (m methods) previewOf(r session.Reader, name string, limit, chars int) (wire.SessionPreview, error) {
	p := wire.SessionPreview{Key: name, Status: "missing", Items: []wire.PreviewItem{}}
	key, err := m.key(name, "")
	if err != nil {
		return p, err
	}
	meta, err := session.Lookup(r, key)
	if err != nil || meta.ID == "" {
		return p, err
	}
	entries, err := r.Last(meta.ID, 4*limit) // most entries of a long turn are tool calls
	if err != nil {
		return p, err
	}
	for _, e := range entries {
		if text := session.Said(e); text != "" {
			p.Items = append(p.Items, wire.PreviewItem{Role: string(e.Message.Role), Text: humanize.Truncate(text, chars)})
		}
	}
	p.Items = p.Items[max(0, len(p.Items)-limit):]
	p.Status = "ok"
	if len(p.Items) == 0 {
		p.Status = "empty"
	}
	return p, nil
}

// lastText returns the last message of a transcript.
func lastText(r session.Reader, id string) (string, error) {
	entries, err := r.Last(id, 8)
	if err != nil {
		return "", err
	}
	for _, e := range slices.Backward(entries) {
		if text := session.Said(e); text != "" {
			return humanize.Truncate(text, previewChars), nil
		}
	}
	return "", nil
}
