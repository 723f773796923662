package signal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/memo"
	"github.com/chela-ai/chela/internal/kit/sse"
)

// Limits of what is received and remembered.
const (
	silence       = time.Minute // the daemon writes at least every 15 seconds
	maxEvent      = 4 << 20
	maxMessages   = 2000 // whose authors are remembered
	maxRemembered = 300  // bytes of the text of one
	maxNames      = 2000
	maxKeys       = 512
	maxReceipts   = 100 // receipts that wait for being sent
)

// bot is an account.
type bot struct {
	env      channel.Env
	c        config
	account  chela.AccountID
	client   *http.Client
	daemon   *daemon // nil: somebody else runs it
	requests atomic.Int64

	names     memo.Map[string, string]      // of people, by id
	seen      memo.Map[messageKey, written] // messages
	edits     memo.Map[string, int64]       // the time of the original, by the id of an edit
	confirmed memo.Map[partKey, receipt]    // what was sent
	versions  memo.Map[messageKey, int64]   // the time of the last version of an own message; 0: deleted
	reactions memo.Map[messageKey, string]  // emoji of the account
	receipts  chan receiptOf                // to send
	spool     spool                         // used by Run only

	mu sync.Mutex
	me string // UUID of the account; empty: not known yet
}

// messageKey is a message in a chat.
type messageKey struct {
	chat chela.Peer
	time int64
}

// written is who wrote a message.
type written struct{ author, text string }

// receiptOf is a message that was read.
type receiptOf struct {
	author string
	time   int64
}

var (
	_ channel.Channel   = (*bot)(nil)
	_ channel.Editor    = (*bot)(nil)
	_ channel.Deleter   = (*bot)(nil)
	_ channel.Typer     = (*bot)(nil)
	_ channel.Reactor   = (*bot)(nil)
	_ channel.Prober    = (*bot)(nil)
	_ channel.Fetcher   = (*bot)(nil)
	_ channel.Directory = (*bot)(nil)
)

func newBot(env channel.Env, c config, account chela.AccountID, programs Programs) *bot {
	b := &bot{
		env:      env,
		c:        c,
		account:  account,
		client:   env.Trusted(c.base.Host),
		me:       c.uuid,
		receipts: make(chan receiptOf, maxReceipts),
	}
	b.names.Most, b.seen.Most, b.edits.Most = maxNames, maxMessages, maxMessages
	b.confirmed.Most, b.versions.Most, b.reactions.Most = maxKeys, maxMessages, maxMessages
	b.spool.path = filepath.Join(env.Dir, "pending.json")
	if c.managed {
		b.daemon = &daemon{bot: b, programs: programs}
	}
	return b
}

// Run implements channel.Channel.
func (b *bot) Run(ctx context.Context, sink channel.Sink) error {
	if bad := b.c.strangers(); len(bad) > 0 {
		b.env.Log.Warn(
			"allowFrom has entries that match nobody; write the UUID of the person, as chela pairing list shows it",
			"entries", strings.Join(bad[:min(len(bad), 10)], " "))
	}
	if b.daemon != nil {
		defer b.daemon.prepare(ctx)()
	}
	defer b.sendReceipts(ctx)()
	if err := b.spool.load(); err != nil {
		b.env.Log.Error("the events that were not accepted are lost", "err", err)
	}
	for len(b.spool.events) > 0 && ctx.Err() == nil {
		if err := b.receive(ctx, sink, b.spool.events[0], true); err != nil {
			return err
		}
	}
	return channel.Reconnect(ctx, b.env, func(ctx context.Context, up func()) error {
		if b.daemon == nil {
			return b.stream(ctx, sink, up)
		}
		if err := b.daemon.start(ctx); err != nil {
			return err
		}
		err := b.stream(ctx, sink, up)
		if ended := b.daemon.ended(ctx); ended != nil {
			return ended
		}
		return err
	})
}

// errSilent says that the daemon wrote nothing for too long.
var errSilent = errors.New("signal: signal-cli wrote nothing for " + silence.String())

// stream opens the stream of events and passes on what arrives, until the stream ends.
func (b *bot) stream(ctx context.Context, sink channel.Sink, up func()) error {
	rctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	alarm := time.AfterFunc(silence, func() { cancel(errSilent) })
	defer alarm.Stop()
	to := b.c.base.String() + "/api/v1/events?account=" + url.QueryEscape(b.c.Account)
	r, err := http.NewRequestWithContext(rctx, http.MethodGet, to, nil)
	if err != nil {
		return fmt.Errorf("signal: %w", err)
	}
	r.Header.Set("Accept", "text/event-stream")
	res, err := b.client.Do(r)
	if err != nil {
		return b.unreachable(rctx, err)
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusBadRequest {
		return fmt.Errorf(
			"signal: signal-cli at %s has no account %s (link it: signal-cli link -n Chela; or check channels.signal.account)",
			b.c.base, b.c.Account)
	}
	if res.StatusCode != http.StatusOK {
		err := b.refusedStatus("the request for events", channel.Answer{Status: res.StatusCode, Header: res.Header})
		if refused, ok := errors.AsType[*channel.Error](err); ok {
			refused.Permanent = false // it may be mended without a restart of the gateway
		}
		return err
	}
	if kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); kind != "text/event-stream" {
		return fmt.Errorf(
			"signal: what answers at %s is not signal-cli's HTTP daemon (check channels.signal.httpUrl or httpPort)", b.c.base)
	}
	up()
	for data, err := range sse.Read(&watched{r: res.Body, alarm: alarm}, maxEvent) {
		if err != nil {
			return b.unreachable(rctx, err)
		}
		if err := b.receive(ctx, sink, data, false); err != nil {
			return err
		}
	}
	return errors.New("signal: signal-cli closed the stream of events")
}

// unreachable returns the error of a stream that broke.
func (b *bot) unreachable(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if b.daemon == nil {
		return fmt.Errorf("signal: no connection to signal-cli at %s: %w (start it: signal-cli -a %s daemon --http %s --receive-mode=on-connection)", b.c.base, err, b.c.Account, b.c.base.Host)
	}
	return fmt.Errorf("signal: no connection to signal-cli at %s: %w", b.c.base, err)
}

// watched is a stream that has to bring something before the alarm goes off, while it is
// read.
type watched struct {
	r     io.Reader
	alarm *time.Timer
}

// Read implements io.Reader.
func (w *watched) Read(p []byte) (int, error) {
	w.alarm.Reset(silence)
	defer w.alarm.Stop()
	return w.r.Read(p)
}

// receive passes on an event. stored says that it is the oldest one of the spool. When ctx
// has ended, events are stored only.
func (b *bot) receive(ctx context.Context, sink channel.Sink, data []byte, stored bool) error {
	var e event
	if err := json.Unmarshal(data, &e); err != nil {
		b.env.Log.Warn("signal-cli sent an event that is not as expected", "err", err)
		return b.done(stored)
	}
	if e.Account != "" && e.Account != b.c.Account {
		if stored {
			b.env.Log.Warn("an event of another account is left out", "account", oneLine(e.Account))
			return b.done(stored)
		}
		return &channel.Error{Permanent: true, Err: fmt.Errorf(
			"signal: signal-cli at %s serves the account %s, not %s (give each account its channels.signal.accounts.NAME.httpPort or httpUrl)", b.c.base, oneLine(e.Account), b.c.Account)}
	}
	if e.Envelope == nil {
		b.problem(&e, "")
		return b.done(stored)
	}
	in, ok := b.inbound(e.Envelope)
	if !ok {
		b.problem(&e, personOf(e.Envelope.UUID, e.Envelope.Number, e.Envelope.Source).id())
		return b.done(stored)
	}
	accepted := false
	err := ctx.Err()
	if err == nil {
		err = channel.Accept(ctx, b.env.Log, func(ctx context.Context) error {
			err := sink(ctx, in)
			accepted = err == nil
			if !accepted && !channel.Refused(err) {
				stored = b.store(data, stored)
			}
			return err
		})
	}
	if err != nil {
		b.store(data, stored)
		return nil // the stream ends with ctx, after the events that were read
	}
	if accepted && b.c.SendReadReceipts {
		b.receiptFor(&in)
	}
	return b.done(stored)
}

// store writes an event to the spool, unless it is there.
func (b *bot) store(data []byte, stored bool) bool {
	if stored {
		return true
	}
	if err := b.spool.add(data); err != nil {
		b.env.Log.Error("event not stored; it is lost if the gateway ends before it is accepted", "err", err)
		return false
	}
	return true
}

// done removes an event from the spool.
func (b *bot) done(stored bool) error {
	if !stored {
		return nil
	}
	if err := b.spool.drop(); err != nil {
		b.env.Log.Warn("accepted event not removed; it may be passed on again", "err", err)
	}
	return nil
}

// problem logs why the daemon could not read a message.
func (b *bot) problem(e *event, from string) {
	if e.Exception == nil {
		return
	}
	hint := ""
	if e.Exception.Type == "UntrustedIdentityException" {
		hint = "the safety number has changed; compare it with the person, then type: signal-cli -a " + b.c.Account +
			" trust -v SAFETY_NUMBER " + from
	}
	b.env.Log.Warn("signal-cli could not read a message", "from", from, "type", oneLine(e.Exception.Type),
		"err", oneLine(e.Exception.Message), "hint", hint)
}
