package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/approval"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/exchange"
	"github.com/chela-ai/chela/internal/core/job"
	"github.com/chela-ai/chela/internal/core/lease"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/outbox"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/subagent"
)

// left returns the work that is not finished.
func (w *world) left(l *life) (left []string) {
	add := func(format string, args ...any) { left = append(left, fmt.Sprintf(format, args...)) }
	err := l.db.View(context.Background(), func(r store.Reader) error {
		left = nil
		active, err1 := r.Runs().Active("")
		for _, a := range active {
			add("run %s of %s is %s, waits %q", a.ID, a.Session, a.State, a.Waits)
		}
		keys, err2 := r.Queue().Sessions()
		for _, k := range keys {
			items, err := r.Queue().Waiting(k)
			for _, it := range items {
				if !it.Next {
					add("item %s of %s is waiting", it.ID, it.Session)
				}
			}
			err2 = errors.Join(err2, err)
		}
		deferred, err3 := r.Queue().Deferred()
		for _, it := range deferred {
			add("item %s of %s is deferred", it.ID, it.Session)
		}
		children, err4 := r.Children().Open("")
		for _, c := range children {
			add("subagent %s is open", c.Label)
		}
		rows, err5 := r.Outbox().Open(0)
		for _, row := range rows {
			add("delivery %s to %s is %s: %s", row.Key, chatName(row.Address), row.State, row.Error)
		}
		asked, err6 := r.Approvals().Pending("")
		for _, q := range asked {
			add("approval %s is pending", q.Text)
		}
		open, err7 := r.Jobs().OpenRuns()
		for _, o := range open {
			add("run %s of job %s is open", o.ID, o.Name)
		}
		jobs, err8 := r.Jobs().List()
		for _, j := range jobs {
			if j.Enabled && j.State.Next != 0 {
				add("job %s is due at %s", j.Name, j.State.Next.Time())
			}
		}
		beats, err9 := leftBeats(r)
		left = append(left, beats...)
		return errors.Join(err1, err2, err3, err4, err5, err6, err7, err8, err9)
	})
	if err != nil {
		add("read: %v", err)
	}
	return left
}

// state is what the store says at the end of a day.
type state struct {
	w        *world
	metas    map[chela.SessionKey]session.Meta
	past     map[chela.SessionKey]int
	entries  map[string][]session.Entry // by transcript
	home     map[string]chela.SessionKey
	children []subagent.Child
	byLabel  map[string][]subagent.Child
	runs     map[chela.RunID]run.Run
	items    map[string]queue.Item // by the tag of the message
	orders   map[*stop]queue.Item
	messages map[string]*relayed // between sessions, by the id of the item
	rows     map[chela.RunID][]outbox.Row
	announce map[string]queue.Item // by the id of the child
	decided  []approval.Request
	jobs     map[string]job.Job // by name
	jobRuns  map[string][]jobRun
	webhooks map[string]webhookRow // by tag
	beats    []queue.Item          // of heartbeats
	kept     map[chela.RunID]bool  // heartbeats whose alert was kept as an event
}

// read reads the rows.
func (w *world) read(r store.Reader) (*state, error) {
	s := &state{
		w:       w,
		metas:   map[chela.SessionKey]session.Meta{},
		past:    map[chela.SessionKey]int{},
		entries: map[string][]session.Entry{},
		home:    map[string]chela.SessionKey{},
		byLabel: map[string][]subagent.Child{},
		runs:    map[chela.RunID]run.Run{},
		items:   map[string]queue.Item{},

		orders:   map[*stop]queue.Item{},
		messages: map[string]*relayed{},
		rows:     map[chela.RunID][]outbox.Row{},
		announce: map[string]queue.Item{},
		kept:     map[chela.RunID]bool{},
	}
	list, _, err := r.Sessions().List(session.Query{Archived: session.ArchivedToo, Limit: 10_000})
	if err != nil {
		return nil, err
	}
	for _, m := range list {
		s.metas[m.Key] = m
		past, err := r.Sessions().Past(m.Key)
		if err != nil {
			return nil, err
		}
		s.past[m.Key] = len(past)
		ids := []string{m.ID}
		for _, p := range past {
			ids = append(ids, p.ID)
		}
		for _, id := range ids {
			if s.entries[id], err = r.Sessions().Entries(id, 0, 0); err != nil {
				return nil, err
			}
			s.home[id] = m.Key
		}
		l, err := r.Leases().Get(lease.Session(m.Key))
		if err != nil {
			return nil, err
		}
		if l.Owner != "" {
			w.broken("D3: the lease of %s is held by %s", m.Key, l.Owner)
		}
	}
	if s.children, err = r.Children().Recent(10_000); err != nil {
		return nil, err
	}
	getRun := func(id chela.RunID) error {
		if _, ok := s.runs[id]; ok || id == "" {
			return nil
		}
		row, err := r.Runs().Get(id)
		if errors.Is(err, chela.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		s.runs[id] = row
		s.rows[id], err = r.Outbox().OfRun(id)
		return err
	}
	for _, c := range s.children {
		s.byLabel[c.Label] = append(s.byLabel[c.Label], c)
		for _, suffix := range [...]string{"", subagent.MovedUp, subagent.MovedUp + subagent.MovedUp} {
			it, err := r.Queue().ByKey(c.AnnounceKey() + suffix)
			if err != nil && !errors.Is(err, chela.ErrNotFound) {
				return nil, err
			}
			if err == nil {
				s.announce[string(c.ID)] = it
				if err := getRun(it.Run); err != nil {
					return nil, err
				}
			}
		}
		if err := getRun(c.ID); err != nil {
			return nil, err
		}
	}
	for _, m := range w.messages {
		it, err := r.Queue().ByKey(keyOf(m))
		if errors.Is(err, chela.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		s.items[m.tag] = it
		if err := getRun(it.Run); err != nil {
			return nil, err
		}
	}
	for _, list := range s.entries {
		for _, e := range list {
			if err := getRun(e.Run); err != nil {
				return nil, err
			}
		}
	}
	if err := s.readMessages(r, getRun); err != nil {
		return nil, err
	}
	for _, st := range w.stops {
		it, err := r.Queue().ByKey(keyOf(&message{chat: st.chat, id: st.id, sender: st.sender}))
		if errors.Is(err, chela.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		s.orders[st] = it
		id := chela.RunID(it.ID)
		if s.rows[id], err = r.Outbox().OfRun(id); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(s.readJobs(r, getRun), s.readWebhooks(r, getRun), s.readBeats(r)); err != nil {
		return nil, err
	}
	s.decided, err = r.Approvals().Decided("", 10_000)
	return s, err
}

// relayed is a message between sessions, the item of its own run if it has also joined
// another one, and the event that brings a late reply. Zero items do not exist.
type relayed struct {
	first, later, late queue.Item
}

// readMessages reads the messages between sessions that a transcript mentions.
func (s *state) readMessages(r store.Reader, getRun func(chela.RunID) error) error {
	get := func(id string) (queue.Item, error) {
		it, err := r.Queue().Get(id)
		if errors.Is(err, chela.ErrNotFound) {
			err = nil
		}
		return it, err
	}
	for _, list := range s.entries {
		for _, e := range list {
			step, _ := exchange.StepOf(e.Origin)
			if e.Message != nil && e.Message.ToolName == "sessions_send" && e.Message.Role == llm.RoleTool {
				var result struct{ RunID string }
				if json.Unmarshal([]byte(e.Message.PlainText()), &result) == nil {
					it, err := get(result.RunID)
					if err != nil {
						return err
					}
					step, _ = exchange.StepOf(it.Origin)
				}
			}
			id := step.First().ID()
			if step.Exchange == "" || s.messages[id] != nil {
				continue
			}
			m := new(relayed)
			var errs [7]error
			m.first, errs[0] = get(id)
			m.late, errs[1] = get(step.LateKey())
			m.later, errs[2] = get(m.first.Later().ID)
			errs[3], errs[4], errs[5], errs[6] = getRun(m.first.Run), getRun(m.first.Parent),
				getRun(m.late.Run), getRun(m.later.Run)
			if err := errors.Join(errs[:]...); err != nil {
				return err
			}
			s.messages[id] = m
		}
	}
	return nil
}

// checkExchanges checks that each message between sessions is in the transcript of the
// target once, and that its reply reached the sender once.
func (s *state) checkExchanges() {
	count := map[string]int{} // entries by item
	told := map[string]int{}  // late replies by sender and tag
	for id, list := range s.entries {
		for _, e := range list {
			if e.Kind != session.KindMessage || e.Message.Role != llm.RoleUser {
				continue
			}
			text := e.Message.PlainText()
			if e.Origin.Exchange != "" {
				count[e.ItemID+string(s.home[id])]++
			} else if strings.Contains(text, exchange.Marker) && strings.Contains(text, "had no reply in time") {
				for _, tag := range tagsIn(text) {
					told[string(s.home[id])+tag]++
				}
			}
		}
	}
	owed := map[string]int{}
	for id, m := range s.messages {
		it := m.first
		from := chela.SessionKey(it.Origin.ID)
		if it.ID == "" || s.lostWith(it.Session) || s.lostWith(from) {
			continue
		}
		tag := strings.Join(tagsIn(it.Inbound.Text), " ")
		switch n := count[id+string(it.Session)]; {
		case it.State == queue.Done && n != 1, it.State != queue.Done && n != 0:
			s.w.broken("D1: the message %s of another session is %s, and in the transcript %d times", tag, it.State, n)
		case it.State != queue.Done && it.State != queue.Cancelled && it.State != queue.Dropped:
			s.w.broken("D3: the message %s of another session is %s", tag, it.State)
		}
		last := it // a message that was cancelled has no reply
		if m.later.ID != "" {
			last = m.later
		}
		by, answered := s.runs[it.Parent], s.runs[last.Run]
		stopped := by.State == run.Aborted || by.Stop != ""
		final := last.State == queue.Done && answered.State.Final() && answered.State != run.Superseded
		if final && it.Result.Outcome == "" {
			s.w.broken("D3: the message %s of another session was answered, and the reply is not recorded", tag)
		}
		if final && it.Result.Outcome == chela.OutcomeTimeout && !stopped && m.late.ID == "" {
			s.w.broken("D3: the sender of %s was told that a reply comes later, and it does not come", tag)
		}
		if m.late.ID != "" {
			owed[string(from)+tag]++
		}
	}
	for what, n := range owed {
		if told[what] != n {
			s.w.broken("D3: %d late replies are owed, and %d were told: %s", n, told[what], what)
		}
	}
}

// keyOf returns the key under which a message is accepted once.
func keyOf(m *message) string {
	a := m.chat.address
	if a.Local() {
		return strings.Join([]string{"local", string(m.chat.session), chela.Owner("process").ID, m.id}, "\x1f")
	}
	who := chela.ChannelSender{Channel: a.Channel, ID: m.sender}.String()
	return strings.Join([]string{"main", a.Channel, "", string(a.Peer.Kind), a.Peer.ID, a.Thread, who, m.id}, "\x1f")
}

// check compares the ledger with the rows.
func (w *world) check(l *life) {
	var s *state
	err := l.db.View(context.Background(), func(r store.Reader) (err error) {
		s, err = w.read(r)
		return err
	})
	if err != nil {
		w.broken("read the rows: %v", err)
		return
	}
	for _, text := range w.left(l) {
		w.broken("D3: left at the end: %s", text)
	}
	s.checkMessages()
	s.checkOrders()
	s.checkBackground()
	s.checkExchanges()
	s.checkDeliveries()
	s.checkCalls()
	s.checkChildren()
	s.checkCosts()
	s.checkStops()
	s.checkRuns()
	s.checkJobs()
	s.checkHooks()
	s.checkWebhooks()
	s.checkBeats()
}

// gone reports whether a session was deleted.
func (s *state) gone(key chela.SessionKey) bool {
	_, ok := s.w.deleted[key]
	return ok
}

// stopped reports whether a command stopped the work of a session after a time.
func (s *state) stopped(key chela.SessionKey, after time.Time) bool {
	return slices.ContainsFunc(s.w.stops, func(st *stop) bool {
		return st.chat.session == key && (st.text == "/stop" || st.text == "/new") &&
			(st.accepted.IsZero() || !st.accepted.Before(after))
	})
}

func (s *state) checkMessages() {
	count := map[string]int{} // entries by item
	tagged := map[string]int{}
	summaries := ""
	for _, list := range s.entries {
		for _, e := range list {
			if e.Kind != session.KindMessage || e.Message.Role != llm.RoleUser {
				continue
			}
			if e.ItemID != "" {
				count[e.ItemID]++
				for _, tag := range tagsIn(e.Message.PlainText()) {
					tagged[tag]++
				}
			}
			summaries += e.Message.PlainText()
		}
	}
	for _, m := range s.w.messages {
		if s.gone(m.chat.session) {
			continue
		}
		it, ok := s.items[m.tag]
		switch {
		case m.accepted.IsZero():
			s.w.broken("D1: %s was never accepted", m.tag)
			continue
		case m.ignored:
			if ok && !it.Inbound.Overheard || tagged[m.tag] > 0 {
				s.w.broken("D1: %s was not addressed to the assistant, and it became work", m.tag)
			}
			continue
		case !ok:
			s.w.broken("D1: %s was accepted, and the queue does not have it", m.tag)
			continue
		}
		n := count[it.ID]
		if it.Session != m.chat.session {
			s.w.broken("ROUTE: %s is for %s, want %s", m.tag, it.Session, m.chat.session)
		}
		switch it.State {
		case queue.Done:
			r, ok := s.runs[it.Run]
			switch {
			case !ok:
				s.w.broken("D3: %s is done by run %q, which does not exist", m.tag, it.Run)
			case !r.State.Final():
				s.w.broken("D3: %s is done, and its run is %s", m.tag, r.State)
			case n != 1:
				s.w.broken("D1: %s is in the transcripts %d times", m.tag, n)
			default:
				s.checkTold(m, r)
			}
			if r.SessionID != "" && n == 1 &&
				!slices.ContainsFunc(s.entries[r.SessionID], func(e session.Entry) bool { return e.ItemID == it.ID }) {
				s.w.broken("D1: %s is not in the transcript of its run", m.tag)
			}
		case queue.Cancelled:
			if n != 0 || !s.stopped(m.chat.session, m.sent) {
				s.w.broken("D3: %s is cancelled (%s), in the transcripts %d times, and nobody stopped anything", m.tag, it.Note, n)
			}
		case queue.Dropped:
			if n != 0 || !strings.Contains(it.Note, "more than") {
				s.w.broken("D3: %s is dropped (%s), in the transcripts %d times", m.tag, it.Note, n)
			}
		default:
			s.w.broken("D3: %s is %s", m.tag, it.State)
		}
		backlog := 0
		if it.Inbound.Mode == string(queue.SteerBacklog) || strings.Contains(string(s.w.config()["messages"]),
			"steer-backlog") || s.metas[m.chat.session].Queue.Mode == string(queue.SteerBacklog) {
			backlog = 1
		}
		if tagged[m.tag] > 1+backlog {
			s.w.broken("D1: %s is in the transcripts %d times, under several ids", m.tag, tagged[m.tag])
		}
	}
}

// checkTold checks that the sender of a message was told how its run ended.
func (s *state) checkTold(m *message, r run.Run) {
	switch r.State {
	case run.Failed, run.TimedOut:
		if r.Error == "" {
			s.w.broken("D3: the run of %s is %s without a reason", m.tag, r.State)
		}
		if !slices.ContainsFunc(s.entries[r.SessionID],
			func(e session.Entry) bool { return e.Run == r.ID && e.Kind == session.KindNotice && e.Text == r.Error }) {
			s.w.broken("D3: the run of %s is %s, and the transcript does not say so", m.tag, r.State)
		}
	case run.OK:
		if r.Text == "" && !r.Silent {
			s.w.broken("D3: the run of %s has ended well without an answer", m.tag)
		}
	case run.Aborted:
		if !s.stopped(r.Session, m.sent) {
			s.w.broken("D3: the run of %s is aborted, and nobody stopped it", m.tag)
		}
	}
	told := r.State == run.OK && !r.Silent || (r.State == run.Failed || r.State == run.TimedOut) &&
		r.Address.Peer.Kind == chela.Direct
	if told && !r.Address.Local() && len(s.rows[r.ID]) == 0 {
		s.w.broken("D3: the run of %s is %s, and nothing is delivered to %s", m.tag, r.State, chatName(r.Address))
	}
	if r.Address != m.chat.address && !(r.Address.Local() && m.chat.address.Local()) {
		s.w.broken("D4: the answer to %s goes to %s", m.tag, chatName(r.Address))
	}
}

func (s *state) checkDeliveries() {
	byKey := map[string][]*sent{}
	shown := map[string]int{} // answers by token
	for _, p := range s.w.platforms {
		for _, m := range p.sent {
			byKey[m.key] = append(byKey[m.key], m)
			// What asks whether an answer arrived quotes it. The id of a preview is not synced, so that a
			// crash may leave the preview behind.
			if m.gone || strings.HasSuffix(m.key, ":unsure") || strings.Contains(m.key, ":preview") && m.by.crashed.Load() {
				continue
			}
			for token := range s.w.answers {
				if strings.Contains(m.text, token) {
					shown[token]++
				}
			}
		}
	}
	for key, list := range byKey {
		if len(list) > 1 {
			s.w.broken("D4: %q was sent %d times under the key %s", list[0].text, len(list), key)
		}
	}
	for token, n := range shown {
		if n > 1 {
			s.w.broken("D4: %s was shown %d times", token, n)
		}
	}
	for id, rows := range s.rows {
		for _, row := range rows {
			// no preview remains there
			if r := s.runs[id]; (r.State == run.Aborted || r.State == run.Superseded) &&
				row.Key == fmt.Sprintf("%s:%d", id, row.Part) && len(byKey[row.Key]) > 0 && row.Address.Channel == "plain" {
				s.w.broken("L3: run %s is %s, and %q was sent as its answer", id, r.State, row.Text)
			}
			n := 0
			for _, m := range byKey[row.Key] {
				if !m.gone && m.to == row.Address {
					n++
				}
			}
			switch {
			case row.State == outbox.Sent && row.Text != "" && n == 0 && !s.edited(row):
				s.w.broken("D4: the row %s of run %s says that %q was sent", row.Key, id, row.Text)
			case row.State == outbox.Sent && row.Text != "" && n == 1 && byKey[row.Key][0].text != row.Text:
				s.w.broken("D4: the message of %s says %q, want %q", row.Key, byKey[row.Key][0].text, row.Text)
			case row.State == outbox.Failed && n > 0 && row.PlatformID == "" && !strings.Contains(row.Error, "chat not found") &&
				!strings.Contains(row.Error, "outcome unknown") && !strings.Contains(row.Error, "no answer within"):
				s.w.broken("D4: the row %s failed (%s), and %q was sent", row.Key, row.Error, row.Text)
			}
		}
	}
}

// checkOrders checks that each command was carried out and answered once.
func (s *state) checkOrders() {
	answered := map[string]int{} // by id of the item
	for _, list := range s.entries {
		for _, e := range list {
			if e.Kind == session.KindCommand {
				answered[e.ItemID]++
			}
		}
	}
	total, carried := map[string]int{}, map[string]int{} // by chat and text
	for _, st := range s.w.stops {
		if st.accepted.IsZero() {
			s.w.broken("D1: %s of %s was never accepted", st.text, st.chat.name)
		}
		if s.gone(st.chat.session) {
			continue
		}
		it, ok := s.orders[st]
		if !ok || it.Kind != queue.Command || it.State != queue.Done {
			s.w.broken("D1: %s of %s was accepted, and the queue has the %s item %q, which is %q", st.text, st.chat.name,
				it.Kind, it.ID, it.State)
			continue
		}
		if n := answered[it.ID]; n != 1 {
			s.w.broken("D1: the answer to %s of %s is in the transcripts %d times", st.text, st.chat.name, n)
		}
		if rows := s.rows[chela.RunID(it.ID)]; !st.chat.address.Local() && len(rows) == 0 {
			s.w.broken("D3: nothing is delivered as the answer to %s of %s", st.text, st.chat.name)
		}
		total[st.chat.name+st.text]++
	}
	for id, list := range s.entries {
		for _, e := range list {
			text, _, _ := strings.Cut(e.Text, "\n")
			if e.Kind != session.KindCommand || s.gone(s.home[id]) {
				continue
			}
			for _, c := range s.w.chats {
				if c.session == s.home[id] {
					carried[c.name+text]++
				}
			}
		}
	}
	for what, n := range carried {
		if n > total[what] {
			s.w.broken("D1: %q was given %d times, and carried out %d times", what, total[what], n)
		}
	}
}

// checkBackground checks that the end of each work in the background was told once, in
// the session of its call. Forks have copies of a transcript.
func (s *state) checkBackground() {
	began, told := map[string]int{}, map[string]int{}
	for id, list := range s.entries {
		for _, e := range list {
			if e.Kind != session.KindMessage || e.Message.Role != llm.RoleUser && e.Message.ToolName != "later" {
				continue
			}
			text := e.Message.PlainText()
			if key, ok := strings.CutPrefix(text, "did "); ok && s.home[id] == s.w.background[key] {
				began[key]++
			}
			for _, key := range backgroundsIn(text) {
				if s.home[id] == s.w.background[key] {
					told[key]++
				}
			}
		}
	}
	for key, in := range s.w.background {
		if _, there := s.metas[in]; !there || s.gone(in) {
			continue
		}
		if n := told[key]; n < began[key] || n > max(began[key], s.w.callLocked(key).effects) {
			s.w.broken("D3: the background work %s began %d times, and its end was told %d times", key, began[key], n)
		}
	}
}

// backgroundsIn returns the keys of the work in the background whose end a text tells.
func backgroundsIn(text string) []string { return between(text, "background ", " ") }

// edited reports whether the text of a row is in a message that was a preview.
func (s *state) edited(row outbox.Row) bool {
	return slices.ContainsFunc(s.w.platforms[row.Address.Channel].sent,
		func(m *sent) bool { return m.id == row.PlatformID && m.text == row.Text && !m.gone })
}

func (s *state) checkCalls() {
	for id, n := range s.w.effects {
		if n > 1 {
			s.w.broken("D5: the call %s had its effect %d times", id, n)
		}
	}
	for key, c := range s.w.calls {
		again := s.repeats(key)
		if c.effects > 1 && !again {
			s.w.broken("D5: %s had its effect %d times", key, c.effects)
		}
		if c.denied && !c.allowed && c.effects > 0 {
			s.w.broken("E4: %s was denied, and it had its effect", key)
		}
		if c.effects > 0 && strings.Contains(s.toolOf(key), "ask") && !c.allowed && !c.unsure && !s.allowed(key) {
			s.w.broken("E4: %s was not allowed, and it had its effect", key)
		}
	}
	for id, list := range s.entries {
		results := map[string]int{}
		calls := map[string]bool{}
		for _, e := range list {
			if e.Kind != session.KindMessage {
				continue
			}
			if e.Message.Role == llm.RoleAssistant {
				for _, c := range e.Message.Calls() {
					calls[c.ID] = true
				}
			}
			if e.Message.Role != llm.RoleTool {
				continue
			}
			results[e.Message.CallID]++
			key, _, _ := strings.Cut(e.Message.CallID, "~")
			text := e.Message.PlainText()
			c := s.w.calls[key]
			if slices.Contains([]string{"put", "act", "ask", "later"}, e.Message.ToolName) {
				if strings.HasPrefix(text, "did ") && (c == nil || c.effects == 0) {
					s.w.broken("D5: the result of %s says that it ran, and it had no effect", key)
				}
				if strings.HasPrefix(text, "Not run") && c != nil && c.effects > 0 && !s.repeats(key) {
					s.w.broken("D5: the result of %s is %q, and it had its effect", key, text)
				}
			}
		}
		for call := range calls {
			if n := results[call]; n != 1 && !strings.Contains(string(s.home[id]), "scratch") {
				s.w.broken("D5: the call %s has %d results in %s", call, n, s.home[id])
			}
		}
	}
}

// toolOf returns the tool of a call.
func (s *state) toolOf(key string) string {
	tag := key
	for range 2 {
		if i := strings.LastIndexByte(tag, '.'); i > 0 {
			tag = tag[:i]
		}
	}
	for _, round := range s.w.planOf(tag).rounds {
		for _, c := range round {
			if c.key == key {
				return c.tool
			}
		}
	}
	return ""
}

// allowed reports whether the rows say that a call was allowed; the person may not have
// learned it.
func (s *state) allowed(key string) bool {
	return slices.ContainsFunc(s.decided, func(q approval.Request) bool {
		return strings.Contains(q.Text, `"`+key+`"`) && q.Decision.Allows()
	})
}

// repeats reports whether the model may have made the same call twice by itself: its
// message was in two runs, or the model was not sent the earlier call.
func (s *state) repeats(key string) bool {
	tag, _, _ := strings.Cut(key, ".")
	for k, n := range s.w.issued {
		if k == key && n < 2 {
			return false
		}
	}
	m := s.w.byTag[tag]
	return m == nil || strings.Contains(string(s.w.config()["messages"]), "steer-backlog") ||
		s.past[m.chat.session] > 0 || s.cut(m.chat.session)
}

// cut reports whether the model was not sent the whole transcript of a session.
func (s *state) cut(key chela.SessionKey) bool {
	for id, home := range s.home {
		if home == key &&
			slices.ContainsFunc(s.entries[id], func(e session.Entry) bool { return e.Kind == session.KindCut }) {
			return true
		}
	}
	return false
}

func (s *state) checkChildren() {
	seen := map[string]int{}               // announcements by session of the child
	where := map[string]chela.SessionKey{} // by session of the child
	text := map[string]string{}
	for id, list := range s.entries {
		for _, e := range list {
			if e.Kind == session.KindMessage && e.Origin.Kind == chela.OriginSubagent {
				seen[e.Origin.ID]++
				where[e.Origin.ID] = s.home[id]
				text[e.Origin.ID] = e.Message.PlainText()
			}
		}
	}
	for label, list := range s.byLabel {
		if len(list) > 1 && s.w.issued[label] < len(list) {
			s.w.broken("D11: one call has started %d subagents %s", len(list), label)
		}
	}
	for _, c := range s.children {
		n, it := seen[string(c.Session)], s.announce[string(c.ID)]
		if c.Open() {
			s.w.broken("D11: the subagent %s is open", c.Label)
			continue
		}
		if n > 1 {
			s.w.broken("D11: the result of %s was told %d times", c.Label, n)
		}
		if r, ok := s.runs[c.ID]; ok && c.Silent == "" && c.Error != "" && c.Error != r.Error &&
			r.State != run.Superseded && s.only(r) {
			s.w.broken("D11: the run of %s is %s (%s), and its record says %q", c.Label, r.State, r.Error, c.Error)
		}
		switch c.Silent {
		case "":
			if n == 0 && !(it.State == queue.Cancelled && s.mayDiscard(c)) &&
				!(it.State == queue.Done && s.lostWith(it.Session)) {
				s.w.broken("D11: the result of %s (%s) reached nobody: its announcement is %q of %s, note %q", c.Label, c.Outcome,
					it.State, it.Session, it.Note)
			}
			if n == 1 && c.Outcome == chela.OutcomeOK {
				if token := tokenIn(c.Result); token != "" && !strings.Contains(text[string(c.Session)], token) {
					s.w.broken("D11: the announcement of %s lacks its result %s", c.Label, token)
				}
			}
			if n == 1 && !s.above(c, where[string(c.Session)]) {
				s.w.broken("D11: the result of %s reached %s, which is not above it any more", c.Label, where[string(c.Session)])
			}
		case subagent.Skipped:
			if n > 0 {
				s.w.broken("D11: %s had nothing to announce, and was announced", c.Label)
			}
		case subagent.Stopped:
			if n > 0 && !strings.Contains(text[string(c.Session)], "stopped") &&
				!strings.Contains(text[string(c.Session)], "killed") {
				s.w.broken("D11: %s was stopped, and its result was announced", c.Label)
			}
			if !s.wasStopped(c) {
				s.w.broken("D11: %s says that it was stopped, and nobody stopped it", c.Label)
			}
		case subagent.Lost:
			if !s.lostWith(c.Session) {
				s.w.broken("D11: %s is lost, and nobody deleted it", c.Label)
			}
		}
		if a := s.w.answers[tokenIn(c.Result)]; a != nil && a.child != c.Label {
			s.w.broken("D11: the result of %s is %s, which %q answered", c.Label, tokenIn(c.Result), a.child)
		}
	}
}

// only reports whether a run is the only one of its session.
func (s *state) only(r run.Run) bool {
	for _, o := range s.runs {
		if o.Session == r.Session && o.ID != r.ID {
			return false
		}
	}
	return true
}

// tokenIn returns the token of the answer in a text.
func tokenIn(text string) string {
	i := strings.Index(text, "answer-")
	if i < 0 {
		return ""
	}
	j := strings.IndexByte(text[i:], '.')
	if j < 0 {
		return ""
	}
	return text[i : i+j+1]
}

// ancestors returns the sessions above a child, the nearest first.
func (s *state) ancestors(c subagent.Child) (keys []chela.SessionKey) {
	key := c.Requester
	for range 9 {
		keys = append(keys, key)
		i := slices.IndexFunc(s.children, func(o subagent.Child) bool { return o.Session == key })
		if i < 0 {
			return keys
		}
		key = s.children[i].Requester
	}
	return keys
}

// above reports whether the result of a child is owed to a session. A session of a
// subagent that is newer than the child was deleted in between, and nobody reads it.
func (s *state) above(c subagent.Child, key chela.SessionKey) bool {
	if m, ok := s.metas[key]; ok && key.IsChild() && m.Created.After(c.Created) {
		return false
	}
	if c.Requester == key {
		return true
	}
	for _, k := range s.ancestors(c) {
		if k == key {
			return true
		}
		if !s.lostWith(k) {
			return false
		}
	}
	return key == "agent:main:main"
}

// mayDiscard reports whether what waits for the requester of a child may be discarded:
// a person left the conversation, or stopped the requester.
func (s *state) mayDiscard(c subagent.Child) bool {
	return slices.ContainsFunc(s.ancestors(c),
		func(k chela.SessionKey) bool { return s.stopped(k, c.Created) || s.lostWith(k) }) || s.wasStopped(c)
}

// lostWith reports whether a session was deleted, also by its requester.
func (s *state) lostWith(key chela.SessionKey) bool {
	_, there := s.metas[key]
	return s.gone(key) || !there && key != "agent:main:main"
}

// wasStopped reports whether somebody stopped a child or a session above it.
func (s *state) wasStopped(c subagent.Child) bool {
	kills := func(label string) bool { return s.w.issued[label] > 0 && s.killed(label) }
	if kills(c.Label) {
		return true
	}
	for _, k := range s.ancestors(c) {
		if s.stopped(k, c.Created) || s.gone(k) {
			return true
		}
		if i := slices.IndexFunc(s.children, func(o subagent.Child) bool { return o.Session == k }); i >= 0 &&
			kills(s.children[i].Label) {
			return true
		}
	}
	return s.gone(c.Session)
}

// killed reports whether a plan contains a call that stops the subagent.
func (s *state) killed(label string) bool {
	tag := label[:max(strings.LastIndexByte(label, '.'), 0)]
	for _, round := range s.w.planOf(tag).rounds {
		for _, c := range round {
			if c.tool == "subagents" && c.args["action"] == "kill" && c.args["target"] == label {
				return true
			}
		}
	}
	return false
}

func (s *state) checkCosts() {
	of := func(key chela.SessionKey) (list []subagent.Child) {
		for _, c := range s.children {
			if c.Requester == key {
				list = append(list, c)
			}
		}
		return list
	}
	// total is what a child has used when it was counted, with its own children that had
	// ended. The time of an end is noted before its commit, so that it is only known which
	// of two ends was the first if there is some time between them.
	const slack = 5 * time.Second
	var total func(c subagent.Child, slack time.Duration) session.Spent
	total = func(c subagent.Child, slack time.Duration) session.Spent {
		t := session.Spent{Runs: 1, Tokens: c.Tokens}
		for _, g := range of(c.Session) {
			if !g.Ended.After(c.Ended.Add(slack)) {
				t = t.Add(total(g, slack))
			}
		}
		return t
	}
	for key, m := range s.metas {
		if s.past[key] > 0 || s.gone(key) ||
			slices.ContainsFunc(of(key), func(c subagent.Child) bool { return s.lostWith(c.Session) }) || len(s.w.deleted) > 0 {
			continue
		}
		var least, most session.Spent
		for _, c := range of(key) {
			least, most = least.Add(total(c, -slack)), most.Add(total(c, slack))
		}
		got := m.Children
		if got.Runs < least.Runs || got.Runs > most.Runs || got.Tokens.Total() < least.Tokens.Total() ||
			got.Tokens.Total() > most.Tokens.Total() {
			s.w.broken("cost: %s counts %d subagents with %+v, want %d with %+v, at most %d with %+v", key, got.Runs, got.Tokens,
				least.Runs, least.Tokens, most.Runs, most.Tokens)
		}
	}
	for _, c := range s.children {
		m, ok := s.metas[c.Session]
		if used := s.w.used[m.ID]; ok && c.Tokens.Total() > used.Total() && !m.Forked() && m.Fork == nil {
			s.w.broken("cost: %s has used %d tokens, the model says %d", c.Label, c.Tokens.Total(), used.Total())
		}
	}
}

func (s *state) checkStops() {
	const grace = 2 * time.Second
	for _, st := range s.w.stops {
		if st.text != "/stop" && st.text != "/new" || st.accepted.IsZero() {
			continue
		}
		key, late := st.chat.session, st.accepted.Add(grace)
		for _, c := range s.children {
			if slices.Contains(s.ancestors(c), key) && c.Created.Before(st.sent) && c.Ended.After(late) {
				// A session above may have been started by a later message.
				s.w.broken("L3: %s of %s at %s, and the subagent %s ended at %s (%s)", st.text, st.chat.name, s.at(st.accepted),
					c.Label, s.at(c.Ended), c.Outcome)
			}
		}
		for _, ts := range s.w.starts {
			r, ok := s.runs[ts.run]
			if !ok || !ts.at.After(late) || !r.Started.Before(st.sent) {
				continue
			}
			if s.under(r.Session, key, st.sent) && !s.detached(ts.key) {
				s.w.broken("L3: %s of %s at %s, and the call %s of the run of %s started at %s", st.text, st.chat.name,
					s.at(st.accepted), ts.key, s.at(r.Started), s.at(ts.at))
			}
		}
		for _, r := range s.runs {
			// A run that nobody carries out ends when its lane has a place, and does nothing until then.
			if r.Session == key && r.Started.Before(st.sent) && r.Ended.After(late.Add(5*time.Second)) && r.Kind == run.Turn &&
				r.State != run.Aborted {
				s.w.broken("L3: %s of %s at %s, and the run of %s ended %s at %s", st.text, st.chat.name, s.at(st.accepted),
					s.at(r.Started), r.State, s.at(r.Ended))
			}
		}
	}
}

// under reports whether a session is another one, or one of a subagent below it that was
// started before a time.
func (s *state) under(key, top chela.SessionKey, before time.Time) bool {
	if key == top {
		return true
	}
	i := slices.IndexFunc(s.children, func(c subagent.Child) bool { return c.Session == key })
	return i >= 0 && s.children[i].Created.Before(before) && slices.Contains(s.ancestors(s.children[i]), top)
}

// detached reports whether a call waits for an approval without its run.
func (s *state) detached(key string) bool { return s.toolOf(key) == "ask" }

func (s *state) at(t time.Time) string { return fmt.Sprintf("%.3f", t.Sub(s.w.begun).Seconds()) }

func (s *state) checkRuns() {
	rounds := map[chela.RunID]int{}
	for _, list := range s.entries {
		for _, e := range list {
			if e.Kind == session.KindMessage && e.Message.Role == llm.RoleAssistant &&
				len(e.Message.Calls()) > 0 && e.Run != "" {
				rounds[e.Run]++
			}
		}
	}
	for id, n := range rounds {
		if n > maxRounds {
			s.w.broken("L4: run %s has made %d rounds of calls, at most %d are allowed", id, n, maxRounds)
		}
	}
	for _, r := range s.runs {
		if !r.State.Final() {
			s.w.broken("D3: run %s of %s is %s", r.ID, r.Session, r.State)
		}
	}
}
