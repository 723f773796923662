package deliver

import (
	"context"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/outbox"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/kit/chunk"
)

// writeBlocks writes rows for the messages of the model that are complete, and for the
// paragraphs of the current one. The commit that ends the run writes the rest of it.
func (p *preview) writeBlocks(ctx context.Context, whole []string, answer string) error {
	var texts []string
	for _, text := range whole {
		if p.sent > len(text) {
			p.sent = 0
		}
		if rest := strings.TrimSpace(text[p.sent:]); rest != "" && !(run.Answer{}).Silent(text) {
			texts = append(texts, rest)
		}
		p.sent = 0
	}
	o := p.chunks
	o.Limit = min(max(o.Limit, 1), p.style.BlockMax)
	if p.sent > len(answer) {
		p.sent = 0
	}
	sent := p.sent
	for !p.style.Whole && !(run.Answer{}).MayBeSilent(answer) {
		n := chunk.Cut(answer[sent:], min(p.style.BlockMin, o.Limit), o)
		if n == 0 {
			break
		}
		texts = append(texts, strings.TrimSpace(answer[sent:sent+n]))
		sent += n
	}
	if len(texts) == 0 {
		return nil
	}
	now := time.Now() // part of the keys, because a resumed run counts from zero
	var rows []outbox.Row
	for _, text := range texts {
		base := outbox.Row{
			Key:     outbox.BlockKey(p.d.run, now, p.blocks),
			Run:     p.d.run,
			Session: p.row.Session,
			Address: p.row.Address,
			Created: now,
		}
		if p.blocks == 0 || p.style.Reply == ReplyAll {
			base.ReplyTo = p.row.ReplyTo
		}
		if p.blocks == 0 {
			text = p.style.Prefix + text
		}
		p.blocks++
		rows = append(rows, outbox.Rows(base, text, p.chunks)...)
	}
	err := p.w.o.Store.Update(ctx, store.Ordered, func(tx store.Tx) error {
		r, err := tx.Runs().Get(p.d.run)
		if err != nil {
			return err
		}
		if r.State.Final() || r.Address != p.row.Address {
			return errEnded
		}
		tx.Wake(store.Topic{Kind: store.TopicOutbox})
		return tx.Outbox().Put(rows...)
	})
	if err == nil {
		p.sent = sent
	}
	return err
}
