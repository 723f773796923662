package spawn

import (
	"cmp"
	"errors"
	"slices"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/subagent"
)

// descent finds the sessions of children below a session. Those between may have ended:
// a child that fails or reaches its time limit leaves its own children open.
type descent struct {
	children subagent.Reader
	top      chela.SessionKey
	depths   map[chela.SessionKey]int // known depths below top; 0: not below it
}

func newDescent(children subagent.Reader, top chela.SessionKey) descent {
	return descent{children, top, map[chela.SessionKey]int{top: 0}} // records that form a cycle do not put it below itself
}

// depth returns how far a session is below the top; 0: it is not.
func (d descent) depth(key chela.SessionKey) (int, error) {
	if n, known := d.depths[key]; known {
		return n, nil
	}
	d.depths[key] = 0 // ends a cycle
	c, err := subagent.Lookup(d.children, key)
	if err != nil || c.ID == "" {
		return 0, err
	}
	n := 0
	if c.Requester != d.top {
		if n, err = d.depth(c.Requester); err != nil || n == 0 {
			return 0, err
		}
	}
	d.depths[key] = n + 1
	return n + 1, nil
}

// open returns the open children, each before those below it.
func (d descent) open() ([]subagent.Child, error) {
	all, err := d.children.Open("")
	if err != nil {
		return nil, err
	}
	var errs []error
	out := slices.DeleteFunc(all, func(c subagent.Child) bool {
		n, err := d.depth(c.Session)
		errs = append(errs, err)
		return n == 0
	})
	slices.SortStableFunc(out,
		func(a, b subagent.Child) int { return cmp.Compare(d.depths[a.Session], d.depths[b.Session]) })
	return out, errors.Join(errs...)
}

// working returns the sessions of the open children, and all others with active runs or
// waiting items.
func (d descent) working(open []subagent.Child, tx store.Tx) ([]chela.SessionKey, error) {
	var keys []chela.SessionKey
	for _, c := range open {
		keys = append(keys, c.Session)
	}
	busy, err := tx.Queue().Sessions()
	if err != nil {
		return nil, err
	}
	active, err := tx.Runs().Active("")
	if err != nil {
		return nil, err
	}
	for _, r := range active {
		busy = append(busy, r.Session)
	}
	for _, k := range busy {
		n, err := d.depth(k)
		if err != nil {
			return nil, err
		}
		if n > 0 && !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	return keys, nil
}
