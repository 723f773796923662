package deliver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/chunk"
	"github.com/chela-ai/chela/internal/outbox"
	"github.com/chela-ai/chela/internal/store"
)

// maxOutput bounds what a verbose session sees of a tool's output, in runes.
const maxOutput = 600

// toolLine is what a channel is told of a tool in a verbose session: its label
// when it begins, and of a full one its output when it ends.
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
		out := []rune(t.Output)
		if len(out) > maxOutput {
			out = append(out[:maxOutput], '…')
		}
		return chunk.Fenced(string(out))
	}
	return ""
}

// tools writes rows for the lines that are new. What the model had said before
// stays as it was shown: what it says next stands below them.
func (p *preview) tools(ctx context.Context) error {
	p.w.mu.Lock()
	lines := p.s.lines
	p.s.lines = nil
	p.w.mu.Unlock()
	var rows []outbox.Row
	now := time.Now() // in the keys: a run that is resumed begins to count again
	for _, line := range lines {
		base := outbox.Row{
			Key: fmt.Sprintf("%s:tool:%d:%d", p.s.run, now.UnixNano(), p.lines), Run: p.s.run, Session: p.row.Session,
			Address: p.row.Address, Created: now,
		}
		p.lines++
		rows = append(rows, outbox.Rows(base, line, p.o)...)
	}
	err := p.w.o.Store.Update(ctx, store.Ordered, func(tx store.Tx) error {
		r, err := tx.Runs().Get(p.s.run)
		if err != nil || r.State.Final() {
			return err
		}
		d, err := tx.Outbox().Get(string(p.s.run) + ":0")
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
		p.closed++
	}
	return err
}
