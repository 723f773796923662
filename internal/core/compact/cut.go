// Package compact shortens a conversation to the context of a model.
//
// [Cut] removes the oldest turns from what is sent to the model. The transcript
// keeps them: a cut is an entry, which session.Compile evaluates.
package compact

import (
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/session"
)

// Cut returns where a conversation that is too long should begin: the Seq of the
// first entry that is sent, and the number of turns before it. It removes at least
// half of what is sent now, in whole turns, so that few cuts are enough. It never
// removes the last turn; ok is false when there is no other one.
func Cut(entries []session.Entry) (first int64, turns int, ok bool) {
	starts, sizes := split(entries)
	if len(starts) < 2 {
		return 0, 0, false
	}
	total := 0
	for _, n := range sizes {
		total += n
	}
	dropped := 0
	for turns = 0; turns < len(starts)-1 && 2*dropped < total; turns++ {
		dropped += sizes[turns]
	}
	return starts[turns], turns, true
}

// split returns where the turns that are sent now begin, and their sizes. A turn
// begins with a user message that did not steer a run. Entries before the first
// turn count to it.
func split(entries []session.Entry) (starts []int64, sizes []int) {
	var from int64
	for i := range entries {
		if entries[i].Kind == session.KindCut {
			from = entries[i].First
		}
	}
	var prev *session.Entry
	before := 0
	for i := range entries {
		e := &entries[i]
		if e.Kind != session.KindMessage || e.Message == nil || e.Seq < from {
			continue
		}
		if begins(e, prev) {
			starts, sizes = append(starts, e.Seq), append(sizes, before)
			before = 0
		}
		prev = e
		if n := size(e.Message); len(sizes) > 0 {
			sizes[len(sizes)-1] += n
		} else {
			before += n
		}
	}
	return starts, sizes
}

// begins reports whether a turn begins with e, which follows prev.
func begins(e, prev *session.Entry) bool {
	switch {
	case e.Message.Role != llm.RoleUser:
		return false
	case prev == nil:
		return true
	case e.Run != "":
		return e.Run != prev.Run
	}
	return prev.Message.Role != llm.RoleUser
}

// size estimates the size of a message in the context, in bytes.
func size(m *llm.Message) int {
	n := 16
	for i := range m.Parts {
		p := &m.Parts[i]
		n += len(p.Text) + len(p.Signature) + len(p.Redacted) + min(len(p.Data), 6000)
		if p.Call != nil {
			n += len(p.Call.Name) + len(p.Call.Args)
		}
	}
	return n
}
