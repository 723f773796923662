package external

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/plugin/channel/chatjson"
)

// Version is the version of the protocol.
const Version = 1

// Messages of people that wait for the sink.
const (
	maxQueue      = 32
	maxQueueBytes = 64 << 20
	fullRetry     = time.Second // until the program may try again
)

var (
	errSilent = errors.New("the program does not answer")
	errAnswer = errors.New("no answer of the program in time")
)

// conn is a running program.
type conn struct {
	b      *bridge
	in     *input
	log    *printed
	ctx    context.Context // ends when the program has ended or has to be ended
	cancel context.CancelCauseFunc
	end    func()        // ends the processes
	exited chan struct{} // closed when they have ended

	queue  chan received
	queued atomic.Int64 // bytes in queue and in progress

	mu      sync.Mutex
	last    int64                // id of a request
	waiting map[int64]chan frame // what receives the answers, by the ids of requests; each has room for one
	heard   time.Time            // when the last line of the program arrived
	state   *state               // that the program reported; nil: none
}

// received is a message of a person that the program passes on.
type received struct {
	id    json.RawMessage // of the request
	bytes int64
	in    chela.Inbound
}

// state is what the program reports about its connection to the platform.
type state struct {
	Connected bool   `json:"connected"`
	Error     string `json:"error"`
	Permanent bool   `json:"permanent"`
}

func newConn(ctx context.Context, b *bridge) *conn {
	c := &conn{
		b: b, in: newInput(), log: newPrinted(b.env.Log, b.o.Redact), exited: make(chan struct{}),
		queue: make(chan received, maxQueue), waiting: map[int64]chan frame{}, heard: time.Now(),
	}
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	return c
}

// stop ends the program, which is told so by the end of its input, and waits for its end.
func (c *conn) stop() {
	c.cancel(errors.New("it was stopped"))
	c.in.close()
	t := time.NewTimer(stopTime)
	defer t.Stop()
	select {
	case <-c.exited:
	case <-t.C:
	}
	c.end()
	<-c.exited
}

// explain returns why a connection ended, with the last line that the program printed.
func (c *conn) explain(err error) error {
	if line := c.log.lastLine(); line != "" && !strings.Contains(err.Error(), line) {
		return fmt.Errorf("%s: %w; it printed last: %q", c.b.o.Name, err, line)
	}
	return fmt.Errorf("%s: %w", c.b.o.Name, err)
}

// start is the request initialize.
type start struct {
	Version  int             `json:"protocolVersion"`
	Chela    string          `json:"chelaVersion"`
	Channel  string          `json:"channel"`
	Account  chela.AccountID `json:"account"`
	Settings json.RawMessage `json:"settings"`
}

// initialize has the program start its work.
func (c *conn) initialize() error {
	var started struct {
		Version   int      `json:"protocolVersion"`
		Name      string   `json:"name"`
		Abilities []string `json:"abilities"`
	}
	o := &c.b.o
	err := c.call(c.ctx, request{
		method: "initialize",
		params: start{Version, o.Version, o.Name, c.b.account, c.b.settings},
		result: &started,
		limit:  startTime,
		reads:  true,
	})
	if err != nil {
		if c.ctx.Err() != nil {
			return context.Cause(c.ctx)
		}
		return fmt.Errorf("initialize: %w", err)
	}
	if started.Version != Version {
		return &channel.Error{Permanent: true, Err: fmt.Errorf("the program speaks version %d of the protocol, not %d",
			started.Version, Version)}
	}
	says, declared := sorted(started.Abilities), sorted(o.Abilities)
	if !slices.Equal(says, declared) {
		return &channel.Error{Permanent: true, Err: fmt.Errorf(
			"the program has the abilities [%s], but the manifest declares [%s]: change channel.abilities of the manifest, or the program",
			clean(strings.Join(says, " ")), strings.Join(declared, " "))}
	}
	c.b.env.Log.Info("channel program started", "name", clean(started.Name))
	return nil
}

func sorted(list []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(list)))
}

// request is a request to the program.
type request struct {
	method string
	params any
	result any // pointer; nil: not needed
	limit  time.Duration
	reads  bool // repeating it has no effect
}

// call sends a request and decodes the result of its answer.
func (c *conn) call(ctx context.Context, r request) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	f, err := c.answer(ctx, r)
	switch {
	case err != nil:
		return err
	case f.Error != nil:
		return f.Error.err(cmp.Or(clean(c.b.o.Redact(f.Error.Message)), fmt.Sprintf("error %d", f.Error.Code)))
	case r.result == nil:
		return nil
	}
	if err := json.Unmarshal(f.Result, r.result); err != nil {
		return r.lost(fmt.Errorf("%s: the result of the program is not usable: %w", r.method, err))
	}
	return nil
}

// lost returns the error of a request that may have had an effect.
func (r request) lost(err error) error {
	if r.reads {
		return &channel.Error{Err: err}
	}
	return fmt.Errorf("%w: %w", channel.ErrAmbiguous, err)
}

// answer sends a request and waits for its answer.
//
// If the answer does not come, the line is withdrawn. If the program has read nothing of it, the
// request was certainly not carried out. A program from which nothing at all has come in the
// meantime is ended: it hangs.
func (c *conn) answer(ctx context.Context, r request) (frame, error) {
	params, err := json.Marshal(r.params)
	if err != nil {
		return frame{}, &channel.Error{Permanent: true, Err: fmt.Errorf("%s: %w", r.method, err)}
	}
	id, answers := c.expect()
	defer c.forget(id)
	line, err := frame{ID: json.RawMessage(fmt.Sprint(id)), Method: r.method, Params: params}.line()
	if err != nil {
		return frame{}, &channel.Error{Permanent: true, Err: fmt.Errorf("%s: %w", r.method, err)}
	}
	began := time.Now()
	p, err := c.in.put(line)
	if err != nil {
		if errors.Is(err, errUnread) {
			c.cancel(err)
		}
		return frame{}, &channel.Error{Err: fmt.Errorf("%s: %w", r.method, err), RetryAfter: retryTime}
	}
	t := time.NewTimer(r.limit)
	defer t.Stop()
	why := errAnswer
	select {
	case f := <-answers:
		return f, nil
	case <-c.ctx.Done():
		why = context.Cause(c.ctx)
	case <-ctx.Done():
		why = ctx.Err()
	case <-t.C:
	}
	select {
	case f := <-answers: // it came at the same time
		return f, nil
	default:
	}
	unread := c.in.withdraw(p)
	if errors.Is(why, errAnswer) && c.quietSince(began) {
		c.cancel(errSilent)
	}
	switch {
	case unread && ctx.Err() != nil:
		return frame{}, ctx.Err()
	case unread:
		return frame{}, &channel.Error{Err: fmt.Errorf("%s: %w", r.method, why), RetryAfter: retryTime}
	}
	return frame{}, r.lost(fmt.Errorf("%s: %w", r.method, why))
}

// expect returns the id of the next request, and what receives its answer.
func (c *conn) expect() (int64, <-chan frame) {
	answers := make(chan frame, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	c.waiting[c.last] = answers
	return c.last, answers
}

func (c *conn) forget(id int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, id)
}

// quietSince reports whether nothing of the program has arrived since a time.
func (c *conn) quietSince(at time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.heard.After(at)
}

// handle handles a line of the program. It never waits. It runs on the goroutine that reads the
// output, which the program may be waiting for.
func (c *conn) handle(line []byte) {
	f, err := parse(line)
	if err != nil {
		c.cancel(fmt.Errorf("the program broke the protocol: %w", err))
		return
	}
	c.mu.Lock()
	c.heard = time.Now()
	c.mu.Unlock()
	switch {
	case f.Method == "" && f.ID == nil:
		c.cancel(fmt.Errorf("the program did not understand a request: %s", clean(c.b.o.Redact(f.Error.Message))))
	case f.Method == "":
		c.answered(f)
	case f.Method == "message" && f.ID != nil:
		c.received(f, int64(len(line)))
	case f.Method == "state":
		c.stateChanged(f)
	case f.ID != nil:
		c.respond(f.ID, &fault{Code: codeUnknownMethod, Message: "there is no such method"})
	}
}

// answered passes an answer to the request that waits for it, unless it is late.
func (c *conn) answered(f frame) {
	var id int64
	if json.Unmarshal(f.ID, &id) != nil {
		return
	}
	c.mu.Lock()
	answers := c.waiting[id]
	delete(c.waiting, id)
	c.mu.Unlock()
	if answers != nil {
		answers <- f
	}
}

// respond answers a request of the program.
func (c *conn) respond(id json.RawMessage, e *fault) {
	f := frame{ID: id, Error: e}
	if e == nil {
		f.Result = json.RawMessage("{}")
	}
	line, err := f.line()
	if err == nil {
		_, err = c.in.put(line)
	}
	if err != nil {
		c.cancel(err)
	}
}

// received queues a message of a person for the sink.
func (c *conn) received(f frame, bytes int64) {
	invalid := func(err error) {
		c.respond(f.ID, &fault{Code: codeInvalidParams, Message: err.Error(), Data: faultData{Permanent: true}})
	}
	var m chatjson.Message
	if err := json.Unmarshal(f.Params, &m); err != nil {
		invalid(fmt.Errorf("message: %w", err))
		return
	}
	in, err := m.Inbound(chela.Address{Channel: c.b.o.Name, Account: c.b.account}, c.b.source)
	if err != nil {
		invalid(err)
		return
	}
	if c.queued.Load()+bytes <= maxQueueBytes {
		select {
		case c.queue <- received{f.ID, bytes, in}:
			c.queued.Add(bytes)
			return
		default:
		}
	}
	c.respond(f.ID, &fault{Code: codeBusy, Message: "too many messages wait; send it again",
		Data: faultData{RetryAfterMS: float64(fullRetry.Milliseconds())}})
}

// deliver passes messages to the sink, in order, and answers each when it was accepted.
func (c *conn) deliver(sink channel.Sink) {
	for {
		var m received
		select {
		case m = <-c.queue:
		case <-c.ctx.Done():
			return
		}
		var refused error
		err := channel.Accept(c.ctx, c.b.env.Log.With("message", m.in.ID), func(ctx context.Context) error {
			err := sink(ctx, m.in)
			if channel.Refused(err) {
				refused = err
			}
			return err
		})
		if err != nil {
			return
		}
		c.queued.Add(-m.bytes)
		if refused != nil {
			c.respond(m.id, &fault{Code: codeRefused, Message: "the message is not accepted", Data: faultData{Permanent: true}})
		} else {
			c.respond(m.id, nil)
		}
	}
}

// stateChanged notes what the program reports about its connection.
func (c *conn) stateChanged(f frame) {
	var s state
	if err := json.Unmarshal(f.Params, &s); err != nil {
		c.cancel(fmt.Errorf("the program broke the protocol: state: %w", err))
		return
	}
	s.Error = cmp.Or(clean(c.b.o.Redact(s.Error)), "the connection to the platform is lost")
	c.mu.Lock()
	c.state = &s
	c.mu.Unlock()
	if !s.Connected && s.Permanent {
		c.cancel(&channel.Error{Permanent: true, Err: errors.New(s.Error)})
		return
	}
	c.restate()
}

// restate reports the state that the program reported last.
func (c *conn) restate() {
	c.mu.Lock()
	s := c.state
	c.mu.Unlock()
	switch {
	case s == nil:
	case s.Connected:
		c.b.env.Report(nil)
	default:
		c.b.env.Report(errors.New(s.Error))
	}
}
