package sessions

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/internal/queue"
	"github.com/chela-ai/chela/internal/rpc"
	"github.com/chela-ai/chela/internal/run"
	"github.com/chela-ai/chela/internal/session"
	"github.com/chela-ai/chela/internal/shape"
	"github.com/chela-ai/chela/internal/store"
	"github.com/chela-ai/chela/wire"
)

// Bounds of lists and previews.
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
	if in.SpawnedBy != "" || in.HasBoard || in.BoardFace == "dashboard" {
		return out, nil // no session has children or a board
	}
	err = m.o.Store.View(ctx, func(r store.Reader) error {
		out.Sessions = []wire.Session{}
		metas, total, err := r.Sessions().List(q)
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

// query returns what a list asks for.
func query(in wire.SessionsList, now time.Time) (session.Query, error) {
	q := session.Query{
		Agent: chela.AgentID(in.AgentID), Search: in.Search, Label: in.Label, Category: in.Category,
		Pinned: in.Pinned, Spoken: in.Spoken, Running: in.ActiveOnly, Offset: max(0, in.Offset), Limit: defaultList,
	}
	if in.Limit > 0 {
		q.Limit = min(in.Limit, maxList)
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
		return q, rpc.Invalid(wire.MethodSessionsList, "at /sortBy: must be equal to one of the allowed values")
	}
	if in.NoSubagents {
		q.Without = append(q.Without, ":subagent:")
	}
	if in.NoCron {
		q.Without = append(q.Without, ":cron:")
	}
	return q, nil
}

// state is what goes on in all sessions.
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
		s.waiting[k] = count(items)
	}
	return s, nil
}

func count(items []queue.Item) int {
	n := 0
	for _, it := range items {
		if it.Kind == queue.Message {
			n++
		}
	}
	return n
}

func (m methods) describe(ctx context.Context, _ rpc.Peer, in wire.SessionsDescribe) (wire.SessionDescribed, error) {
	key, err := m.key(wire.MethodSessionsDescribe, in.Key, in.AgentID)
	if err != nil {
		return wire.SessionDescribed{}, err
	}
	row, err := m.o.Describe(ctx, key, in.Preview)
	return wire.SessionDescribed{Session: row}, err
}

// Describe returns a session's row, with the last that was said in it if it is
// asked for; nil when there is no such session.
func (o Options) Describe(ctx context.Context, key chela.SessionKey, preview bool) (*wire.Session, error) {
	var row *wire.Session
	err := o.Store.View(ctx, func(r store.Reader) error {
		row = nil
		meta, err := r.Sessions().Get(key)
		if errors.Is(err, chela.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		s, err := o.Rows.Session(r, meta)
		if err != nil {
			return err
		}
		if preview {
			s.Preview, err = lastText(r.Sessions(), meta.ID)
		}
		row = &s
		return err
	})
	return row, err
}

func (m methods) preview(ctx context.Context, _ rpc.Peer, in wire.SessionsPreview) (wire.SessionPreviews, error) {
	if len(in.Keys) > maxPreview {
		return wire.SessionPreviews{}, rpc.Invalid(wire.MethodSessionsPreview, "at /keys: must NOT have more than %d items", maxPreview)
	}
	limit, chars := defaultPreview, previewChars
	if in.Limit > 0 {
		limit = min(in.Limit, maxPreview)
	}
	if in.MaxChars > 0 {
		chars = min(in.MaxChars, 4000)
	}
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
	key, err := m.key(wire.MethodSessionsPreview, name, "")
	if err != nil {
		return p, err
	}
	meta, err := r.Get(key)
	if errors.Is(err, chela.ErrNotFound) {
		return p, nil
	}
	if err != nil {
		return p, err
	}
	entries, err := r.Last(meta.ID, 4*limit) // most entries of a long turn are tools
	if err != nil {
		return p, err
	}
	for _, e := range entries {
		if text := said(e); text != "" {
			p.Items = append(p.Items, wire.PreviewItem{Role: string(e.Message.Role), Text: clip(text, chars)})
		}
	}
	p.Items = p.Items[max(0, len(p.Items)-limit):]
	p.Status = "ok"
	if len(p.Items) == 0 {
		p.Status = "empty"
	}
	return p, nil
}

// lastText returns what was said last in a transcript.
func lastText(r session.Reader, id string) (string, error) {
	entries, err := r.Last(id, 8)
	if err != nil {
		return "", err
	}
	for _, e := range slices.Backward(entries) {
		if text := said(e); text != "" {
			return clip(text, previewChars), nil
		}
	}
	return "", nil
}

// said returns what a person or the assistant said in an entry; "" for others.
func said(e session.Entry) string {
	if e.Kind != session.KindMessage || e.Message == nil || e.Message.Role == llm.RoleTool {
		return ""
	}
	text := strings.TrimSpace(e.Message.PlainText())
	if shape.Silent(text, true) {
		return ""
	}
	return text
}

// clip returns at most n characters of s.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for i := range s {
		if n == 0 {
			return s[:i] + "…"
		}
		n--
	}
	return s
}
