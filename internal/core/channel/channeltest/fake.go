package channeltest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
)

// Fault describes how a call of the fake fails.
type Fault struct {
	Err    error
	Accept bool // the platform accepted the message before the failure
	Drop   bool // the connection is lost: Run ends
}

// Permanent rejects a message permanently.
func Permanent() Fault {
	return Fault{Err: &channel.Error{Permanent: true, Err: errors.New("chat not found")}}
}

// Temporary fails with an error that a retry may resolve.
func Temporary() Fault { return Fault{Err: &channel.Error{Err: errors.New("try again")}} }

// Limited rejects a message and asks for a retry after d.
func Limited(d time.Duration) Fault {
	return Fault{Err: &channel.Error{RetryAfter: d, Err: errors.New("too many requests")}}
}

// Cut accepts the message and loses the connection before confirming it.
func Cut() Fault { return Fault{Err: channel.ErrAmbiguous, Accept: true} }

// Broken loses the connection before the platform accepts the message. The caller
// cannot distinguish it from Cut.
func Broken() Fault { return Fault{Err: channel.ErrAmbiguous} }

// Lost is like Cut and also ends Run.
func Lost() Fault { return Fault{Err: channel.ErrAmbiguous, Accept: true, Drop: true} }

// Message is a message as people see it on the platform.
type Message struct {
	ID      string
	Key     string
	Address chela.Address
	ReplyTo string
	Text    string
	Media   []chela.Media
	Buttons [][]channel.Button
	Poll    *channel.Poll // nil: it is none
	Time    time.Time
	Edits   int
	Emoji   string // the reaction of the account; "": none
	Pinned  bool
	Gone    bool // deleted
}

// Call is one call that the fake received.
type Call struct {
	Op      string // send, poll, edit, delete, typing, react, pin, unpin, thread, read, search
	Address chela.Address
	Key     string
	ID      string
	Text    string
	Time    time.Time
	Err     error
}

// Fake is a platform in memory with all optional abilities. The zero value is
// ready to use; set the fields before using it. [Fake.Plain] and [Fake.Editing]
// are the same platform with fewer abilities. It is safe for concurrent use.
type Fake struct {
	Latency time.Duration   // of each call
	Once    bool            // sending one Part.Key repeatedly creates one message
	Entries []channel.Entry // of the directory; names are found by parts of them

	mu       sync.Mutex
	faults   []Fault // of the next sends
	edits    []Fault // of the next edits
	others   []Fault // of the next other calls
	messages []Message
	calls    []Call
	sink     channel.Sink
	open     chan struct{} // closed when a sink is set
	dropped  chan struct{} // closed when the connection is lost
}

var (
	_ channel.Channel   = (*Fake)(nil)
	_ channel.Editor    = (*Fake)(nil)
	_ channel.Deleter   = (*Fake)(nil)
	_ channel.Typer     = (*Fake)(nil)
	_ channel.Reactor   = (*Fake)(nil)
	_ channel.Finder    = (*Fake)(nil)
	_ channel.Prober    = (*Fake)(nil)
	_ channel.Poller    = (*Fake)(nil)
	_ channel.Pinner    = (*Fake)(nil)
	_ channel.Threader  = (*Fake)(nil)
	_ channel.Reader    = (*Fake)(nil)
	_ channel.Directory = (*Fake)(nil)
)

// Plain is a Fake that can only send and receive.
type Plain struct{ f *Fake }

// Plain returns the platform as a channel that can only send and receive.
func (f *Fake) Plain() Plain { return Plain{f} }

// Run implements channel.Channel.
func (p Plain) Run(ctx context.Context, s channel.Sink) error { return p.f.Run(ctx, s) }

// Send implements channel.Channel.
func (p Plain) Send(ctx context.Context, m channel.Part) (channel.Receipt, error) {
	return p.f.Send(ctx, m)
}

// Editing is a Fake that can edit and delete sent messages, but not find them.
type Editing struct{ Plain }

// Editing returns the platform as a channel that can edit and delete.
func (f *Fake) Editing() Editing { return Editing{Plain{f}} }

// Edit implements channel.Editor.
func (e Editing) Edit(ctx context.Context, a chela.Address, id, text string) error {
	return e.f.Edit(ctx, a, id, text)
}

// Delete implements channel.Deleter.
func (e Editing) Delete(ctx context.Context, a chela.Address, id string) error {
	return e.f.Delete(ctx, a, id)
}

// Fail makes the next sends fail, one fault each; a zero Fault succeeds.
func (f *Fake) Fail(faults ...Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = append(f.faults, faults...)
}

// FailEdits makes the next edits fail.
func (f *Fake) FailEdits(faults ...Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.edits = append(f.edits, faults...)
}

// FailOthers makes the next reactions, deletions, pins, threads, reads and searches fail.
func (f *Fake) FailOthers(faults ...Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.others = append(f.others, faults...)
}

// Messages returns the visible messages at an address, oldest first; at all
// addresses for the zero Address.
func (f *Fake) Messages(a chela.Address) []Message {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []Message
	for _, m := range f.messages {
		if !m.Gone && (a == chela.Address{} || m.Address == a) {
			out = append(out, m)
		}
	}
	return out
}

// Texts returns the texts of Messages.
func (f *Fake) Texts(a chela.Address) []string {
	var out []string
	for _, m := range f.Messages(a) {
		out = append(out, m.Text)
	}
	return out
}

// Calls returns the calls of an operation; all calls for "".
func (f *Fake) Calls(op string) []Call {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []Call
	for _, c := range f.calls {
		if op == "" || c.Op == op {
			out = append(out, c)
		}
	}
	return out
}

// Vanish deletes a message as a person on the platform would.
func (f *Fake) Vanish(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m := f.findLocked(id); m != nil {
		m.Gone = true
	}
}

func (f *Fake) findLocked(id string) *Message {
	for i := range f.messages {
		if f.messages[i].ID == id && !f.messages[i].Gone {
			return &f.messages[i]
		}
	}
	return nil
}

// wait simulates the latency of a call.
func (f *Fake) wait(ctx context.Context) error {
	if f.Latency > 0 {
		t := time.NewTimer(f.Latency)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

// noteLocked records a call.
func (f *Fake) noteLocked(c Call) {
	c.Time = time.Now()
	f.calls = append(f.calls, c)
}

// take removes and returns the next fault of a list.
func take(faults *[]Fault) Fault {
	if len(*faults) == 0 {
		return Fault{}
	}
	fault := (*faults)[0]
	*faults = (*faults)[1:]
	return fault
}

// Send implements channel.Channel.
func (f *Fake) Send(ctx context.Context, p channel.Part) (channel.Receipt, error) {
	if err := f.wait(ctx); err != nil {
		return channel.Receipt{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if p.Text == "" && len(p.Media) == 0 {
		return channel.Receipt{}, &channel.Error{Permanent: true, Err: errors.New("message is empty")}
	}
	return f.putLocked("send", Message{
		Key:     p.Key,
		Address: p.Address,
		ReplyTo: p.ReplyTo,
		Text:    p.Text,
		Media:   p.Media,
		Buttons: p.Buttons,
	})
}

// putLocked sends a message, unless the next fault prevents it.
func (f *Fake) putLocked(op string, in Message) (channel.Receipt, error) {
	fault := take(&f.faults)
	m := f.keyLocked(in)
	if m == nil && (fault.Err == nil || fault.Accept) {
		in.ID, in.Time = fmt.Sprint("m", len(f.messages)+1), time.Now()
		f.messages = append(f.messages, in)
		m = &f.messages[len(f.messages)-1]
	}
	if fault.Drop {
		f.dropLocked()
	}
	c := Call{Op: op, Address: in.Address, Key: in.Key, Text: in.Text, Err: fault.Err}
	if m != nil {
		c.ID = m.ID
	}
	f.noteLocked(c)
	if fault.Err != nil {
		return channel.Receipt{}, fault.Err
	}
	return channel.Receipt{ID: m.ID, Time: m.Time}, nil
}

// keyLocked returns the message that was already sent with the key of p.
func (f *Fake) keyLocked(p Message) *Message {
	for i := range f.messages {
		if m := &f.messages[i]; f.Once && p.Key != "" && m.Key == p.Key && m.Address == p.Address {
			return m
		}
	}
	return nil
}

// Edit implements channel.Editor.
func (f *Fake) Edit(ctx context.Context, a chela.Address, id, text string) error {
	if err := f.wait(ctx); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	fault := take(&f.edits)
	m := f.findLocked(id)
	err := fault.Err
	if m == nil {
		err = fmt.Errorf("message %s: %w", id, channel.ErrGone)
	}
	if m != nil && (err == nil || fault.Accept) {
		m.Text = text
		m.Edits++
	}
	f.noteLocked(Call{Op: "edit", Address: a, ID: id, Text: text, Err: err})
	return err
}

// Delete implements channel.Deleter.
func (f *Fake) Delete(ctx context.Context, a chela.Address, id string) error {
	return f.change(ctx, Call{Op: "delete", Address: a, ID: id}, func(m *Message) { m.Gone = true })
}

// change changes a message, unless the next fault prevents it.
func (f *Fake) change(ctx context.Context, c Call, do func(*Message)) error {
	if err := f.wait(ctx); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	fault := take(&f.others)
	m := f.findLocked(c.ID)
	if c.Err = fault.Err; m == nil {
		c.Err = fmt.Errorf("message %s: %w", c.ID, channel.ErrGone)
	}
	if m != nil && (c.Err == nil || fault.Accept) {
		do(m)
	}
	f.noteLocked(c)
	return c.Err
}

// Typing implements channel.Typer.
func (f *Fake) Typing(ctx context.Context, a chela.Address) error {
	if err := f.wait(ctx); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.noteLocked(Call{Op: "typing", Address: a})
	return nil
}

// React implements channel.Reactor. The message may be one of a person, which the fake does
// not keep.
func (f *Fake) React(ctx context.Context, a chela.Address, id, emoji string) error {
	if err := f.other(ctx, Call{Op: "react", Address: a, ID: id, Text: emoji}); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if m := f.findLocked(id); m != nil {
		m.Emoji = emoji
	}
	return nil
}

// Pin implements channel.Pinner.
func (f *Fake) Pin(ctx context.Context, a chela.Address, id string, pinned bool) error {
	op := "unpin"
	if pinned {
		op = "pin"
	}
	return f.change(ctx, Call{Op: op, Address: a, ID: id}, func(m *Message) { m.Pinned = pinned })
}

// Poll implements channel.Poller.
func (f *Fake) Poll(ctx context.Context, p channel.Poll) (channel.Receipt, error) {
	if err := f.wait(ctx); err != nil {
		return channel.Receipt{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.putLocked("poll", Message{Key: p.Key, Address: p.Address, Text: p.Question, Poll: &p})
}

// Thread implements channel.Threader.
func (f *Fake) Thread(ctx context.Context, a chela.Address, name string) (chela.Address, error) {
	if err := f.other(ctx, Call{Op: "thread", Address: a, Text: name}); err != nil {
		return a, err
	}
	a.Thread = "t-" + name
	return a, nil
}

// other records a call that changes no message. It fails with the next fault.
func (f *Fake) other(ctx context.Context, c Call) error {
	if err := f.wait(ctx); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	c.Err = take(&f.others).Err
	f.noteLocked(c)
	return c.Err
}

// Read implements channel.Reader. It returns the messages of the account.
func (f *Fake) Read(ctx context.Context, a chela.Address, n int) ([]channel.Message, error) {
	if err := f.other(ctx, Call{Op: "read", Address: a}); err != nil {
		return nil, err
	}
	var out []channel.Message
	for _, m := range f.Messages(a) {
		out = append(out, channel.Message{ID: m.ID, Own: true, Text: m.Text, Time: m.Time})
	}
	return out[max(0, len(out)-n):], nil
}

// Search implements channel.Directory.
func (f *Fake) Search(ctx context.Context, kind chela.PeerKind, query string, n int) ([]channel.Entry, error) {
	if err := f.other(ctx, Call{Op: "search", Text: query}); err != nil {
		return nil, err
	}
	query = strings.ToLower(query)
	var out []channel.Entry
	for _, e := range f.Entries {
		fits := strings.Contains(strings.ToLower(e.Name), query) || strings.Contains(strings.ToLower(e.Handle), query)
		if fits && (kind == "" || kind == e.Peer.Kind) && len(out) < n {
			out = append(out, e)
		}
	}
	return out, nil
}

// Find implements channel.Finder.
func (f *Fake) Find(ctx context.Context, a chela.Address, key string) (channel.Receipt, bool, error) {
	if err := f.wait(ctx); err != nil {
		return channel.Receipt{}, false, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.messages {
		if m.Key == key && m.Address == a {
			return channel.Receipt{ID: m.ID, Time: m.Time}, true, nil
		}
	}
	return channel.Receipt{}, false, nil
}

// Probe implements channel.Prober.
func (f *Fake) Probe(ctx context.Context) error { return f.wait(ctx) }

// Run implements channel.Channel. It returns an error when a fault drops the
// connection.
func (f *Fake) Run(ctx context.Context, s channel.Sink) error {
	f.mu.Lock()
	f.sink = s
	f.dropped = make(chan struct{})
	dropped := f.dropped
	close(f.openLocked())
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		f.sink, f.open = nil, nil
		f.mu.Unlock()
	}()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-dropped:
		return errors.New("connection lost")
	}
}

func (f *Fake) openLocked() chan struct{} {
	if f.open == nil {
		f.open = make(chan struct{})
	}
	return f.open
}

func (f *Fake) dropLocked() {
	if f.dropped != nil {
		close(f.dropped)
		f.dropped = nil
	}
}

// Say delivers a message of a person. It passes the message to the sink
// of Run, waiting for one if necessary, and repeats it until it is accepted, like
// a platform with a cursor.
func (f *Fake) Say(ctx context.Context, in chela.Inbound) error {
	for {
		f.mu.Lock()
		open, sink := f.openLocked(), f.sink
		f.mu.Unlock()
		if sink == nil {
			select {
			case <-open:
				continue
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if err := sink(ctx, in); err == nil || ctx.Err() != nil {
			return err
		}
		t := time.NewTimer(100 * time.Millisecond)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
		}
	}
}

// Redeliver delivers each message one to five times, in a random order drawn from
// r, like a platform without delivery guarantees.
func (f *Fake) Redeliver(ctx context.Context, r *rand.Rand, ins ...chela.Inbound) error {
	var all []chela.Inbound
	for _, in := range ins {
		all = append(all, slices.Repeat([]chela.Inbound{in}, 1+r.IntN(5))...)
	}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, in := range all {
		if err := f.Say(ctx, in); err != nil {
			return err
		}
	}
	return nil
}
