package compact

import (
	"slices"

	"github.com/chela-ai/chela/internal/core/estimate"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/session"
)

// Limits say how much of a conversation a compaction keeps.
type Limits struct {
	Keep  int // tokens that stay at least, if there are as many
	Most  int // tokens that stay at most, if the turn in progress allows it
	Turns int // newest turns that stay whole, if they are within Most
}

// Below returns limits that also keep less than a part of a conversation with total
// tokens. Each attempt after the first, 0, keeps less.
func (l Limits) Below(total, attempt int) Limits {
	for range attempt {
		l.Keep, l.Most, l.Turns = l.Keep/4, l.Most/4, 0
		total /= 2
	}
	l.Keep, l.Most = min(l.Keep, total/3), min(l.Most, total*2/3)
	return l
}

// Plan is which part of a conversation a compaction replaces by a summary.
type Plan struct {
	First    int64           // Seq of the first entry that stays
	Old      []session.Entry // complete turns that are replaced
	Prefix   []session.Entry // the beginning of a turn whose rest stays
	Kept     []session.Entry
	Previous string // summary of the last compaction, which the new one replaces as well
	Cut      string // id of the entry of the last compaction; "": there is none
	Last     int64  // Seq of the newest entry

	Before int // tokens of the messages that are sent now
	Stays  int // tokens of Kept
}

// Replaced returns the number of messages that are not sent any more.
func (p Plan) Replaced() int { return len(p.Old) + len(p.Prefix) }

// NewPlan decides where a conversation is cut. It keeps at least the newest message,
// and a call with its result. A cut is at the beginning of a turn if the limits
// permit it, else within the newest turn that they do not permit to stay whole. ok is
// false if there is nothing to cut.
func NewPlan(entries []session.Entry, l Limits) (Plan, bool) {
	return newPlan(entries,
		func(sent []session.Entry, starts, suffix []int) int { return choose(sent, starts, suffix, l) })
}

// KeepLast is a plan that keeps exactly the newest n messages, also within a turn, but not
// the results of calls that do not stay.
func KeepLast(entries []session.Entry, n int) (Plan, bool) {
	return newPlan(entries, func(sent []session.Entry, _, _ []int) int {
		at := len(sent) - max(n, 1)
		for at > 0 && at < len(sent)-1 && sent[at].Message.Role == llm.RoleTool {
			at++
		}
		return at
	})
}

// newPlan is a plan for the cut before the entry whose index choose returns; 0: there is
// nothing to cut. starts are the indexes of the first entries of turns, suffix the tokens
// from each entry on.
func newPlan(entries []session.Entry, choose func(sent []session.Entry, starts, suffix []int) int) (p Plan, ok bool) {
	cut, sent := session.SentEntries(entries)
	if n := len(entries); n > 0 {
		p.Last = entries[n-1].Seq
	}
	if cut != nil {
		p.Previous, p.Cut = cut.Text, cut.ID
		if cut.Message != nil {
			p.Before = estimate.Messages(cut.Message)
		}
	}
	starts := turnStarts(sent)
	suffix := make([]int, len(sent)+1)
	for i := len(sent) - 1; i >= 0; i-- {
		suffix[i] = suffix[i+1] + estimate.Messages(sent[i].Message)
	}
	p.Before += suffix[0]
	at := choose(sent, starts, suffix)
	if at <= 0 {
		return p, false
	}
	turn := 0 // index of the first entry of the turn that is cut
	for _, s := range starts {
		if s <= at {
			turn = s
		}
	}
	p.First, p.Old, p.Prefix, p.Kept, p.Stays = sent[at].Seq, sent[:turn], sent[turn:at], sent[at:], suffix[at]
	if turn == at {
		p.Prefix = nil
	}
	return p, true
}

// choose returns the index of the first entry that stays; 0: all do.
func choose(sent []session.Entry, starts, suffix []int, l Limits) int {
	limit := lastCut(sent, starts)
	best := -1
	for n, i := range slices.Backward(starts) {
		if i > limit {
			continue
		}
		if suffix[i] > l.Most {
			break
		}
		best = i
		if suffix[i] >= l.Keep && len(starts)-n >= l.Turns {
			break
		}
	}
	if best >= 0 && (best == 0 || suffix[best] >= l.Keep || suffix[best] > l.Most/2) {
		return best
	}
	// The turn before it is too large to stay whole: its end stays, as much as the
	// limits permit.
	end, split := best, best
	if end < 0 {
		end = len(sent)
	}
	for i := min(end-1, limit); i > 0; i-- {
		if sent[i].Message.Role == llm.RoleTool {
			continue
		}
		if split > 0 && suffix[i] > l.Most {
			break
		}
		split = i
		if suffix[i] >= l.Keep {
			break
		}
	}
	return split
}

// lastCut returns the highest index at which a conversation may be cut: not after a
// call of the newest turn without a result, nor within the messages that have no
// answer yet.
func lastCut(sent []session.Entry, starts []int) int {
	if len(sent) == 0 {
		return 0
	}
	last := 0
	if n := len(starts); n > 0 {
		last = starts[n-1]
	}
	limit := len(sent) - 1
	results := map[string]bool{}
	for i := len(sent) - 1; i >= last; i-- {
		m := sent[i].Message
		if m.Role == llm.RoleTool {
			results[m.CallID] = true
		}
		for _, c := range m.Calls() {
			if !results[c.ID] {
				limit = i
			}
		}
	}
	for i := last; i < len(sent); i++ {
		if sent[i].Message.Role != llm.RoleUser {
			return limit
		}
	}
	return min(limit, last)
}

// turnStarts returns the indexes of the entries with which turns begin: user messages
// that did not steer a run. The first entry begins one in any case.
func turnStarts(sent []session.Entry) (starts []int) {
	var prev *session.Entry
	for i := range sent {
		if i == 0 || begins(&sent[i], prev) {
			starts = append(starts, i)
		}
		prev = &sent[i]
	}
	return starts
}

// begins reports whether a turn begins with e, which follows prev.
func begins(e, prev *session.Entry) bool {
	switch {
	case e.Message.Role != llm.RoleUser:
		return false
	case e.Run != "":
		return e.Run != prev.Run
	}
	return prev.Message.Role != llm.RoleUser
}
