package modelapi

import (
	"strings"
	"sync"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/surface/wireview"
)

// gap is between the messages of a run.
const gap = "\n\n"

// follower collects what the run of a message says. It observes the bus and never blocks;
// the request takes what is new when it can write it.
type follower struct {
	id    chela.RunID
	ready chan struct{} // cap 1: something is new

	mu      sync.Mutex
	pending string // text of earlier messages that was not taken
	text    string // the current message
	sent    string // what was taken of it
	before  string // the message before it; "": it is the first one with a text
	over    bool   // the run has ended, or the message is part of another one
}

func newFollower(id chela.RunID) *follower {
	return &follower{id: id, ready: make(chan struct{}, 1)}
}

// observe handles an event of the bus.
func (f *follower) observe(e chela.Event) {
	if e.Run != f.id {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case e.Stream == chela.StreamAssistant:
		f.text = e.Text
	case e.Stream == chela.StreamLifecycle && e.Phase == chela.PhaseModel:
		if f.text != "" {
			f.pending += f.newLocked(f.text)
			f.before = f.text
		}
		f.text, f.sent = "", ""
	case e.Stream == chela.StreamLifecycle && (e.Phase == chela.PhaseEnd || e.Phase == chela.PhaseError),
		e.Stream == chela.StreamSession && e.Phase == chela.PhaseAbsorbed, e.Stream == chela.StreamCommand:
		f.over = true
	default:
		return
	}
	select {
	case f.ready <- struct{}{}:
	default:
	}
}

// take returns the text that is new, and whether there will be no more. Text that may
// become the mark of a silent answer is held back.
func (f *follower) take() (text string, over bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	text, f.pending = f.pending, ""
	if f.text != "" && !wireview.Silent(f.text, f.id, false) {
		text += f.newLocked(f.text)
	}
	return text, f.over
}

// rest returns what is still to be sent, given the final answer. The final answer may differ from
// what was streamed: a hook may have changed it, or an event was not taken before the end.
func (f *follower) rest(final string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	text := f.pending
	f.pending = ""
	switch {
	case final == "", f.text == "" && final == f.before:
	case len(f.sent) > len(final) && strings.HasPrefix(f.sent, final): // something was cut off, but it was sent
	default:
		text += f.newLocked(final)
	}
	return text
}

// newLocked returns what all, the current message so far, has in addition to what was taken.
// If the model started the message over, that is all of it.
func (f *follower) newLocked(all string) string {
	text, ok := strings.CutPrefix(all, f.sent)
	switch {
	case ok && f.sent == "" && f.before != "" && text != "":
		text = gap + text
	case ok:
	case strings.HasPrefix(f.sent, all): // not as far yet
		return ""
	default:
		text = gap + all
	}
	f.sent = all
	return text
}
