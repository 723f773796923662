//go:build unix

package chelatest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
)

// platform is a messaging platform outside of the engine that is killed. It offers
// each message of a person until the engine acknowledges it. It creates one message
// for each request to send.
type platform struct {
	l *ledger

	mu      sync.Mutex
	rnd     *rand.Rand
	waiting []int             // numbers of messages that were not acknowledged
	changed chan struct{}     // is closed when waiting or held changes
	held    bool              // nothing is offered
	exact   bool              // no acknowledgement is lost
	sent    map[string]string // message ids by key
}

func newPlatform(l *ledger, rnd *rand.Rand) *platform {
	return &platform{l: l, rnd: rnd, changed: make(chan struct{}), sent: map[string]string{}}
}

// update changes the platform and wakes the requests that wait.
func (p *platform) update(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
	close(p.changed)
	p.changed = make(chan struct{})
}

// say offers a message to the engine.
func (p *platform) say(n int) { p.update(func() { p.waiting = append(p.waiting, n) }) }

// hold stops or resumes the offers.
func (p *platform) hold(held bool) { p.update(func() { p.held = held }) }

// ServeHTTP implements http.Handler.
func (p *platform) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	switch r.URL.Path {
	case "/next":
		if n, ok := p.next(r.Context()); ok {
			json.NewEncoder(w).Encode(chela.Inbound{ID: "p" + strconv.Itoa(n), Text: p.l.offer(n)})
		}
	case "/ack":
		p.ack(q.Get("id"))
	case "/send":
		p.l.deliver(q.Get("text"))
		p.mu.Lock()
		defer p.mu.Unlock()
		id := strconv.Itoa(len(p.sent) + 1)
		p.sent[q.Get("key")] = id
		fmt.Fprint(w, id)
	case "/find":
		p.mu.Lock()
		defer p.mu.Unlock()
		fmt.Fprint(w, p.sent[q.Get("key")])
	}
}

// next waits for a message and returns its number.
func (p *platform) next(ctx context.Context) (int, bool) {
	for {
		p.mu.Lock()
		n, ok, changed := 0, len(p.waiting) > 0 && !p.held, p.changed
		if ok {
			n = p.waiting[0]
		}
		p.mu.Unlock()
		if ok {
			return n, true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return 0, false
		}
	}
}

// ack removes a message. Some acknowledgements are lost.
func (p *platform) ack(id string) {
	var n int
	if _, err := fmt.Sscanf(id, "p%d", &n); err != nil {
		p.l.fault("the channel acknowledged %q", id)
		return
	}
	lost := false
	p.update(func() {
		if lost = !p.exact && p.rnd.IntN(4) == 0; !lost {
			p.waiting = slices.DeleteFunc(p.waiting, func(have int) bool { return have == n })
		}
	})
	if !lost {
		p.l.accept(n)
	}
}

// platformChannel is the channel of the engine to a platform.
type platformChannel struct {
	url  string
	step func(string)
}

var _ channel.Finder = platformChannel{}

// Run implements channel.Channel.
func (c platformChannel) Run(ctx context.Context, sink channel.Sink) error {
	for {
		b, err := c.get(ctx, "/next", nil)
		if err != nil {
			return err
		}
		var in chela.Inbound
		if err := json.Unmarshal(b, &in); err != nil {
			return err
		}
		in.Address, in.Sender = chela.Address{Channel: "platform", Peer: chela.Peer{Kind: chela.Direct, ID: "p"}},
			chela.Sender{ID: "p"}
		if err := sink(ctx, in); err != nil {
			return err
		}
		if _, err := c.get(ctx, "/ack", url.Values{"id": {in.ID}}); err != nil {
			return err
		}
	}
}

// Send implements channel.Channel.
func (c platformChannel) Send(ctx context.Context, p channel.Part) (channel.Receipt, error) {
	c.step("channel.send")
	b, err := c.get(ctx, "/send", url.Values{"key": {p.Key}, "text": {p.Text}})
	c.step("channel.sent")
	if err != nil {
		err = errors.Join(channel.ErrAmbiguous, err)
	}
	return channel.Receipt{ID: string(b)}, err
}

// Find implements channel.Finder.
func (c platformChannel) Find(ctx context.Context, _ chela.Address, key string) (channel.Receipt, bool, error) {
	b, err := c.get(ctx, "/find", url.Values{"key": {key}})
	return channel.Receipt{ID: string(b)}, len(b) > 0, err
}

func (c platformChannel) get(ctx context.Context, path string, q url.Values) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+path+"?"+q.Encode(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(resp.Body)
}
