package chat

import (
	"errors"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/wire"
)

// Limits for receipts.
const (
	maxInputs = 50
	inputsIn  = 1000 // newest entries searched for them
)

// pending returns the queued messages before a position, the newest ones if
// there are too many; 0: all.
func pending(items []queue.Item, before int64) wire.PendingInputs {
	out := wire.PendingInputs{Items: []wire.PendingInput{}}
	var seqs []int64
	for _, it := range items {
		if !it.IsInput() {
			continue
		}
		out.Total++
		if before > 0 && it.Seq >= before {
			continue
		}
		seqs = append(seqs, it.Seq)
		out.Items = append(out.Items, wire.PendingInput{
			ID: it.ID, RunID: it.ID, State: "queued", AcceptedAt: wire.At(it.Created),
			Message: wire.Message{
				Role: wire.RoleUser, Content: wire.TextContent(it.Inbound.Text), Timestamp: wire.At(it.Created),
				IdempotencyKey: it.ID + ":user", Meta: wire.MessageMeta{ID: "pending:" + it.ID},
			},
		})
	}
	if more := len(out.Items) - wire.MaxPending; more > 0 {
		out.Items, out.Next = out.Items[more:], seqs[more]
	}
	return out
}

// receipts returns the state of a client's messages: queued or in the
// transcript. Unknown messages are omitted.
func receipts(r store.Reader, transcript string, runs []string) (all, consumed []wire.Receipt, err error) {
	if len(runs) == 0 {
		return nil, nil, nil
	}
	entries, err := r.Sessions().Last(transcript, inputsIn)
	if err != nil {
		return nil, nil, err
	}
	by := map[string]string{}
	for i := range entries {
		if id := entries[i].ItemID; id != "" {
			by[id] = entries[i].ID
		}
	}
	for _, run := range runs[:min(len(runs), maxInputs)] {
		if entry := by[run]; entry != "" {
			all = append(all, wire.Receipt{RunID: run, State: wire.InputConsumed, Consumed: entry})
			consumed = append(consumed, wire.Receipt{RunID: run, Consumed: entry})
			continue
		}
		it, err := r.Queue().Get(run)
		if err != nil && !errors.Is(err, chela.ErrNotFound) {
			return nil, nil, err
		}
		if err == nil && it.State == queue.Waiting {
			all = append(all, wire.Receipt{RunID: run, State: wire.InputPending})
		}
	}
	return all, consumed, nil
}
