package deliver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/outbox"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/kit/chunk"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// maxOutput is the maximum length of a tool's output in a verbose session, in
// characters.
const maxOutput = 600

// toolLine returns the line that a verbose session shows for a tool: its label
// when it starts and, in mode full, its output when it ends. It is empty if
// nothing is shown.
func toolLine(e chela.Event) string {
	t := e.Tool
	switch {
	case t == nil || t.Verbose != "on" && t.Verbose != "full":
	case e.Phase == chela.PhaseStart:
		if t.Label == "" {
			return "🔧 " + t.Name
		}
		return "🔧 " + t.Label
	case e.Phase == chela.PhaseResult && t.Verbose == "full" && t.Output != "":
		return chunk.Fenced(humanize.Truncate(t.Output, maxOutput))
	}
	return ""
}

// step returns the line of a message about progress for a tool that starts. It does not
// show commands, which may contain anything.
func step(t *chela.ToolEvent) string {
	label := t.Label
	if label == "" || t.Private {
		label = t.Name
	}
	return "🔧 " + humanize.Truncate(strings.Join(strings.Fields(label), " "), maxStep)
}

// writeLines writes rows for the pending lines. A preview before them remains as
// it is; the next text of the model is a new message below the lines.
func (p *preview) writeLines(ctx context.Context) error {
	p.w.mu.Lock()
	lines := p.d.lines
	p.d.lines = nil
	p.w.mu.Unlock()
	var rows []outbox.Row
	now := time.Now() // part of the keys, because a resumed run counts its lines from zero
	for _, line := range lines {
		base := outbox.Row{
			Key: fmt.Sprintf("%s:tool:%d:%d", p.d.run, now.UnixNano(), p.lines), Run: p.d.run, Session: p.row.Session,
			Address: p.row.Address, Created: now,
		}
		p.lines++
		rows = append(rows, outbox.Rows(base, line, p.chunks)...)
	}
	err := p.w.o.Store.Update(ctx, store.Ordered, func(tx store.Tx) error {
		r, err := tx.Runs().Get(p.d.run)
		if err != nil || r.State.Final() {
			return err
		}
		d, err := tx.Outbox().Get(string(p.d.run) + ":0")
		switch {
		case errors.Is(err, chela.ErrNotFound):
		case err != nil:
			return err
		case d.State == outbox.Draft:
			if err := tx.Outbox().Delete(d.Key); err != nil {
				return err
			}
		}
		tx.Wake(store.Topic{Kind: store.TopicOutbox})
		return tx.Outbox().Put(rows...)
	})
	if p.row.PlatformID != "" {
		p.row.PlatformID, p.row.Text = "", ""
		p.finished++
	}
	return err
}
