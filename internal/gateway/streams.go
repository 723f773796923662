package gateway

import (
	"strings"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/shape"
	"github.com/chela-ai/chela/wire"
)

// streams are the runs in progress, as clients see them.
type streams struct {
	s *Server

	mu    sync.Mutex
	runs  map[chela.RunID]*stream
	ended recent // runs whose end clients know
}

func (ss *streams) init(s *Server) {
	ss.s, ss.runs, ss.ended = s, map[chela.RunID]*stream{}, newRecent(1024)
}

// of returns the stream of an event's run.
func (ss *streams) of(e chela.Event) *stream {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	st := ss.runs[e.Run]
	if st == nil {
		st = &stream{s: ss.s}
		ss.runs[e.Run] = st
	}
	return st
}

// terminal calls send when it is the first to end the run.
func (ss *streams) terminal(id chela.RunID, send func()) {
	ss.mu.Lock()
	delete(ss.runs, id)
	first := ss.ended.add(id)
	ss.mu.Unlock()
	if !first {
		return
	}
	send()
	ss.s.disown(id)
}

// goesOn reports whether a run has begun and not ended.
func (ss *streams) goesOn(id chela.RunID) bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.runs[id] != nil
}

// settle sends the text of a run that is held back for joining: the message
// that it is part of was stored.
func (ss *streams) settle(id chela.RunID) {
	ss.mu.Lock()
	st := ss.runs[id]
	ss.mu.Unlock()
	if st != nil {
		st.settle()
	}
}

// flush sends the text of all runs.
func (ss *streams) flush() {
	ss.mu.Lock()
	all := make([]*stream, 0, len(ss.runs))
	for _, st := range ss.runs {
		all = append(all, st)
	}
	ss.mu.Unlock()
	for _, st := range all {
		st.settle()
	}
}

// recent remembers the last n ids.
type recent struct {
	ids  map[chela.RunID]bool
	ring []chela.RunID
	next int
}

func newRecent(n int) recent {
	return recent{ids: make(map[chela.RunID]bool, n), ring: make([]chela.RunID, n)}
}

// add remembers id and reports whether it was not known.
func (r *recent) add(id chela.RunID) bool {
	if r.ids[id] {
		return false
	}
	delete(r.ids, r.ring[r.next])
	r.ids[id], r.ring[r.next] = true, id
	r.next = (r.next + 1) % len(r.ring)
	return true
}

// stream joins the deltas of one run. Frames leave it in the order of the
// run's events: text that is held back goes before anything else.
type stream struct {
	s *Server

	mu    sync.Mutex
	text  merged // of the answer
	think merged
	timer *time.Timer // that will send what is held back; nil: none
	last  time.Time   // when text was sent
	done  bool
}

// merged is a message that grows.
type merged struct {
	event chela.Event // the latest, with the text of the whole message
	sent  string      // the text that clients have
	other bool        // that is of a message before
	dirty bool
	kept  [2]*kept // what clients find that come back: agent, chat
}

// close says that what comes now is another message.
func (m *merged) close() { m.kept, m.other = [2]*kept{}, true }

// delta returns what is new since text was sent; replace says that it is a
// whole new text.
func (m *merged) delta() (delta string, replace bool) {
	text := m.event.Text
	defer func() { m.sent, m.other, m.dirty = text, false, false }()
	if rest, ok := strings.CutPrefix(text, m.sent); ok {
		return rest, false
	}
	return text, true
}

// observe takes an event of the run.
func (st *stream) observe(e chela.Event) {
	st.mu.Lock()
	defer st.mu.Unlock()
	switch e.Stream {
	case chela.StreamAssistant:
		st.text.event, st.text.dirty = e, true
		if e.Text == "" { // the answer begins again, and with it the thinking
			st.think.event.Text = ""
		}
		st.joinLocked()
		return
	case chela.StreamThinking:
		e.Text = st.thoughtLocked(e)
		st.think.event, st.think.dirty = e, true
		st.joinLocked()
		return
	}
	st.sendLocked(true)
	st.text.close()
	st.think.close()
	switch e.Stream {
	case chela.StreamTool:
		st.s.tool(e)
	case chela.StreamNotice:
		st.s.agent(e, false, wire.Notice{Text: e.Text})
	case chela.StreamLifecycle:
		st.lifecycleLocked(e)
	}
}

// thoughtLocked returns all of the thinking so far: the bus counts only the
// answer's text.
func (st *stream) thoughtLocked(e chela.Event) string {
	if e.Text != "" {
		return e.Text
	}
	return st.think.event.Text + e.Delta
}

func (st *stream) lifecycleLocked(e chela.Event) {
	switch e.Phase {
	case chela.PhaseModel:
		st.think = merged{}
	case chela.PhaseEnd, chela.PhaseError:
		st.done = true
		if st.timer != nil {
			st.timer.Stop()
		}
		st.s.agent(e, false, lifecycle(e))
		st.s.streams.terminal(e.Run, func() { st.s.chat(endChat(e, st.text.sent)) })
		st.s.changes.add(change{key: e.Session, run: e.Run, phase: e.Phase, reason: "agent.input.settled", time: e.Time})
		return
	}
	st.s.agent(e, false, lifecycle(e))
	st.s.changes.add(change{key: e.Session, run: e.Run, phase: e.Phase, time: e.Time})
}

// joinLocked sends the text now when nothing was sent for a while, or has it
// sent later together with what comes until then.
func (st *stream) joinLocked() {
	if st.timer != nil {
		return
	}
	wait := st.s.o.Merge - time.Since(st.last)
	if wait <= 0 {
		st.sendLocked(false)
		return
	}
	st.timer = time.AfterFunc(wait, func() { st.s.together(false, st.late) })
}

// late sends the text that was held back.
func (st *stream) late() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.timer = nil
	if !st.done {
		st.sendLocked(false)
	}
}

func (st *stream) settle() {
	st.mu.Lock()
	defer st.mu.Unlock()
	if !st.done {
		st.sendLocked(true)
	}
}

// sendLocked sends what was held back. Whole says that the text is complete:
// until then, text that may become the token of silence is kept.
func (st *stream) sendLocked(whole bool) {
	if st.think.dirty {
		st.last = time.Now()
		e := st.think.event
		delta, _ := st.think.delta()
		st.grow(&st.think.kept[0], e, delta, false) // there the mark is not known: clients take the whole text
	}
	e := st.text.event
	if !st.text.dirty || shape.Silent(e.Text, whole) {
		return
	}
	st.last = time.Now()
	other := st.text.other
	delta, replace := st.text.delta()
	st.grow(&st.text.kept[0], e, delta, replace && !other)
	st.s.grow(&st.text.kept[1], e, wire.EventChat, func(all bool) any {
		p := chatEvent(e, wire.StateDelta)
		p.Delta, p.Replace, p.Message = delta, replace, answer(e, e.Text)
		if all {
			p.Delta, p.Replace = e.Text, true
		}
		return p
	})
}

// grow sends text of the stream as a step of the run; replace says that it is a
// whole new text.
func (st *stream) grow(slot **kept, e chela.Event, delta string, replace bool) {
	st.s.grow(slot, e, wire.EventAgent, func(all bool) any {
		if all {
			return agentEvent(e, wire.Assistant{Text: e.Text, Delta: e.Text, Replace: true})
		}
		return agentEvent(e, wire.Assistant{Text: e.Text, Delta: delta, Replace: replace})
	})
}
