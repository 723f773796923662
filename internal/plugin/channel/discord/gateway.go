package discord

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/kit/atomicfile"
	"github.com/chela-ai/chela/internal/kit/backoff"
)

const (
	maxFrame     = 16 << 20         // bytes of a frame
	maxPending   = 1000             // events that wait for the sink
	maxAcks      = 16               // interactions that are being acknowledged
	helloTimeout = 30 * time.Second // for the first frame, and for the answer to identify
	writeTimeout = 10 * time.Second
	saveInterval = 10 * time.Second // between writes of the session while messages arrive
	sessionFile  = "session.json"
)

// Operations of the gateway.
const (
	opDispatch     = 0
	opHeartbeat    = 1
	opIdentify     = 2
	opResume       = 6
	opReconnect    = 7
	opInvalid      = 9
	opHello        = 10
	opHeartbeatAck = 11
)

// intents are the groups of events that the bot receives: guilds, messages in guilds,
// reactions in guilds, direct messages, reactions to them, and the content of messages.
const intents = 1<<0 | 1<<9 | 1<<10 | 1<<12 | 1<<13 | 1<<15

// frame is a message of the gateway.
type frame struct {
	Op   int             `json:"op"`
	Data json.RawMessage `json:"d"`
	Seq  int64           `json:"s,omitempty"`
	Type string          `json:"t,omitempty"`
}

// event is a numbered event of a session.
type event struct {
	frame
	session string
}

// session is what a connection is resumed with.
type session struct {
	ID    string `json:"session,omitempty"`
	URL   string `json:"url,omitempty"` // of the gateway for resuming
	Done  int64  `json:"sequence"`      // of the last event that was processed completely
	Self  user   `json:"user"`
	App   string `json:"application"`
	Token string `json:"token"` // hash of the token, which tells another bot

	// queued is the number of the last event that was received. It is not stored: the events
	// between Done and queued wait in this process, and Discord sends them again to another.
	queued int64
}

// receiver is the state of Run. It outlives the connections, so that events of a lost one
// that wait for the sink are neither lost nor queued twice.
type receiver struct {
	*bot
	sink   channel.Sink
	events chan event
	acks   chan struct{}  // a slot for each interaction that is being acknowledged
	wg     sync.WaitGroup // process

	mu    sync.Mutex // guards the following
	now   session
	saved time.Time
}

// Run implements channel.Channel.
func (b *bot) Run(ctx context.Context, sink channel.Sink) error {
	r := &receiver{bot: b, sink: sink, events: make(chan event, maxPending), acks: make(chan struct{}, maxAcks)}
	r.load()
	ctx, cancel := context.WithCancel(ctx)
	r.wg.Go(func() { r.process(ctx) })
	err := channel.Reconnect(ctx, b.env, r.connect)
	cancel()
	r.wg.Wait()
	r.save()
	return err
}

// load reads the session of an earlier process.
func (r *receiver) load() {
	if r.env.Dir == "" {
		return
	}
	data, err := os.ReadFile(filepath.Join(r.env.Dir, sessionFile))
	if err != nil {
		return
	}
	var s session
	if json.Unmarshal(data, &s) != nil || s.Token != r.tokenHash() || s.ID == "" || s.Done <= 0 ||
		!snowflake(s.Self.ID) || !r.gatewayURL(s.URL) {
		return
	}
	s.queued = s.Done
	r.now = s
	r.know(s.Self, s.App)
}

// tokenHash returns what tells the token from others without revealing it.
func (b *bot) tokenHash() string {
	sum := sha256.Sum256([]byte("discord session " + b.token.Reveal()))
	return hex.EncodeToString(sum[:8])
}

// save writes the session to its file. After a kill the file may be older than what was
// processed. The events since then are sent again, and the engine drops the messages that it has.
func (r *receiver) save() {
	if r.env.Dir == "" {
		return
	}
	r.mu.Lock()
	s := r.now
	s.Token, r.saved = r.tokenHash(), time.Now()
	r.mu.Unlock()
	data, err := json.Marshal(s)
	if err == nil {
		err = os.MkdirAll(r.env.Dir, 0o700)
	}
	if err == nil {
		err = atomicfile.Write(filepath.Join(r.env.Dir, sessionFile), data, 0o600)
	}
	if err != nil {
		r.env.Log.Warn("cannot store the session; a restart does not resume it", "err", err)
	}
}

// know records who the account is.
func (b *bot) know(self user, app string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.self = self
	if app != "" {
		b.app = app
	}
}

// me returns who the account is.
func (b *bot) me() user {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.self
}

// gatewayURL reports whether a URL may be one of the gateway.
func (b *bot) gatewayURL(s string) bool {
	u, err := url.Parse(s)
	if err != nil {
		return false
	}
	h := u.Hostname()
	return b.trusts(u, []string{"wss"}) || u.Scheme == "wss" && u.User == nil && b.host == "" &&
		(h == "discord.gg" || strings.HasSuffix(h, ".discord.gg"))
}

// find asks for the URL of the gateway.
func (b *bot) find(ctx context.Context) (string, error) {
	var g struct {
		URL   string `json:"url"`
		Limit struct {
			Remaining  *int  `json:"remaining"`
			ResetAfter int64 `json:"reset_after"` // milliseconds
		} `json:"session_start_limit"`
	}
	if err := b.do(ctx, "GET", "/gateway/bot", nil, &g); err != nil {
		if e, ok := errors.AsType[*channel.Error](err); ok && e.Permanent && !errors.Is(err, errToken) {
			err = &channel.Error{Err: e.Err} // such as 403, with which too many requests are answered
		}
		return "", err
	}
	if !b.gatewayURL(g.URL) {
		return "", errors.New("discord: the address of the gateway is not one of Discord")
	}
	if n := g.Limit.Remaining; n != nil && *n <= 0 {
		pause := time.Duration(min(max(g.Limit.ResetAfter, 1000), 24*3600*1000)) * time.Millisecond
		return "", &channel.Error{RetryAfter: pause, Err: errors.New("discord: the bot was started too often today")}
	}
	return g.URL, nil
}

// connect makes a connection and reads it until it is lost.
func (r *receiver) connect(ctx context.Context, up func()) error {
	r.mu.Lock()
	from := r.now
	r.mu.Unlock()
	at := from.URL
	if from.ID == "" || at == "" {
		var err error
		if at, err = r.find(ctx); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	slow := time.AfterFunc(helloTimeout, func() { cancel(errors.New("discord: the gateway does not answer")) })
	defer slow.Stop()
	ws, _, err := websocket.Dial(ctx, strings.TrimRight(at, "/")+"/?v=10&encoding=json",
		&websocket.DialOptions{HTTPClient: r.http})
	if err != nil {
		r.mu.Lock()
		r.now.URL = "" // the next attempt asks for another one
		r.mu.Unlock()
		return fmt.Errorf("discord: connect to the gateway: %w", lost(ctx, err))
	}
	defer ws.CloseNow()
	ws.SetReadLimit(maxFrame)
	c := &conn{receiver: r, ws: ws, cancel: cancel, alive: true, ready: sync.OnceFunc(func() { slow.Stop(); up() })}
	err = c.read(ctx, from)
	cancel(nil)
	c.wg.Wait()
	return err
}

// lost returns why a connection ended: what cancelled ctx, or else err.
func lost(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// conn is one connection to the gateway.
type conn struct {
	*receiver
	ws     *websocket.Conn
	cancel context.CancelCauseFunc
	ready  func()         // is called when the session is established; the first call counts
	wg     sync.WaitGroup // the heartbeat and acknowledgements

	beat  sync.Mutex
	alive bool // the last heartbeat was acknowledged; guarded by beat
}

// read processes the frames of a connection.
func (c *conn) read(ctx context.Context, from session) error {
	for first := true; ; first = false {
		_, data, err := c.ws.Read(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return lost(ctx, err)
			}
			return c.closed(err)
		}
		var f frame
		if err := json.Unmarshal(data, &f); err != nil {
			return fmt.Errorf("discord: a frame of the gateway is not valid: %w", err)
		}
		if first != (f.Op == opHello) {
			return fmt.Errorf("discord: unexpected operation %d of the gateway", f.Op)
		}
		if err := c.handle(ctx, f, from); err != nil {
			return err
		}
	}
}

// handle processes a frame.
func (c *conn) handle(ctx context.Context, f frame, from session) error {
	switch f.Op {
	case opHello:
		var hello struct {
			Interval int64 `json:"heartbeat_interval"` // milliseconds
		}
		if err := json.Unmarshal(f.Data, &hello); err != nil || hello.Interval < 100 || hello.Interval > 3600_000 {
			return errors.New("discord: the interval of heartbeats is not valid")
		}
		c.wg.Go(func() { c.heartbeats(ctx, time.Duration(hello.Interval)*time.Millisecond) })
		return c.begin(ctx, from)
	case opHeartbeat:
		return c.heartbeat(ctx)
	case opHeartbeatAck:
		c.beat.Lock()
		c.alive = true
		c.beat.Unlock()
	case opReconnect:
		return errors.New("discord: the gateway asks for a new connection")
	case opInvalid:
		if string(f.Data) != "true" {
			c.forget()
		}
		return errors.New("discord: the session is not valid any more")
	case opDispatch:
		return c.dispatch(ctx, f)
	}
	return nil
}

// begin resumes the session, or starts one.
func (c *conn) begin(ctx context.Context, from session) error {
	if from.ID != "" {
		return c.write(ctx, opResume, map[string]any{"token": c.token.Reveal(), "session_id": from.ID, "seq": from.Done})
	}
	return c.write(ctx, opIdentify, map[string]any{
		"token": c.token.Reveal(), "intents": intents,
		"properties": map[string]string{"os": "linux", "browser": "chela", "device": "chela"},
	})
}

// write sends a frame.
func (c *conn) write(ctx context.Context, op int, v any) error {
	data, err := json.Marshal(map[string]any{"op": op, "d": v})
	if err != nil {
		return fmt.Errorf("discord: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	if err := c.ws.Write(ctx, websocket.MessageText, data); err != nil {
		return fmt.Errorf("discord: write to the gateway: %w", err)
	}
	return nil
}

// heartbeats sends heartbeats until ctx ends, and ends the connection when one is not
// acknowledged.
func (c *conn) heartbeats(ctx context.Context, interval time.Duration) {
	pause := time.Duration(rand.Float64() * float64(interval)) // so that many bots do not send at the same time
	for {
		if backoff.Sleep(ctx, pause) != nil {
			return
		}
		pause = interval
		c.beat.Lock()
		missed := !c.alive
		c.alive = false
		c.beat.Unlock()
		err := errors.New("discord: the gateway did not acknowledge a heartbeat")
		if !missed {
			err = c.heartbeat(ctx)
		}
		if err != nil {
			c.cancel(err)
			return
		}
	}
}

// heartbeat sends a heartbeat with the number of the last event that was processed.
func (c *conn) heartbeat(ctx context.Context) error {
	c.receiver.mu.Lock()
	done := c.now.Done
	c.receiver.mu.Unlock()
	if done == 0 {
		return c.write(ctx, opHeartbeat, nil)
	}
	return c.write(ctx, opHeartbeat, done)
}

// forget makes the next connection start a new session. Events of the old one that wait
// for the sink are still processed.
func (r *receiver) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = session{Self: r.now.Self, App: r.now.App}
}

// closed returns what the end of a connection means.
func (c *conn) closed(err error) error {
	const portal = "at https://discord.com/developers/applications, Bot, Privileged Gateway Intents"
	code := websocket.CloseStatus(err)
	switch code {
	case -1:
		return fmt.Errorf("discord: the connection to the gateway broke: %w", err)
	case 4004:
		return c.unauthorized()
	case 4013, 4014:
		return refused(
			"the bot may not read messages (code %d; switch on Message Content Intent %s, then restart the gateway)", code,
			portal)
	case 4010, 4011, 4012:
		return refused("the gateway refuses the bot (code %d): bots that need several connections are not supported", code)
	case 4003, 4007, 4009: // the session cannot be resumed
		c.forget()
	}
	return fmt.Errorf("discord: the gateway closed the connection with the code %d", code)
}

// dispatch queues an event.
func (c *conn) dispatch(ctx context.Context, f frame) error {
	switch f.Type {
	case "READY":
		if err := c.started(f); err != nil {
			return err
		}
		c.ready()
	case "RESUMED":
		c.ready()
	}
	c.receiver.mu.Lock()
	id, old := c.now.ID, f.Seq <= c.now.queued
	c.receiver.mu.Unlock()
	if old || id == "" {
		return nil // it was received on an earlier connection, and waits or was processed
	}
	if f.Type == "INTERACTION_CREATE" {
		c.acknowledge(ctx, f.Data)
	}
	select {
	case c.events <- event{f, id}:
	case <-ctx.Done():
		return lost(ctx, ctx.Err())
	}
	c.receiver.mu.Lock()
	c.now.queued = f.Seq
	c.receiver.mu.Unlock()
	return nil
}

// started records a new session.
func (c *conn) started(f frame) error {
	var ready struct {
		User    user   `json:"user"`
		Session string `json:"session_id"`
		URL     string `json:"resume_gateway_url"`
		App     struct {
			ID string `json:"id"`
		} `json:"application"`
	}
	if err := json.Unmarshal(f.Data, &ready); err != nil {
		return fmt.Errorf("discord: the start of the session is not valid: %w", err)
	}
	if ready.Session == "" || len(ready.Session) > 256 || !snowflake(ready.User.ID) {
		return errors.New("discord: the start of the session lacks the session or the user")
	}
	if !c.gatewayURL(ready.URL) {
		ready.URL = ""
	}
	c.know(ready.User, ready.App.ID)
	c.receiver.mu.Lock()
	defer c.receiver.mu.Unlock()
	c.now = session{ID: ready.Session, URL: ready.URL, Self: ready.User, App: ready.App.ID}
	return nil
}

// process passes events on, in order, until ctx ends.
func (r *receiver) process(ctx context.Context) {
	for {
		select {
		case e := <-r.events:
			if r.pass(ctx, e.frame) != nil {
				return
			}
			r.advance(e)
		case <-ctx.Done():
			return
		}
	}
}

// advance records that an event was processed. An event of an earlier session says nothing about
// the numbers of the present one.
func (r *receiver) advance(e event) {
	r.mu.Lock()
	if e.session == r.now.ID {
		r.now.Done = max(r.now.Done, e.Seq)
	}
	message := strings.HasPrefix(e.Type, "MESSAGE_") || e.Type == "INTERACTION_CREATE"
	due := e.Type == "READY" || message && time.Since(r.saved) >= saveInterval
	r.mu.Unlock()
	if due {
		r.save()
	}
}
