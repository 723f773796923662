package session

import (
	"encoding/json"
	"slices"
)

// prunedRow is a Prune in the exchange format: it refers to entries by their ids.
type prunedRow struct {
	Cause       PruneCause `json:"cause"`
	Trim        []string   `json:"trim,omitempty"`
	Clear       []string   `json:"clear,omitempty"`
	Images      []string   `json:"images,omitempty"`
	Head        int        `json:"head,omitempty"`
	Tail        int        `json:"tail,omitempty"`
	Placeholder string     `json:"placeholder,omitempty"`
}

// prunedRows returns p with ids instead of positions. entries are those of the
// transcript, ids are theirs.
func prunedRows(p *Prune, entries []EntryRef, ids []string) prunedRow {
	named := func(seqs []int64) (out []string) {
		for _, seq := range seqs {
			if at, ok := slices.BinarySearchFunc(entries, seq, func(e EntryRef, seq int64) int { return int(e.Seq - seq) }); ok {
				out = append(out, ids[at])
			}
		}
		return out
	}
	return prunedRow{p.Cause, named(p.Trim), named(p.Clear), named(p.Images), p.Head, p.Tail, p.Placeholder}
}

// pruned reads a Prune whose entries were read before.
func (imp *importer) pruned(data json.RawMessage) *Prune {
	var r prunedRow
	if json.Unmarshal(data, &r) != nil {
		return nil
	}
	found := func(ids []string) (out []int64) {
		for _, id := range ids {
			if seq := imp.seqs[id]; seq > 0 {
				out = append(out, seq)
			}
		}
		slices.Sort(out)
		return out
	}
	return &Prune{r.Cause, found(r.Trim), found(r.Clear), found(r.Images), r.Head, r.Tail, r.Placeholder}
}
