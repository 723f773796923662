package gateway

import (
	"strings"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/surface/wireview"
	"github.com/chela-ai/chela/wire"
)

// streams holds the active runs. Its lock is held for the maps only, never while something is
// sent.
type streams struct {
	s *Server

	mu    sync.Mutex
	runs  map[chela.RunID]*stream
	ended recent // runs whose end was sent; a second one is not
}

func (ss *streams) init(s *Server) {
	ss.s, ss.runs, ss.ended = s, map[chela.RunID]*stream{}, newRecent(1024)
}

// forEvent returns the stream of an event's run.
func (ss *streams) forEvent(e chela.Event) *stream {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	st := ss.runs[e.Run]
	if st == nil {
		st = &stream{s: ss.s}
		ss.runs[e.Run] = st
	}
	return st
}

// terminal removes a run and calls send if its end was not sent before.
func (ss *streams) terminal(id chela.RunID, send func()) {
	ss.mu.Lock()
	delete(ss.runs, id)
	first := ss.ended.add(id)
	ss.mu.Unlock()
	if !first {
		return
	}
	send()
	ss.s.forgetRun(id)
}

// active reports whether a run has started and not ended.
func (ss *streams) active(id chela.RunID) bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.runs[id] != nil
}

// flushRun sends the pending text of a run, because its message was stored.
func (ss *streams) flushRun(id chela.RunID) {
	ss.mu.Lock()
	st := ss.runs[id]
	ss.mu.Unlock()
	if st != nil {
		st.flush()
	}
}

// flush sends the pending text of all runs.
func (ss *streams) flush() {
	ss.mu.Lock()
	all := make([]*stream, 0, len(ss.runs))
	for _, st := range ss.runs {
		all = append(all, st)
	}
	ss.mu.Unlock()
	for _, st := range all {
		st.flush()
	}
}

// recent is a set of the last n ids.
type recent struct {
	ids  map[chela.RunID]bool
	ring []chela.RunID
	next int
}

func newRecent(n int) recent {
	return recent{ids: make(map[chela.RunID]bool, n), ring: make([]chela.RunID, n)}
}

// add adds id and reports whether it is new.
func (r *recent) add(id chela.RunID) bool {
	if r.ids[id] {
		return false
	}
	delete(r.ids, r.ring[r.next])
	r.ids[id], r.ring[r.next] = true, id
	r.next = (r.next + 1) % len(r.ring)
	return true
}

// stream merges the deltas of one run. Frames are sent in the order of the
// run's events: pending text is sent before any other event.
type stream struct {
	s *Server

	mu       sync.Mutex
	text     message // the answer
	thinking message
	timer    *time.Timer // sends pending text; nil: not scheduled
	last     time.Time   // when text was last sent
	done     bool        // the end was sent: a timer that fires late sends nothing
}

// message is a streamed message.
type message struct {
	event        chela.Event  // latest event, with the complete text
	sent         string       // text sent to clients; the next delta follows it
	otherMessage bool         // sent belongs to a previous message
	dirty        bool         // event has not been sent
	retained     [2]*retained // events retained for replay: agent, chat
}

// close marks the end of a message: the next text starts a new one.
func (m *message) close() { m.retained, m.otherMessage = [2]*retained{}, true }

// delta returns the text added since the last call; replace reports that it is
// the complete text instead.
func (m *message) delta() (delta string, replace bool) {
	text := m.event.Text
	defer func() { m.sent, m.otherMessage, m.dirty = text, false, false }()
	if rest, ok := strings.CutPrefix(text, m.sent); ok {
		return rest, false
	}
	return text, true
}

// observe handles an event of the run.
func (st *stream) observe(e chela.Event) {
	st.mu.Lock()
	defer st.mu.Unlock()
	switch e.Stream {
	case chela.StreamAssistant:
		st.text.event, st.text.dirty = e, true
		if e.Text == "" { // the answer restarts, and with it the thinking
			st.thinking.event.Text = ""
		}
		st.scheduleLocked()
		return
	case chela.StreamThinking:
		e.Text = st.thinkingLocked(e)
		st.thinking.event, st.thinking.dirty = e, true
		st.scheduleLocked()
		return
	}
	st.sendLocked(true)
	st.text.close()
	st.thinking.close()
	switch e.Stream {
	case chela.StreamTool:
		st.s.tool(e)
	case chela.StreamNotice:
		st.s.agent(e, false, wire.Notice{Text: e.Text})
	case chela.StreamLifecycle:
		st.lifecycleLocked(e)
	}
}

// thinkingLocked returns the complete thinking text. The bus accumulates the
// text of answers only.
func (st *stream) thinkingLocked(e chela.Event) string {
	if e.Text != "" {
		return e.Text
	}
	return st.thinking.event.Text + e.Delta
}

func (st *stream) lifecycleLocked(e chela.Event) {
	switch e.Phase {
	case chela.PhaseModel:
		st.thinking = message{}
	case chela.PhaseEnd, chela.PhaseError:
		st.done = true
		if st.timer != nil {
			st.timer.Stop()
		}
		st.s.agent(e, false, lifecycle(e))
		st.s.streams.terminal(e.Run, func() { st.s.chat(endChat(e, st.text.sent)) })
		st.s.changes.add(change{key: e.Session, run: e.Run, phase: string(e.Phase), reason: wire.ChangeSettled, time: e.Time})
		return
	}
	st.s.agent(e, false, lifecycle(e))
	st.s.changes.add(change{key: e.Session, run: e.Run, phase: string(e.Phase), time: e.Time})
}

// scheduleLocked sends pending text now, or, if text was sent recently, after
// the merge interval. The first text after a pause is not delayed: people wait for it.
func (st *stream) scheduleLocked() {
	if st.timer != nil {
		return
	}
	wait := st.s.o.Merge - time.Since(st.last)
	if wait <= 0 {
		st.sendLocked(false)
		return
	}
	st.timer = time.AfterFunc(wait, st.sendScheduled)
}

// sendScheduled sends the pending text.
func (st *stream) sendScheduled() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.timer = nil
	if !st.done {
		st.sendLocked(false)
	}
}

func (st *stream) flush() {
	st.mu.Lock()
	defer st.mu.Unlock()
	if !st.done {
		st.sendLocked(true)
	}
}

// sendLocked sends the pending text. Unless the text is complete, text that may
// become the silent reply token is held back.
func (st *stream) sendLocked(whole bool) {
	if st.thinking.dirty {
		st.last = time.Now()
		e := st.thinking.event
		delta, _ := st.thinking.delta()
		st.sendText(&st.thinking.retained[0], e, delta, false) // thinking has no replace flag: clients use the complete text
	}
	e := st.text.event
	if !st.text.dirty || wireview.Silent(e.Text, e.Run, whole) {
		return
	}
	st.last = time.Now()
	// A client shows each message of a run as a step of its own, but one text of the chat
	// for the whole run. So the first text of the next message replaces only the latter.
	other := st.text.otherMessage
	delta, replace := st.text.delta()
	st.sendText(&st.text.retained[0], e, delta, replace && !other)
	st.s.broadcastText(&st.text.retained[1], e, wire.EventChat, func(all bool) any {
		p := chatEvent(e, wire.StateDelta)
		p.Delta, p.Replace, p.Message = delta, replace, answer(e, e.Text)
		if all {
			p.Delta, p.Replace = e.Text, true
		}
		return p
	})
}

// sendText sends streamed text as a step of the run; replace says that it
// replaces the previous text.
func (st *stream) sendText(slot **retained, e chela.Event, delta string, replace bool) {
	st.s.broadcastText(slot, e, wire.EventAgent, func(all bool) any {
		if all {
			return agentEvent(e, wire.Assistant{Text: e.Text, Delta: e.Text, Replace: true})
		}
		return agentEvent(e, wire.Assistant{Text: e.Text, Delta: delta, Replace: replace})
	})
}
