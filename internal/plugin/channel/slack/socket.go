package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/chela-ai/chela/internal/core/channel"
)

const (
	maxFrame   = 2 << 20          // bytes
	helloTime  = 15 * time.Second // to connect, until the first frame
	pingEvery  = 20 * time.Second
	pingTime   = 10 * time.Second // for the answer to a ping
	writeTime  = 5 * time.Second
	retireTime = 30 * time.Second // of a connection that has a successor
	renewPause = 2 * time.Second  // between attempts to connect a successor
)

// socket is a connection of Socket Mode.
type socket struct {
	b      *bot
	ws     *websocket.Conn
	expire chan struct{} // closed when Slack announced that it will close the connection
	once   sync.Once
}

// envelope is a frame of Socket Mode.
type envelope struct {
	Type    string          `json:"type"`
	ID      string          `json:"envelope_id"`
	Payload json.RawMessage `json:"payload"`
	Reason  string          `json:"reason"`
}

// connect makes a connection and holds it until it is lost. When Slack announces the end of
// a connection, a successor is connected first: Slack sends each event to one of the
// connections that exist, and to the earlier one until that is closed.
func (b *bot) connect(ctx context.Context, up func()) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	s, err := b.open(ctx)
	if err != nil {
		return err
	}
	for {
		up()
		own, retire := context.WithCancel(ctx)
		lost := make(chan error, 1) // with room: nobody waits for a connection that has a successor
		wg.Go(func() {
			defer retire()
			lost <- s.serve(own)
		})
		select {
		case err := <-lost:
			return err
		case <-s.expire:
		}
		next, err := b.renew(ctx, lost)
		if err != nil {
			return err
		}
		// The earlier connection still receives what Slack sends to it until it closes it.
		t := time.AfterFunc(retireTime, retire)
		wg.Go(func() {
			<-own.Done()
			t.Stop()
		})
		s = next
	}
}

// renew connects a successor. It tries again until the present connection is lost.
func (b *bot) renew(ctx context.Context, lost <-chan error) (*socket, error) {
	for {
		s, err := b.open(ctx)
		if err == nil {
			return s, nil
		}
		if e, ok := errors.AsType[*channel.Error](err); ok && e.Permanent {
			return nil, err
		}
		d := renewPause
		if e, ok := errors.AsType[*channel.Error](err); ok {
			d = max(d, e.RetryAfter)
		}
		t := time.NewTimer(d)
		select {
		case <-t.C:
		case err = <-lost:
			t.Stop()
			return nil, err
		case <-ctx.Done():
			t.Stop()
			return nil, ctx.Err()
		}
	}
}

// open asks for a socket, connects to it and waits for the greeting.
func (b *bot) open(ctx context.Context) (*socket, error) {
	var r struct {
		URL string `json:"url"`
	}
	if _, err := b.request(ctx, http.MethodPost, "apps.connections.open", b.appToken, nil, &r); err != nil {
		return nil, certain(err)
	}
	if err := b.checkURL(r.URL, "wss", "ws"); err != nil {
		return nil, fmt.Errorf("slack: the socket: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, helloTime)
	defer cancel()
	client := *b.http
	client.Timeout = 0
	ws, res, err := websocket.Dial(ctx, r.URL, &websocket.DialOptions{HTTPClient: &client})
	if err != nil {
		if res != nil && res.StatusCode != http.StatusSwitchingProtocols {
			return nil, fmt.Errorf("slack: the socket was refused with status %d", res.StatusCode)
		}
		return nil, fmt.Errorf("slack: connect the socket: %w", bare(err))
	}
	ws.SetReadLimit(maxFrame)
	s := &socket{b: b, ws: ws, expire: make(chan struct{})}
	e, err := s.next(ctx)
	if err == nil && e.Type != "hello" {
		err = fmt.Errorf("the first frame is %q; want hello", clip(e.Type, 50))
	}
	if err != nil {
		_ = ws.CloseNow()
		return nil, fmt.Errorf("slack: the socket: %w", err)
	}
	return s, nil
}

// checkURL checks that a URL that Slack answered leads to Slack: to its domain by the secure
// scheme, or to the host of the configured root.
func (b *bot) checkURL(s, secure, insecure string) error {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || u.User != nil:
		return errors.New("its address is not a URL")
	case b.own && u.Host == b.root.Host && (u.Scheme == secure || u.Scheme == insecure && b.root.Scheme == "http"):
		return nil
	case u.Scheme == secure && slackHost(u.Hostname()) && (u.Port() == "" || u.Port() == "443"):
		return nil
	}
	return fmt.Errorf("the host %s is not one of Slack's", clip(u.Host, 100))
}

// slackHost reports whether a host belongs to Slack.
func slackHost(host string) bool {
	host = strings.ToLower(host)
	return host == "slack.com" || strings.HasSuffix(host, ".slack.com")
}

// next reads a frame. Frames that are no JSON object end the connection.
func (s *socket) next(ctx context.Context) (envelope, error) {
	var e envelope
	kind, data, err := s.ws.Read(ctx)
	if err != nil {
		return e, err
	}
	if kind != websocket.MessageText {
		return e, errors.New("a frame is not text")
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return e, fmt.Errorf("a frame is not JSON: %w", err)
	}
	return e, nil
}

// serve reads frames until the connection is lost.
func (s *socket) serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	defer s.ws.CloseNow()
	dead := make(chan error, 1)
	wg.Go(func() {
		defer cancel()
		s.ping(ctx, dead)
	})
	for {
		e, err := s.next(ctx)
		if err != nil {
			select {
			case why := <-dead:
				return why
			default:
			}
			return fmt.Errorf("slack: the socket: %w", err)
		}
		switch e.Type {
		case "events_api", "interactive", "slash_commands":
			s.b.add(job{kind: e.Type, payload: e.Payload, arrived: time.Now(), ack: func() { s.ack(ctx, e.ID) }})
		case "disconnect":
			if e.Reason == "link_disabled" {
				return &channel.Error{Permanent: true,
					Err: errors.New("slack: Socket Mode is off (turn it on at https://api.slack.com/apps, Socket Mode)")}
			}
			s.once.Do(func() { close(s.expire) })
		default:
			if e.ID != "" { // of a kind that is not known; without an answer it would be repeated
				s.ack(ctx, e.ID)
			}
		}
	}
}

// ping checks that the other side answers, until ctx ends or it does not.
func (s *socket) ping(ctx context.Context, dead chan<- error) {
	t := time.NewTicker(pingEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		pctx, cancel := context.WithTimeout(ctx, pingTime)
		err := s.ws.Ping(pctx)
		cancel()
		if err != nil {
			if ctx.Err() == nil {
				dead <- fmt.Errorf("slack: the socket does not answer: %w", err)
			}
			return
		}
	}
}

// ack acknowledges an envelope. After an error Slack repeats it.
func (s *socket) ack(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	data, err := json.Marshal(map[string]string{"envelope_id": id})
	if err == nil {
		err = s.ws.Write(ctx, websocket.MessageText, data)
	}
	if err != nil {
		s.b.env.Log.Debug("an event was not acknowledged", "err", err)
	}
}
