package chat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/plan"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/internal/surface/wireview"
	"github.com/chela-ai/chela/wire"
)

// Limits of a page of the history.
const (
	defaultLimit = 200
	maxLimit     = 1000
	maxBytes     = 6 << 20
)

// page is a part of a transcript and its context.
type page struct {
	meta     session.Meta    // of the session; its ID is that of the transcript that is shown
	entries  []session.Entry // oldest first
	total    int             // entries of the transcript
	offset   int             // of the newest entry, from the end
	pending  []queue.Item    // messages that wait for a run
	row      wire.Session
	all      []wire.Receipt // of the messages that the client asked about
	consumed []wire.Receipt // those of them that are in the transcript
}

func (m methods) history(ctx context.Context, _ rpc.Peer, in wire.ChatHistory) (any, error) {
	if in.SessionKey == "" || in.ShortID != "" {
		return nil, rpc.Invalid("must have required property 'sessionKey'")
	}
	return m.read(ctx, in)
}

// startup returns the history and what else a client needs to show the session.
func (m methods) startup(ctx context.Context, _ rpc.Peer, in wire.ChatHistory) (any, error) {
	if in.ShortID != "" {
		var err error
		if in.SessionKey, err = m.byShortID(ctx, in); err != nil {
			return nil, err
		}
	}
	out, err := m.read(ctx, in)
	if h, ok := out.(wire.History); ok {
		meta := m.o.Metadata()
		h.Metadata = &meta
		return h, err
	}
	return out, err
}

// byShortID returns the key of the session with a short id.
func (m methods) byShortID(ctx context.Context, in wire.ChatHistory) (string, error) {
	key := ""
	err := m.o.Store.View(ctx, func(r store.Reader) error {
		found, err := wireview.ByShortID(r.Sessions(), chela.AgentID(in.AgentID), in.ShortID)
		if err == nil && len(found) > 0 {
			key = string(found[0].Key)
		}
		return err
	})
	if err == nil && key == "" {
		err = wireview.NoSession("no session found: %s", in.ShortID)
	}
	return key, err
}

// storedKey is [methods.key] for requests that begin no run. The session of a deleted
// agent may be named if it exists.
func (m methods) storedKey(ctx context.Context, key, agent string) (chela.SessionKey, error) {
	k, unknown := m.key(key, agent)
	if unknown == nil {
		return k, nil
	}
	k, err := rpc.SessionKey(key, agent, m.o.Default)
	if err != nil {
		return "", err
	}
	_, err = store.Get(ctx, m.o.Store, func(r store.Reader) (session.Meta, error) { return r.Sessions().Get(k) })
	if errors.Is(err, chela.ErrNotFound) {
		return "", unknown
	}
	return k, err
}

func (m methods) read(ctx context.Context, in wire.ChatHistory) (any, error) {
	key, err := m.storedKey(ctx, in.SessionKey, in.AgentID)
	if err != nil {
		return nil, err
	}
	if len(in.Inputs) > maxInputs {
		return nil, rpc.Invalid("at /inputRunIds: must NOT have more than %d items", maxInputs)
	}
	limit := rpc.Limit(in.Limit, defaultLimit, maxLimit)
	// The active run is read first. What it stores meanwhile is then in
	// both the page and the text, never in neither.
	flight := m.inFlight(key)
	if in.Cursor != "" {
		return m.since(ctx, key, in, limit, flight)
	}
	pg, err := m.load(ctx, key, in, func(r session.Reader, id string, total int) (after, n, offset int, err error) {
		offset = in.Offset
		if in.MessageID != "" {
			seq, err := session.Locate(r, id, in.MessageID)
			if err != nil {
				return 0, 0, 0, fmt.Errorf("message %s: %w", in.MessageID, err)
			}
			offset = max(0, total-int(seq)-limit/2) // include what follows it
		}
		after = max(0, total-offset-limit)
		return after, max(0, total-offset-after), offset, nil
	})
	if err != nil {
		return nil, fmt.Errorf("history of %s: %w", key, err)
	}
	return m.page(key, in, pg, flight), nil
}

// page returns the answer for a page of the history.
func (m methods) page(key chela.SessionKey, in wire.ChatHistory, pg page, flight *wire.InFlight) wire.History {
	messages, n := m.messages(pg.entries, rpc.Limit(in.MaxBytes, maxBytes, maxBytes), in.MaxChars)
	h := wire.History{
		SessionKey: string(key), SessionID: pg.meta.ID, Messages: messages, Pending: pending(pg.pending, in.Before),
		Receipts: pg.all, Consumptions: pg.consumed, Total: pg.total, Offset: pg.offset,
		Info: &pg.row, Thinking: cmp.Or(pg.row.Thinking, pg.row.Default), Verbose: pg.row.Verbose, InFlight: flight,
		Cursor: cursor(pg.meta.ID, pg.total), Plan: wireview.Plan(pg.meta.Plan),
	}
	h.Activity = wireview.Activity(h.Messages)
	defaults := m.o.Rows.Model(session.Meta{Key: key, Agent: key.Agent()})
	h.Defaults = &defaults
	if next := pg.offset + n; next < pg.total && n > 0 {
		h.HasMore, h.NextOffset = true, next
	}
	return h
}

// messages returns the messages of the newest entries that take at most limit
// bytes, with texts of at most chars characters (0: all), and the number of
// these entries.
func (m methods) messages(entries []session.Entry, limit, chars int) ([]wire.Message, int) {
	entries = fit(entries, limit)
	m.o.Rows.Show.Entries(entries, limit-sizes(entries))
	out := make([]wire.Message, 0, len(entries))
	for i, e := range entries {
		for _, msg := range wireview.Messages(e) {
			msg = lighten(msg, i == 0, limit)
			shorten(&msg, chars)
			out = append(out, msg)
		}
	}
	return out, len(entries)
}

// load reads the part of the session's transcript that piece selects: n entries
// after a position. Everything is of one state of the store, so that no message is both pending
// and in the transcript.
func (m methods) load(ctx context.Context, key chela.SessionKey, in wire.ChatHistory,
	piece func(r session.Reader, id string, total int) (after, n, offset int, err error),
) (page, error) {
	var pg page
	err := m.o.Store.View(ctx, func(r store.Reader) error {
		pg = page{}
		var err error
		if pg.pending, err = r.Queue().Waiting(key); err != nil {
			return err
		}
		if pg.meta, err = session.Lookup(r.Sessions(), key); err != nil {
			return err
		}
		if pg.meta.ID == "" {
			pg.row = m.o.Rows.Row(pg.meta, nil, queue.Messages(pg.pending))
			pg.all, pg.consumed, err = receipts(r, "", in.Inputs)
			pg.meta = session.Meta{}
			return err
		}
		if pg.row, err = m.o.Rows.Session(r, pg.meta); err != nil {
			return err
		}
		id, err := transcript(r.Sessions(), pg.meta, in.SessionID)
		if err != nil {
			return err
		}
		if id != pg.meta.ID { // the plan is that of the current transcript
			pg.meta.ID, pg.meta.Plan = id, plan.Plan{}
		}
		if pg.row.Leaf, err = session.LastID(r.Sessions(), id); err != nil {
			return err
		}
		if pg.all, pg.consumed, err = receipts(r, id, in.Inputs); err != nil {
			return err
		}
		if pg.total, err = r.Sessions().Count(id); err != nil {
			return err
		}
		after, n, offset, err := piece(r.Sessions(), id, pg.total)
		pg.offset = offset
		if err != nil || n <= 0 {
			return err
		}
		pg.entries, err = r.Sessions().Entries(id, int64(after), n)
		return err
	})
	return pg, err
}

// transcript returns the id of the requested transcript: the session's, or an
// earlier one.
func transcript(r session.Reader, meta session.Meta, id string) (string, error) {
	if id == "" || id == meta.ID {
		return meta.ID, nil
	}
	past, err := r.Past(meta.Key)
	if err != nil {
		return "", err
	}
	for _, p := range past {
		if p.ID == id {
			return id, nil
		}
	}
	return meta.ID, nil // unknown or deleted: the current one
}

// since returns the changes after a cursor. It answers with a reset, after which the client reads
// the page, if the cursor is not of this transcript, or if there is more than a page.
func (m methods) since(ctx context.Context, key chela.SessionKey, in wire.ChatHistory, limit int,
	flight *wire.InFlight) (wire.HistoryDelta, error) {
	reset := wire.HistoryDelta{Kind: wire.KindReset}
	id, seq, ok := parseCursor(in.Cursor)
	if !ok {
		return reset, nil
	}
	in.SessionID = ""
	pg, err := m.load(ctx, key, in, func(_ session.Reader, _ string, total int) (int, int, int, error) {
		return seq, total - seq, 0, nil
	})
	if err != nil {
		return reset, fmt.Errorf("history of %s: %w", key, err)
	}
	if pg.meta.ID != id || seq > pg.total || pg.total-seq > limit || len(fit(pg.entries, maxBytes)) < len(pg.entries) {
		return reset, nil
	}
	m.o.Rows.Show.Entries(pg.entries, maxBytes-sizes(pg.entries))
	waiting := pending(pg.pending, in.Before)
	d := wire.HistoryDelta{
		Kind:         wire.KindDelta,
		Messages:     []wire.SessionMessage{},
		Pending:      &waiting,
		Receipts:     pg.all,
		Consumptions: pg.consumed,
		Cursor:       cursor(id, pg.total),
		Info:         &pg.row,
		InFlight:     flight,
		Plan:         wireview.Plan(pg.meta.Plan),
	}
	for _, e := range pg.entries {
		for _, msg := range wireview.Messages(e) {
			shorten(&msg, in.MaxChars)
			d.Messages = append(d.Messages, wire.SessionMessage{
				SessionKey: string(key), SessionID: id, AgentID: string(key.Agent()),
				Message: msg, MessageID: msg.Meta.ID, Seq: e.Seq, UpdatedAt: wire.At(e.Time),
			})
		}
	}
	return d, nil
}

// cursor returns the cursor of a position in a transcript. It names the transcript, because a
// reset begins another one.
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

// fit returns the newest entries that take at most limit bytes, and at least
// one.
func fit(entries []session.Entry, limit int) []session.Entry {
	n := 0
	for i := len(entries) - 1; i >= 0; i-- {
		if n += size(entries[i]); n > limit && i < len(entries)-1 {
			return entries[i+1:]
		}
	}
	return entries
}

func sizes(entries []session.Entry) int {
	n := 0
	for _, e := range entries {
		n += size(e)
	}
	return n
}

// size estimates the size of an entry as JSON.
func size(e session.Entry) int {
	n := 400 + len(e.Text) + len(e.Details)
	if e.Message == nil {
		return n
	}
	for _, p := range e.Message.Parts {
		n += 40 + len(p.Text) + len(p.Text)/16
		if p.Kind == llm.PartImage && len(p.Data) <= wireview.MaxImage {
			n += len(p.Data) * 4 / 3
		}
		if p.Call != nil {
			n += 60 + len(p.Call.Args)
		}
	}
	return n
}

// lighten removes the image data of a message that exceeds the limit alone.
func lighten(m wire.Message, only bool, limit int) wire.Message {
	if !only {
		return m
	}
	n := 0
	for _, c := range m.Content {
		n += len(c.Text) + len(c.Data)*4/3
	}
	if n <= limit {
		return m
	}
	for i := range m.Content {
		if c := &m.Content[i]; c.Data != nil {
			c.Bytes, c.Data = len(c.Data), nil
		}
	}
	return m
}

// shorten truncates texts to limit characters; 0 does not.
func shorten(m *wire.Message, limit int) {
	if limit <= 0 {
		return
	}
	for i := range m.Content {
		c := &m.Content[i]
		for _, text := range [...]*string{&c.Text, &c.Thinking} {
			if rs := []rune(*text); len(*text) > limit && len(rs) > limit {
				*text = string(rs[:limit]) + "\n… (truncated)"
				m.Meta.Truncated = true
			}
		}
	}
}

// inFlight returns the active run.
func (m methods) inFlight(key chela.SessionKey) *wire.InFlight {
	if live := m.o.Bus.Live(key); len(live) > 0 {
		l := live[0]
		f := &wire.InFlight{RunID: string(l.Run), Text: l.Text, StartedAt: wire.At(l.Started), Seq: l.Seq}
		if wireview.Silent(l.Text, l.Run, false) {
			f.Text = ""
		}
		return f
	}
	return nil
}
