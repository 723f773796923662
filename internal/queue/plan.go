package queue

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/chela"
)

// Mode says what a message does to a session that is busy.
type Mode string

// The modes. A session that is idle starts a run for each of them.
const (
	Collect      Mode = "collect"       // wait; what waits for the same target is one later turn
	Followup     Mode = "followup"      // wait; each is a later turn of its own
	Steer        Mode = "steer"         // go into the run
	SteerBacklog Mode = "steer-backlog" // go into the run, and be a later turn as well
	Interrupt    Mode = "interrupt"     // end the run, and start another
)

// Modes are the modes, for those who list them.
var Modes = [...]Mode{Steer, Followup, Collect, SteerBacklog, Interrupt}

// ParseMode returns the mode that s names; "queue" is an old word for steer.
func ParseMode(s string) (Mode, bool) {
	switch m := Mode(strings.ToLower(s)); m {
	case Collect, Followup, Steer, SteerBacklog, Interrupt:
		return m, true
	case "queue":
		return Steer, true
	case "steer+backlog":
		return SteerBacklog, true
	}
	return "", false
}

// Drop says what gives way when more messages wait than the cap allows.
type Drop string

// The rules of dropping.
const (
	Summarize Drop = "summarize" // the oldest; the next turn gets a list of them
	DropOld   Drop = "old"
	DropNew   Drop = "new"
)

// ParseDrop returns the rule that s names.
func ParseDrop(s string) (Drop, bool) {
	switch d := Drop(strings.ToLower(s)); d {
	case Summarize, DropOld, DropNew:
		return d, true
	case "summarise":
		return Summarize, true
	}
	return "", false
}

// DefaultCap is how many messages may wait when a policy does not say.
const DefaultCap = 20

// Policy is how a session treats messages. The zero value collects, with the
// default cap, and waits for nothing.
type Policy struct {
	Mode     Mode          // "": collect; a message's own Inbound.Mode goes before it
	Debounce time.Duration // quiet time before several waiting messages are collected
	Cap      int           // messages that may wait; < 1: DefaultCap
	Drop     Drop          // "": summarize

	// Inbound is the quiet time after a message of a channel in which further
	// ones of the same sender become part of it; an attachment ends it. It does
	// not hold up messages of local clients.
	Inbound time.Duration
}

func (p Policy) limit() int {
	if p.Cap < 1 {
		return DefaultCap
	}
	return p.Cap
}

func (p Policy) modeOf(it Item) Mode {
	if m, ok := ParseMode(it.Inbound.Mode); ok {
		return m
	}
	if m, ok := ParseMode(string(p.Mode)); ok {
		return m
	}
	return Collect
}

// Decision is what becomes of the items that wait. An item stands in at most
// one of its lists; those in none go on waiting.
type Decision struct {
	// Resume are items by which a suspended run goes on. Nothing starts beside
	// them.
	Resume []Item
	// Start is what one new run takes: what Chela has to tell first, then the
	// messages, in the order of arrival. All have one principal, and the
	// messages one address.
	Start []Item
	// Steer goes into the live run, in this order. It may hold messages of
	// several principals and addresses: those that are not the run's own are
	// left to wait.
	Steer []Item
	// Later are new items for those of Steer that are a later turn as well; to
	// be put in the commit that steers.
	Later []Item
	// Interrupt says that the live run is to be ended, and then to look again.
	Interrupt bool
	// Drop are messages that give way; Note says why. Summary is what the run
	// of Start is told of them.
	Drop    []Item
	Summary string
	// Until is when to look again without a wake; zero: there is no need.
	Until time.Time
}

// burst is consecutive messages of one sender that count as one.
type burst struct {
	items []Item
	mode  Mode
	ready time.Time // not before
}

func (b burst) last() Item { return b.items[len(b.items)-1] }

// target is what messages that share a turn have in common.
type target struct {
	address   chela.Address
	principal string
}

func targetOf(it Item) target { return target{it.Inbound.Address, it.Principal.ID} }

// Plan decides what becomes of the items that wait for a session, given by
// Seq. live says that a run of it is in progress.
//
// Messages with the same target (address and principal) keep their order,
// except that one sent to steer or to interrupt goes before those that wait
// for a turn. Dropped are only messages; what Chela has to tell, and decisions
// that were taken, are neither dropped nor held up.
func Plan(p Policy, live bool, waiting []Item, now time.Time) Decision {
	var d Decision
	var system, messages []Item
	for _, it := range waiting {
		switch it.Kind {
		case Resume:
			d.Resume = append(d.Resume, it)
		case System:
			system = append(system, it)
		case Message:
			messages = append(messages, it)
		}
	}
	if live {
		d.Resume = nil // the run that is live was begun after they were asked for
		p.live(&d, system, messages, now)
		return d
	}
	if len(d.Resume) > 0 {
		return d
	}
	p.idle(&d, system, messages, now)
	return d
}

// live decides what reaches the run in progress.
func (p Policy) live(d *Decision, system, messages []Item, now time.Time) {
	for _, it := range system {
		if m := p.modeOf(it); m == Steer || m == SteerBacklog {
			d.Steer = append(d.Steer, it)
		}
	}
	var rest []Item
	for _, b := range p.bursts(messages) {
		if b.mode != Collect && b.mode != Followup && b.ready.After(now) {
			d.wait(b.ready)
			continue
		}
		switch b.mode {
		case Interrupt:
			d.Interrupt = true
		case Steer, SteerBacklog:
			d.Steer = append(d.Steer, b.items...)
			if b.mode == SteerBacklog {
				d.Later = append(d.Later, later(b.items)...)
			}
		default:
			rest = append(rest, b.items...)
		}
	}
	if d.Interrupt { // nothing goes into a run that ends
		d.Steer, d.Later = nil, nil
	}
	if p.Drop == DropOld || p.Drop == DropNew {
		_, d.Drop = p.cut(rest)
	}
}

// idle decides what the next run answers.
func (p Policy) idle(d *Decision, system, messages []Item, now time.Time) {
	kept, dropped := p.cut(messages)
	bursts := p.bursts(kept)
	group := p.group(bursts, now)
	if len(group) == 0 && len(system) == 0 {
		for _, b := range bursts {
			d.wait(b.ready)
		}
		d.drop(p, dropped)
		return
	}
	if until := p.quiet(group); len(system) == 0 && until.After(now) && len(kept) < p.limit() {
		d.wait(until)
		d.drop(p, dropped)
		return
	}
	var first []Item
	for _, b := range group {
		first = append(first, b.items...)
	}
	d.Start = joined(system, first)
	d.drop(p, dropped)
	if len(dropped) > 0 && len(d.Drop) == 0 && d.Start[len(d.Start)-1].Kind == Message {
		d.Drop, d.Summary = dropped, summary(dropped)
	}
}

// drop drops now what needs no summary: that is part of the next run's start.
func (d *Decision) drop(p Policy, dropped []Item) {
	if p.Drop == DropOld || p.Drop == DropNew {
		d.Drop = dropped
	}
}

func (d *Decision) wait(t time.Time) {
	if d.Until.IsZero() || t.Before(d.Until) {
		d.Until = t
	}
}

// group returns the bursts that the next run answers: one, or those that are
// collected with it.
func (p Policy) group(bursts []burst, now time.Time) []burst {
	head, last := -1, -1
	for i, b := range bursts {
		if b.mode == Interrupt && !b.ready.After(now) {
			head, last = i, i // the newest
		}
	}
	for i := 0; i < len(bursts) && head < 0; i++ {
		if !bursts[i].ready.After(now) {
			head = i
		}
	}
	if head < 0 {
		return nil
	}
	t := targetOf(bursts[head].items[0])
	var out []burst
	for i, b := range bursts {
		if targetOf(b.items[0]) != t {
			continue
		}
		alone := b.mode == Followup || b.ready.After(now)
		if i > last && alone && len(out) > 0 {
			break
		}
		out = append(out, b)
		if i > last && alone {
			break
		}
	}
	return out
}

// quiet returns until when the group waits for more to be collected. A single
// message never waits: mostly it is the only one.
func (p Policy) quiet(group []burst) time.Time {
	if len(group) < 2 || p.Debounce <= 0 {
		return time.Time{}
	}
	for _, b := range group {
		if b.mode != Collect {
			return time.Time{}
		}
	}
	return group[len(group)-1].last().Created.Add(p.Debounce)
}

// bursts joins messages that were written in one go. Only the last one of a
// target may have to wait to be complete.
func (p Policy) bursts(messages []Item) []burst {
	var out []burst
	open := map[target]int{} // burst that may still grow
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

func (p Policy) joins(b burst, it Item, mode Mode) bool {
	last := b.last()
	return mode == b.mode && p.held(last) && len(last.Inbound.Media) == 0 && len(b.items) < p.limit() &&
		it.Created.Before(last.Created.Add(p.Inbound))
}

// held reports whether the message waits for more of its sender.
func (p Policy) held(it Item) bool { return p.Inbound > 0 && !it.Inbound.Address.Local() }

// ready returns when a burst counts as complete.
func (p Policy) ready(items []Item) time.Time {
	last := items[len(items)-1]
	if !p.held(last) || len(last.Inbound.Media) > 0 || len(items) >= p.limit() {
		return time.Time{}
	}
	return last.Created.Add(p.Inbound)
}

// cut divides messages into those that the cap keeps and the others. Messages
// that interrupt are always kept.
func (p Policy) cut(messages []Item) (kept, dropped []Item) {
	over := len(messages) - p.limit()
	if over <= 0 {
		return messages, nil
	}
	take := func(it Item) bool {
		if over > 0 && p.modeOf(it) != Interrupt {
			over--
			it.Note = fmt.Sprintf("more than %d messages were waiting", p.limit())
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

// joined puts before the messages what Chela has to tell, when it is meant for
// the same principal and place; what is meant for others has a turn of its own
// first.
func joined(system, messages []Item) []Item {
	var with []Item
	for _, it := range system {
		if len(messages) > 0 && belongs(it, messages[0]) {
			with = append(with, it)
		}
	}
	if len(with) == len(system) {
		return append(with, messages...)
	}
	var alone []Item
	for _, it := range system {
		if len(messages) > 0 && belongs(it, messages[0]) {
			continue
		}
		if len(alone) == 0 || targetOf(it) == targetOf(alone[0]) {
			alone = append(alone, it)
		}
	}
	return alone
}

func belongs(it, message Item) bool {
	return it.Principal.ID == message.Principal.ID &&
		(it.Inbound.Address == chela.Address{} || it.Inbound.Address == message.Inbound.Address)
}

// later returns copies of steered messages that start a turn of their own.
func later(items []Item) []Item {
	out := slices.Clone(items)
	for i := range out {
		out[i].ID += ":later"
		out[i].Key += ":later"
		out[i].Inbound.Mode = string(Followup)
		out[i].Seq = 0
	}
	return out
}

const (
	summaryLines = 50  // dropped messages that are listed
	summaryRunes = 160 // of each
)

// summary is what the model is told of messages that were dropped.
func summary(dropped []Item) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[Queue overflow: %d messages were dropped. In short:]", len(dropped))
	list := dropped
	if n := len(list) - summaryLines; n > 0 {
		fmt.Fprintf(&b, "\n- (%d earlier ones)", n)
		list = list[n:]
	}
	for _, it := range list {
		text := []rune(strings.Join(strings.Fields(it.Inbound.Text), " "))
		if len(text) > summaryRunes {
			text = append(text[:summaryRunes], '…')
		}
		if len(text) == 0 {
			text = []rune(fmt.Sprintf("(%d attachments)", len(it.Inbound.Media)))
		}
		b.WriteString("\n- " + string(text))
	}
	return b.String()
}
