package chat

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/internal/queue"
	"github.com/chela-ai/chela/internal/rpc"
	"github.com/chela-ai/chela/internal/session"
	"github.com/chela-ai/chela/internal/shape"
	"github.com/chela-ai/chela/internal/store"
	"github.com/chela-ai/chela/wire"
)

// Bounds of a page of the history.
const (
	defaultLimit = 200
	maxLimit     = 1000
	maxBytes     = 6 << 20
)

// page is a piece of a transcript with what surrounds it.
type page struct {
	meta    session.Meta
	entries []session.Entry
	total   int
	pending []queue.Item
	row     *wire.Session // nil: there is no session yet
}

func (m methods) history(ctx context.Context, _ rpc.Peer, in wire.ChatHistory) (any, error) {
	key, err := m.key(wire.MethodChatHistory, in.SessionKey, in.AgentID)
	if err != nil {
		return nil, err
	}
	if in.Limit < 0 || in.Offset < 0 || in.MaxBytes < 0 {
		return nil, rpc.Invalid(wire.MethodChatHistory, "limit, offset and maxBytes must be >= 0")
	}
	limit := defaultLimit
	if in.Limit > 0 {
		limit = min(in.Limit, maxLimit)
	}
	// What runs is looked at first: what it stores meanwhile is then in the
	// page and in the text, and never in neither.
	flight := m.inFlight(key)
	if in.Cursor != "" {
		return m.since(ctx, key, in.Cursor, limit, flight)
	}
	pg, err := m.read(ctx, key, func(total int) (after, n int) {
		after = max(0, total-in.Offset-limit)
		return after, max(0, total-in.Offset-after)
	})
	if err != nil {
		return nil, fmt.Errorf("history of %s: %w", key, err)
	}
	most := maxBytes
	if in.MaxBytes > 0 {
		most = min(in.MaxBytes, maxBytes)
	}
	kept := fit(pg.entries, most)
	h := wire.History{
		SessionKey: string(key), SessionID: pg.meta.ID, Messages: []wire.Message{}, Pending: pending(pg.pending),
		Total: pg.total, Info: pg.row, Thinking: pg.meta.Think, InFlight: flight,
		Cursor: cursor(pg.meta.ID, pg.total),
	}
	for i, e := range kept {
		msg, ok := shape.Message(e)
		if ok {
			h.Messages = append(h.Messages, lighten(msg, i == 0, most))
		}
	}
	defaults := m.o.Rows.Model(session.Meta{Key: key, Agent: key.Agent()})
	h.Defaults = &defaults
	if next := in.Offset + len(kept); next < pg.total && len(kept) > 0 {
		h.HasMore, h.NextOffset = true, next
	}
	return h, nil
}

// read reads a piece of the session's transcript: the n entries after a place.
func (m methods) read(ctx context.Context, key chela.SessionKey, piece func(total int) (after, n int)) (page, error) {
	var pg page
	err := m.o.Store.View(ctx, func(r store.Reader) error {
		pg = page{}
		var err error
		if pg.pending, err = r.Queue().Waiting(key); err != nil {
			return err
		}
		pg.meta, err = r.Sessions().Get(key)
		if errors.Is(err, chela.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		row, err := m.o.Rows.Session(r, pg.meta)
		if err != nil {
			return err
		}
		pg.row = &row
		if pg.total, err = r.Sessions().Count(pg.meta.ID); err != nil {
			return err
		}
		after, n := piece(pg.total)
		if n <= 0 {
			return nil
		}
		pg.entries, err = r.Sessions().Entries(pg.meta.ID, int64(after), n)
		return err
	})
	return pg, err
}

// since answers with what is new after a cursor.
func (m methods) since(ctx context.Context, key chela.SessionKey, cur string, limit int, flight *wire.InFlight) (wire.HistoryDelta, error) {
	reset := wire.HistoryDelta{Kind: wire.KindReset, SessionKey: string(key), Messages: []wire.SessionMessage{}, Pending: pending(nil)}
	id, seq, ok := parseCursor(cur)
	if !ok {
		return reset, nil
	}
	pg, err := m.read(ctx, key, func(total int) (int, int) { return seq, total - seq })
	if err != nil {
		return reset, fmt.Errorf("history of %s: %w", key, err)
	}
	if pg.meta.ID != id || seq > pg.total || pg.total-seq > limit || len(fit(pg.entries, maxBytes)) < len(pg.entries) {
		return reset, nil
	}
	d := wire.HistoryDelta{
		Kind: wire.KindDelta, SessionKey: string(key), SessionID: id, Messages: []wire.SessionMessage{},
		Pending: pending(pg.pending), Cursor: cursor(id, pg.total), Info: pg.row, InFlight: flight,
	}
	for _, e := range pg.entries {
		if msg, ok := shape.Message(e); ok {
			d.Messages = append(d.Messages, wire.SessionMessage{
				SessionKey: string(key), SessionID: id, AgentID: string(key.Agent()),
				Message: msg, MessageID: e.ID, Seq: e.Seq, UpdatedAt: wire.At(e.Time),
			})
		}
	}
	return d, nil
}

// cursor names a place in a transcript.
func cursor(id string, seq int) string {
	if id == "" {
		return ""
	}
	return id + ":" + strconv.Itoa(seq)
}

func parseCursor(s string) (id string, seq int, ok bool) {
	i := strings.LastIndexByte(s, ':')
	if i <= 0 {
		return "", 0, false
	}
	seq, err := strconv.Atoi(s[i+1:])
	return s[:i], seq, err == nil && seq >= 0
}

// fit returns the newest entries that take at most so many bytes, and at least
// one.
func fit(entries []session.Entry, most int) []session.Entry {
	n := 0
	for i := len(entries) - 1; i >= 0; i-- {
		if n += size(entries[i]); n > most && i < len(entries)-1 {
			return entries[i+1:]
		}
	}
	return entries
}

// size estimates how many bytes an entry takes as JSON.
func size(e session.Entry) int {
	n := 400 + len(e.Text) + len(e.Details)
	if e.Message == nil {
		return n
	}
	for _, p := range e.Message.Parts {
		n += 40 + len(p.Text) + len(p.Text)/16
		if p.Kind == llm.PartImage && len(p.Data) <= shape.MaxImage {
			n += len(p.Data) * 4 / 3
		}
		if p.Call != nil {
			n += 60 + len(p.Call.Args)
		}
	}
	return n
}

// lighten takes the data of images out of a message that is too large alone.
func lighten(m wire.Message, only bool, most int) wire.Message {
	if !only {
		return m
	}
	n := 0
	for _, c := range m.Content {
		n += len(c.Text) + len(c.Data)*4/3
	}
	if n <= most {
		return m
	}
	for i := range m.Content {
		if c := &m.Content[i]; c.Data != nil {
			c.Bytes, c.Data = len(c.Data), nil
		}
	}
	return m
}

// pending returns the messages that wait.
func pending(items []queue.Item) wire.PendingInputs {
	out := wire.PendingInputs{Items: []wire.PendingInput{}}
	for _, it := range items {
		if it.Kind != queue.Message {
			continue
		}
		out.Items = append(out.Items, wire.PendingInput{
			ID: it.ID, RunID: it.ID, State: "queued", AcceptedAt: wire.At(it.Created),
			Message: wire.Message{
				Role: wire.RoleUser, Content: wire.TextContent(it.Inbound.Text), Timestamp: wire.At(it.Created),
				IdempotencyKey: it.ID + ":user", Meta: wire.MessageMeta{ID: "pending:" + it.ID},
			},
		})
	}
	out.Total = len(out.Items)
	return out
}

// inFlight returns the run that is being answered.
func (m methods) inFlight(key chela.SessionKey) *wire.InFlight {
	if live := m.o.Live(key); len(live) > 0 {
		l := live[0]
		f := &wire.InFlight{RunID: string(l.Run), Text: l.Text, StartedAt: wire.At(l.Started), Seq: l.Seq}
		if shape.Silent(l.Text, false) {
			f.Text = ""
		}
		return f
	}
	return nil
}
