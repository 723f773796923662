package table

import (
	"errors"
	"fmt"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/session"
)

// SeqBits is the number of bits of the Seq of an entry in its position, above which the
// number of its transcript is. The entries of a transcript are therefore adjacent and
// need no index.
const SeqBits = 32

// flags are the flags of an entry.
const (
	flagError = 1 << iota
	flagCut
	flagPartial
	flagUsage
	flagEstimated
	flagMedia // the entry refers to files: see refs
)

const (
	entryColumns = `pos, id, kind, time, run, role, text, parts, provider, model, stop, call, tool, flags, note, first,
details, sender, sender_name, item, input, output, cache_read, cache_write, cost, origin, voids`
	entryIntact = "intact(" + entryColumns + ", crc)"
)

// seqOfLast selects the number of entries of transcript n, NULL for none.
const seqOfLast = "(SELECT max(pos) FROM entry WHERE pos > n << 32 AND pos < (n + 1) << 32) & 4294967295"

// transcript returns the number of a transcript and the number of its entries. n is
// 0 if there is no such transcript.
func (t sessions) transcript(id string) (n, entries int64, err error) {
	_, err = t.c.One(func(r *Row) error {
		n = r.Int()
		entries = r.Int()
		return nil
	}, "SELECT n, "+seqOfLast+" FROM transcript WHERE id = ?", id)
	return n, entries, err
}

// Count returns the number of entries of a transcript.
func (t sessions) Count(id string) (int, error) {
	_, entries, err := t.transcript(id)
	return int(entries), err
}

// Size returns the size of a transcript in bytes.
func (t sessions) Size(id string) (size int64, err error) {
	n, _, err := t.transcript(id)
	if err != nil {
		return 0, err
	}
	_, err = t.c.One(func(r *Row) error {
		size = r.Int()
		return nil
	}, "SELECT CAST(coalesce(sum(100 + coalesce(octet_length(text), 0) + coalesce(octet_length(parts), 0) + coalesce(octet_length(note), 0) + coalesce(octet_length(details), 0)), 0) AS BIGINT) FROM entry WHERE pos > ? AND pos < ?",
		n<<SeqBits, (n+1)<<SeqBits)
	return size, err
}

// Entries returns the entries of a transcript with Seq > after, in order, at most
// limit (0: all).
func (t sessions) Entries(id string, after int64, limit int) ([]session.Entry, error) {
	n, entries, err := t.transcript(id)
	left := entries - max(after, 0)
	if err != nil || left <= 0 {
		return nil, err
	}
	if limit > 0 {
		left = min(left, int64(limit))
	}
	list := make([]session.Entry, 0, left)
	in := make(interned)
	err = t.c.Query(func(r *Row) error {
		list = append(list, session.Entry{})
		return in.scan(r, &list[len(list)-1])
	}, "SELECT "+entryColumns+", "+entryIntact+" FROM entry WHERE pos > ? AND pos < ? ORDER BY pos LIMIT ?",
		n<<SeqBits+max(after, 0), (n+1)<<SeqBits, left)
	return list, err
}

// Last returns the newest k entries of a transcript, in order.
func (t sessions) Last(id string, k int) ([]session.Entry, error) {
	_, entries, err := t.transcript(id)
	if err != nil || k <= 0 {
		return nil, err
	}
	return t.Entries(id, max(0, entries-int64(k)), 0)
}

// Append adds entries to a transcript and sets their Seq.
func (t sessions) Append(id string, entries ...*session.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	n, have, err := t.transcript(id)
	if err != nil {
		return err
	}
	if n == 0 {
		if n, err = t.c.Number("INSERT INTO transcript (id, created) VALUES (?, ?) RETURNING n", id, time.Now()); err != nil {
			return err
		}
	}
	for _, e := range entries {
		have++
		e.Seq = have
		if err := t.c.InsertEntry(n<<SeqBits+have, e); err != nil {
			return fmt.Errorf("entry %s: %w", e.ID, err)
		}
	}
	return nil
}

// InsertEntry inserts an entry at a position.
func (c *Tables) InsertEntry(pos int64, e *session.Entry) error {
	var m llm.Message
	var role, text, parts any
	flags := 0
	set := func(on bool, flag int) {
		if on {
			flags |= flag
		}
	}
	if e.Message != nil {
		role = str(e.Message.Role)
		if isPlain(e.Message.Parts) {
			text = e.Message.Parts[0].Text
		} else {
			s, refers, err := encodeParts(e.Message.Parts)
			if err != nil {
				return err
			}
			parts = s
			set(refers, flagMedia)
		}
		m.Provider, m.Model, m.Stop = e.Message.Provider, e.Message.Model, e.Message.Stop
		m.CallID, m.ToolName = e.Message.CallID, e.Message.ToolName
		set(e.Message.IsError, flagError)
	}
	var u [4]any
	if e.Usage != nil {
		u = [4]any{e.Usage.Input, e.Usage.Output, e.Usage.CacheRead, e.Usage.CacheWrite}
		set(true, flagUsage)
		set(e.Usage.Estimated, flagEstimated)
	}
	set(e.Cut, flagCut)
	set(e.Partial, flagPartial)
	details := Optional(e.Details)
	if e.Prune != nil {
		s, err := encode(e.Prune)
		if err != nil {
			return err
		}
		details = Optional(s)
	}
	origin, err1 := encodeSet(e.Origin, e.Origin == chela.Origin{})
	voids, err2 := encodeSet(e.Voids, e.Voids == session.Ref{})
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	_, err := c.Exec("INSERT INTO entry ("+entryColumns+
		") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		pos, e.ID, str(e.Kind), e.Time, opt(e.Run), role, text, parts, opt(m.Provider), opt(m.Model), opt(m.Stop),
		opt(m.CallID), opt(m.ToolName),
		flags, opt(e.Text), nonzero(e.First), details, opt(e.Sender.ID), opt(e.Sender.Name), opt(e.ItemID), u[0], u[1], u[2],
		u[3], nonzero(e.NanoUSD), Optional(origin), Optional(voids))
	return err
}

func nonzero(n int64) any {
	if n == 0 {
		return nil
	}
	return n
}

// interned deduplicates strings that many entries of a transcript contain.
type interned map[string]string

func (in interned) word(s string) string {
	if s == "" {
		return ""
	}
	if have, ok := in[s]; ok {
		return have
	}
	in[s] = s
	return s
}

func (in interned) scan(r *Row, e *session.Entry) error {
	e.Seq = r.Int() & (1<<SeqBits - 1)
	e.ID, e.Kind, e.Time, e.Run = r.Text(), session.Kind(in.word(r.Text())), r.Time(), chela.RunID(in.word(r.Text()))
	if r.Null() {
		r.Skip(8)
	} else {
		m, err := in.message(r)
		if err != nil {
			return fmt.Errorf("entry %d: %w", e.Seq, err)
		}
		e.Message = m
	}
	flags := r.Int()
	if e.Message != nil {
		e.Message.IsError = flags&flagError != 0
	}
	e.Cut, e.Partial = flags&flagCut != 0, flags&flagPartial != 0
	e.Text, e.First = r.Text(), r.Int()
	if details := r.Text(); e.Kind != session.KindPrune {
		e.Details = raw(details)
	} else if details != "" {
		e.Prune = new(session.Prune)
		if err := decode(details, e.Prune); err != nil {
			return fmt.Errorf("entry %d: %w", e.Seq, err)
		}
	}
	e.Sender = chela.Sender{ID: in.word(r.Text()), Name: in.word(r.Text())}
	e.ItemID = r.Text()
	u := llm.Usage{
		Input:      r.Int(),
		Output:     r.Int(),
		CacheRead:  r.Int(),
		CacheWrite: r.Int(),
		Estimated:  flags&flagEstimated != 0,
	}
	if flags&flagUsage != 0 {
		e.Usage = &u
	}
	e.NanoUSD = r.Int()
	return errors.Join(decodeSet(r.Text(), &e.Origin), decodeSet(r.Text(), &e.Voids))
}

// message reads the eight columns of a message.
func (in interned) message(r *Row) (*llm.Message, error) {
	m := &llm.Message{Role: llm.Role(in.word(r.Text()))}
	if r.Null() {
		r.Skip(1)
	} else {
		m.Parts = []llm.Part{llm.Text(r.Text())}
	}
	if parts := r.Text(); parts != "" {
		var err error
		if m.Parts, err = decodeParts(parts); err != nil {
			return nil, err
		}
	}
	m.Provider, m.Model, m.Stop = in.word(r.Text()), in.word(r.Text()), llm.StopReason(in.word(r.Text()))
	m.CallID, m.ToolName = r.Text(), in.word(r.Text())
	return m, nil
}

// drop deletes a transcript and its entries.
func (t sessions) drop(id string) error {
	n, _, err := t.transcript(id)
	if err != nil || n == 0 {
		return err
	}
	if _, err := t.c.Exec("DELETE FROM entry WHERE pos > ? AND pos < ?", n<<SeqBits, (n+1)<<SeqBits); err != nil {
		return err
	}
	_, err = t.c.Exec("DELETE FROM transcript WHERE n = ?", n)
	return err
}
