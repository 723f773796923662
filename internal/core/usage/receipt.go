package usage

import (
	"cmp"
	"slices"

	"github.com/chela-ai/chela/internal/core/chela"
)

// Receipt is what a task has used: a run with all runs that it caused.
type Receipt struct {
	Root   chela.RunID
	Total  Sum
	Models []Sum // by model, the most expensive first
	Runs   []Sum // by run, in the order of their first calls
}

// NewReceipt returns the receipt of a task from the sums that [Reader.OfTree] returns.
func NewReceipt(root chela.RunID, sums []Sum) Receipt {
	r := Receipt{Root: root, Total: Total(sums...)}
	r.Models = Group(sums, func(s Sum) Sum { return Sum{Provider: s.Provider, Model: s.Model} })
	slices.SortStableFunc(r.Models, func(a, b Sum) int {
		return cmp.Or(cmp.Compare(b.NanoUSD, a.NanoUSD), cmp.Compare(b.Tokens.Total(), a.Tokens.Total()))
	})
	r.Runs = Group(sums, func(s Sum) Sum { return Sum{Run: s.Run, Session: s.Session} })
	return r
}

// Group returns totals of the sums for which by returns the same, in the order in which
// they occur.
func Group(sums []Sum, by func(Sum) Sum) []Sum {
	var out []Sum
	at := map[Sum]int{}
	for _, s := range sums {
		key := by(s)
		i, ok := at[key]
		if !ok {
			i = len(out)
			at[key] = i
			out = append(out, key)
		}
		t := Total(out[i], s)
		t.Day, t.Session, t.Run, t.Provider, t.Model = key.Day, key.Session, key.Run, key.Provider, key.Model
		out[i] = t
	}
	return out
}
