package queue

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// MaxNext is the maximum number of waiting items with Next set in a session.
const MaxNext = 20

// Live is a session's run that has not ended.
type Live struct {
	Run       run.Run
	Steerable bool // this process executes the run, and its loop accepts messages
}

// Decision is what to do with the waiting items. An item is in at most one of the
// lists; an item in none of them continues to wait.
type Decision struct {
	// Resume are the items that continue the suspended run. No run starts then.
	Resume []Item
	// Start are the items of one new run: events first, then messages, each in the
	// order of arrival; or one item of kind Compact. [Lead] returns the item whose
	// principal, address and overrides the run gets.
	Start []Item
	// Steer are the items that join the live run, in this order.
	Steer []Item
	// Later are new items for the messages of Steer that also get a later run. They
	// are put in the commit that steers.
	Later []Item
	// Interrupt requests that the live run is ended and Plan is called again.
	Interrupt bool
	// Drop are the items to be dropped; Note is the reason. Summary is the text about
	// them for the run of Start.
	Drop    []Item
	Summary string
	// Changed are items that continue to wait with a new value of Skipped.
	Changed []Item
	// Until is the time to call Plan again without a wake; zero: only after a wake.
	Until time.Time
}

// Lead returns the item that determines the principal, the address and the overrides of
// a run of the items: the first message, or else the first event that starts a run.
func Lead(items []Item) Item {
	for _, it := range items {
		if it.Kind == Message {
			return it
		}
	}
	for _, it := range items {
		if !it.Next {
			return it
		}
	}
	return items[0]
}

// Plan decides what to do with the waiting items of a session, which are ordered by Seq.
// live is the session's running or suspended run, or nil.
//
// The rules for joining a run:
//
//   - Messages share a run only if they are messages of persons with the same
//     principal, address and overrides. Any other message gets a separate run.
//
//   - A message steers only a run that a person started with the same principal,
//     rights and address, and only if it has no overrides or the overrides of the run.
//     So the address of the answer never changes. A message of another session has no
//     address; it steers only if its tools are not limited, or as those of the run.
//
//   - Events join any new run. They add text to it and never rights. They join a run in
//     progress if their mode steers, except events of the schedule and the heartbeat.
//     They do not join a run whose answer goes to another session.
//
//   - Only messages of persons interrupt a run or replace a suspended run. A suspended
//     run is resumed by the events that it waits for; other events wait. The result of
//     a subagent joins only runs that answer to the address where it was started.
//
//   - A run that waits for another try after interruptions is neither replaced nor in the
//     way: other work starts runs beside it. It continues at its time, when no other run of
//     the session is suspended. See [Available] for its own events.
//
//   - Events with Next set do not start a run. If there are more than [MaxNext], the
//     oldest are dropped and counted in Skipped of the oldest remaining event. Overheard
//     messages are such events, without the limit.
//
//   - A message whose recordings are not transcribed yet waits, and so do the later
//     messages of its principal at its address.
//
// Messages of one target keep their order, except that a message that steers or
// interrupts overtakes waiting messages. Only messages above the cap and Next events
// above their limit are dropped.
func Plan(p Policy, live *Live, waiting []Item, now time.Time) Decision {
	w := planner{Policy: p.Effective(), now: now}
	unread := map[writer]bool{}
	for _, it := range waiting {
		if it.Kind == Message && it.fromPerson() {
			from := writer{it.Principal.ID, it.Inbound.Address}
			if unread[from] = unread[from] || it.Inbound.Unread; unread[from] {
				continue
			}
		}
		switch it.Kind {
		case Resume:
			if it.Inbound.Time.After(now) {
				w.wait(it.Inbound.Time)
				continue
			}
			w.resume = append(w.resume, it)
		case Compact:
			w.compact = append(w.compact, it)
		case Event:
			w.events = append(w.events, it)
		case Message:
			w.messages = append(w.messages, it)
		}
	}
	w.limitNext()
	switch {
	case live == nil:
		w.idle()
	case live.Run.State == run.Suspended:
		w.suspended(live.Run)
	default:
		w.live(*live)
	}
	w.storeSkipped()
	return w.Decision
}

// Available returns the waiting items of a session without the events of active runs that
// wait for another try, such as the results of their subagents: those follow the messages
// of their runs, which other runs do not see.
func Available(waiting []Item, active []run.Run) []Item {
	for _, r := range active {
		if r.Waits == run.WaitsRetry {
			waiting = slices.DeleteFunc(slices.Clone(waiting),
				func(it Item) bool { return it.Kind == Event && it.Root == r.Tree() })
		}
	}
	return waiting
}

// writer identifies who sends messages, and in which chat.
type writer struct {
	principal string
	address   chela.Address
}

// planner is the state of one call of Plan.
type planner struct {
	Policy
	Decision
	now time.Time

	resume, compact, events, messages []Item
	skipped                           *Item // the Next event with a new value of Skipped
}

// limitNext drops the oldest Next events above the limit.
func (w *planner) limitNext() {
	over := -MaxNext
	for _, it := range w.events {
		if it.Next && !it.Inbound.Overheard { // those have a limit of their own
			over++
		}
	}
	if over <= 0 {
		return
	}
	count := over
	var kept []Item
	for _, it := range w.events {
		switch {
		case it.Inbound.Overheard:
		case it.Next && over > 0:
			over--
			count += it.Skipped
			it.Note = fmt.Sprintf("more than %d events were waiting", MaxNext)
			w.Decision.Drop = append(w.Decision.Drop, it)
			continue
		case it.Next && w.skipped == nil:
			it.Skipped += count
			w.skipped = &it
		}
		kept = append(kept, it)
	}
	w.events = kept
}

// storeSkipped adds the Next event with a new value of Skipped to Changed if it
// continues to wait.
func (w *planner) storeSkipped() {
	if w.skipped == nil {
		return
	}
	for _, list := range [...][]Item{w.Start, w.Steer, w.Resume} {
		if slices.ContainsFunc(list, func(it Item) bool { return it.ID == w.skipped.ID }) {
			return
		}
	}
	w.Changed = append(w.Changed, *w.skipped)
}

// idle decides what a session without a run does next.
func (w *planner) idle() {
	switch {
	case len(w.resume) > 0:
		w.Resume = w.resume
	case len(w.compact) > 0:
		w.Start = w.compact[:1]
	default:
		w.turn(slices.ContainsFunc(w.events, func(it Item) bool { return !it.Next }))
	}
}

// suspended decides what resumes or replaces the suspended run. One that waits for another
// try is not in the way of other work.
func (w *planner) suspended(r run.Run) {
	var due []Item
	for _, it := range w.resume {
		if it.Retries() {
			due = append(due, it)
		}
	}
	w.resume = slices.DeleteFunc(w.resume, Item.Retries)
	if r.Waits == run.WaitsRetry {
		if w.idle(); len(w.Start) == 0 && len(w.Resume) == 0 {
			w.Resume = due
		}
		return
	}
	switch {
	case len(w.resume) > 0:
		w.Resume = w.resume
		return
	case len(w.compact) > 0:
		w.Start = w.compact[:1]
		return
	}
	w.messages = slices.DeleteFunc(slices.Clone(w.messages), func(it Item) bool { return !it.fromPerson() })
	w.turn(false)
	events := eventsFor(w.events, r.Address)
	if len(w.Start) == 0 && r.Waits == run.WaitsChildren &&
		slices.ContainsFunc(events, func(it Item) bool { return it.Root == r.Tree() && !it.Next }) {
		w.Resume = events
	}
}

// eventsFor returns the events that may join a run that answers to an address.
func eventsFor(events []Item, to chela.Address) []Item {
	return slices.DeleteFunc(slices.Clone(events), func(it Item) bool { return !it.Joins(to) })
}

// Joins reports whether an event may join a run that answers to an address: unless it is
// the result of a subagent that was started from another address.
func (it Item) Joins(to chela.Address) bool {
	from := it.Inbound.Address
	return it.Origin.Kind != chela.OriginSubagent || from == to || from.Local() && to.Local()
}

// live decides which items join the run in progress.
func (w *planner) live(l Live) {
	for _, it := range eventsFor(w.events, l.Run.Address) {
		if m := w.modeOf(it); l.takesEvent(it) && (m == Steer || m == SteerBacklog) {
			w.Steer = append(w.Steer, it)
		}
	}
	var waiting []Item
	for _, b := range w.bursts(w.messages) {
		if b.mode != Collect && b.mode != Followup && b.ready.After(w.now) {
			w.wait(b.ready)
			continue
		}
		switch {
		case b.mode == Interrupt && b.last().Created.After(l.Run.Started): // older messages wait for the next run
			w.Interrupt = true
		case (b.mode == Steer || b.mode == SteerBacklog) && l.takesMessage(b.items[0]):
			w.Steer = append(w.Steer, b.items...)
			if b.mode == SteerBacklog {
				for _, it := range b.items {
					w.Later = append(w.Later, it.Later())
				}
			}
		default:
			waiting = append(waiting, b.items...)
		}
	}
	if w.Interrupt { // nothing joins a run that is being interrupted
		w.Steer, w.Later = nil, nil
	}
	if w.Policy.Drop != Summarize {
		_, dropped := w.cut(waiting)
		w.Decision.Drop = append(w.Decision.Drop, dropped...)
	}
}

// takesEvent reports whether an event may join the live run.
func (l Live) takesEvent(it Item) bool {
	return l.Steerable && l.Run.Kind != run.Compact && l.Run.Overrides.Deliver.Mode != run.DeliverSession &&
		it.Origin.Kind != chela.OriginCron && it.Origin.Kind != chela.OriginHeartbeat
}

// takesMessage reports whether a message may join the live run.
func (l Live) takesMessage(it Item) bool {
	r := l.Run
	if !l.Steerable || r.Kind == run.Compact || r.Origin.Kind != chela.OriginPerson ||
		it.Principal.ID != r.Principal.ID || !it.Principal.Covers(r.Principal) || !r.Principal.Covers(it.Principal) {
		return false
	}
	if it.toSession() {
		return it.Overrides.Tools.IsZero() || it.Overrides.Tools.Equal(r.Overrides.Tools)
	}
	return it.fromPerson() && (it.Inbound.Address == r.Address || it.Inbound.Address.Local() && r.Address.Local()) &&
		(it.Overrides.IsZero() || it.Overrides.Equal(r.Overrides))
}

// turn decides which messages and events the next run takes. start reports whether the
// events start a run without any message.
func (w *planner) turn(start bool) {
	kept, dropped := w.cut(w.messages)
	bursts := w.bursts(kept)
	group := w.group(bursts)
	if w.Policy.Drop != Summarize {
		w.Decision.Drop = append(w.Decision.Drop, dropped...)
	}
	if len(group) == 0 && !start {
		for _, b := range bursts {
			w.wait(b.ready)
		}
		return
	}
	if until := w.quietUntil(group); !start && until.After(w.now) && len(kept) < w.Cap {
		w.wait(until)
		return
	}
	for _, b := range group {
		w.Start = append(w.Start, b.items...)
	}
	if len(w.Start) == 0 || !w.Start[0].toSession() {
		to := Lead(slices.Concat(w.Start, w.events)).Inbound.Address
		w.Start = append(eventsFor(w.events, to), w.Start...)
	}
	if len(group) > 0 && len(dropped) > 0 && w.Policy.Drop == Summarize {
		w.Decision.Drop, w.Summary = append(w.Decision.Drop, dropped...), summary(dropped)
	}
}

func (w *planner) wait(t time.Time) {
	if w.Until.IsZero() || t.Before(w.Until) {
		w.Until = t
	}
}

// burst is a sequence of messages of one sender that are treated as one.
type burst struct {
	items []Item
	mode  Mode
	ready time.Time // earliest time at which the burst is complete
}

func (b burst) last() Item { return b.items[len(b.items)-1] }

// target is the common part of messages that may share a run.
type target struct {
	address   chela.Address
	principal string
	overrides string
}

func targetOf(it Item) target {
	t := target{address: it.Inbound.Address, principal: it.Principal.ID + "\x00" + it.Principal.Credential}
	for _, s := range it.Principal.Scopes {
		t.principal += "\x00" + string(s)
	}
	if !it.Overrides.IsZero() {
		t.overrides = fmt.Sprintf("%#v", it.Overrides)
	}
	return t
}

// group returns the bursts of the next run: one burst, and those collected with it.
func (w *planner) group(bursts []burst) []burst {
	head, last := -1, -1
	for i, b := range bursts {
		if b.mode == Interrupt && !b.ready.After(w.now) {
			head, last = i, i // use the newest
		}
	}
	for i := 0; i < len(bursts) && head < 0; i++ {
		if !bursts[i].ready.After(w.now) {
			head = i
		}
	}
	if head < 0 {
		return nil
	}
	if !bursts[head].items[0].fromPerson() {
		return bursts[head : head+1]
	}
	t := targetOf(bursts[head].items[0])
	var out []burst
	for i, b := range bursts {
		if !b.items[0].fromPerson() || targetOf(b.items[0]) != t {
			continue
		}
		separate := b.mode == Followup || b.ready.After(w.now)
		if i > last && separate && len(out) > 0 {
			break
		}
		out = append(out, b)
		if i > last && separate {
			break
		}
	}
	return out
}

// quietUntil returns the time until which the group waits for further messages. A single
// message never waits, because usually no other message follows.
func (w *planner) quietUntil(group []burst) time.Time {
	if len(group) < 2 || w.Debounce <= 0 {
		return time.Time{}
	}
	for _, b := range group {
		if b.mode != Collect {
			return time.Time{}
		}
	}
	return group[len(group)-1].last().Created.Add(w.Debounce)
}

// bursts groups messages that were written in quick succession. Only the last burst of
// a target can be incomplete.
func (p Policy) bursts(messages []Item) []burst {
	var out []burst
	open := map[target]int{} // target → index of its last burst
	for _, it := range messages {
		mode, t := p.modeOf(it), targetOf(it)
		if i, ok := open[t]; ok && p.joins(out[i], it, mode) {
			out[i].items = append(out[i].items, it)
			out[i].ready = p.ready(out[i].items)
			continue
		} else if ok {
			out[i].ready = time.Time{}
		}
		open[t] = len(out)
		out = append(out, burst{items: []Item{it}, mode: mode, ready: p.ready([]Item{it})})
	}
	return out
}

// joins reports whether a message is part of the burst.
func (p Policy) joins(b burst, it Item, mode Mode) bool {
	last := b.last()
	return it.fromPerson() && mode == b.mode && p.debounced(last) && len(last.Inbound.Media) == 0 &&
		len(b.items) < p.Cap &&
		it.Created.Before(last.Created.Add(p.Inbound))
}

// debounced reports whether a message waits for further messages of its sender.
func (p Policy) debounced(it Item) bool {
	return p.Inbound > 0 && it.fromPerson() && !it.Inbound.Address.Local()
}

// ready returns the time at which a burst is complete.
func (p Policy) ready(items []Item) time.Time {
	last := items[len(items)-1]
	if !p.debounced(last) || len(last.Inbound.Media) > 0 || len(items) >= p.Cap {
		return time.Time{}
	}
	return last.Created.Add(p.Inbound)
}

// cut divides messages into those within the cap and those above it. Messages that
// interrupt and messages that are not from a person are always within the cap.
func (p Policy) cut(messages []Item) (kept, dropped []Item) {
	over := -p.Cap
	for _, it := range messages {
		if it.fromPerson() {
			over++
		}
	}
	if over <= 0 {
		return messages, nil
	}
	take := func(it Item) bool {
		if over > 0 && it.fromPerson() && p.modeOf(it) != Interrupt {
			over--
			it.Note = fmt.Sprintf("more than %d messages were waiting", p.Cap)
			dropped = append(dropped, it)
			return true
		}
		return false
	}
	if p.Drop != DropNew {
		for _, it := range messages {
			if !take(it) {
				kept = append(kept, it)
			}
		}
		return kept, dropped
	}
	for _, it := range slices.Backward(messages) {
		if !take(it) {
			kept = append(kept, it)
		}
	}
	slices.Reverse(kept)
	slices.Reverse(dropped)
	return kept, dropped
}

// Later returns the item of the separate run that a message also gets which joins a run
// in the mode [SteerBacklog].
func (it Item) Later() Item {
	it.ID, it.Key, it.Seq, it.Inbound.Mode = it.ID+":later", it.Key+":later", 0, string(Followup)
	return it
}

const (
	summaryLines = 50  // maximum number of listed messages
	summaryRunes = 160 // maximum length of each
)

// summary returns the text for the model about dropped messages.
func summary(dropped []Item) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[Queue overflow: %d messages were dropped. In short:]", len(dropped))
	list := dropped
	if n := len(list) - summaryLines; n > 0 {
		fmt.Fprintf(&b, "\n- (%d earlier ones)", n)
		list = list[n:]
	}
	for _, it := range list {
		text := humanize.Truncate(strings.Join(strings.Fields(it.Inbound.Text), " "), summaryRunes)
		b.WriteString("\n- " + cmp.Or(text, fmt.Sprintf("(%d attachments)", len(it.Inbound.Media))))
	}
	return b.String()
}
