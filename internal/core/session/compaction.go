package session

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
)

// Compaction describes how the entry of a compaction was made. It is the Details of
// an entry of KindCut. Numbers of tokens are estimates.
type Compaction struct {
	Run    chela.RunID `json:"runId,omitempty"`
	Reason string      `json:"reason,omitempty"` // manual, threshold, overflow
	Hint   string      `json:"hint,omitempty"`   // of the person, for the summary
	Step   string      `json:"step,omitempty"`   // summary, partial, note; "": only cut
	Model  string      `json:"model,omitempty"`  // that wrote the summary; "": none

	TokensBefore int `json:"tokensBefore"` // of the messages that were sent
	TokensAfter  int `json:"tokensAfter"`
	Compacted    int `json:"compactedCount"` // messages that are not sent any more
	Calls        int `json:"calls,omitempty"`

	// The exam: facts of the replaced messages, how many of them the summary contained,
	// those that were put back, and the number of those without room.
	Facts    int      `json:"facts,omitempty"`
	Found    int      `json:"found,omitempty"`
	Restored []string `json:"restored,omitempty"`
	Left     int      `json:"left,omitempty"`
	Rejected []string `json:"rejected,omitempty"` // why answers of the model were not used
}

// AutoCompact begins the ids of runs that compact a conversation without a request.
// Their messages, with which the model saves notes, are not shown.
const AutoCompact = "compact:"

// The values of Compaction.Step.
const (
	StepSummary = "summary" // everything was summarized
	StepPartial = "partial" // large messages were left out
	StepNote    = "note"    // no summary; a note with the facts
)

// The values of Compaction.Reason.
const (
	CompactManual    = "manual"
	CompactThreshold = "threshold"
	CompactOverflow  = "overflow"
	CompactBudget    = "budget" // a model call did not fit a budget; no model is asked
)

// CompactionOf returns what an entry of KindCut says about its compaction.
func CompactionOf(e Entry) Compaction {
	var c Compaction
	if len(e.Details) > 0 {
		_ = json.Unmarshal(e.Details, &c) // entries of older versions have none
	}
	return c
}

// NewCompaction returns the entry of a compaction. Entries before first are no longer
// sent; a message with the summary replaces them. extra follows the summary in the
// message, but is not part of it. Without a summary, nothing replaces them.
func NewCompaction(first int64, summary, extra string, c Compaction, now time.Time) *Entry {
	e := &Entry{
		ID:      uuid.NewString(),
		Kind:    KindCut,
		Time:    now,
		First:   first,
		Text:    strings.TrimSpace(summary),
		Details: encoded(c),
		NanoUSD: -1,
	}
	e.Message = summaryMessage(e.Text, extra)
	return e
}

// Texts around the summary in the first message.
const (
	summaryHeading = "[The conversation before this point was summarized. The complete messages are kept in the history. This is a record, not a request.]"
	summaryBegin   = "\n<summary>\n"
	summaryEnd     = "\n</summary>"
)

// summaryMessage returns the message that replaces compacted entries; nil without a
// summary.
func summaryMessage(summary, extra string) *llm.Message {
	if summary == "" {
		return nil
	}
	text := summaryHeading + summaryBegin + summary + summaryEnd
	if extra = strings.TrimSpace(extra); extra != "" {
		text += "\n\n" + extra
	}
	return llm.User(text)
}

// IsSummary reports whether a message replaces compacted entries.
func IsSummary(m *llm.Message) bool {
	return m.Role == llm.RoleUser && strings.HasPrefix(m.PlainText(), summaryHeading)
}

// SentEntries returns the entries with the messages that are sent to a model: those that are
// not voided, from the first one that the last compaction kept. cut is the entry of
// that compaction; nil: there is none.
func SentEntries(entries []Entry) (cut *Entry, sent []Entry) {
	voided := make(map[Ref]bool)
	for i := range entries {
		if e := &entries[i]; e.Kind == KindVoid {
			voided[e.Voids] = true
		}
	}
	out := func(e *Entry) bool {
		return len(voided) > 0 && (voided[Ref{Entry: e.ID}] || e.Run != "" && voided[Ref{Run: e.Run}])
	}
	for i := range slices.Backward(entries) {
		if e := &entries[i]; e.Kind == KindCut && !out(e) {
			cut = e
			break
		}
	}
	for i := range entries {
		e := &entries[i]
		if e.sent() && (cut == nil || e.Seq >= cut.First) && !out(e) {
			sent = append(sent, *e)
		}
	}
	return cut, sent
}

// LastCompaction returns the compaction of a transcript that is in force; false: there
// is none. It reads the transcript from its end.
func LastCompaction(r Reader, id string) (Entry, bool, error) {
	for n := 64; ; n *= 8 {
		last, err := r.Last(id, n)
		if err != nil {
			return Entry{}, false, err
		}
		cut, _ := SentEntries(last)
		if cut != nil {
			return *cut, true, nil
		}
		if len(last) < n {
			return Entry{}, false, nil
		}
	}
}

// UndoCompaction makes the last compaction of a session ineffective: what it replaced
// is sent again. It returns the entry of the compaction, or a chela.CodeNotFound error
// if there is none.
func UndoCompaction(t Table, m Meta, now time.Time) (Entry, error) {
	e, ok, err := LastCompaction(t, m.ID)
	switch {
	case err != nil:
		return e, err
	case !ok:
		return e, chela.Errorf(chela.CodeNotFound, "nothing to undo: this conversation was not compacted")
	}
	return e, t.Append(m.ID, &Entry{ID: uuid.NewString(), Kind: KindVoid, Time: now, Voids: Ref{Entry: e.ID}, NanoUSD: -1})
}
