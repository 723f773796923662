package session

import (
	"fmt"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/plan"
)

// UndoReset restores the transcript before the last reset and returns the changed
// session. The current transcript is archived, so that a second undo returns to it. The
// counters are recomputed. The start time becomes now, because otherwise the session
// would expire with the next message.
func UndoReset(t Table, key chela.SessionKey, now time.Time) (Meta, error) {
	m, err := t.Get(key)
	if err != nil {
		return m, fmt.Errorf("undo reset of session %s: %w", key, err)
	}
	if m.Previous == "" {
		return m, chela.Errorf(chela.CodeNotFound, "nothing to undo: no earlier conversation is known")
	}
	n, err := t.Count(m.ID)
	if err != nil {
		return m, fmt.Errorf("undo reset of session %s: %w", key, err)
	}
	left := m.ID
	if n > 0 {
		if err := t.Archive(key, Past{ID: left, Started: m.Started, Ended: now, Reason: "undo", Entries: n}); err != nil {
			return m, fmt.Errorf("undo reset of session %s: %w", key, err)
		}
	}
	m.ID, m.Previous, m.Started, m.Opened = m.Previous, "", now, ""
	if n > 0 {
		m.Previous = left
	}
	if err := t.Unarchive(key, m.ID); err != nil {
		return m, fmt.Errorf("undo reset of session %s: %w", key, err)
	}
	entries, err := t.Entries(m.ID, 0, 0)
	if err != nil {
		return m, fmt.Errorf("undo reset of session %s: %w", key, err)
	}
	m.count(entries)
	m.Plan = plan.Plan{}
	m.Updated, m.Active = now, now
	return m, t.Put(m)
}

// count computes the counters from the entries of a transcript.
func (m *Meta) count(entries []Entry) {
	m.Tokens, m.Context, m.NanoUSD, m.Priced, m.Calls, m.Aborted = llm.Usage{}, 0, 0, false, 0, false
	m.Compactions, m.Flushed, m.FlushCount = 0, time.Time{}, 0
	priced := true
	for _, e := range entries {
		if e.Kind == KindCut {
			m.Compactions++
			m.Context = int64(CompactionOf(e).TokensAfter)
		}
		if e.Usage == nil {
			continue
		}
		m.Tokens = m.Tokens.Add(*e.Usage)
		m.Calls++
		m.NanoUSD += max(e.NanoUSD, 0)
		priced = priced && e.NanoUSD >= 0
		if n := e.Usage.Prompt(); n > 0 {
			m.Context = n
		}
	}
	m.Priced = priced && m.Calls > 0
}
