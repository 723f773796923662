// Package nodes keeps the connections of nodes and calls their commands.
//
// A call is sent to the connection that its node has now, and to no later one. It ends with
// the node's answer, with the end of the connection, with its time or with its context; in
// the last two cases the node is told that nobody waits any more. What was sent and has no
// answer may have been carried out: it is never sent again.
//
// A call with a key is recorded before it is sent. While it runs, calls with the same key
// wait for the same answer; later ones get it from memory, as long as it is there. After a
// restart only the record is left, which says whether there was an answer.
package nodes

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/node"
	"github.com/chela-ai/chela/internal/core/pairing"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/wire"
)

// Limits of the calls in progress.
const (
	maxCalls     = 256
	maxNodeCalls = 32 // of one node
)

// Limits of the answers that are remembered for calls with a key.
const (
	maxAnswers    = 128
	maxAnswer     = 1 << 20 // bytes of one; larger ones are not remembered
	maxAllAnswers = 16 << 20
)

// Options configures a Registry. All fields are required.
type Options struct {
	Log    *slog.Logger
	Store  store.Store
	Policy func() node.Policy // as the configuration has it now
	// Params returns the parameters of a canvas command as the device needs them: pages of
	// the gateway become addresses.
	Params func(device, command string, s chela.SessionKey, params json.RawMessage) (json.RawMessage, error)
}

// Registry keeps the connections of nodes. Use [New]. It is safe for concurrent use.
type Registry struct {
	o  Options
	wg sync.WaitGroup // calls with a key

	waking sync.Mutex // held while the wake words change

	mu      sync.Mutex
	words   []string           // that wake apps; nil: not read yet
	links   map[string][]*link // by device; the last one is in use
	calls   map[string]*call   // by id
	keyed   map[string]*keyed  // by key
	answers []string           // keys of the answers that are remembered, oldest first
	size    int                // bytes of those answers
}

var _ node.Caller = (*Registry)(nil)

// New returns a Registry.
func New(o Options) *Registry {
	return &Registry{o: o, links: map[string][]*link{}, calls: map[string]*call{}, keyed: map[string]*keyed{}}
}

// link is a connection of a node.
type link struct {
	send func(event string, payload any)
	gone chan struct{} // closed when it has ended
}

// call is a command that was sent.
type call struct {
	device   string
	answer   chan wire.NodeInvokeResult // capacity 1
	progress func(string)
	seq      int64 // of the last progress
}

// keyed is a call with a key, or its answer.
type keyed struct {
	sum     string
	ended   chan struct{}
	payload json.RawMessage
	err     error
}

// Join adds a connection of a device in the role of a node, which is told the wake words.
// send sends it an event and does not block. The caller calls leave when the connection has ended.
func (r *Registry) Join(device string, send func(event string, payload any)) (leave func()) {
	l := &link{send: send, gone: make(chan struct{})}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.links[device] = append(r.links[device], l)
	if words, err := r.wordsLocked(context.Background()); err == nil {
		send(wire.EventWakeChanged, wire.WakeWords{Triggers: words})
	}
	return sync.OnceFunc(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		close(l.gone)
		var rest []*link
		for _, o := range r.links[device] {
			if o != l {
				rest = append(rest, o)
			}
		}
		if r.links[device] = rest; rest == nil {
			delete(r.links, device)
		}
	})
}

// Nodes implements [node.Caller].
func (r *Registry) Nodes(ctx context.Context) ([]node.Node, error) {
	all, err := store.Get(ctx, r.o.Store,
		func(rd store.Reader) ([]pairing.Device, error) { return pairing.Nodes(rd.Devices()) })
	if err != nil {
		return nil, err
	}
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]node.Node, 0, len(all))
	for _, d := range all {
		out = append(out, view(d, len(r.links[d.ID]) > 0, now))
	}
	return out, nil
}

// view returns a device as a node.
func view(d pairing.Device, connected bool, now time.Time) node.Node {
	n := node.Node{
		ID:        d.ID,
		Name:      cmp.Or(d.Label, d.DisplayName),
		Platform:  d.Platform,
		Family:    d.Family,
		Connected: connected,
		Seen:      d.LastSeen,
	}
	if p := d.Node; p != nil {
		n.Version, n.Declared, n.Approved = p.Version, p.Declared.Commands, p.Surface().Commands
		if p.Request != nil && !p.Request.Expired(now) {
			n.Request = p.Request.ID
		}
	}
	return n
}

// Allowed implements [node.Caller].
func (r *Registry) Allowed(n *node.Node, command string) error {
	return r.o.Policy().Permits(n, command)
}

// Wait waits for the calls with a key, which end with the connections of their nodes.
func (r *Registry) Wait() { r.wg.Wait() }

// find returns a node that may carry out a command now.
func (r *Registry) find(ctx context.Context, id, command string) error {
	all, err := r.Nodes(ctx)
	if err != nil {
		return err
	}
	for i := range all {
		if all[i].ID == id {
			return r.Allowed(&all[i], command)
		}
	}
	return &chela.Error{Code: chela.CodeNotFound, Message: "unknown nodeId", Hint: "chela nodes list"}
}

// Invoke implements [node.Caller].
func (r *Registry) Invoke(ctx context.Context, q node.Request) (json.RawMessage, error) {
	switch {
	case q.Node == "" || q.Command == "":
		return nil, chela.Errorf(chela.CodeInvalid, "a call of a node names the node and the command")
	case len(q.Params) > node.MaxParams:
		return nil, chela.Errorf(chela.CodeInvalid, "the parameters have %d bytes, and a node gets at most %d", len(q.Params),
			node.MaxParams)
	}
	if q.Timeout <= 0 {
		q.Timeout = node.DefaultTimeout
	}
	q.Timeout = min(q.Timeout, node.MaxTimeout)
	if q.Key == "" {
		return r.invoke(ctx, q, nil)
	}
	return r.once(ctx, q)
}

// once makes a call with a key, unless it was made before.
func (r *Registry) once(ctx context.Context, q node.Request) (json.RawMessage, error) {
	sum := sumOf(q)
	r.mu.Lock()
	k := r.keyed[q.Key]
	first := k == nil
	if first {
		k = &keyed{sum: sum, ended: make(chan struct{})}
		r.keyed[q.Key] = k
	}
	r.mu.Unlock()
	if first {
		// The call does not end with its first caller: others may wait for it.
		r.wg.Go(func() {
			k.payload, k.err = r.recorded(context.WithoutCancel(ctx), q, sum)
			r.remember(q.Key, k)
			close(k.ended)
		})
	}
	if k.sum != sum {
		return nil, errReused
	}
	select {
	case <-k.ended:
		return k.payload, k.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// errReused says that a key was used for another call before.
var errReused = chela.Errorf(chela.CodeInvalid, "this idempotencyKey was used for another call")

// sumOf identifies what a call does.
func sumOf(q node.Request) string {
	h := sha256.New()
	params := new(bytes.Buffer)
	if json.Compact(params, q.Params) != nil {
		params = bytes.NewBuffer(q.Params)
	}
	for _, part := range [...]string{q.Node, q.Command, params.String()} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// recorded makes a call whose record is on disk before it is sent.
func (r *Registry) recorded(ctx context.Context, q node.Request, sum string) (json.RawMessage, error) {
	row := node.Invocation{Key: q.Key, Node: q.Node, Command: q.Command, Sum: sum, Sent: time.Now()}
	had, err := store.Get(ctx, r.o.Store,
		func(rd store.Reader) (node.Invocation, error) { return rd.Invocations().Get(q.Key) })
	switch {
	case err == nil && had.Sum != sum:
		return nil, errReused
	case err == nil && had.Done:
		return nil, chela.Errorf(chela.CodeConflict,
			"%s was carried out before with this idempotencyKey, and its answer is no longer known", q.Command)
	case err == nil:
		return nil, unknown(fmt.Sprintf("%s was sent before with this idempotencyKey, and there was no answer", q.Command))
	case !errors.Is(err, chela.ErrNotFound):
		return nil, err
	}
	payload, err := r.invoke(ctx, q, func() error {
		return r.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
			return errors.Join(tx.Invocations().Put(row), tx.Invocations().Prune(row.Sent.Add(-node.Kept)))
		})
	})
	if f, ok := errors.AsType[*node.Fault](err); err != nil && !(ok && f.Answered) {
		return payload, err
	}
	row.Done = true
	if serr := r.o.Store.Update(ctx, store.Ordered, func(tx store.Tx) error { return tx.Invocations().Put(row) }); serr !=
		nil {
		r.o.Log.Error("record the answer of a node", "node", q.Node, "command", q.Command, "err", serr)
	}
	return payload, err
}

// unknown is the error of a call that may have been carried out.
func unknown(what string) *node.Fault {
	return &node.Fault{Code: wire.NodeUnknown, Sent: true, Message: what + ": whether it was carried out is unknown"}
}

// remember keeps the answer of a call with a key, or forgets the call if it was not sent.
func (r *Registry) remember(key string, k *keyed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f, fault := errors.AsType[*node.Fault](k.err)
	if k.err != nil && (!fault || !f.Sent) || len(k.payload) > maxAnswer {
		delete(r.keyed, key)
		return
	}
	r.answers = append(r.answers, key)
	r.size += len(k.payload)
	for len(r.answers) > maxAnswers || r.size > maxAllAnswers {
		oldest := r.answers[0]
		r.answers = r.answers[1:]
		r.size -= len(r.keyed[oldest].payload)
		delete(r.keyed, oldest)
	}
}

// invoke makes a call. before is called before it is sent; nil: nothing has to be done.
func (r *Registry) invoke(ctx context.Context, q node.Request, before func() error) (json.RawMessage, error) {
	if err := r.find(ctx, q.Node, q.Command); err != nil {
		return nil, err
	}
	if strings.HasPrefix(q.Command, node.Canvas) {
		var err error
		if q.Params, err = r.o.Params(q.Node, q.Command, q.Session, q.Params); err != nil {
			return nil, err
		}
	}
	id := rand.Text()
	c := &call{device: q.Node, answer: make(chan wire.NodeInvokeResult, 1), progress: q.Progress}
	l, err := r.begin(id, c)
	if err != nil {
		return nil, err
	}
	defer r.end(id)
	if before != nil {
		if err := before(); err != nil {
			return nil, err
		}
	}
	timer := time.NewTimer(q.Timeout)
	defer timer.Stop()
	l.send(wire.EventNodeInvokeRequest, requestOf(id, q))
	select {
	case res := <-c.answer:
		return answerOf(q, res)
	case <-l.gone:
		select {
		case res := <-c.answer: // it came before the end
			return answerOf(q, res)
		default:
		}
		return nil, &node.Fault{Code: wire.NodeDisconnected, Sent: true,
			Message: "the node disconnected before it answered " + q.Command + ": whether it was carried out is unknown"}
	case <-timer.C:
		err = &node.Fault{Code: wire.NodeTimeout, Sent: true,
			Message: fmt.Sprintf("the node did not answer %s within %s: whether it was carried out is unknown",
				q.Command, q.Timeout)}
	case <-ctx.Done():
		err = ctx.Err()
	}
	l.send(wire.EventNodeInvokeCancel, wire.NodeInvokeCancel{ID: id, Node: q.Node})
	return nil, err
}

// requestOf returns the event of a call.
func requestOf(id string, q node.Request) wire.NodeInvokeRequest {
	p := wire.NodeInvokeRequest{
		ID:      id,
		Node:    q.Node,
		Command: q.Command,
		Timeout: q.Timeout.Milliseconds(),
		Key:     cmp.Or(q.Key, id),
		Session: string(q.Session),
	}
	if len(q.Params) > 0 {
		text := string(q.Params)
		p.ParamsJSON = &text
	}
	return p
}

// begin registers a call, and returns the connection for it.
func (r *Registry) begin(id string, c *call) (*link, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	links := r.links[c.device]
	if len(links) == 0 {
		return nil, &node.Fault{Code: wire.NodeNotConnected, Message: "node not connected"}
	}
	own := 0
	for o := range maps.Values(r.calls) {
		if o.device == c.device {
			own++
		}
	}
	if len(r.calls) >= maxCalls || own >= maxNodeCalls {
		return nil, chela.Errorf(chela.CodeUnavailable, "too many calls of nodes are in progress; wait until some have ended")
	}
	r.calls[id] = c
	return links[len(links)-1], nil
}

func (r *Registry) end(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.calls, id)
}

// of returns a call of a device in progress; nil: there is none.
func (r *Registry) of(device, id string) *call {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.calls[id]; c != nil && c.device == device {
		return c
	}
	return nil
}

// Answer takes the answer of a device to a call. It reports false if nobody waits for it.
func (r *Registry) Answer(device string, res wire.NodeInvokeResult) bool {
	c := r.of(device, res.ID)
	if c == nil {
		return false
	}
	select {
	case c.answer <- res:
		return true
	default:
		return false // it answered before
	}
}

// Progress takes output of a call that is still running. It reports false if nobody waits
// for it.
func (r *Registry) Progress(device string, p wire.NodeInvokeProgress) bool {
	c := r.of(device, p.ID)
	if c == nil || c.progress == nil {
		return false
	}
	r.mu.Lock()
	stale := p.Seq < c.seq
	c.seq = max(c.seq, p.Seq+1)
	r.mu.Unlock()
	if !stale {
		c.progress(p.Chunk)
	}
	return !stale
}

// answerOf returns the answer to a call as its result.
func answerOf(q node.Request, res wire.NodeInvokeResult) (json.RawMessage, error) {
	if !res.OK {
		f := &node.Fault{Message: "the node did not carry out " + q.Command, Sent: true, Answered: true}
		if res.Error != nil {
			f.Code, f.Message = res.Error.Code, cmp.Or(res.Error.Message, f.Message)
		}
		return nil, f
	}
	payload := res.Payload
	var text string
	switch {
	case len(res.PayloadJSON) == 0 || string(res.PayloadJSON) == "null":
	case json.Unmarshal(res.PayloadJSON, &text) == nil:
		if payload = json.RawMessage(text); !json.Valid(payload) {
			payload, _ = json.Marshal(text) // a string
		}
	default:
		payload = res.PayloadJSON
	}
	if len(payload) > node.MaxPayload {
		return nil, &node.Fault{Code: "PAYLOAD_TOO_LARGE", Sent: true, Answered: true,
			Message: fmt.Sprintf("the answer to %s has %d bytes, and at most %d are accepted", q.Command,
				len(payload), node.MaxPayload)}
	}
	return payload, nil
}
