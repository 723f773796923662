package inbound

import (
	"context"
	"fmt"
	"strings"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// compact is /compact and /compact undo.
func (k *call) compact() (string, error) {
	if strings.EqualFold(k.args, "undo") {
		return k.undoCompaction()
	}
	n, err := k.tx.Sessions().Count(k.meta.ID)
	if err != nil {
		return "", err
	}
	if n == 0 {
		return "", refuse{"There is nothing to compact: this conversation has no messages."}
	}
	k.shrink = true
	return "", nil
}

// enqueueCompaction puts the compaction into the queue of the session. Its run answers
// the command.
func (k *call) enqueueCompaction() (Receipt, error) {
	it := k.item(k.now)
	it.Kind, it.Inbound.Text, it.Inbound.Media = queue.Compact, k.args, nil
	rec, err := k.putItem(it)
	if err != nil || !rec.New {
		return rec, err
	}
	k.tx.Wake(store.Topic{Kind: store.TopicQueue, Session: k.key})
	return rec, nil
}

// undoCompaction is /compact undo.
func (k *call) undoCompaction() (string, error) {
	e, err := session.UndoCompaction(k.tx.Sessions(), k.meta, k.now)
	if chela.CodeOf(err) == chela.CodeNotFound {
		return "", refuse{"There is nothing to undo: this conversation was not compacted."}
	}
	if err != nil {
		return "", err
	}
	c := session.CompactionOf(e)
	k.meta.Context += int64(c.TokensBefore - c.TokensAfter)
	text := fmt.Sprintf("The last compaction is undone: %s (about %s tokens) are sent to the model again.",
		humanize.Many(c.Compacted, "message"), humanize.Count(int64(c.TokensBefore)))
	if k.g.o.Window(k.meta).Fill(int(k.meta.Context)) > 0.75 {
		text += " They fill most of the context, so the next message may compact the conversation again."
	}
	return text, nil
}

// explainCompaction is /compact explain. It answers nothing for other arguments.
func explainCompaction(ctx context.Context, k *call) (string, error) {
	if !strings.EqualFold(k.args, "explain") {
		return "", nil
	}
	var entry session.Entry
	var found bool
	err := k.g.o.Store.View(ctx, func(r store.Reader) error {
		m, err := session.Lookup(r.Sessions(), k.key)
		if err == nil && m.ID != "" {
			entry, found, err = session.LastCompaction(r.Sessions(), m.ID)
		}
		return err
	})
	if err != nil {
		return "", err
	}
	if !found {
		return "This conversation was not compacted.", nil
	}
	return compactionText(entry), nil
}

// shownFacts is the number of facts and rejections in /compact explain.
const shownFacts = 20

// compactionText describes a compaction.
func compactionText(e session.Entry) string {
	c := session.CompactionOf(e)
	reason := map[string]string{
		session.CompactManual: "it was asked for", session.CompactThreshold: "the context was almost full",
		session.CompactOverflow: "the model refused the conversation as too long",
		session.CompactBudget:   "a budget was nearly used up",
	}[c.Reason]
	lines := []string{"🧹 The last compaction, " + e.Time.UTC().Format("2006-01-02 15:04 UTC")}
	if reason != "" {
		lines[0] += " (" + reason + ")"
	}
	lines = append(lines, fmt.Sprintf("Size: about %s → %s tokens; %s replaced", humanize.Count(int64(c.TokensBefore)),
		humanize.Count(int64(c.TokensAfter)), humanize.Many(c.Compacted, "message")))
	how := "Without a summary: the messages are left out"
	switch c.Step {
	case session.StepSummary:
		how = "Summary by " + c.Model
	case session.StepPartial:
		how = "Summary by " + c.Model + ", without large messages"
	case session.StepNote:
		how = "No usable summary; a list of what was asked and answered replaces the messages"
	}
	if c.Calls > 0 {
		how += ", " + humanize.Many(c.Calls, "model call")
	}
	lines = append(lines, how)
	if c.Hint != "" {
		lines = append(lines, "Hint: "+c.Hint)
	}
	if c.Facts > 0 {
		lines = append(lines, fmt.Sprintf("Exam: the summary had %d of %s; %s put back", c.Found,
			humanize.Many(c.Facts, "fact"), humanize.Many(len(c.Restored), "sentence")))
		if c.Left > 0 {
			lines[len(lines)-1] += fmt.Sprintf(", %d without room", c.Left)
		}
	}
	text := strings.Join(lines, "\n- ")
	list := func(title string, items []string) {
		if len(items) == 0 {
			return
		}
		text += "\n\n" + title
		for _, s := range items[:min(len(items), shownFacts)] {
			text += "\n- " + s
		}
		if n := len(items) - shownFacts; n > 0 {
			text += fmt.Sprintf("\n- … and %d more", n)
		}
	}
	list("Put back literally:", c.Restored)
	list("Rejected:", c.Rejected)
	return text + "\n\nNothing was deleted. /compact undo sends the messages again."
}
