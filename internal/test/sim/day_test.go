package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"sort"
	"strings"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/subagent"
	"github.com/chela-ai/chela/internal/test/chelatest"
	"github.com/chela-ai/chela/internal/test/power"
	"github.com/chela-ai/chela/wire"
)

// size is the size of a day.
type size struct {
	messages int // at most; at least a half of it
	crashes  int // at most
	jobs     int // at most
}

// width is the number of places of each lane.
const width = 3

// config returns the configuration of the gateways of a day.
func (w *world) config() chelatest.Config {
	r := w.rnd("config")
	mode := pick(r, weighted[string]{3, "collect"}, weighted[string]{2, "steer"}, weighted[string]{1, "followup"},
		weighted[string]{1, "interrupt"}, weighted[string]{1, "steer-backlog"})
	inbound := pick(r, weighted[int]{2, 0}, weighted[int]{1, 2000})
	limit := pick(r, weighted[int]{3, 20}, weighted[int]{1, 2})
	drop := pick(r, weighted[string]{2, "summarize"}, weighted[string]{1, "old"}, weighted[string]{1, "new"})
	turns := r.IntN(3)
	c := chelatest.Config{
		"agents.defaults": fmt.Appendf(nil,
			`{"skipBootstrap": true, "maxConcurrent": %d, "maxToolRounds": %d, "timeoutSeconds": 400,
			"subagents": {"maxConcurrent": %d, "maxSpawnDepth": 2, "runTimeoutSeconds": 300, "archiveAfterMinutes": 60}}`,
			width, maxRounds, width),
		"session": fmt.Appendf(nil,
			`{"dmScope": "per-channel-peer", "reset": {"mode": "none"}, "agentToAgent": {"maxPingPongTurns": %d}}`, turns),
		"messages": fmt.Appendf(nil,
			`{"queue": {"mode": %q, "cap": %d, "drop": %q, "debounceMs": 500}, "inbound": {"debounceMs": %d}}`,
			mode, limit, drop, inbound),
		"channels": json.RawMessage(
			`{"able": {"allowFrom": ["ann", "bob", "eve"]}, "plain": {"allowFrom": ["ann", "bob", "eve"]}}`),
		"cron":    fmt.Appendf(nil, `{"maxConcurrentRuns": %d}`, width),
		"gateway": json.RawMessage(`{"reload": {"mode": "off"}}`), // the files do not change
		"tools":   json.RawMessage(`{"sessions": {"visibility": "all"}}`),
	}
	if len(w.webhooks) > 0 {
		c["hooks"] = fmt.Appendf(nil, `{"enabled": true, "token": %q}`, webhookToken)
	}
	if w.beats != nil {
		c["agents.defaults.heartbeat"] = fmt.Appendf(nil,
			`{"every": %q, "prompt": "check the house <<%s>>", "target": "able", "to": "ann"}`, w.beats.every, beatTag)
	}
	return c
}

// meet makes the chats.
func (w *world) meet() {
	w.platforms = map[string]*platform{"able": newPlatform(w, "able"), "plain": newPlatform(w, "plain")}
	at := func(ch string, kind chela.PeerKind, id, thread string) chela.Address {
		return chela.Address{Channel: ch, Peer: chela.Peer{Kind: kind, ID: id}, Thread: thread}
	}
	w.chats = []*chat{
		{name: "terminal", session: "agent:main:main"},
		{name: "second", session: "agent:main:second"},
		{name: "scratch", session: "agent:main:scratch"},
		{name: "able ann", session: "agent:main:able:direct:ann", address: at("able", chela.Direct, "ann", ""),
			senders: []string{"ann"}},
		{name: "able club", session: "agent:main:able:group:club", address: at("able", chela.Group, "club", ""),
			senders: []string{"ann", "bob"}},
		{name: "plain bob", session: "agent:main:plain:direct:bob", address: at("plain", chela.Direct, "bob", ""),
			senders: []string{"bob"}},
		{name: "plain hall 1", session: "agent:main:plain:group:hall:thread:1",
			address: at("plain", chela.Group, "hall", "1"), senders: []string{"eve", "bob"}},
		{name: "plain hall 2", session: "agent:main:plain:group:hall:thread:2",
			address: at("plain", chela.Group, "hall", "2"), senders: []string{"eve", "bob"}},
	}
}

// event is something that happens during the day.
type event struct {
	at time.Duration
	f  func()
}

// day simulates a day and checks it.
func (w *world) day(s size) {
	w.meet()
	w.plan(s)
	r := w.rnd("day")
	length := seconds(r, 60, 60+40*float64(s.messages))
	var events []event
	count := s.messages/2 + r.IntN(s.messages/2+1)
	for i := 0; i < count; {
		at, c := seconds(r, 1, length.Seconds()), w.chats[r.IntN(len(w.chats))]
		last := at
		for range pick(r, weighted[int]{4, 1}, weighted[int]{2, 2}, weighted[int]{1, 4}) { // a burst
			m := w.newMessage(i, c)
			last = at
			events = append(events, event{at, func() { w.say(m) }})
			at += pick(r, weighted[time.Duration]{1, 0}, weighted[time.Duration]{1, seconds(r, 0, 1)},
				weighted[time.Duration]{2, seconds(r, 1, 30)})
			i++
		}
		switch n := r.IntN(12); {
		case n < 2:
			text := pick(r, weighted[string]{3, "/stop"}, weighted[string]{1, "/new"})
			events = append(events, event{at + seconds(r, 0, 40), func() { w.order(c, text) }})
		case n == 2:
			text := "/queue " + pick(r, weighted[string]{1, "steer"}, weighted[string]{1, "collect"},
				weighted[string]{1, "interrupt"}, weighted[string]{1, "followup"})
			events = append(events, event{at, func() { w.order(c, text) }})
		case n == 5:
			text := pick(r, settings...)
			events = append(events, event{last, func() { w.order(c, text) }})
		case n == 3:
			events = append(events, event{at + seconds(r, 5, 60), func() { w.deleteChild(at) }})
		case n == 4:
			events = append(events, event{at + seconds(r, 5, 60), func() { w.delete("agent:main:scratch") }})
		}
	}
	sort.SliceStable(events, func(i, j int) bool { return events[i].at < events[j].at })

	stop := make(chan struct{})
	managed := make(chan *life)
	go func() { managed <- w.manage(s, length, stop) }()
	w.connect()
	w.schedule(length)
	w.automate(length)
	for _, e := range events {
		time.Sleep(time.Until(w.begun.Add(e.at)))
		e.f()
	}
	time.Sleep(time.Until(w.begun.Add(length)))
	w.tell("nothing fails any more")
	w.mu.Lock()
	w.cost = 0
	w.mu.Unlock()
	close(stop)
	last := <-managed
	w.clockAhead()
	w.await("the people")
	w.settle(last)
	w.probe(last)
	w.check(last)
	w.client.Close()
	last.stop()
	synctest.Wait()
	time.Sleep(hookHang) // of hooks that hang, and connections that were closed
}

// automate sends the webhooks and the events during the day.
func (w *world) automate(length time.Duration) {
	r := w.rnd("automate")
	at := func(f func()) {
		after := seconds(r, 1, length.Seconds())
		w.do(func() {
			time.Sleep(time.Until(w.begun.Add(after)))
			f()
		})
	}
	for _, h := range w.webhooks {
		at(func() { w.callWebhook(h) })
	}
	if w.beats != nil {
		for _, e := range w.beats.events {
			at(func() { w.ring(e) })
		}
		if w.beats.file {
			w.fill(r.IntN(4) == 0)
			for range 1 + r.IntN(4) {
				full := r.IntN(3) == 0
				at(func() { w.fill(full) })
			}
		}
	}
}

// ownSteps returns the points at which the process is killed on days with jobs, webhooks
// and heartbeats.
func (w *world) ownSteps() (steps []string) {
	if len(w.jobs) > 0 {
		steps = append(steps, "cron.claimed")
	}
	if len(w.webhooks) > 0 {
		steps = append(steps, "webhook.accept", "webhook.accepted")
	}
	if w.beats != nil {
		steps = append(steps, "heartbeat.claim", "heartbeat.claimed")
	}
	return steps
}

// manage starts and kills gateways until stop is closed. It returns the last one, which
// is running.
func (w *world) manage(s size, length time.Duration, stop <-chan struct{}) *life {
	r := w.rnd("lives")
	crashes := 0
	if s.crashes > 0 {
		crashes = r.IntN(s.crashes + 1)
	}
	var disk *power.Disk
	if crashes > 0 && r.IntN(2) == 0 {
		disk = power.New(w.t)
	}
	config := w.config()
	for n := 1; ; n++ {
		var c crash
		limit := time.NewTimer(time.Duration(1<<62 - 1))
		how := ""
		if n <= crashes {
			how = pick(r, weighted[string]{4, "step"}, weighted[string]{3, "commit"}, weighted[string]{2, "kill"},
				weighted[string]{2, "restart"})
			switch how {
			case "step":
				c.step, c.n, c.after = steps[r.IntN(len(steps))], int64(1+r.IntN(4)), r.IntN(2) == 0
				if own := w.ownSteps(); len(own) > 0 && r.IntN(4) == 0 {
					c.step = own[r.IntN(len(own))]
				}
				if c.step == "run.steer" { // it is rare
					c.n = 1
				}
			case "commit":
				c.n, c.after = int64(8+r.IntN(60)), r.IntN(2) == 0
			}
			if c.power = disk != nil && r.IntN(4) > 0; c.power && r.IntN(3) > 0 {
				how, c = "learned", crash{step: learned[r.IntN(len(learned))], n: int64(1 + r.IntN(3)), power: true}
				if c.shared = r.IntN(2) == 0; c.shared { // they are rare
					c.n = 1
				}
				if len(w.jobs) > 0 && r.IntN(2) == 0 {
					c.step, c.shared = "cron.acked", false
				}
				if len(w.webhooks) > 0 && r.IntN(2) == 0 {
					c.step, c.n, c.shared = "webhook.acked", 1, false
				}
			}
			c.torn = r.IntN(2) == 0
			switch within := length.Seconds() / float64(crashes); how {
			case "kill", "restart":
				limit.Reset(seconds(r, 10, within))
			default: // the point comes before that, as a rule
				limit.Reset(seconds(r, within, 2*within))
			}
		}
		l := w.start(n, c, disk, config)
		for tries := 0; l == nil; l = w.start(n, crash{}, disk, config) {
			if tries++; tries > 20 {
				panic("the gateway does not start:\n" + strings.Join(w.log, "\n"))
			}
			time.Sleep(2 * time.Second)
		}
		select {
		case <-l.ctx.Done():
		case <-limit.C:
			if how != "restart" {
				l.kill("at any time")
			}
		case <-stop:
			if !l.dead() {
				return l
			}
		}
		l.stop()
		if disk != nil && l.image != nil {
			disk = l.image.Disk(w.t)
		}
		if len(w.jobs) > 0 && r.IntN(8) == 0 {
			w.setClock(skew(r))
		}
		select {
		case <-time.After(pick(r, weighted[time.Duration]{4, seconds(r, 0, 5)},
			weighted[time.Duration]{2, seconds(r, 5, 300)}, weighted[time.Duration]{1, seconds(r, 300, 4000)})):
		case <-stop:
		}
	}
}

// connect connects the terminal.
func (w *world) connect() {
	o := client.Options{
		Dial: func(ctx context.Context) (net.Conn, error) {
			l, changed := w.current()
			for l == nil {
				select {
				case <-changed:
				case <-ctx.Done():
					return nil, ctx.Err()
				}
				l, changed = w.current()
			}
			return l.dial(ctx)
		},
		Delay: func(int, error) time.Duration { return 3 * time.Second },
	}
	for w.client == nil {
		c, err := client.Dial(context.Background(), o)
		if err != nil {
			time.Sleep(time.Second)
			continue
		}
		w.client = c
	}
	go func() {
		for e := range w.client.Events() {
			var a wire.Approval
			if e.Name == wire.EventApprovalRequested && e.Decode(&a) == nil {
				w.do(func() { w.decide(a) })
			}
		}
	}()
}

// newMessage makes a message in a chat.
func (w *world) newMessage(i int, c *chat) *message {
	tag := fmt.Sprint("m", i)
	r := w.rnd("message", tag)
	m := &message{tag: tag, chat: c, text: "please do <<" + tag + ">>"}
	if c.name == "scratch" {
		m.kind = "spawn"
	}
	c.serial++
	m.id = fmt.Sprint(c.serial)
	if c.address.Local() {
		m.id = fmt.Sprint("run-", tag)
		m.mode = pick(r, weighted[string]{5, ""}, weighted[string]{3, "steer"}, weighted[string]{1, "interrupt"},
			weighted[string]{1, "followup"})
	} else {
		m.sender = c.senders[r.IntN(len(c.senders))]
		m.ignored = c.address.Peer.Kind == chela.Group && r.IntN(8) == 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.messages = append(w.messages, m)
	w.byTag[tag] = m
	return m
}

// say sends a message.
func (w *world) say(m *message) {
	m.sent = time.Now()
	w.tell("%s: %s writes %s, %s, mode %q, id %s", m.chat.name, m.sender, m.tag, w.planOf(m.tag).kind, m.mode, m.id)
	w.send(m.chat, m.id, m.sender, m.text, m.mode, !m.ignored, func() { m.accepted = time.Now() })
}

// order sends a command.
func (w *world) order(c *chat, text string) {
	s := &stop{chat: c, text: text, sent: time.Now()}
	w.mu.Lock()
	c.serial++
	serial := c.serial
	w.stops = append(w.stops, s)
	w.mu.Unlock()
	w.tell("%s: %s", c.name, text)
	// what follows the commit of a command is critical
	if l, _ := w.current(); l != nil && w.chance(40, "after", text, c.name, serial) {
		if w.rnd("how", c.name, serial).IntN(2) == 0 {
			l.armed.Store(true)
		} else {
			l.fault.Store(2)
		}
	}
	id, sender := fmt.Sprint(serial), ""
	if c.address.Local() {
		id = fmt.Sprint("order-", c.name, serial)
	} else {
		sender = c.senders[0]
	}
	s.id, s.sender = id, sender
	w.send(c, id, sender, text, "", true, func() { s.accepted = time.Now() })
}

// react makes a person give one of the commands at once, sometimes, because of something
// that happened in a chat.
func (w *world) react(c *chat, what string, commands ...weighted[string]) {
	if c != nil && w.chance(6, "react", what) {
		w.do(func() { w.order(c, pick(w.rnd("reaction", what), commands...)) })
	}
}

// chatOf returns the chat from which a call comes, or nil.
func (w *world) chatOf(key string) *chat {
	tag, _, _ := strings.Cut(key, ".")
	w.mu.Lock()
	defer w.mu.Unlock()
	if m := w.byTag[tag]; m != nil {
		return m.chat
	}
	return nil
}

// settings are commands that change a setting of a session.
var settings = []weighted[string]{{1, "/usage tokens"}, {1, "/usage off"}}

// send sends a text until it is accepted.
func (w *world) send(c *chat, id, sender, text, mode string, mentioned bool, accepted func()) {
	done := func() {
		w.mu.Lock()
		accepted()
		l := w.life
		w.mu.Unlock()
		if l != nil {
			l.step("accepted")
		}
		w.done()
	}
	w.expect()
	if !c.address.Local() {
		w.platforms[c.address.Channel].say(&offer{accepted: done, in: chela.Inbound{
			ID:        id,
			Address:   c.address,
			Sender:    chela.Sender{ID: sender, Name: sender},
			Text:      text,
			Time:      time.Now(),
			Mentioned: mentioned,
		}})
		return
	}
	go func() {
		in := wire.ChatSend{SessionKey: string(c.session), Message: text, IdempotencyKey: id, QueueMode: mode}
		for {
			_, err := w.client.Chat(context.Background(), in)
			if err == nil {
				done()
				return
			}
			w.tell("%s: %s is not accepted: %v", c.name, id, err)
			if we, ok := errors.AsType[*wire.Error](err); ok && we.Code == wire.InvalidRequest {
				w.broken("D1: %s was refused: %v", id, err)
			}
			time.Sleep(3 * time.Second)
		}
	}()
}

// decide decides about an approval.
func (w *world) decide(a wire.Approval) {
	_, key, _ := strings.Cut(a.Request.Command, `"key":"`)
	key, _, _ = strings.Cut(key, `"`)
	r := w.rnd("decide", key)
	decision := pick(r, weighted[string]{4, wire.AllowOnce}, weighted[string]{2, wire.Deny}, weighted[string]{1, ""})
	if decision == "" {
		return
	}
	time.Sleep(seconds(r, 1, 200))
	w.tell("terminal: %s for %s", decision, key)
	w.react(w.chatOf(key), "decision "+key, settings...)
	for {
		err := w.client.Call(context.Background(), wire.MethodApprovalResolve,
			wire.ApprovalResolve{ID: a.ID, Decision: decision}, nil)
		we, answered := errors.AsType[*wire.Error](err)
		again := answered && we.Code != wire.InvalidRequest && w.failures() > 0
		if err != nil && (again || !answered) { // it may have been carried out
			w.mu.Lock()
			w.callLocked(key).unsure = true
			w.mu.Unlock()
		}
		if again {
			time.Sleep(3 * time.Second)
			continue
		}
		if err == nil {
			w.mu.Lock()
			c := w.callLocked(key)
			c.denied, c.allowed = c.denied || decision == wire.Deny, c.allowed || decision == wire.AllowOnce
			w.mu.Unlock()
		}
		return
	}
}

// delete deletes a session.
func (w *world) delete(key chela.SessionKey) {
	w.mu.Lock()
	_, again := w.deleted[key]
	w.deleted[key] = time.Now()
	w.mu.Unlock()
	if again {
		return
	}
	w.tell("terminal: deletes %s", key)
	w.do(func() {
		for range 5 {
			err := w.client.Call(context.Background(), wire.MethodSessionsDelete, wire.SessionsDelete{Key: string(key)}, nil)
			if err == nil {
				break
			}
			w.tell("terminal: %s is not deleted: %v", key, err)
			time.Sleep(3 * time.Second)
		}
		w.mu.Lock()
		w.deleted[key] = time.Now()
		w.mu.Unlock()
	})
}

// deleteChild deletes the session of an open subagent, one with subagents if there is one.
func (w *world) deleteChild(at time.Duration) {
	l, _ := w.current()
	if l == nil || l.dead() {
		return
	}
	open, err := store.Get(context.Background(), gate{l.db, l},
		func(r store.Reader) ([]subagent.Child, error) { return r.Children().Open("") })
	if err != nil || len(open) == 0 {
		return
	}
	i := slices.IndexFunc(open, func(c subagent.Child) bool {
		return slices.ContainsFunc(open, func(o subagent.Child) bool { return o.Requester == c.Session })
	})
	w.delete(open[max(i, 0)].Session)
}

// await waits until nothing is pending.
func (w *world) await(who string) {
	for range 3600 {
		w.mu.Lock()
		n := w.pending
		w.mu.Unlock()
		if n == 0 {
			return
		}
		time.Sleep(time.Second)
	}
	panic(who + " wait for an answer of the gateway:\n" + strings.Join(w.log, "\n"))
}

// settle waits until the gateway has finished all work.
func (w *world) settle(l *life) {
	var left []string
	for pause, end := 10*time.Second, time.Now().Add(4*time.Hour); time.Now().Before(end); pause = min(2*pause,
		2*time.Minute) {
		time.Sleep(pause)
		if left = w.left(l); len(left) == 0 {
			w.tell("quiet")
			return
		}
		if w.endless() {
			break
		}
	}
	for _, text := range left {
		w.broken("D3: not finished: %s", text)
	}
}

// probe checks that all places of the lanes are free.
func (w *world) probe(l *life) {
	expect := func(lane string, tags []string, begin func()) {
		p := &probe{want: width, all: make(chan struct{})}
		w.mu.Lock()
		for _, tag := range tags {
			w.probes[tag] = p
		}
		w.mu.Unlock()
		begin()
		select {
		case <-p.all:
		case <-time.After(6 * time.Minute):
			w.mu.Lock()
			n := p.arrived
			w.mu.Unlock()
			w.broken("L1: %d of %d runs are in the lane %s at the same time", n, width, lane)
		}
		w.await("the probe of the lane " + lane)
	}
	var chats []*chat
	for i := range width {
		chats = append(chats,
			&chat{name: fmt.Sprint("probe", i), session: chela.SessionKey(fmt.Sprint("agent:main:probe", i))})
	}
	ask := func(c *chat, lane, tag string) {
		w.send(c, "probe-"+lane+c.name, "", "please do <<"+tag+">>", "", true, func() {})
	}
	expect("main", []string{"probe.m"}, func() {
		for _, c := range chats {
			ask(c, "main", "probe.m")
		}
	})
	var labels []string
	for i := range width {
		labels = append(labels, fmt.Sprintf("p.probe.%d.%d", width, i))
	}
	w.settle(l)
	expect("subagent", labels, func() { ask(chats[0], "subagent", fmt.Sprint("probe.", width)) })
	w.settle(l)
	if len(w.jobs) > 0 {
		expect("cron", []string{"probe.c"}, w.probeJobs)
		w.settle(l)
	}
	if w.beats != nil {
		w.probeBeats(l)
		w.settle(l)
	}
}
