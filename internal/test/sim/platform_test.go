package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
)

// chat is a conversation: on a platform, or a session of the terminal.
type chat struct {
	name    string
	session chela.SessionKey
	address chela.Address // zero: the terminal
	senders []string
	serial  int // of messages; ids are unique within a chat only
}

// platform is a messaging platform, which outlives the gateway. It offers each message
// until the gateway accepts it, and some again after that.
type platform struct {
	w    *world
	name string

	mu      sync.Mutex
	waiting []*offer
	changed chan struct{}
	sent    []*sent
	tries   map[string]int // by text
}

// offer is a message that the platform offers.
type offer struct {
	in       chela.Inbound
	accepted func() // nil after the first time
}

// sent is a message that the gateway sent.
type sent struct {
	id, key string
	to      chela.Address
	text    string
	gone    bool
	edits   int
	by      *life
}

func newPlatform(w *world, name string) *platform {
	return &platform{w: w, name: name, changed: make(chan struct{}), tries: map[string]int{}}
}

// say offers a message.
func (p *platform) say(o *offer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := len(p.waiting)
	if at > 0 && p.w.chance(15, "reordered", p.name, o.in.Address, o.in.ID) {
		at--
	}
	p.waiting = slices.Insert(p.waiting, at, o)
	close(p.changed)
	p.changed = make(chan struct{})
}

// account is the connection of a gateway to a platform. It can only send and receive.
type account struct {
	p *platform
	l *life
}

// Run implements channel.Channel.
func (a account) Run(ctx context.Context, sink channel.Sink) error {
	p := a.p
	for {
		p.mu.Lock()
		var o *offer
		if len(p.waiting) > 0 {
			o = p.waiting[0]
		}
		changed := p.changed
		p.mu.Unlock()
		if a.l.dead() {
			<-ctx.Done()
			return ctx.Err()
		}
		if o == nil {
			select {
			case <-changed:
			case <-a.l.ctx.Done():
			case <-ctx.Done():
				return ctx.Err()
			}
			continue
		}
		err := sink(ctx, o.in)
		if a.l.dead() {
			continue
		}
		if err != nil {
			p.w.tell("%s: message %s is not accepted: %v", p.name, o.in.ID, err)
			select {
			case <-time.After(2 * time.Second):
			case <-ctx.Done():
				return ctx.Err()
			}
			continue
		}
		p.ack(o)
	}
}

// ack removes a message that was accepted, or offers it again.
func (p *platform) ack(o *offer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if o.accepted != nil {
		o.accepted()
		o.accepted = nil
		if p.w.chance(12, "again", p.name, o.in.Address, o.in.ID) { // the acknowledgment was lost
			return
		}
	}
	p.waiting = slices.DeleteFunc(p.waiting, func(have *offer) bool { return have == o })
}

// Send implements channel.Channel.
func (a account) Send(ctx context.Context, part channel.Part) (channel.Receipt, error) {
	a.l.step("channel.send")
	if a.l.dead() {
		return channel.Receipt{}, errDead
	}
	w := a.p.w
	n := a.p.attempts(part.Text)
	rnd := w.rnd("send", part.Text, n)
	for _, c := range w.chats {
		if c.address == part.Address { // what waited begins now
			w.react(c, "send "+part.Text, settings...)
		}
	}
	if err := a.wait(ctx, seconds(rnd, 0, 3)); err != nil {
		return channel.Receipt{}, err
	}
	how := ""
	if w.chance(15, "send fails", part.Text, n) {
		how = pick(rnd, weighted[string]{3, "refused"}, weighted[string]{3, "later"}, weighted[string]{1, "forever"},
			weighted[string]{2, "lost"}, weighted[string]{2, "unknown"}, weighted[string]{1, "slow"})
		w.tell("%s: sending %q fails: %s", a.p.name, part.Text, how)
	}
	switch how {
	case "refused":
		return channel.Receipt{}, &channel.Error{Err: errors.New("try again")}
	case "later":
		return channel.Receipt{}, &channel.Error{RetryAfter: 20 * time.Second, Err: errors.New("too many requests")}
	case "forever":
		return channel.Receipt{}, &channel.Error{Permanent: true, Err: errors.New("chat not found")}
	case "lost":
		return channel.Receipt{}, channel.ErrAmbiguous
	case "slow":
		if err := a.wait(ctx, 70*time.Second); err != nil {
			return channel.Receipt{}, err
		}
	}
	id := a.p.deliver(part, a.l)
	a.l.step("channel.sent")
	if a.l.dead() {
		return channel.Receipt{}, errDead
	}
	if how == "unknown" {
		return channel.Receipt{}, channel.ErrAmbiguous
	}
	return channel.Receipt{ID: id, Time: time.Now()}, nil
}

func (a account) wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-a.l.ctx.Done():
		return errDead
	}
}

// attempts counts the attempts to send a text.
func (p *platform) attempts(key string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tries[key]++
	return p.tries[key]
}

// deliver creates a message on the platform.
func (p *platform) deliver(part channel.Part, by *life) string {
	p.mu.Lock()
	s := &sent{id: fmt.Sprint(p.name, len(p.sent)+1), key: part.Key, to: part.Address, text: part.Text, by: by}
	p.sent = append(p.sent, s)
	p.mu.Unlock()
	p.w.tell("%s: %s gets %q", p.name, chatName(part.Address), part.Text)
	return s.id
}

func chatName(a chela.Address) string {
	return strings.Trim(a.Peer.ID+"/"+a.Thread, "/")
}

// able is an account that can edit, delete and find messages.
type able struct{ account }

var (
	_ channel.Editor  = able{}
	_ channel.Deleter = able{}
	_ channel.Finder  = able{}
	_ channel.Typer   = able{}
)

func (a able) change(id string, f func(*sent)) error {
	if a.l.dead() {
		return errDead
	}
	a.p.mu.Lock()
	defer a.p.mu.Unlock()
	for _, s := range a.p.sent {
		if s.id == id && !s.gone {
			f(s)
			return nil
		}
	}
	return channel.ErrGone
}

// Edit implements channel.Editor.
func (a able) Edit(_ context.Context, _ chela.Address, id, text string) error {
	if a.p.w.chance(5, "edit fails", text) {
		return &channel.Error{Err: errors.New("try again")}
	}
	return a.change(id, func(s *sent) { s.text = text; s.edits++ })
}

// Delete implements channel.Deleter.
func (a able) Delete(_ context.Context, _ chela.Address, id string) error {
	return a.change(id, func(s *sent) { s.gone = true })
}

// Typing implements channel.Typer.
func (a able) Typing(context.Context, chela.Address) error { return nil }

// Find implements channel.Finder.
func (a able) Find(_ context.Context, _ chela.Address, key string) (channel.Receipt, bool, error) {
	if a.l.dead() {
		return channel.Receipt{}, false, errDead
	}
	if !strings.HasSuffix(key, ":preview") && a.p.w.chance(15, "find fails", key, a.p.attempts("find "+key)) {
		return channel.Receipt{}, false, &channel.Error{Err: errors.New("try again")}
	}
	a.p.mu.Lock()
	defer a.p.mu.Unlock()
	for _, s := range a.p.sent {
		if s.key == key && !s.gone {
			return channel.Receipt{ID: s.id}, true, nil
		}
	}
	return channel.Receipt{}, false, nil
}
